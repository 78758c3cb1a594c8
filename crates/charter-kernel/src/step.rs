//! What comes out: an accepted event, with the new snapshot and what the host has to do.

use std::sync::Arc;

use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::envelope::EffectId;
use crate::machine::TransitionId;
use crate::snapshot::{Actor, Snapshot, Timer};

/// An event was applied, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// How.
    pub verdict: Verdict,
    /// The run afterwards.
    pub snapshot: Snapshot,
    /// What the host does after the commit, in order.
    pub effects: Vec<Effect>,
    /// Timers set and taken back, in order.
    pub timers: Vec<TimerChange>,
    /// Conditions that failed to evaluate (and so did not hold), and in-run events that nobody took.
    pub notes: Vec<Note>,
    pub(crate) taken: SmallVec<[Taken; 1]>,
}

/// What became of an event that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Transitions were taken.
    Accepted,
    /// A vote towards a quorum.
    Vote,
    /// Nothing takes it: not strict, or a platform event.
    Ignored,
    /// An answer to a cancelled or earlier invocation.
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

/// A transition that was taken, by an actor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Taken {
    /// None: the root, whose id needs no reference to be counted.
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

/// Something for the host to do, after the commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Record and place; with the run's id in front it is the idempotency key.
    pub id: EffectId,
    /// The actor that wants it.
    pub actor: Arc<str>,
    /// What.
    pub kind: EffectKind,
}

/// The kinds of effects.
#[derive(Debug, Clone, PartialEq)]
pub enum EffectKind {
    /// Start a service; its answer comes back as [`crate::Event::Done`] or [`crate::Event::Failed`].
    Invoke {
        /// Id of the invocation.
        invocation: Arc<str>,
        /// The entry of `actors`.
        src: Arc<str>,
        /// Its executor.
        service: Arc<str>,
        /// Its input.
        input: Arc<Json>,
    },
    /// Stop a service; nobody waits for its answer any more.
    Cancel {
        /// Id of the invocation.
        invocation: Arc<str>,
        /// The effect that started it.
        effect: EffectId,
    },
    /// Tell subscribers.
    Emit {
        /// Event type.
        r#type: Arc<str>,
        /// Event data.
        data: Json,
    },
    /// A line for people.
    Log {
        /// A word in front of it.
        label: Option<Box<str>>,
        /// What to say.
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
}

/// A timer was set or taken back.
#[derive(Debug, Clone, PartialEq)]
pub enum TimerChange {
    /// Send [`crate::Event::Timer`] when it is due.
    Set(Arc<Timer>),
    /// No longer wanted. A host may also let it fire: its generation is over, and the kernel ignores it.
    Cancel {
        /// The timer's id.
        id: Arc<str>,
        /// Its generation.
        generation: u64,
    },
}

/// Something worth recording that changed no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The actor concerned.
    pub actor: Arc<str>,
    /// Address in the core form, if there is one.
    pub at: Option<Arc<str>>,
    /// One sentence.
    pub message: String,
}
