//! A run in memory that uses only the kernel: it has no journal, executes no effects, and takes the
//! time only from events. Scenarios and `step` sessions drive it.

mod saved;
mod tick;

use std::borrow::Cow;

use charter_kernel::{
    Cause, Code, Effect, EffectId, Envelope, Event, Explanation, Machine, Note, Principal, Refusal, RefusalContext,
    RefusalDetails, Snapshot, TakenKeys, TimerChange, Timestamp, Unique, Verdict,
};
use charter_run::{Incoming, Position};
use serde_json::Value as Json;

pub(crate) use saved::Saved;
use tick::Tick;

/// Upper limit of the timers that one tick fires: a statechart whose timers immediately set new
/// ones would never settle.
pub const MAX_FIRINGS: u64 = 100_000;

/// A run in memory.
#[derive(Debug, Clone)]
pub struct Session<'m> {
    machine: &'m Machine,
    run: String,
    position: Position,
    /// The snapshot of the position, which always exists because the run has started.
    snapshot: Snapshot,
    /// The time of the last event.
    at: Timestamp,
    /// The unique keys that the run has.
    keys: TakenKeys,
}

/// The result of applying one input.
#[derive(Debug)]
pub struct StepOutcome<'m> {
    /// The sequence number of the record. For an input that writes no record, that of the last
    /// record.
    pub seq: u64,
    /// The verdict: `accepted`, `refused`, `ignored`, `vote` or `late`.
    pub verdict: &'static str,
    /// The actor addressed. For an answer, the owner of the invocation; for a tick, the actor whose
    /// timers fired, or `root` if there were several.
    pub to: String,
    /// The effects, as in the record.
    pub effects: Vec<Json>,
    /// The names of the transitions taken. If the actor is not `to`, its id precedes the name.
    pub transitions: Vec<String>,
    /// The addresses of the transitions taken, in the core form of the charter.
    pub taken: Vec<&'m str>,
    /// The timers that were set and cancelled.
    pub timers: Vec<Json>,
    /// Notes of the kernel; they do not affect the verdict.
    pub notes: Vec<Note>,
    /// For a tick, the number of timers that fired.
    pub fired: Option<u64>,
    /// For a tick, the number of timers that were refused although others were accepted. They stay
    /// pending.
    pub timers_refused: usize,
    /// Why the input was refused.
    pub refusal: Option<Box<Explanation>>,
}

/// An event or an answer to an invocation.
#[derive(Debug, Clone)]
pub struct SessionEvent {
    /// The event.
    pub event: Event,
    /// The actor addressed.
    pub to: Option<String>,
    /// The sender: of an answer, the system, or the person who gives it.
    pub by: Principal,
    /// The time of the event; `None` means the time of the last event.
    pub at: Option<Timestamp>,
    /// The sequence number of the last record that the sender has seen.
    pub expected_seq: Option<u64>,
    /// A run that has the unique key of the event already; `None`: no other run has it.
    pub taken_by: Option<String>,
}

/// The timers of a run never settle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_FIRINGS} timers fired in one tick: each of them sets a new one that is due at once")]
pub struct EndlessTimers;

/// A snapshot that is not equal to itself after a round trip through JSON: a bug in Charter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoundTripError {
    /// The text of the snapshot is not valid JSON.
    #[error("the snapshot is not valid JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// The kernel refuses to restore the snapshot.
    #[error(transparent)]
    NotRestored(#[from] charter_kernel::RestoreError),
    /// The restored snapshot is different.
    #[error("the restored snapshot differs from the original")]
    Differs,
}

impl<'m> Session<'m> {
    /// Starts a run as the system.
    ///
    /// # Errors
    /// Returns the explanation of the refusal if the start is refused.
    pub fn start(
        machine: &'m Machine,
        run: &str,
        input: Json,
        at: impl Into<Timestamp>,
    ) -> Result<(Session<'m>, StepOutcome<'m>), Box<Explanation>> {
        Session::start_by(machine, run, input, Principal::system(), at)
    }

