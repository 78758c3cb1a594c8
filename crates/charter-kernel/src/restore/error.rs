//! Why JSON is not a snapshot of a machine.

use std::fmt;

use crate::digest::Digest;

/// Why JSON is not a snapshot of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The JSON does not have the form of a snapshot.
    Form(String),
    /// The version of the snapshot's form is unknown.
    Version(u32),
    /// The snapshot belongs to another charter.
    OtherCharter {
        /// The digest in the snapshot.
        snapshot: Digest,
        /// The digest of this machine's charter.
        charter: Digest,
    },
    /// Two actors have this id.
    DuplicateActor(String),
    /// The first actor is not the root.
    NoRoot,
    /// The root has a parent, or another actor has none; contains the id of that actor.
    Parent(String),
    /// The timers are not in order.
    TimerOrder,
    /// The charter has no such machine.
    UnknownMachine(String),
    /// A machine has no such state.
    UnknownState {
        /// The machine.
        machine: String,
        /// Path of the state.
        state: String,
    },
    /// The active states of an actor cannot be active together.
    Configuration {
        /// Id of the actor.
        actor: String,
        /// Paths of its states.
        states: Vec<String>,
    },
    /// The states stored for this history state cannot be its history.
    History(String),
    /// The context of an actor has no such variable.
    UnknownVariable {
        /// Id of the actor.
        actor: String,
        /// Name of the variable.
        name: String,
    },
    /// The charter has no entry of `actors` with this name.
    UnknownActor(String),
    /// The machine has no such transition.
    UnknownTransition(String),
    /// The actor of this timer does not exist.
    TimerWithoutActor(String),
    /// This state has no such `after`.
    UnknownAfter(String),
    /// The charter has no such kind of permits or obligations.
    UnknownLedgerKind(String),
    /// An entry of the ledger has an unknown status.
    EntryStatus(String),
    /// A held answer is both done and failed, or neither.
    Held,
    /// The text is not the id of an effect.
    Effect(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is not a snapshot of the charter: ")?;
        match self {
            RestoreError::Form(why) => f.write_str(why),
            RestoreError::Version(version) => write!(f, "unsupported version {version}"),
            RestoreError::OtherCharter { snapshot, charter } => {
                write!(f, "it belongs to the charter {snapshot}, but this is the charter {charter}")
            }
            RestoreError::DuplicateActor(id) => write!(f, "two actors have the id `{id}`"),
            RestoreError::NoRoot => f.write_str("the first actor is not the root"),
            RestoreError::Parent(id) => write!(f, "`{id}`: every actor except the root has a `parent`"),
            RestoreError::TimerOrder => f.write_str("the timers are not in order"),
            RestoreError::UnknownMachine(name) => write!(f, "no machine named `{name}`"),
            RestoreError::UnknownState { machine, state } => write!(f, "machine `{machine}` has no state `{state}`"),
            RestoreError::Configuration { actor, states } => {
                write!(f, "the states {} of `{actor}` cannot be active together", states.join(", "))
            }
            RestoreError::History(state) => {
                write!(f, "the states stored for the history state `{state}` cannot be its history")
            }
            RestoreError::UnknownVariable { actor, name } => write!(f, "the context of `{actor}` has no `{name}`"),
            RestoreError::UnknownActor(name) => write!(f, "no actor named `{name}`"),
            RestoreError::UnknownTransition(name) => write!(f, "no transition named `{name}`"),
            RestoreError::TimerWithoutActor(id) => write!(f, "timer `{id}` belongs to no actor"),
            RestoreError::UnknownAfter(state) => write!(f, "no `after` in state `{state}`"),
            RestoreError::UnknownLedgerKind(kind) => write!(f, "the ledger has no kind `{kind}`"),
            RestoreError::EntryStatus(status) => write!(f, "`{status}` is not the status of an entry"),
            RestoreError::Held => f.write_str("a held answer is either done or failed"),
            RestoreError::Effect(text) => write!(f, "`{text}` is not the id of an effect"),
        }
    }
}
