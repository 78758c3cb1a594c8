//! The end of a host in this process: not before the actors that it has started.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

#[cfg(unix)]
use charter_actors::Workspaces;
use charter_journal::SqliteStore;
use charter_local::{Server, Service};
use charter_runtime::Runtime;

use super::follow::now;
use super::hand_over::HandOver;
#[cfg(feature = "serve")]
use super::host::Ending;
use super::host::{Host, Own, Place};
use crate::io::{Exit, Io, Paint};
use crate::journal::text::count;
use crate::program;

/// How long running actors may continue after the program was told to end.
const GRACE: Duration = Duration::from_millis(200);
/// How long requests may take that arrived before the end.
const REQUEST_GRACE: Duration = Duration::from_secs(2);
/// How long closing the journal may take after a signal.
const CLOSING: Duration = Duration::from_secs(5);
/// How long the disk may be full before the program ends.
const FULL: Duration = Duration::from_secs(2);
/// How long a command may take to report that the journal cannot be written.
const REPORT: Duration = Duration::from_millis(500);
/// How long changes of a workspace may take to be undone or completed.
const UNDO: Duration = Duration::from_secs(60);
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
        // A report is about the state before the wait. If nobody reads it, the actors matter more.
        let _ = io.out.flush();
        let begin = Instant::now();
        let mut said = false;
        while !self.ends(&mut own, false) {
            self.unless_interrupted();
            let working = own.runtime.working().len() as u64;
            if begin.elapsed() > QUIET && working > 0 && !std::mem::replace(&mut said, true) {
                let line =
                    format!("waiting for {} of this journal file; Ctrl-C interrupts", count(working, "running actor"));
                // The actors matter more than the message.
                let _ = writeln!(io.err, "{}", Paint(io.color_err).faint(&line));
            }
        }
        self.unless_interrupted();
        let left = self.threads.block_on(own.service.waiting(now(), usize::MAX));
        let hand_over = HandOver { db: self.db.clone(), models: self.models.clone() };
        self.shut_down(*own);
        // The actors of this process have ended, so another process can wait for the timers.
        let _ = write!(io.err, "{}", hand_over.to_background(&left));
    }

    /// From now on, a signal to end the program does this first; then [`Host::has_ended`], and the
    /// program should end soon, or is ended with the exit code 0.
    #[cfg(feature = "serve")]
    pub(crate) fn end_with(&self, ending: Ending) {
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = Some(ending);
    }

    /// Whether a signal has ended what [`Host::end_with`] names.
    #[cfg(feature = "serve")]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Closes the journal. Actors that are running are resumed when it is opened again.
    #[cfg(feature = "serve")]
    pub(crate) fn end(self) {
        if let Place::Own(own) = self.place.replace(Place::Closed) {
            self.shut_down(*own);
        }
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
        while connections(&own) > 0 || !self.ends(&mut own, true) {
            std::thread::sleep(LOOK);
        }
        self.shut_down(*own);
    }

    /// Waits a moment for running actors. If there are none, and no timer to wait for, accepts no
    /// more requests and returns true.
    fn ends(&self, own: &mut Own, with_timers: bool) -> bool {
        let has_work = async |own: &Own, patience| {
            let idle = tokio::time::timeout(patience, own.runtime.idle()).await.is_ok();
            !idle || (with_timers && own.service.waits_for_timers(now()).await)
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

    /// From now on, a signal to end (Ctrl-C, SIGTERM, the end of the terminal) stops the running
    /// actors first, and their processes, and waits for changes of workspaces; then the program
    /// ends with the usual exit code of a program that was interrupted.
    /// The next host repeats or reports what was running. What other commands have left to this
    /// process is not stopped, unless it stays for others anyway, or there is a second signal: the
    /// program ends later.
    pub(super) fn end_on_signal(&self, runtime: Runtime, store: Arc<SqliteStore>, service: Arc<Service>) {
        let (resumed, ending, interrupted) = (self.resumed.clone(), self.ending.clone(), self.interrupted.clone());
        let (stays, db, models) = (self.stays, self.db.clone(), self.models.clone());
        let (ended, workspaces) = (self.ended.clone(), self.workspaces());
        self.threads.spawn(async move {
            let Some(mut signals) = Signals::new() else {
                return;
            };
            let Some(number) = signals.next().await else {
                return;
            };
            let first = ending.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(first) = first {
                first().await;
                // The main thread closes the journal, unless something holds it up.
                ended.store(true, Ordering::SeqCst);
                tokio::time::sleep(CLOSING).await;
                stop_actors(&runtime, &workspaces).await;
                charter_process::kill_all();
                std::process::exit(0);
            }
            let left = if stays { BTreeSet::new() } else { service.left() };
            let own = resumed.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (others, stopped): (Vec<_>, Vec<_>) =
                runtime.working().into_iter().partition(|call| left.contains(&*call.run));
            let stops = if stopped.is_empty() { "" } else { ": stopping running actors" };
            let mut message = format!("interrupted{stops}\n");
            let to_continue = |run: &String| format!("to continue: {} run --resume {run}{}\n", program::name(), db.host_options());
            message.extend(own.difference(&left).map(to_continue));
            let mut to_the_end = true;
            if !others.is_empty() {
                interrupted.store(true, Ordering::SeqCst);
                stopped.iter().map(|call| call.run.as_ref()).chain(own.difference(&left).map(String::as_str)).for_each(
                    |run| runtime.stop(run),
                );
                let runs: BTreeSet<String> = others.iter().map(|call| call.run.to_string()).collect();
                let names = runs.iter().map(|run| format!("`{run}`")).collect::<Vec<_>>().join(", ");
                let working = count(others.len() as u64, "running actor");
                message.push_str(&format!(
                    "waiting for {working} of {names}, which another command has left to this process; Ctrl-C again stops it\n"
                ));
                say(&message);
                message.clear();
                tokio::select! {
                    () = runtime.idle_in(&left) => {}
                    _ = signals.next() => {
                        to_the_end = false;
                        message.push_str("stopping running actors\n");
                        message.extend(runs.iter().map(to_continue));
                    }
                }
            }
            if to_the_end && !stays {
                let waiting = service.waiting(now(), usize::MAX).await;
                // Another process may not use this one any more.
                let _ = store.announce(None, true);
                message.push_str(&HandOver { db, models }.to_background(&waiting));
            }
            say(&message);
            stop_actors(&runtime, &workspaces).await;
            charter_process::kill_all();
            std::process::exit(128_i32.saturating_add(number));
        });
    }

    /// From now on, a signal to end while another process hosts the runs that this command follows
    /// says so: they go on there.
    pub(super) fn part_on_signal(&self) {
        let (elsewhere, resumed, db) = (self.elsewhere.clone(), self.resumed.clone(), self.db.clone());
        self.threads.spawn(async move {
            let Some(mut signals) = Signals::new() else {
                return;
            };
            let Some(number) = signals.next().await else {
                return;
            };
            let pid = elsewhere.load(Ordering::SeqCst);
            if pid == 0 {
                // Hosted here by now: see [`Host::end_on_signal`].
                return;
            }
            let runs = resumed.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let (name, file) = (program::name(), db.option());
            let goes_on = |run: &String| {
                format!(
                    "run `{run}` goes on in process {pid}\nto follow it: {name} run --resume {run}{file}\nto stop it: {name} send {run} charter.cancel --role operator{file}\n"
                )
            };
            say(&std::iter::once("interrupted\n".to_owned()).chain(runs.iter().map(goes_on)).collect::<String>());
            std::process::exit(128_i32.saturating_add(number));
        });
    }

    /// From now on, the program ends if the journal cannot be written: after a failed write or
    /// sync, or when the disk stays full. Nothing that happens then would be recorded.
    pub(super) fn end_on_failure(&self, runtime: Runtime, store: Arc<SqliteStore>) {
        let workspaces = self.workspaces();
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
            say(&message);
            // Stops the running actors and their processes.
            let _ = tokio::time::timeout(REPORT + UNDO, stop_actors(&runtime, &workspaces)).await;
            charter_process::kill_all();
            std::process::exit(i32::from(Exit::CouldNot.code()));
        });
    }

    #[cfg(unix)]
    fn workspaces(&self) -> Workspaces {
        self.workspaces.clone()
    }

    #[cfg(not(unix))]
    fn workspaces(&self) -> Workspaces {
        Workspaces
    }

    /// Whether the journal of this process is full or has failed, so that the program is about to
    /// end.
    pub(super) fn cannot_write(&self) -> bool {
        match &*self.place.borrow() {
            Place::Own(own) => own.store.full_for().is_some() || own.store.stopped().is_some(),
            _ => false,
        }
    }

    /// Shuts down. Actors that are running are resumed when the journal is opened again.
    fn shut_down(self, own: Own) {
        let Own { runtime, store, service, .. } = own;
        self.threads.block_on(stop_actors(&runtime, &self.workspaces()));
        drop((runtime, service, store));
        self.threads.shutdown_timeout(GRACE);
    }
}

