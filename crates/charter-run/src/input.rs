//! The inputs of a run.

use charter_journal::{Manifest, Record};
use charter_kernel::{EffectId, Machine, Principal, Timestamp, Unique};
use serde_json::Value as Json;

use crate::fault::Fault;
use crate::handled::InvocationRequest;
use crate::policy::ActorPolicy;
use crate::retry::after_failure;

/// An input of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Input {
    /// The start of the run.
    Start {
        /// Its input.
        input: Json,
        /// The principal that starts it.
        by: Principal,
        /// The files that it may use.
        manifest: Manifest,
    },
    /// An event from a principal.
    Event(EventInput),
    /// An attempt of an invocation is over.
    Outcome {
        /// The effect that requested the invocation.
        effect: EffectId,
        /// The number of the attempt; the first is 1.
        attempt: u32,
        /// The output, or the error as the charter sees it.
        outcome: Result<Json, Json>,
        /// When the next attempt begins; `None` if there is no further attempt, so that this is the
        /// answer.
        again_at: Option<Timestamp>,
    },
    /// The answer of a person to a task.
    Settled {
        /// The effect that requested the task.
        effect: EffectId,
        /// The output, or the error as the charter sees it.
        outcome: Result<Json, Json>,
        /// The person.
        by: Principal,
    },
    /// Only time has passed.
    Due,
}

/// An event from a principal.
#[derive(Debug, Clone)]
pub struct EventInput {
    /// The actor addressed; `None`: the root actor.
    pub to: Option<String>,
    /// Event type.
    pub r#type: String,
    /// Event data.
    pub data: Json,
    /// The sender, as the host has authenticated it.
    pub by: Principal,
    /// The sender's idempotency key.
    pub id: Option<String>,
    /// Whether the host made the id. Ids that begin with the id of the run and `/` are reserved for
    /// the host.
    pub host_id: bool,
    /// The last record that the sender has seen.
    pub expected_seq: Option<u64>,
}

impl EventInput {
    /// Creates an event for the root, without an id.
    #[must_use]
    pub fn new(r#type: &str, data: Json, by: Principal) -> EventInput {
        EventInput { to: None, r#type: r#type.into(), data, by, id: None, host_id: false, expected_seq: None }
    }
}

impl Input {
    /// Creates the start of a run that uses no files.
    #[must_use]
    pub fn start(input: Json, by: Principal) -> Input {
        Input::Start { input, by, manifest: Manifest::default() }
    }

    /// Creates the input for an attempt that is over: checks the output, and decides by the actor's
    /// `retry` whether another attempt follows.
    #[must_use]
    pub fn attempted(
        machine: &Machine,
        run: &str,
        request: &InvocationRequest,
        result: Result<Json, Fault>,
        now: Timestamp,
    ) -> Input {
        let InvocationRequest { effect, attempt, .. } = *request;
        let checked = result.and_then(|output| {
            machine.check_answer(&request.src, &output)?;
            Ok(output)
        });
        let (outcome, again_at) = match checked {
            Ok(output) => (Ok(output), None),
            Err(fault) => {
                let decl = machine.definition().actors.get(request.src.as_ref());
                // Hosts check the configuration of actors before a run starts.
                let policy = decl.and_then(|decl| ActorPolicy::read(decl).ok());
                let retry = policy.map(|p| p.retry).unwrap_or_default();
                let (error, again_at) = after_failure(&retry, &effect.text(run), attempt, fault, now);
                (Err(error), again_at)
            }
        };
        Input::Outcome { effect, attempt, outcome, again_at }
    }

    /// Creates the answer to the first attempt of an invocation; there is no other attempt.
    #[must_use]
    pub fn answer(effect: EffectId, outcome: Result<Json, Json>) -> Input {
        Input::Outcome { effect, attempt: 1, outcome, again_at: None }
    }
}

/// Records that the host has looked up for an input.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Record 0, for the start of a run that exists.
    pub first: Option<Record>,
    /// The record that has the event's id.
    pub same: Option<Record>,
    /// The unique key of the event, and the run that has it. Without it, the kernel refuses an
    /// event that has one.
    pub unique: Option<Unique>,
}

impl Known {
    /// Looks up what is known about an input in all records of the run.
    #[must_use]
    pub fn among(records: &[Record], input: &Input) -> Known {
        let same = match input {
            Input::Event(EventInput { id: Some(id), .. }) => records.iter().find(|r| r.id == *id).cloned(),
            _ => None,
        };
        Known { first: records.first().cloned(), same, unique: None }
    }
}
