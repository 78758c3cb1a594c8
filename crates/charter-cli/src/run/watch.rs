//! The events of a run, across the hosts that carry it out one after the other.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use charter_runtime::backend::{Update, Updates};

use super::answers;
use super::host::{Host, Place};
use crate::io::Failure;

impl Host {
    /// Subscribes to the events of a run. `seen` is its last record that is known.
    pub(crate) fn watch(&self, run: &str, seen: Option<u64>) -> Result<Watch, Failure> {
        let updates = self.call(|b| b.updates(Some(run.to_owned())))?;
        // Another process knows by itself which models it asks; nothing is read from it for that.
        let view = seen.filter(|_| matches!(&*self.place.borrow(), Place::Own(_))).and_then(|_| self.view(run).ok());
        let answerers = view.map(|view| answers::changes(run, &view, self)).transpose()?;
        Ok(Watch { run: run.to_owned(), updates, seen, missed: VecDeque::new(), answerers })
    }

    /// Waits for the next event, at most for `time`.
    pub(crate) fn next(&self, watch: &mut Watch, time: Duration) -> Result<Option<Update>, Failure> {
        if let Some(update) = watch.missed.pop_front() {
            return Ok(Some(update));
        }
        match self.wait_at_most(time, watch.updates.next()) {
            Some(Some(update)) => {
                if let Update::Recorded(record) = &update {
                    watch.seen = watch.seen.max(Some(record.seq));
                }
                return Ok(Some(update));
            }
            // The host has ended.
            Some(None) => {}
            None => return Ok(None),
        }
        watch.updates = self.call(|b| b.updates(Some(watch.run.clone())))?;
        loop {
            let from = watch.seen.map_or(0, |seen| seen.saturating_add(1));
            let records = self.call(|b| b.records(watch.run.clone(), from, 1_000))?;
            match records.last() {
                Some(last) => watch.seen = Some(last.seq),
                None => return Ok(watch.missed.pop_front()),
            }
            watch.missed.extend(records.into_iter().map(Update::Recorded));
        }
    }
}

/// The events of a run, wherever it is hosted.
pub(crate) struct Watch {
    run: String,
    updates: Box<dyn Updates>,
    /// The last record that was seen.
    seen: Option<u64>,
    /// Records that were written while there was no connection.
    missed: VecDeque<Update>,
    /// See [`answers::changes`]; `None`: they were not looked for.
    pub(super) answerers: Option<BTreeMap<String, String>>,
}
