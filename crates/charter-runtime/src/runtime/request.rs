//! What a host is asked, and what it answers.

use std::sync::Arc;

use charter_journal::{Record, Verdict};
use charter_kernel::{Digest, EffectId, Explanation, Principal, Snapshot, Status};
use serde_json::Value as Json;
use tokio::sync::oneshot;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::publish::Working;

/// A run to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The charter ([`Runtime::add`](crate::Runtime::add) gave its digest).
    pub charter: Digest,
    /// Its id; none: the host makes one. The same id with the same input is the same run.
    pub run: Option<String>,
    /// What it starts with.
    pub input: Json,
    /// Who starts it.
    pub by: Principal,
}

/// An event to send.
#[derive(Debug, Clone)]
pub struct SendEvent {
    /// The run.
    pub run: String,
    /// The actor it is for; none: the root.
    pub to: Option<String>,
    /// Event type; run control too (`charter.pause`, `charter.resume`, `charter.cancel`).
    pub r#type: String,
    /// Event data.
    pub data: Json,
    /// Who sends it, as the host has authenticated it.
    pub by: Principal,
    /// The sender's idempotency key: the same id with the same content gives the first answer again, and nothing happens.
    pub id: Option<String>,
    /// The last record the sender has seen; if the run has changed since, the event is refused as `stale`.
    pub expected_seq: Option<u64>,
}

impl SendEvent {
    /// An event for the root of a run.
    #[must_use]
    pub fn new(run: &str, r#type: &str, data: Json, by: Principal) -> SendEvent {
        SendEvent { run: run.into(), to: None, r#type: r#type.into(), data, by, id: None, expected_seq: None }
    }

    /// For an actor of the run.
    #[must_use]
    pub fn to(mut self, actor: &str) -> SendEvent {
        self.to = Some(actor.into());
        self
    }

    /// With an idempotency key.
    #[must_use]
    pub fn id(mut self, id: &str) -> SendEvent {
        self.id = Some(id.into());
        self
    }
}

/// An event was recorded, whatever became of it.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The record, durable.
    pub record: Record,
    /// The run after it (of a repeated event: as it is now); none if its start was refused.
    pub snapshot: Option<Snapshot>,
    /// The event had been recorded before, under the same id; nothing has happened now.
    pub repeated: bool,
}

impl Receipt {
    /// Why it was refused; none if it was not.
    #[must_use]
    pub fn refusal(&self) -> Option<&Explanation> {
        self.record.refusal.as_deref()
    }

    /// Whether it was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.record.verdict == Verdict::Refused
    }
}

/// A run as it is now.
#[derive(Debug, Clone)]
pub struct View {
    /// Its charter.
    pub charter: Arc<Charter>,
    /// Its snapshot.
    pub snapshot: Snapshot,
    /// Actors at work for it on this host right now.
    pub working: Vec<Working>,
    /// Tasks that wait for a person.
    pub tasks: Vec<Task>,
}

impl View {
    /// Whether nothing can happen any more although the run goes on: no timer, nothing at work, no event that anybody could send.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let s = &self.snapshot;
        if s.status() != Status::Active || !s.timers().is_empty() || s.invocations().any(|(_, i)| !i.is_machine()) {
            return false;
        }
        let machine = &self.charter.machine;
        let anybody = Principal { id: String::new(), roles: machine.definition().roles.keys().cloned().collect() };
        // What is legal depends on time only through permits that end, so any moment will do.
        machine.legal(s, &anybody, i64::from(u32::MAX)).is_empty()
    }
}

/// Something that waits for a person: an invocation of an actor of kind `human`.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The run.
    pub run: String,
    /// The effect, `RUN/SEQ/INDEX`: what [`Runtime::complete`](crate::Runtime::complete) is given.
    pub effect: String,
    /// The actor of the run that waits.
    pub actor: String,
    /// Id of the invocation.
    pub invocation: String,
    /// The entry of `actors`.
    pub src: String,
    /// What it is about (`title` of the actor).
    pub title: Option<String>,
    /// Who may answer (`by` of the actor); empty: anybody.
    pub by: Vec<String>,
    /// What the person is shown.
    pub input: Json,
    /// JSON Schema of the answer, if the charter has one.
    pub output: Option<Json>,
}

pub(crate) type Reply = oneshot::Sender<Result<Receipt, RuntimeError>>;

/// What comes into a mailbox.
pub(crate) enum Input {
    Start {
        charter: Arc<Charter>,
        start: Box<Start>,
        reply: Reply,
    },
    Event {
        send: Box<SendEvent>,
        reply: Reply,
    },
    Answer {
        invocation: String,
        effect: EffectId,
        outcome: Result<Json, Json>,
        person: Option<Principal>,
        reply: Reply,
    },
    /// An attempt has failed, and another one follows: for the record.
    Attempt {
        invocation: String,
        effect: EffectId,
        attempt: u32,
        error: Json,
        retry_at: i64,
        reply: Reply,
    },
    /// A timer is due.
    Due,
}
