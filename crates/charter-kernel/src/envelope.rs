//! What comes in: an event with everything the kernel may know about its arrival. Time, sender and answers are data here.

use charter_expr::{Object, Str, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::time::Timestamp;

/// One thing that happens to a run. Nothing else influences a step: the same envelopes give the same steps on every host.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The place its record will have in the journal; dense from 0. Ids of effects are made of it.
    pub seq: u64,
    /// The actor it is for; `None`: the root (for answers: whoever asked).
    pub to: Option<String>,
    /// What happened.
    pub event: Event,
    /// Who says so. For answers, timers and other events of the host it is not looked at.
    pub by: Principal,
    /// When.
    pub at: Timestamp,
    /// The last sequence number the sender has seen; if the run has changed since, the event is refused as `stale`.
    pub expected_seq: Option<u64>,
}

impl Envelope {
    /// An event from outside, for the root.
    #[must_use]
    pub fn event(seq: u64, kind: &str, data: Json, by: Principal, at: impl Into<Timestamp>) -> Envelope {
        Envelope {
            seq,
            to: None,
            event: Event::External { r#type: kind.into(), data },
            by,
            at: at.into(),
            expected_seq: None,
        }
    }

    /// An event of the host itself (start, answer, timer), for the root.
    #[must_use]
    pub fn host(seq: u64, event: Event, at: impl Into<Timestamp>) -> Envelope {
        Envelope { seq, to: None, event, by: Principal::system(), at: at.into(), expected_seq: None }
    }
}

/// What happened. Only [`Event::External`] can come from a person or a program; the others are made by the host, so no sender can forge them.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The run begins (`charter.start`).
    Start {
        /// What it begins with.
        input: Json,
    },
    /// Sent by a principal; also run control (`charter.pause`, `charter.resume`, `charter.cancel`).
    External {
        /// Event type.
        r#type: String,
        /// Event data; absent is `null`.
        data: Json,
    },
    /// An invoked actor has answered (`done.invoke.ID`).
    Done {
        /// Id of the invocation.
        invocation: String,
        /// The effect that is answered; `None`: the one that is active now.
        effect: Option<EffectId>,
        /// The answer.
        output: Json,
    },
    /// An invoked actor has failed (`error.invoke.ID`).
    Failed {
        /// Id of the invocation.
        invocation: String,
        /// The effect that is answered; `None`: the one that is active now.
        effect: Option<EffectId>,
        /// `{code, message, ...}`.
        error: Json,
    },
    /// An attempt of an invoked actor has failed, and the host will make another one. Changes nothing: it is told for the record.
    Attempt {
        /// Id of the invocation.
        invocation: String,
        /// The effect that is being worked on.
        effect: EffectId,
        /// Which attempt it was; the first is 1.
        attempt: u32,
        /// `{code, message, ...}`.
        error: Json,
        /// When the next one begins.
        retry_at: Timestamp,
    },
    /// A timer is due.
    Timer {
        /// Its id, from [`crate::Timer`].
        timer: String,
        /// Its generation; another than the pending one is ignored.
        generation: u64,
    },
}

impl Event {
    /// What came of the work that an effect asked for: its answer, or why it failed.
    #[must_use]
    pub fn answer(invocation: impl Into<String>, effect: EffectId, outcome: Result<Json, Json>) -> Event {
        let (invocation, effect) = (invocation.into(), Some(effect));
        match outcome {
            Ok(output) => Event::Done { invocation, effect, output },
            Err(error) => Event::Failed { invocation, effect, error },
        }
    }
}

/// Which effect: the record that asked for it and the place among that record's effects. With the run's id in front it is its idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId {
    /// Sequence number of the record.
    pub seq: u64,
    /// Place among its effects.
    pub index: u32,
}

impl EffectId {
    /// `RUN/SEQ/INDEX`.
    #[must_use]
    pub fn text(&self, run: &str) -> String {
        format!("{run}/{}/{}", self.seq, self.index)
    }

    /// Reads `RUN/SEQ/INDEX` or `SEQ/INDEX`.
    #[must_use]
    pub fn parse(text: &str) -> Option<EffectId> {
        let mut parts = text.rsplitn(3, '/');
        let index = parts.next()?.parse().ok()?;
        Some(EffectId { seq: parts.next()?.parse().ok()?, index })
    }
}

/// Who acts, as the host has authenticated it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Principal {
    /// Who.
    #[serde(default)]
    pub id: String,
    /// As what.
    #[serde(default)]
    pub roles: Vec<String>,
}

impl Principal {
    /// A principal with roles.
    #[must_use]
    pub fn new(id: &str, roles: &[&str]) -> Principal {
        Principal { id: id.into(), roles: roles.iter().map(|r| (*r).to_string()).collect() }
    }

    /// The host itself.
    #[must_use]
    pub fn system() -> Principal {
        Principal::new("system", &["system"])
    }
}

impl Object for Principal {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "id" => Some(Value::from(self.id.as_str())),
            "roles" => Some(Value::list(self.roles.iter().map(|r| Value::from(r.as_str())).collect())),
            _ => None,
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        vec!["id".into(), "roles".into()]
    }
    fn len(&self) -> usize {
        2
    }
}
