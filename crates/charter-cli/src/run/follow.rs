//! Follows a run: shows what happens, and prompts where a person is needed.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use charter_kernel::{Millis, Status, Timestamp};
use charter_runtime::backend::TaskAnswer;
use charter_runtime::{SendEvent, View};

use super::ask::{self, Response};
use super::choice::{self, Choice, TaskChoice};
use super::host::Host;
use super::progress::{Beginning, Progress};
use super::suggest::Suggest;
use super::tasks::Answerable;
use super::watch::Watch;
use super::{Who, report, trust};
use crate::io::{Exit, Failure, Io};
use crate::journal::offers::{self, Offer};
use crate::journal::text::clean;
use crate::journal::{Db, show};

/// How often elapsed times are redrawn.
const TICK: Duration = Duration::from_millis(100);
/// How long to wait for the events of the last step.
const EVENT_DELAY: Duration = Duration::from_millis(30);
/// Maximum time to wait for a timer without `--wait`, in milliseconds.
const MAX_TIMER_WAIT: Millis = Millis(60_000);
/// How long a run is waited for whose open invocations have no attempt under way. Attempts are
/// registered moments after the step that starts them; an actor whose answer and failure were both
/// refused has none until the run is resumed.
const UNATTENDED_WAIT: Duration = Duration::from_secs(5);
/// How long a timer is waited for that is due: its host fires it, unless others have the journal
/// open for writing or it cannot be fired.
const OVERDUE_WAIT: Duration = Duration::from_secs(5);
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
        mut events: Watch,
        machine_output: bool,
        io: &mut Io<'_>,
    ) -> Result<Exit, Failure> {
        let mut progress = Progress::new(run, io);
        let view = host.view(run)?;
        progress.begin(&view, self.beginning, events.answerers.as_ref(), host, io)?;
        // An actor that cannot be resumed does not keep the others from running.
        if view.snapshot.paused_at().is_none()
            && let Err(e) = host.resume(run)?
        {
            progress.warn(&trust::not_resumed(&e.to_string(), run, &self.db.option()), io)?;
        }
        let mut refused = 0;
        let mut seen = Vec::new();
        let (mut patience, mut overdue) = (Patience::default(), Patience::default());
        let mut answerable = Answerable::default();
        let last = loop {
            while let Some(event) = host.next(&mut events, Duration::ZERO)? {
                progress.show(&event, io)?;
            }
            let view = host.view(run)?;
            // Nothing happens in a paused run; the report says how to continue it.
            let held = is_held_up(&view, host);
            if !held && (view.snapshot.status().is_finished() || view.snapshot.paused_at().is_some()) {
                break view;
            }
            // A journal that cannot be written ends the program, whatever the run waits for.
            let waits =
                held || (is_busy(&view, 0) && patience.lasts(&view)) || self.waits_for_timer(&view, &mut overdue);
            if waits || host.cannot_write() {
                progress.hold(held, io)?;
                host.stay()?;
                if self.reply == Reply::Leave {
                    answerable.tell(&view, &self.who, &self.db, &mut progress, io)?;
                }
                progress.wait(&view, now(), io)?;
                if let Some(event) = host.next(&mut events, TICK)? {
                    progress.show(&event, io)?;
                }
                continue;
            }
            // The events of the last step arrive shortly after it, and perhaps another step.
            while let Some(event) = host.next(&mut events, EVENT_DELAY)? {
                progress.show(&event, io)?;
            }
            if host.view(run)?.snapshot.seq() != view.snapshot.seq() {
                continue;
            }
            progress.clear(io)?;
            let choices = choice::all(&view, &self.who, now());
            let chosen = match self.reply {
                Reply::Leave => None,
                Reply::Yes => choice::agreeing(&choices, true),
                Reply::No => choice::agreeing(&choices, false),
                Reply::Ask => {
                    host.stay()?;
                    let others = self.others(&view, &choices);
                    let mut has_moved = |io: &mut Io<'_>| {
                        let mut changed = false;
                        while let Some(event) = host.next(&mut events, Duration::ZERO)? {
                            if !std::mem::replace(&mut changed, true) {
                                writeln!(io.err)?;
                            }
                            progress.show(&event, io)?;
                        }
                        Ok(changed && host.view(run)?.snapshot.seq() != view.snapshot.seq())
                    };
                    match ask::ask(&choices, &others, &view, host, &mut seen, &mut has_moved, io)? {
                        Response::Chosen(choice, data) => Some((*choice, data)),
                        Response::Quit => None,
                        Response::Moved => {
                            progress.warn(&moved_on("the run has moved on", &host.view(run)?), io)?;
                            continue;
                        }
                    }
                }
            };
            let Some((choice, data)) = chosen else {
                let yes = match self.reply {
                    Reply::Yes => Some(true),
                    Reply::No => Some(false),
                    _ => None,
                };
                if let Some(why) = yes.and_then(|y| choice::why_not_agreeing(&choices, &view, &self.who, y, now())) {
                    progress.warn(&why, io)?;
                }
                // Others may have changed the run while the prompt was open.
                break host.view(run)?;
            };
            // The answer was for what the prompt has shown.
            let current = host.view(run)?;
            if current.snapshot.seq() != view.snapshot.seq() && !choice::is_among(&choice, &current, &self.who, now()) {
                while let Some(event) = host.next(&mut events, EVENT_DELAY)? {
                    progress.show(&event, io)?;
                }
                progress.warn(&moved_on("the run has moved on, so your answer was not sent", &current), io)?;
                continue;
            }
            let answer = |task: TaskChoice, answer| host.answer(&task.effect, answer, &task.by);
            let answered = match choice {
                Choice::Event(event) => {
                    let mut send = SendEvent::new(run, &event.r#type, data, event.by.clone());
                    if event.to != "root" {
                        send = send.to(&event.to);
                    }
                    send.expected_seq = Some(current.snapshot.seq()).filter(|_| self.reply == Reply::Ask);
                    Ok(host.send(send)?)
                }
                Choice::Task(task) => answer(task, TaskAnswer::Output(data))?,
                Choice::Decline(task) => {
                    answer(task, TaskAnswer::Declined(data.as_str().unwrap_or_default().to_owned()))?
                }
            };
            let receipt = match answered {
                Ok(receipt) => receipt,
                // Others have answered it, or the run has gone on.
                Err(e) if self.reply == Reply::Ask => {
                    progress.warn(&e.to_string(), io)?;
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            refused = match receipt.is_refused() {
                true => refused + 1,
                false => 0,
            };
            if receipt.is_refused() {
                progress.tell(receipt.record.seq);
                report::show_refusal(&receipt.record, host, io)?;
            }
            if refused > 0 && (self.reply != Reply::Ask || refused >= MAX_REFUSED) {
                break host.view(run)?;
            }
        };
        while let Some(event) = host.next(&mut events, Duration::ZERO)? {
            progress.show(&event, io)?;
        }
        progress.clear(io)?;
        // What was just shown may have come after `last`.
        let last = host.view(run).unwrap_or(last);
        report::write(&last, &self.who, &self.db, machine_output, host, now(), io)?;
        // A run that waits in a state tagged `failed` has not done what it should, either.
        let failed =
            matches!(last.snapshot.status().word(), "failed" | "cancelled") || last.is_tagged("root", "failed");
        Ok(match failed || refused > 0 {
            true => Exit::No,
            false => Exit::Yes,
        })
    }

    /// Renders the events that others may send, with their commands.
    fn others(&self, view: &View, choices: &[Choice]) -> Vec<String> {
        let (machine, snapshot, now) = (view.charter.machine(), &view.snapshot, now());
        let offers = offers::all_with(machine, snapshot, &self.who.principal_in(machine, snapshot.run()), now);
        let offers = offers::with_votes(offers, &self.db, snapshot);
        let suggest = Suggest::new((machine, snapshot), &self.who, &self.db, &offers, now);
        let is_own = |offer: &Offer| {
            let own = choices.iter().filter_map(Choice::event);
            own.into_iter().any(|(kind, to, _)| kind == offer.event.r#type && to == offer.event.to)
        };
        let others = report::in_order(&offers, machine).into_iter().filter(|offer| !is_own(offer));
        let line = |offer: &Offer| {
            let (kind, to) = (clean(&offer.event.r#type), show::to(&offer.event.to));
            format!("not by you: {kind}{to}{}{}: {}", offer.by(), offer.aside(), suggest.send(offer))
        };
        others.map(line).collect()
    }

    fn waits_for_timer(&self, view: &View, overdue: &mut Patience) -> bool {
        // A timer that was refused is not the next one: only another event can change that.
        let Some(next) = view.next_due else { return false };
        // Do not wait while the answer can be given: it may have a deadline. One that has passed
        // comes first.
        let is_open = next > now();
        if is_open && !self.wait_for_timers && next > now().saturating_add(MAX_TIMER_WAIT) {
            return false;
        }
        let choices = || choice::all(view, &self.who, now());
        let can_answer = match self.reply {
            Reply::Ask => !choices().is_empty(),
            Reply::Yes => is_open && choice::agreeing(&choices(), true).is_some(),
            Reply::No => is_open && choice::agreeing(&choices(), false).is_some(),
            Reply::Leave => false,
        };
        if can_answer || (is_open && !self.wait_for_timers && choice::is_needed(view, now())) {
            return false;
        }
        is_open || overdue.remains(view, OVERDUE_WAIT)
    }
}

/// Says that others have changed the run, and what follows.
fn moved_on(what: &str, view: &View) -> String {
    match view.snapshot.status() {
        Status::Active => format!("{what}; these are the choices now"),
        status => format!("{what}; it is {}", status.word()),
    }
}

/// Whether an actor other than a person is running that the run has started since a record. None
/// does in a run that nobody has allowed; in a dry fork, answers from the past are given.
pub(crate) fn is_busy(view: &View, since: u64) -> bool {
    if view.dry {
        return !view.working.is_empty();
    }
    let run = view.snapshot.run();
    let services = view.snapshot.invocations().filter(|(_, i)| !i.is_machine() && i.effect.seq >= since);
    let mut effects = services.map(|(_, i)| i.effect.text(run));
    !view.untrusted && effects.any(|effect| view.tasks.iter().all(|task| task.effect != effect))
}

/// Whether a run is paused whose actors go on in this process, which does not end before they do:
/// others may resume the run meanwhile.
fn is_held_up(view: &View, host: &Host) -> bool {
    view.snapshot.paused_at().is_some() && host.is_here() && !view.working.is_empty()
}

/// Waits for open invocations that have no attempt under way, or for timers that are due, but not
/// forever.
#[derive(Default)]
struct Patience {
    /// The record after which none was under way, and since when.
    unattended: Option<(u64, Instant)>,
}

impl Patience {
    fn lasts(&mut self, view: &View) -> bool {
        if !view.working.is_empty() {
            self.unattended = None;
            return true;
        }
        self.remains(view, UNATTENDED_WAIT)
    }

    /// Whether the run has been at this record for less than a time.
    fn remains(&mut self, view: &View, time: Duration) -> bool {
        let seq = view.snapshot.seq();
        let (at, since) = self.unattended.get_or_insert((seq, Instant::now()));
        if *at != seq {
            (*at, *since) = (seq, Instant::now());
        }
        since.elapsed() < time
    }
}

/// Returns the time of the system clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Follows a run until it is paused, or no actor is running of those that it has started since the
/// record `since`, or ever if this process hosts it; never prompts. `seen` is the last record that
/// was shown.
pub(crate) fn settle(
    host: &Host,
    run: &str,
    mut events: Watch,
    (seen, since): (u64, u64),
    io: &mut Io<'_>,
) -> Result<View, Failure> {
    let mut progress = Progress::new(run, io);
    progress.know(&host.view(run)?, Some(seen));
    progress.observe(host);
    progress.answerers = events.answerers.take().unwrap_or_default();
    let mut patience = Patience::default();
    loop {
        while let Some(event) = host.next(&mut events, Duration::ZERO)? {
            progress.show(&event, io)?;
        }
        let view = host.view(run)?;
        let status = view.snapshot.status();
        let held = is_held_up(&view, host);
        // The host here has resumed what was open before, too.
        let since = if host.is_here() { 0 } else { since };
        let waits = is_busy(&view, since) && patience.lasts(&view);
        if !host.cannot_write() && !held && (status.is_finished() || status == Status::Paused || !waits) {
            while let Some(event) = host.next(&mut events, EVENT_DELAY)? {
                progress.show(&event, io)?;
            }
            // Another step may have come in the meantime.
            if host.view(run)?.snapshot.seq() != view.snapshot.seq() {
                continue;
            }
            progress.clear(io)?;
            return Ok(view);
        }
        host.stay()?;
        progress.hold(held, io)?;
        progress.wait(&view, now(), io)?;
        if let Some(event) = host.next(&mut events, TICK)? {
            progress.show(&event, io)?;
        }
    }
}
