//! Envelopes: an event with everything that the kernel may know about its arrival. Time, sender and
//! answers are data.

use serde_json::Value as Json;

use crate::principal::Principal;
use crate::time::Timestamp;
use crate::unique::Unique;

/// An event for a run. Nothing else influences a step: the same envelopes give the same steps on
/// every host.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The sequence number of its record, dense from 0. Ids of effects contain it.
    pub seq: u64,
    /// The actor that receives the event; `None`: the root or, for an answer, the actor that awaits
    /// it.
    pub to: Option<String>,
    /// The event.
    pub event: Event,
    /// The sender. It is ignored for answers, timers and other events of the host.
    pub by: Principal,
    /// The time of the event.
    pub at: Timestamp,
    /// The last sequence number that the sender has seen; if the run has changed since, the event
    /// is refused as `stale`.
    pub expected_seq: Option<u64>,
    /// For an event with `unique`: its key, and whether a run has the key already. The host looks
    /// it up ([`crate::Machine::unique_key`]).
    pub unique: Option<Unique>,
}

impl Envelope {
    /// Creates the envelope of an event from outside, for the root.
    #[must_use]
    pub fn event(seq: u64, kind: &str, data: Json, by: Principal, at: impl Into<Timestamp>) -> Envelope {
        Envelope {
            seq,
            to: None,
            event: Event::External { r#type: kind.into(), data },
            by,
            at: at.into(),
            expected_seq: None,
            unique: None,
        }
    }

    /// Creates the envelope of the start of a run.
    #[must_use]
    pub fn start(input: Json, by: Principal, at: impl Into<Timestamp>) -> Envelope {
        Envelope::host(0, Event::Start { input }, at).by(by)
    }

    /// Creates the envelope of an event of the host itself (start, answer, timer), for the root.
    #[must_use]
    pub fn host(seq: u64, event: Event, at: impl Into<Timestamp>) -> Envelope {
        Envelope { seq, to: None, event, by: Principal::system(), at: at.into(), expected_seq: None, unique: None }
    }

    /// Gives an event of the host, such as the answer to a task, to somebody else.
    #[must_use]
    pub fn by(mut self, by: Principal) -> Envelope {
        self.by = by;
        self
    }

    /// Addresses the event to an actor.
    #[must_use]
    pub fn to(mut self, actor: &str) -> Envelope {
        self.to = Some(actor.into());
        self
    }
}

/// The kinds of events. Only [`Event::External`] can come from a person or a program; the host
/// creates the others, so that no sender can forge them.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The run starts (`charter.start`).
    Start {
        /// Its input.
        input: Json,
    },
    /// A principal sent an event; also run control (`charter.pause`, `charter.resume`,
    /// `charter.cancel`).
    External {
        /// Event type.
        r#type: String,
        /// Event data; `null` if there is none.
        data: Json,
    },
    /// An invoked actor has answered (`done.invoke.ID`).
    Done {
        /// Id of the invocation.
        invocation: String,
        /// The effect that is answered; `None`: the current effect of the invocation.
        effect: Option<EffectId>,
        /// The answer.
        output: Json,
    },
    /// An invoked actor has failed (`error.invoke.ID`).
    Failed {
        /// Id of the invocation.
        invocation: String,
        /// The effect that is answered; `None`: the current effect of the invocation.
        effect: Option<EffectId>,
        /// `{code, message, ...}`.
        error: Json,
    },
    /// An attempt of an invoked actor has failed, and the host will start another. It changes
    /// nothing, but it is recorded.
    Attempt {
        /// Id of the invocation.
        invocation: String,
        /// The effect that is being executed.
        effect: EffectId,
        /// The number of the attempt; the first is 1.
        attempt: u32,
        /// `{code, message, ...}`.
        error: Json,
        /// When the next attempt starts.
        retry_at: Timestamp,
    },
    /// A timer is due.
    Timer {
        /// Its id, from [`crate::Timer`].
        timer: String,
        /// Its generation; the event is ignored if the pending timer has another one.
        generation: u64,
    },
}

impl Event {
    /// Creates the event for the answer, or the error, of the actor that an effect started.
    #[must_use]
    pub fn answer(invocation: impl Into<String>, effect: EffectId, outcome: Result<Json, Json>) -> Event {
        let (invocation, effect) = (invocation.into(), Some(effect));
        match outcome {
            Ok(output) => Event::Done { invocation, effect, output },
            Err(error) => Event::Failed { invocation, effect, error },
        }
    }
}

/// The id of an effect: the sequence number of the record that requests it, and its index among the
/// effects of that record. With the run's id in front, it is the idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId {
    /// Sequence number of the record.
    pub seq: u64,
    /// Index among its effects.
    pub index: u32,
}

impl EffectId {
    /// Formats the id as `RUN/SEQ/INDEX`.
    #[must_use]
    pub fn text(&self, run: &str) -> String {
        format!("{run}/{}/{}", self.seq, self.index)
    }

    /// Parses `RUN/SEQ/INDEX` or `SEQ/INDEX`. The numbers are as [`text`](EffectId::text) writes
    /// them, without a sign or leading zeros, so that each effect has one id.
    #[must_use]
    pub fn parse(text: &str) -> Option<EffectId> {
        let is_plain = |n: &&str| *n == "0" || !n.starts_with(['0', '+']);
        let mut parts = text.rsplitn(3, '/');
        let index = parts.next().filter(is_plain)?.parse().ok()?;
        Some(EffectId { seq: parts.next().filter(is_plain)?.parse().ok()?, index })
    }
}
