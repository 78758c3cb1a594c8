//! A run between two events, without its records. All hosts and sessions apply events through it.

use std::sync::Arc;

use charter_kernel::{
    Code, Envelope, Event, Machine, Principal, Refusal, Snapshot, Status, Step, Timer, Timestamp, Unique, Verdict,
};
use serde::{Deserialize, Serialize};

/// An event for a run, before it has a number and a time.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The actor addressed; `None`: the root actor.
    pub to: Option<String>,
    /// The event.
    pub event: Event,
    /// The sender; ignored for events of the host.
    pub by: Principal,
    /// The last record that the sender has seen.
    pub expected_seq: Option<u64>,
    /// Its unique key, as the host has looked it up.
    pub unique: Option<Unique>,
}

impl Incoming {
    /// Creates an event of the host itself, for the root.
    #[must_use]
    pub fn host(event: Event) -> Incoming {
        Incoming { to: None, event, by: Principal::system(), expected_seq: None, unique: None }
    }
}

/// Whether a step has a record: all have one but late answers.
pub(crate) fn has_record(outcome: &Result<Step, Refusal>) -> bool {
    outcome.as_ref().map_or(true, |step| step.verdict != Verdict::Late)
}

/// Timers whose event was refused by the snapshot with a certain sequence number. They stay pending
/// and fire again when the snapshot has changed; before that, the result would be the same. A timer
/// that was too costly or too large never fires again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTimers {
    #[serde(default)]
    snapshot: u64,
    #[serde(default)]
    timers: Vec<(Arc<str>, u64)>,
    #[serde(default)]
    for_good: Vec<(Arc<str>, u64)>,
}

impl RefusedTimers {
    /// Notes that a snapshot refused a timer, and forgets the timers that an earlier snapshot
    /// refused.
    fn insert(&mut self, snapshot: u64, timer: &str, generation: u64) {
        if self.snapshot != snapshot {
            self.snapshot = snapshot;
            self.timers.clear();
        }
        if !self.contains(snapshot, timer, generation) {
            self.timers.push((timer.into(), generation));
        }
    }

    /// Notes that a timer never fires again, and forgets those that are no longer pending.
    fn insert_for_good(&mut self, pending: &[Arc<Timer>], timer: &str, generation: u64) {
        let is_pending =
            |(id, generation): &(Arc<str>, u64)| pending.iter().any(|t| t.generation == *generation && t.id == *id);
        self.for_good.retain(is_pending);
        let entry = (Arc::from(timer), generation);
        if is_pending(&entry) && !self.for_good.contains(&entry) {
            self.for_good.push(entry);
        }
    }

    fn contains(&self, snapshot: u64, timer: &str, generation: u64) -> bool {
        let is = |(t, g): &(Arc<str>, u64)| *g == generation && **t == *timer;
        self.for_good.iter().any(is) || (self.snapshot == snapshot && self.timers.iter().any(is))
    }
}

/// A run after an event.
#[derive(Debug, Clone)]
pub struct Position {
    snapshot: Option<Snapshot>,
    next_seq: u64,
    last: Timestamp,
    refused: RefusedTimers,
}

impl Default for Position {
    fn default() -> Position {
        Position::new()
    }
}

impl Position {
    /// Creates the position of a run that has not started.
    #[must_use]
    pub fn new() -> Position {
        Position { snapshot: None, next_seq: 0, last: Timestamp::MIN, refused: RefusedTimers::default() }
    }

    /// Creates the position of an existing run from its snapshot (`None` if its start was refused),
    /// the number of its next record, the time of its last one, and the timers that the snapshot
    /// has refused.
    #[must_use]
    pub fn resume(snapshot: Option<Snapshot>, next_seq: u64, last: Timestamp, refused: RefusedTimers) -> Position {
        Position { snapshot, next_seq, last, refused }
    }

