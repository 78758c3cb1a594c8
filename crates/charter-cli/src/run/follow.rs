//! Follows a run: shows what happens, and prompts where a person is needed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use charter_kernel::{Millis, Timestamp};
use charter_runtime::{RuntimeEvent, SendEvent, Subscription, View};

use super::ask;
use super::choice::{self, Choice};
use super::host::Host;
use super::progress::{Beginning, Progress};
use super::{Who, report};
use crate::io::{Exit, Failure, Io};
use crate::journal::Db;

/// How often elapsed times are redrawn.
const TICK: Duration = Duration::from_millis(100);
/// How long to wait for the events of the last step.
const EVENT_DELAY: Duration = Duration::from_millis(30);
/// Maximum time to wait for a timer without `--wait`, in milliseconds.
const MAX_TIMER_WAIT: Millis = Millis(60_000);
/// Maximum number of consecutive refusals before the prompt ends.
const MAX_REFUSED: u32 = 5;

/// What to do where a person is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Agree.
    Yes,
    /// Disagree.
    No,
    /// Ask on the terminal.
    Ask,
    /// Report what the run waits for, and end.
    Leave,
}

/// How a run is followed.
pub(crate) struct Follow {
    pub(crate) reply: Reply,
    pub(crate) who: Who,
    pub(crate) wait_for_timers: bool,
    pub(crate) beginning: Beginning,
    pub(crate) db: Db,
}

impl Follow {
    pub(crate) fn run(
        &self,
        host: &Host,
        run: &str,
        mut events: Subscription,
        machine_output: bool,
        io: &mut Io<'_>,
    ) -> Result<Exit, Failure> {
        let mut progress = Progress::new(run, io);
        let view = host.wait(host.runtime.view(run))?;
        progress.begin(&view, self.beginning, &self.db, host, io)?;
        let mut refused = 0;
        let mut seen = Vec::new();
        let last = loop {
            while let Some(event) = events.try_next() {
                progress.show(&event, io)?;
            }
            let view = host.wait(host.runtime.view(run))?;
            if view.snapshot.status().is_finished() {
                break view;
            }
            if is_busy(&view) || self.waits_for_timer(&view) {
                progress.wait(&view, now(), io)?;
                if let Some(Some(event)) = host.wait_at_most(TICK, events.next()) {
                    progress.show(&event, io)?;
                }
                continue;
            }
            // The events of the last step arrive shortly after it.
            while let Some(Some(event)) = host.wait_at_most(EVENT_DELAY, events.next()) {
                progress.show(&event, io)?;
            }
            progress.clear(io)?;
            let choices = choice::all(&view, &self.who, now());
            let chosen = match self.reply {
                Reply::Leave => None,
                Reply::Yes => choice::agreeing(&choices, true, &view, now()),
                Reply::No => choice::agreeing(&choices, false, &view, now()),
                Reply::Ask => ask::ask(&choices, &view, host, &mut seen, now(), io)?,
            };
            let Some((choice, data)) = chosen else {
                break view;
            };
            let receipt = match choice {
                Choice::Event(event) => {
                    let mut send = SendEvent::new(run, &event.r#type, data, event.by.clone());
                    if event.to != "root" {
                        send = send.to(&event.to);
                    }
                    host.wait(host.runtime.send(send))?
                }
                Choice::Task(task) if self.reply == Reply::No => {
                    host.wait(host.runtime.decline(&task.effect, "declined with --no", task.by.clone()))?
                }
                Choice::Task(task) => host.wait(host.runtime.complete(&task.effect, data, task.by.clone()))?,
            };
            refused = match receipt.is_refused() {
                true => refused + 1,
                false => 0,
            };
            if receipt.is_refused() {
                report::show_refusal(&receipt.record, host, io)?;
            }
            if refused > 0 && (self.reply != Reply::Ask || refused >= MAX_REFUSED) {
                break host.wait(host.runtime.view(run))?;
            }
        };
        while let Some(event) = events.try_next() {
            progress.show(&event, io)?;
        }
        progress.clear(io)?;
        report::write(&last, &self.who, &self.db, machine_output, host, now(), io)?;
        let failed = matches!(last.snapshot.status().word(), "failed" | "cancelled");
        Ok(match failed || refused > 0 {
            true => Exit::No,
            false => Exit::Yes,
        })
    }

    fn waits_for_timer(&self, view: &View) -> bool {
        // Do not wait while the person at the terminal can act.
        if self.reply == Reply::Ask && !choice::all(view, &self.who, now()).is_empty() {
            return false;
        }
        let due = view.snapshot.next_timer().map(|t| t.due);
        due.is_some_and(|due| self.wait_for_timers || due <= now().saturating_add(MAX_TIMER_WAIT))
    }
}

/// Whether an actor other than a person is running.
pub(crate) fn is_busy(view: &View) -> bool {
    let open = view.snapshot.invocations().filter(|(_, i)| !i.is_machine()).count();
    open > view.tasks.len()
}

/// Returns the time of the system clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Follows a run until no actor is running; never prompts.
pub(crate) fn settle(
    host: &Host,
    run: &str,
    mut events: Subscription,
    seen: u64,
    io: &mut Io<'_>,
) -> Result<View, Failure> {
    let mut progress = Progress::new(run, io);
    progress.know(&host.wait(host.runtime.view(run))?, Some(seen));
    progress.observe_models(host);
    loop {
        while let Some(event) = events.try_next() {
            progress.show(&event, io)?;
        }
        let view = host.wait(host.runtime.view(run))?;
        if view.snapshot.status().is_finished() || !is_busy(&view) {
            while let Some(Some(event)) = host.wait_at_most(EVENT_DELAY, events.next()) {
                progress.show(&event, io)?;
            }
            progress.clear(io)?;
            return Ok(view);
        }
        progress.wait(&view, now(), io)?;
        let event: Option<Option<RuntimeEvent>> = host.wait_at_most(TICK, events.next());
        if let Some(Some(event)) = event {
            progress.show(&event, io)?;
        }
    }
}