    /// Starts a run.
    ///
    /// # Errors
    /// As [`Session::start`].
    pub fn start_by(
        machine: &'m Machine,
        run: &str,
        input: Json,
        by: Principal,
        at: impl Into<Timestamp>,
    ) -> Result<(Session<'m>, StepOutcome<'m>), Box<Explanation>> {
        let at = at.into();
        let mut position = Position::new();
        let incoming = Incoming { by, ..Incoming::host(Event::Start { input }) };
        let (envelope, step) = position.take(machine, run, incoming, at);
        match step {
            Ok(step) => {
                let mut outcome = StepOutcome::new(0, "root".into());
                outcome.add(machine, run, &step);
                outcome.verdict = step.verdict.word();
                let keys = TakenKeys::default();
                let session = Session { machine, run: run.into(), position, snapshot: step.snapshot, at, keys };
                Ok((session, outcome))
            }
            Err(refusal) => Err(Box::new(machine.explain(None, &envelope, &refusal))),
        }
    }

    /// The current snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The machine of the run.
    #[must_use]
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// The time of the last event.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The sequence number of the last record.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.position.next_seq().saturating_sub(1)
    }

    /// Applies an event.
    pub fn apply(&mut self, input: SessionEvent) -> StepOutcome<'m> {
        let incoming = self.incoming(input);
        let to = self.addressee(&incoming);
        let (envelope, step) = self.position.take(self.machine, &self.run, incoming, self.at);
        self.keys.note(&self.run, &envelope, &step);
        let mut outcome = StepOutcome::new(self.seq(), to);
        match step {
            Ok(step) => {
                outcome.verdict = step.verdict.word();
                outcome.add(self.machine, &self.run, &step);
                self.snapshot = step.snapshot;
            }
            Err(refusal) => outcome.refuse(self.explain(&envelope, &refusal)),
        }
        outcome
    }

    /// Refuses an event whose id was used for another event, in record `seq`. The kernel does not
    /// receive the event.
    pub fn refuse_reused_id(&mut self, input: SessionEvent, id: &str, seq: u64) -> StepOutcome<'m> {
        let incoming = self.incoming(input);
        let to = self.addressee(&incoming);
        let envelope = self.position.envelope(incoming, self.at);
        self.position.advance(&envelope, Err(Code::Stale));
        let mut outcome = StepOutcome::new(envelope.seq, to);
        let legal = self.machine.legal(&self.snapshot, &envelope.by, envelope.at);
        let mut legal: Vec<String> = legal.into_iter().map(|l| l.r#type).collect();
        legal.dedup();
        let mut details = RefusalDetails::new(Code::Stale);
        details.cause = Some(Cause::IdReused { id: id.to_owned(), seq });
        details.legal = legal;
        let story = details.explain(&RefusalContext::new(self.machine, Some(&self.snapshot), &envelope));
        outcome.refuse(story);
        outcome
    }

    /// Fires every timer that is due by `until`, in order, each at its own time. This includes
    /// timers that are set on the way.
    ///
    /// # Errors
    /// Returns an error if more than [`MAX_FIRINGS`] timers would fire. In this case nothing has
    /// changed.
    pub fn tick(&mut self, until: Timestamp) -> Result<StepOutcome<'m>, EndlessTimers> {
        let saved = self.clone();
        let mut tick = Tick::new();
        while self.fire(&mut tick, until) {
            if tick.fired > MAX_FIRINGS {
                *self = saved;
                return Err(EndlessTimers);
            }
        }
        self.at = until;
        self.position.wait_until(until);
        Ok(tick.outcome(self.seq()))
    }

    /// Fires timers on a virtual clock until the run is finished or has no timers left.
    ///
    /// # Errors
    /// Returns an error after [`MAX_FIRINGS`] timers have fired. The snapshot includes these
    /// firings.
    pub fn run_out(&mut self) -> Result<StepOutcome<'m>, EndlessTimers> {
        let mut tick = Tick::new();
        while self.fire(&mut tick, Timestamp::MAX) {
            if tick.fired >= MAX_FIRINGS {
                return Err(EndlessTimers);
            }
        }
        Ok(tick.outcome(self.seq()))
    }

    /// Replaces the snapshot with the result of its round trip through JSON text, which must be
    /// equal.
    ///
    /// # Errors
    /// Returns an error if it is not equal, which is a bug in Charter.
    pub fn restore(&mut self) -> Result<StepOutcome<'m>, RoundTripError> {
        let text = self.machine.snapshot_json(&self.snapshot).to_string();
        let json = serde_json::from_str(&text)?;
        let restored = self.machine.restore(&json)?;
        if restored != self.snapshot {
            return Err(RoundTripError::Differs);
        }
        self.position.replace_snapshot(restored.clone());
        self.snapshot = restored;
        let mut outcome = StepOutcome::new(self.seq(), "root".into());
        outcome.verdict = Verdict::Accepted.word();
        Ok(outcome)
    }

    /// Fires the next timer that is due by `until`; returns `false` if there is none.
    fn fire(&mut self, tick: &mut Tick<'m>, until: Timestamp) -> bool {
        let Some(actor) = self.position.timer().map(|t| t.actor.to_string()) else {
            return false;
        };
        let Some((due, incoming)) = self.position.due(until) else {
            return false;
        };
        self.at = due;
        let (envelope, step) = self.position.take(self.machine, &self.run, incoming, due);
        match step {
            Ok(step) => {
                tick.accepted |= step.verdict == Verdict::Accepted;
                tick.total.add(self.machine, &self.run, &step);
                self.snapshot = step.snapshot;
            }
            Err(refusal) => tick.explanations.push((actor.clone(), self.explain(&envelope, &refusal))),
        }
        tick.actors.insert(actor);
        tick.fired = tick.fired.saturating_add(1);
        true
    }

    fn incoming(&mut self, input: SessionEvent) -> Incoming {
        let SessionEvent { event, to, by, at, expected_seq, taken_by } = input;
        self.at = at.unwrap_or(self.at);
        let unique = self.keys.look_up(self.machine, &event, &by);
        let unique = match (unique, taken_by) {
            (Some(known), taken_by) => Some(Unique { taken_by: taken_by.or(known.taken_by), ..known }),
            // The event has no key, and the kernel says so.
            (None, Some(run)) => Some(Unique { key: Json::Null, taken_by: Some(run) }),
            (None, None) => None,
        };
        Incoming { to, event, by, expected_seq, unique }
    }

    fn explain(&self, envelope: &Envelope, refusal: &Refusal) -> Explanation {
        self.machine.explain(Some(&self.snapshot), envelope, refusal)
    }

    /// The actor whose state is shown in the output.
    fn addressee(&self, incoming: &Incoming) -> String {
        if let Some(to) = &incoming.to {
            return to.clone();
        }
        let answered: Option<(&str, Option<EffectId>)> = match &incoming.event {
            Event::Done { invocation, effect, .. } | Event::Failed { invocation, effect, .. } => {
                Some((invocation, *effect))
            }
            _ => None,
        };
        let owner = answered.and_then(|(id, effect)| {
            let mut invocations = self.snapshot.invocations();
            invocations.find(|(_, i)| !i.is_machine() && i.id.as_ref() == id && effect.is_none_or(|e| e == i.effect))
        });
        owner.map_or_else(|| "root".into(), |(actor, _)| actor.id().into())
    }
}

impl<'m> StepOutcome<'m> {
    fn new(seq: u64, to: String) -> StepOutcome<'m> {
        StepOutcome {
            seq,
            verdict: Verdict::Ignored.word(),
            to,
            effects: Vec::new(),
            transitions: Vec::new(),
            taken: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
            fired: None,
            timers_refused: 0,
            refusal: None,
        }
    }

    fn add(&mut self, machine: &'m Machine, run: &str, step: &charter_kernel::Step) {
        let effects = step.effects.iter().map(|effect: &Effect| effect.json(run));
        self.effects.extend(effects);
        self.transitions.extend(machine.transition_names(step, &self.to).map(Cow::into_owned));
        self.taken.extend(machine.taken(step));
        self.timers.extend(step.timers.iter().map(TimerChange::json));
        self.notes.extend(step.notes.iter().cloned());
    }

    fn refuse(&mut self, explanation: Explanation) {
        self.verdict = "refused";
        self.refusal = Some(Box::new(explanation));
    }

    /// The refusal code, if the input was refused.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.refusal.as_ref().map(|explanation| explanation.code)
    }
}
