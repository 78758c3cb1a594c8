//! What a host receives, and what it returns.

use std::sync::Arc;

use charter_journal::{Record, Verdict};
use charter_kernel::{Digest, Explanation, Machine, Principal, RefusalDetails, Snapshot, Status};
use charter_run::Task;
use serde_json::Value as Json;
use tokio::sync::oneshot;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::events::Working;

/// A run to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The charter, by the digest that [`Runtime::add`](crate::Runtime::add) returned.
    pub charter: Digest,
    /// Id of the run; `None`: the host generates one. The same id with the same input is the same
    /// run.
    pub run: Option<String>,
    /// Input of the run.
    pub input: Json,
    /// The principal that starts it.
    pub by: Principal,
}

/// An event to send.
#[derive(Debug, Clone)]
pub struct SendEvent {
    /// The run.
    pub run: String,
    /// The actor of the run that receives it; `None`: the root actor.
    pub to: Option<String>,
    /// Event type; also `charter.pause`, `charter.resume` and `charter.cancel`.
    pub r#type: String,
    /// Event data.
    pub data: Json,
    /// The sender, as the host has authenticated it.
    pub by: Principal,
    /// The sender's idempotency key: the same id with the same content returns the first result
    /// again and changes nothing.
    pub id: Option<String>,
    /// The last record that the sender has seen; if the run has changed since, the event is refused
    /// as `stale`.
    pub expected_seq: Option<u64>,
}

impl SendEvent {
    /// An event for the root of a run.
    #[must_use]
    pub fn new(run: &str, r#type: &str, data: Json, by: Principal) -> SendEvent {
        SendEvent { run: run.into(), to: None, r#type: r#type.into(), data, by, id: None, expected_seq: None }
    }

    /// Sends it to an actor of the run.
    #[must_use]
    pub fn to(mut self, actor: &str) -> SendEvent {
        self.to = Some(actor.into());
        self
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn id(mut self, id: &str) -> SendEvent {
        self.id = Some(id.into());
        self
    }
}

/// An event was recorded, accepted or refused.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The record; it is durable.
    pub record: Record,
    /// The run after it (for a repeated event, its current state); `None` if the start was refused.
    pub snapshot: Option<Snapshot>,
    /// The event was recorded earlier, under the same id; this call changed nothing.
    pub repeated: bool,
}

impl Receipt {
    /// Why it was refused; `None` if it was not. [`Receipt::explanation`] renders it.
    #[must_use]
    pub fn refusal(&self) -> Option<&RefusalDetails> {
        self.record.refusal.as_deref()
    }

    /// Explains why it was refused. With the charter, this includes the messages of its rules.
    #[must_use]
    pub fn explanation(&self, machine: Option<&Machine>) -> Option<Explanation> {
        self.record.explanation(machine)
    }

    /// Whether it was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.record.verdict == Verdict::Refused
    }
}

/// The current state of a run.
#[derive(Debug, Clone)]
pub struct View {
    /// Its charter.
    pub charter: Arc<Charter>,
    /// Its snapshot.
    pub snapshot: Snapshot,
    /// Actors that work for it on this host now.
    pub working: Vec<Working>,
    /// Tasks that wait for a person.
    pub tasks: Vec<Task>,
}

impl View {
    /// Whether the run is active but can never continue: no timer, no open invocation, no event
    /// that any principal may send.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let s = &self.snapshot;
        if s.status() != Status::Active || !s.timers().is_empty() || s.invocations().any(|(_, i)| !i.is_machine()) {
            return false;
        }
        let machine = &self.charter.machine;
        let anybody = Principal { id: String::new(), roles: machine.definition().roles.keys().cloned().collect() };
        // Legality depends on time only through permits that expire, so any time gives the same
        // answer.
        machine.legal(s, &anybody, i64::from(u32::MAX)).is_empty()
    }
}

pub(crate) type Reply = oneshot::Sender<Result<Receipt, RuntimeError>>;

/// An entry of a mailbox.
pub(crate) struct Input {
    pub(crate) input: charter_run::Input,
    /// The charter of a run to start.
    pub(crate) charter: Option<Arc<Charter>>,
    /// `None` if nobody waits for the result.
    pub(crate) reply: Option<Reply>,
}
