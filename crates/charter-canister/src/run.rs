//! A run in memory: passes events to the kernel and builds their records, as the embedded host
//! does. It stores nothing and knows no clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use charter_journal::{Chain, Record};
use charter_kernel::{Code, Effect, Envelope, Event, Machine, Principal, Snapshot, Status, Step, Timer};
use serde_json::Value as Json;

use crate::error::CanisterError;

/// A run after its last record.
#[derive(Debug, Clone)]
pub struct Run {
    snapshot: Option<Snapshot>,
    chain: Chain,
    /// Time of its last record: time does not go back within a run.
    last: i64,
    /// Timers whose event was refused at this snapshot; they are retried after it has changed.
    refused: (u64, BTreeSet<(Arc<str>, u64)>),
}

/// The result of processing an event.
#[derive(Debug)]
pub struct Stepped {
    /// The record.
    pub record: Record,
    /// The text of the snapshot after it; none if the start was refused.
    pub text: Option<String>,
    /// The effects to execute.
    pub effects: Vec<Effect>,
    /// The snapshot before it.
    pub before: Option<Snapshot>,
}

impl Run {
    /// A run that has not started.
    #[must_use]
    pub fn new(id: &str) -> Run {
        Run {
            snapshot: None,
            // Each snapshot is written to stable memory.
            chain: Chain::new(id).snapshot_every(1),
            last: i64::MIN,
            refused: Default::default(),
        }
    }

    /// Restores a run after its last record; `snapshot` is the stored text.
    ///
    /// # Errors
    /// The record and the snapshot do not belong together, or not to this charter.
    pub fn restore(machine: &Machine, last: &Record, snapshot: &str) -> Result<Run, CanisterError> {
        let bad = |why: String| CanisterError::Stable(why);
        if charter_kernel::Digest::of_bytes(snapshot.as_bytes()) != last.snapshot {
            return Err(bad(format!("the snapshot is not the one after record {}", last.seq)));
        }
        let mut reader = serde_json::Deserializer::from_str(snapshot);
        reader.disable_recursion_limit();
        let json: Json = serde::Deserialize::deserialize(&mut reader).map_err(|e| bad(e.to_string()))?;
        let snapshot = machine.restore(&json).map_err(|e| bad(e.to_string()))?;
        Ok(Run {
            snapshot: Some(snapshot),
            chain: Chain::after(last).snapshot_every(1),
            last: last.at.0,
            refused: Default::default(),
        })
    }

    /// Its snapshot; none if it has not started or its start was refused.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// The end of its chain.
    #[must_use]
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The next timer that may fire.
    fn timer(&self) -> Option<&Timer> {
        let snapshot = self.snapshot.as_ref().filter(|s| s.status() == Status::Active)?;
        let (at, refused) = &self.refused;
        let fresh = |t: &&Timer| *at != snapshot.seq() || !refused.contains(&(t.id.clone(), t.generation));
        snapshot.timers().iter().map(AsRef::as_ref).find(fresh)
    }

    /// When its next timer is due, in milliseconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        self.timer().map(|t| t.due.0)
    }

    /// The event of the next timer, if it is due.
    #[must_use]
    pub fn due(&self, now: i64) -> Option<Event> {
        let now = now.max(self.last);
        let timer = self.timer().filter(|t| t.due.0 <= now)?;
        Some(Event::Timer { timer: timer.id.to_string(), generation: timer.generation })
    }

    /// The kernel's step, and its record.
    pub fn step(&mut self, machine: &Machine, now: i64, event: Event, by: Principal) -> Stepped {
        let at = now.max(self.last);
        let envelope = Envelope { seq: self.chain.next_seq(), to: None, event, by, at: at.into(), expected_seq: None };
        let before = self.snapshot.clone();
        let outcome: Result<Step, charter_kernel::Refusal> = match (&envelope.event, &before) {
            (Event::Start { .. }, None) => machine.start(self.chain.run(), &envelope),
            (_, Some(snapshot)) => machine.step(snapshot, &envelope),
            (_, None) => Err(Code::Finished.into()),
        };
        let append = self.chain.append(machine, None, &envelope, before.as_ref(), &outcome);
        self.chain.advance(&append);
        self.last = at;
        let mut effects = Vec::new();
        match outcome {
            Ok(step) => {
                self.snapshot = Some(step.snapshot);
                effects = step.effects;
            }
            Err(_) => self.remember_refused(&envelope.event),
        }
        Stepped { record: append.record, text: append.snapshot, effects, before }
    }

    /// The same event would be refused again, so the timer waits for the run to change.
    fn remember_refused(&mut self, event: &Event) {
        let (Event::Timer { timer, generation }, Some(snapshot)) = (event, &self.snapshot) else {
            return;
        };
        if self.refused.0 != snapshot.seq() {
            self.refused = (snapshot.seq(), BTreeSet::new());
        }
        self.refused.1.insert((timer.as_str().into(), *generation));
    }
}