/// There are no workspaces here.
#[cfg(not(unix))]
#[derive(Clone)]
struct Workspaces;

#[cfg(not(unix))]
impl Workspaces {
    fn wait_until_idle(&self, _: Duration) -> bool {
        true
    }
}

/// Stops the running actors and their processes. What changes files undoes or completes that first.
async fn stop_actors(runtime: &Runtime, workspaces: &Workspaces) {
    runtime.shutdown(GRACE).await;
    let workspaces = workspaces.clone();
    let _ = tokio::task::spawn_blocking(move || {
        if !workspaces.wait_until_idle(REPORT) {
            say("waiting until the changes to a workspace are undone or complete\n");
            workspaces.wait_until_idle(UNDO);
        }
    })
    .await;
}

/// Prints a message of a thread other than the main one, which has locked standard error for the
/// whole command. If the terminal is gone, nobody reads it.
fn say(message: &str) {
    #[cfg(unix)]
    let _ = rustix::io::write(rustix::stdio::stderr(), message.as_bytes());
    #[cfg(not(unix))]
    let _ = message;
}

/// The signals that end the program.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    /// `None`: it is ignored (`nohup`), and must stay so.
    #[cfg(unix)]
    hang_up: Option<tokio::signal::unix::Signal>,
}

impl Signals {
    /// `None` if signals cannot be received.
    #[cfg(unix)]
    fn new() -> Option<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Some(Signals {
            interrupt: signal(SignalKind::interrupt()).ok()?,
            terminate: signal(SignalKind::terminate()).ok()?,
            hang_up: if ends_with_its_terminal() { signal(SignalKind::hangup()).ok() } else { None },
        })
    }

    /// Waits for the next one, and returns its number.
    #[cfg(unix)]
    async fn next(&mut self) -> Option<i32> {
        use tokio::signal::unix::SignalKind;
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            Some(_) = async { self.hang_up.as_mut()?.recv().await } => SignalKind::hangup(),
        };
        Some(kind.as_raw_value())
    }

    #[cfg(not(unix))]
    fn new() -> Option<Signals> {
        Some(Signals {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Option<i32> {
        tokio::signal::ctrl_c().await.ok().map(|()| 2)
    }
}

/// Whether SIGHUP is not ignored. Where that cannot be known, it is left as it is.
#[cfg(unix)]
fn ends_with_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 0)
}
