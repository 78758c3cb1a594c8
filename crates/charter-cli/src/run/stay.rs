//! The end of a host in this process: not before the actors that it has started.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use charter_journal::SqliteStore;
use charter_local::Server;
use charter_runtime::Runtime;

use super::follow::now;
use super::host::{Host, Own, Place};
use crate::io::{Exit, Io, Paint};
use crate::journal::text::count;
use crate::program;

/// How long running actors may continue after the program was told to end.
const GRACE: Duration = Duration::from_millis(200);
/// How long requests may take that arrived before the end.
const REQUEST_GRACE: Duration = Duration::from_secs(2);
/// How long the disk may be full before the program ends.
const FULL: Duration = Duration::from_secs(2);
/// How long a command may take to report that the journal cannot be written.
const REPORT: Duration = Duration::from_millis(500);
/// How often a process that stays looks for reasons to stay.
const LOOK: Duration = Duration::from_millis(50);
/// How long a process may stay before it says why.
const QUIET: Duration = Duration::from_millis(300);

impl Host {
    /// Ends the host. If it is in this process, waits for the actors that it has started, of any
    /// run, and for the timers of runs that were left to it.
    pub(crate) fn close(self, io: &mut Io<'_>) {
        let Place::Own(mut own) = self.place.replace(Place::Closed) else {
            return;
        };
        let begin = Instant::now();
        let mut said = false;
        while !self.ends(&mut own) {
            if begin.elapsed() > QUIET && !std::mem::replace(&mut said, true) {
                let what = match own.runtime.working().len() as u64 {
                    0 => "timers of runs that were left to this process".to_owned(),
                    working => format!("{} of this journal file", count(working, "running actor")),
                };
                let line = format!("waiting for {what}; Ctrl-C interrupts");
                // The actors matter more than the message.
                let _ = writeln!(io.err, "{}", Paint(io.color_err).faint(&line));
            }
        }
        self.shut_down(*own);
    }

    /// Stays while others use this process or there is something to do; at least until the first
    /// one has connected, but for that at most for `first`.
    pub(super) fn stay_while_needed(self, first: Duration) {
        let Place::Own(mut own) = self.place.replace(Place::Closed) else {
            return;
        };
        let connections = |own: &Own| own.server.as_ref().map_or(0, Server::connections);
        let begin = Instant::now();
        let was_used = |own: &Own| own.server.as_ref().is_some_and(Server::was_used);
        while !was_used(&own) && begin.elapsed() < first {
            std::thread::sleep(LOOK);
        }
        while connections(&own) > 0 || !self.ends(&mut own) {
            std::thread::sleep(LOOK);
        }
        self.shut_down(*own);
    }

    /// Waits a moment for running actors. If there are none, and no timer to wait for, accepts no
    /// more requests and returns true.
    fn ends(&self, own: &mut Own) -> bool {
        let has_work = async |own: &Own, patience| {
            let idle = tokio::time::timeout(patience, own.runtime.idle()).await.is_ok();
            !idle || own.service.waits_for_timers(now()).await
        };
        self.threads.block_on(async {
            if has_work(own, LOOK).await {
                return false;
            }
            // Others wait for the end of this process from now on.
            let _ = own.store.announce(None, true);
            if let Some(server) = own.server.take() {
                server.close(REQUEST_GRACE).await;
            }
            // A last request may have started an actor.
            let ends = !has_work(own, Duration::ZERO).await;
            if !ends {
                own.share();
            }
            ends
        })
    }

    /// From now on, a signal to end (Ctrl-C, SIGTERM) stops the running actors first, and
    /// their processes; then the program ends with the usual exit code of a program that was
    /// interrupted. The next host repeats or reports what was running.
    pub(super) fn end_on_signal(&self, runtime: Runtime) {
        let (resumed, file) = (self.resumed.clone(), self.db.option());
        self.threads.spawn(async move {
            let Some(number) = next_signal().await else {
                return;
            };
            let stops = if runtime.working().is_empty() { "" } else { ": stopping running actors" };
            let mut message = format!("interrupted{stops}\n");
            for run in resumed.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                message.push_str(&format!("to continue: {} run --resume {run}{file}\n", program::name()));
            }
            // The main thread has locked standard error for the whole command. If the terminal is
            // gone, nobody reads the message.
            #[cfg(unix)]
            let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
            #[cfg(not(unix))]
            drop(message);
            runtime.shutdown(GRACE).await;
            charter_process::kill_all();
            std::process::exit(128_i32.saturating_add(number));
        });
    }

    /// From now on, the program ends if the journal cannot be written: after a failed write or
    /// sync, or when the disk stays full. Nothing that happens then would be recorded.
    pub(super) fn end_on_failure(&self, runtime: Runtime, store: Arc<SqliteStore>) {
        self.threads.spawn(async move {
            let why = loop {
                tokio::time::sleep(LOOK).await;
                match (store.stopped(), store.full_for()) {
                    (Some(reason), _) => break reason.to_owned(),
                    (None, Some(time)) if time > FULL => break "the disk is full".to_owned(),
                    _ => {}
                }
            };
            // A command that has just failed because of this ends by itself.
            tokio::time::sleep(REPORT).await;
            let path = store.path().display();
            let message = format!(
                "error: the journal `{path}` cannot be written ({why}); the program ends\nhelp: what was acknowledged is recorded; fix the cause, then continue with `charter run --resume RUN`\n"
            );
            #[cfg(unix)]
            let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
            #[cfg(not(unix))]
            drop(message);
            // Stops the running actors and their processes.
            let _ = tokio::time::timeout(REPORT, runtime.shutdown(GRACE)).await;
            charter_process::kill_all();
            std::process::exit(i32::from(Exit::CouldNot.code()));
        });
    }

    /// Shuts down. Actors that are running are resumed when the journal is opened again.
    fn shut_down(self, own: Own) {
        let Own { runtime, store, service, .. } = own;
        self.threads.block_on(runtime.shutdown(GRACE));
        drop((runtime, service, store));
        self.threads.shutdown_timeout(GRACE);
        charter_process::kill_all();
    }
}

/// Waits for a signal to end, and returns its number; `None` if signals cannot be received.
#[cfg(unix)]
async fn next_signal() -> Option<i32> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).ok()?;
    let mut terminate = signal(SignalKind::terminate()).ok()?;
    let kind = tokio::select! {
        _ = interrupt.recv() => SignalKind::interrupt(),
        _ = terminate.recv() => SignalKind::terminate(),
    };
    Some(kind.as_raw_value())
}

#[cfg(not(unix))]
async fn next_signal() -> Option<i32> {
    tokio::signal::ctrl_c().await.ok().map(|()| 2)
}
