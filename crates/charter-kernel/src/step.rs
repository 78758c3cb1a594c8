//! The result of an accepted event: the new snapshot, and what the host has to do.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::envelope::EffectId;
use crate::machine::TransitionId;
use crate::refusal::ExpressionError;
use crate::snapshot::{Actor, Snapshot, Timer};

/// The result of an event that was not refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Whether the event changed the run.
    pub verdict: Verdict,
    /// The snapshot of the run after the event.
    pub snapshot: Snapshot,
    /// The effects that the host executes after the commit, in order.
    pub effects: Vec<Effect>,
    /// Timers set and cancelled, in order.
    pub timers: Vec<TimerChange>,
    /// Guards that could not be evaluated (and so did not hold), and events between actors that no
    /// transition took.
    pub notes: Vec<Note>,
    pub(crate) taken: SmallVec<[Taken; 1]>,
}

/// How an event that was not refused was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Transitions were taken.
    Accepted,
    /// The event was a vote toward a quorum.
    Vote,
    /// No transition was taken, in a lenient machine or for an event of the platform.
    Ignored,
    /// The event was an answer to a cancelled or earlier invocation.
    Late,
}

impl Verdict {
    /// The word used in records.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::Vote => "vote",
            Verdict::Ignored => "ignored",
            Verdict::Late => "late",
        }
    }
}

/// A transition taken by an actor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    /// `None` for the root actor, so that no reference count has to change.
    actor: Option<Arc<str>>,
    pub(crate) chart: u32,
    pub(crate) transition: TransitionId,
}

impl Taken {
    #[inline(always)]
    pub(crate) fn by(actor: &Actor, transition: TransitionId) -> Taken {
        let identity = actor.identity();
        Taken { actor: identity.parent.as_ref().map(|_| identity.id.clone()), chart: actor.chart(), transition }
    }

    /// Id of the actor.
    pub(crate) fn actor(&self) -> &str {
        self.actor.as_deref().unwrap_or("root")
    }
}

/// An instruction to the host, to be executed after the commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The record and the index in it; with the run's id in front, the idempotency key.
    pub id: EffectId,
    /// The actor that requested it.
    pub actor: Arc<str>,
    /// What the host has to do.
    pub kind: EffectKind,
}

/// The kinds of effects.
#[derive(Debug, Clone, PartialEq)]
pub enum EffectKind {
    /// Start a service; its answer comes back as [`crate::Event::Done`] or
    /// [`crate::Event::Failed`].
    Invoke {
        /// Id of the invocation.
        invocation: Arc<str>,
        /// The entry of `actors`.
        src: Arc<str>,
        /// The kind of executor that runs it.
        service: Arc<str>,
        /// Its input.
        input: Arc<Json>,
    },
    /// Stop a service; its answer is no longer awaited.
    Cancel {
        /// Id of the invocation.
        invocation: Arc<str>,
        /// The effect that started it.
        effect: EffectId,
    },
    /// Publish an event to subscribers.
    Emit {
        /// Event type.
        r#type: Arc<str>,
        /// Event data.
        data: Json,
    },
    /// Write a line to a log.
    Log {
        /// A prefix.
        label: Option<Box<str>>,
        /// The value to log.
        value: Json,
    },
}

impl EffectKind {
    /// The word used in records.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            EffectKind::Invoke { .. } => "invoke",
            EffectKind::Cancel { .. } => "cancel",
            EffectKind::Emit { .. } => "emit",
            EffectKind::Log { .. } => "log",
        }
    }

    /// An upper bound of the length of its names and values in canonical JSON.
    pub(crate) fn length(&self) -> u64 {
        let (names, value) = match self {
            EffectKind::Invoke { invocation, src, service, input } => {
                (invocation.len().saturating_add(src.len()).saturating_add(service.len()), Some(input.as_ref()))
            }
            EffectKind::Cancel { invocation, .. } => (invocation.len(), None),
            EffectKind::Emit { r#type, data } => (r#type.len(), Some(data)),
            EffectKind::Log { label, value } => (label.as_ref().map_or(0, |label| label.len()), Some(value)),
        };
        (names as u64).saturating_add(value.map_or(0, crate::canonical::length))
    }
}

/// A timer that was set or cancelled.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerChange {
    /// The host has to send [`crate::Event::Timer`] when the timer is due.
    Set(Arc<Timer>),
    /// The timer is no longer needed. A host may also let it fire: the kernel ignores an old
    /// generation.
    Cancel {
        /// The timer's id.
        id: Arc<str>,
        /// Its generation.
        generation: u64,
    },
}

/// Something worth recording that does not affect the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The actor concerned.
    pub actor: Arc<str>,
    /// JSON pointer into the core form of the charter, if there is one.
    pub at: Option<Arc<str>>,
    /// What happened; [`Note::message`] describes it.
    pub kind: NoteKind,
}

/// What a note is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NoteKind {
    /// A guard could not be evaluated and so does not hold.
    Guard(ExpressionError),
    /// An action or an expression failed, and an event reports it inside the run.
    Failed {
        /// The type of the event: `error.execution` or `error.communication`.
        event: String,
        /// The `error` of the event.
        error: Json,
    },
    /// No transition took an event that an actor of the run sent.
    Unhandled {
        /// The type of the event.
        event: String,
        /// The actor that sent it.
        from: String,
    },
    /// A timer was refused while others of the same tick were accepted. Never written to a record.
    TimerRefused {
        /// Why the timer was refused.
        message: String,
    },
}