    /// The snapshot; `None` if the run has not started or its start was refused.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// The number of the next record.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The time of the last event.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.last
    }

    /// Returns the time of an event that happens now: never earlier than the last event of the run.
    #[must_use]
    pub fn time(&self, now: Timestamp) -> Timestamp {
        now.max(self.last)
    }

    /// Creates the envelope of an event that happens at time `at`, with the number of the next
    /// record.
    #[must_use]
    pub fn envelope(&self, incoming: Incoming, at: Timestamp) -> Envelope {
        let Incoming { to, event, by, expected_seq, unique } = incoming;
        Envelope { seq: self.next_seq, to, event, by, at, expected_seq, unique }
    }

    /// Computes the kernel's step; the position is unchanged.
    ///
    /// # Errors
    /// The kernel refuses the event, or the run has not started.
    pub fn step(&self, machine: &Machine, run: &str, envelope: &Envelope) -> Result<Step, Refusal> {
        match (&envelope.event, &self.snapshot) {
            (Event::Start { .. }, None) => machine.start(run, envelope),
            (_, Some(snapshot)) => machine.step(snapshot, envelope),
            (_, None) => Err(Code::Finished.into()),
        }
    }

    /// Applies an event at time `at` and advances the position. A late answer does not advance it,
    /// because it has no record. Hosts pass [`Position::time`]; scenarios may go back in time.
    ///
    /// The outcome is an error if the kernel refuses the event. The refusal has a record, so the
    /// position advances anyway.
    pub fn take(
        &mut self,
        machine: &Machine,
        run: &str,
        incoming: Incoming,
        at: Timestamp,
    ) -> (Envelope, Result<Step, Refusal>) {
        let envelope = self.envelope(incoming, at);
        let outcome = self.step(machine, run, &envelope);
        if has_record(&outcome) {
            self.advance(&envelope, outcome.as_ref().map(|step| step.snapshot.clone()).map_err(|r| r.code));
        }
        (envelope, outcome)
    }

    /// Advances past the event of an envelope; `after` is the snapshot of its step, or the code of
    /// its refusal.
    pub fn advance(&mut self, envelope: &Envelope, after: Result<Snapshot, Code>) {
        self.next_seq = envelope.seq.saturating_add(1);
        self.last = envelope.at;
        match (after, &envelope.event) {
            (Ok(after), _) => self.snapshot = Some(after),
            (Err(code), Event::Timer { timer, generation }) => self.refuse_timer(timer, *generation, true, code),
            (Err(_), _) => {}
        }
    }

    /// Replaces the snapshot with an equal one, such as one that was read back from its text.
    pub fn replace_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshot = Some(snapshot);
    }

    /// Advances the time without an event.
    pub fn wait_until(&mut self, at: Timestamp) {
        self.last = at;
    }

    /// The next timer that can fire: the run is active, and the snapshot has not refused it.
    #[must_use]
    pub fn timer(&self) -> Option<&Arc<Timer>> {
        let snapshot = self.snapshot.as_ref().filter(|s| s.status() == Status::Active)?;
        snapshot.timers().iter().find(|t| !self.refused.contains(snapshot.seq(), &t.id, t.generation))
    }

    /// Returns the event of the next timer that is due by a given time, and when it is due.
    #[must_use]
    pub fn due(&self, until: Timestamp) -> Option<(Timestamp, Incoming)> {
        let timer = self.timer().filter(|t| t.due <= until)?;
        let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
        Some((timer.due, Incoming::host(event)))
    }

    /// The timers that the snapshot has refused.
    #[must_use]
    pub fn refused(&self) -> &RefusedTimers {
        &self.refused
    }

    /// Notes that a timer was refused: by the current snapshot, or for good if it exceeds its
    /// budget.
    pub(crate) fn refuse_timer(&mut self, timer: &str, generation: u64, current: bool, code: Code) {
        if current {
            self.skip_timer(timer, generation);
        }
        if let Some(snapshot) = self.snapshot.as_ref().filter(|_| matches!(code, Code::TooCostly | Code::TooLarge)) {
            self.refused.insert_for_good(snapshot.timers(), timer, generation);
        }
    }

    /// Notes that a timer cannot fire at the current snapshot.
    pub(crate) fn skip_timer(&mut self, timer: &str, generation: u64) {
        if let Some(snapshot) = &self.snapshot {
            self.refused.insert(snapshot.seq(), timer, generation);
        }
    }
}
