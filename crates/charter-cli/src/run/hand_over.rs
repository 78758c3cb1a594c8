//! Runs that a command leaves to another process (`--detach`).

use charter_runtime::{ResumeRuns, RuntimeError};

use super::background::Background;
use super::host::{Host, Opener, Place};
use crate::io::Failure;
use crate::journal::Db;
use crate::journal::access::MAX_LOST;
use crate::models;
use crate::program;

impl Host {
    /// Opens a journal file to stay for runs that the process before has left; if another process
    /// has it open by now, leaves them to that one.
    pub(super) fn open_for(db: &Db, models: &models::Args, left: &[(String, bool)]) -> Result<Host, Failure> {
        let host = Host::nowhere(db, models, Opener::Here, true)?;
        host.find_place(ResumeRuns::OnRequest)?;
        for (run, all_timers) in left {
            host.leave(run, *all_timers)?;
            // A run that cannot be resumed does not keep the others from that.
            let _ = host.resume(run)?;
        }
        host.stay()?;
        Ok(host)
    }

    /// Names the page on which persons decide, for agents that wait for them.
    #[cfg(feature = "serve")]
    pub(crate) fn set_page(&self, url: &str) {
        if let Place::Own(own) = &*self.place.borrow() {
            own.service.set_page(url);
        }
    }

    /// Leaves a run to the process that hosts it: it stays while there is something to do.
    pub(crate) fn leave(&self, run: &str, all_timers: bool) -> Result<(), Failure> {
        if let Place::Own(own) = &*self.place.borrow() {
            return Ok(own.service.keep(run.to_owned(), all_timers)?);
        }
        let mut lost = 0;
        while let Some(client) = self.other() {
            match self.threads.block_on(client.keep(run, all_timers)) {
                Err(RuntimeError::Lost { .. }) if lost < MAX_LOST => lost += 1,
                result => return Ok(result?),
            }
            self.move_on()?;
        }
        Ok(())
    }
}

/// Leaves the runs that were left to this process to another one.
pub(super) struct HandOver {
    pub(super) db: Db,
    pub(super) models: models::Args,
}

impl HandOver {
    /// Starts a process in the background that waits for the timers of these runs once this process
    /// has ended. Returns a message if that fails.
    pub(super) fn to_background(&self, left: &[(String, bool)]) -> String {
        if left.is_empty() {
            return String::new();
        }
        let Err(failure) = Background::start_for(&self.db, &self.models, left) else {
            return String::new();
        };
        let mut message = format!("warning: nobody fires the timers of runs that were left here: {failure}\n");
        let resume = |(run, _): &(String, bool)| {
            format!("to continue: {} run --resume {run}{}\n", program::name(), self.db.host_options())
        };
        message.extend(left.iter().map(resume));
        message
    }
}
