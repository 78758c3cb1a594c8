//! A run in memory: a machine, a snapshot and a clock that the caller sets.

use charter_kernel::{Event, Machine, Principal, Refusal, Snapshot, Step, TakenKeys, Timestamp};
use charter_run::{Incoming, Position};
use serde_json::Value as Json;

use crate::EventSink;

/// A run in memory, stepped by the kernel alone. Effects are returned, not executed; the clock does
/// not move until it is [set](Self::at).
#[derive(Debug)]
pub struct Session<'m> {
    machine: &'m Machine,
    position: Position,
    /// The snapshot of `position`, where it is optional; here it always exists, because the run has
    /// started.
    snapshot: Snapshot,
    at: Timestamp,
    first: Option<Step>,
    /// The unique keys that the run has.
    keys: TakenKeys,
}

impl<'m> Session<'m> {
    /// Starts a run at the time `at`.
    ///
    /// # Errors
    /// The kernel refuses the start, for example because the input does not match the charter.
    pub fn start(
        machine: &'m Machine,
        run: &str,
        input: Json,
        at: impl Into<Timestamp>,
    ) -> Result<Session<'m>, Refusal> {
        let at = at.into();
        let mut position = Position::new();
        let step = position.take(machine, run, Incoming::host(Event::Start { input }), at).1?;
        Ok(Session {
            machine,
            position,
            snapshot: step.snapshot.clone(),
            at,
            first: Some(step),
            keys: TakenKeys::default(),
        })
    }

    /// Returns the step that started the run, with its effects; `None` after the first call.
    pub fn first(&mut self) -> Option<Step> {
        self.first.take()
    }

    /// The current snapshot of the run.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Paths of the active atomic states of an actor; empty if there is no such actor.
    #[must_use]
    pub fn state(&self, actor: &str) -> Vec<&str> {
        self.snapshot.actor(actor).map(|a| a.state().collect()).unwrap_or_default()
    }

    /// Sets the time of the events that follow.
    pub fn at(&mut self, at: impl Into<Timestamp>) {
        self.at = at.into();
    }

    /// Delivers an event of the host itself: a result, a failure, a timer.
    ///
    /// # Errors
    /// The kernel refuses the event; the run is unchanged.
    pub fn host(&mut self, event: Event) -> Result<Step, Refusal> {
        self.take(Incoming::host(event))
    }

    fn take(&mut self, incoming: Incoming) -> Result<Step, Refusal> {
        let unique = self.keys.look_up(self.machine, &incoming.event, &incoming.by);
        let incoming = Incoming { unique, ..incoming };
        let (envelope, outcome) = self.position.take(self.machine, self.snapshot.run(), incoming, self.at);
        self.keys.note(self.snapshot.run(), &envelope, &outcome);
        let step = outcome?;
        self.snapshot = step.snapshot.clone();
        Ok(step)
    }
}

impl EventSink for Session<'_> {
    type Answer = Step;
    type Refusal = Refusal;

    fn send(&mut self, to: Option<&str>, kind: &str, data: Json, id: &str, role: &str) -> Result<Step, Refusal> {
        let event = Event::External { r#type: kind.into(), data };
        let by = Principal::new(id, &[role]);
        self.take(Incoming { to: to.map(Into::into), by, ..Incoming::host(event) })
    }
}
