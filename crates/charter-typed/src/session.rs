//! A run in memory: a machine, a snapshot and a clock that the caller sets.

use charter_kernel::{Envelope, Event, Machine, Principal, Refusal, Snapshot, Step, Timestamp};
use serde_json::Value as Json;

use crate::EventSink;

/// A run in memory, stepped by the kernel alone. Effects are returned, not executed; the clock does
/// not move until it is [set](Self::at).
#[derive(Debug)]
pub struct Session<'m> {
    machine: &'m Machine,
    snapshot: Snapshot,
    seq: u64,
    at: Timestamp,
    first: Option<Step>,
}

impl<'m> Session<'m> {
    /// Starts a run at a time.
    ///
    /// # Errors
    /// A refusal, if the input does not fit the charter.
    pub fn start(
        machine: &'m Machine,
        run: &str,
        input: Json,
        at: impl Into<Timestamp>,
    ) -> Result<Session<'m>, Refusal> {
        let at = at.into();
        let step = machine.start(run, &Envelope::host(0, Event::Start { input }, at))?;
        Ok(Session { machine, snapshot: step.snapshot.clone(), seq: 0, at, first: Some(step) })
    }

    /// The step that started the run, with its effects. Returned once, then `None`.
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
    /// A refusal; the run is unchanged.
    pub fn host(&mut self, event: Event) -> Result<Step, Refusal> {
        self.seq = self.seq.saturating_add(1);
        let step = self.machine.step(&self.snapshot, &Envelope::host(self.seq, event, self.at))?;
        self.snapshot = step.snapshot.clone();
        Ok(step)
    }
}

impl EventSink for Session<'_> {
    type Answer = Step;
    type Refusal = Refusal;

    fn send(&mut self, to: Option<&str>, kind: &str, data: Json, id: &str, role: &str) -> Result<Step, Refusal> {
        self.seq = self.seq.saturating_add(1);
        let mut envelope = Envelope::event(self.seq, kind, data, Principal::new(id, &[role]), self.at);
        envelope.to = to.map(Into::into);
        let step = self.machine.step(&self.snapshot, &envelope)?;
        self.snapshot = step.snapshot.clone();
        Ok(step)
    }
}
