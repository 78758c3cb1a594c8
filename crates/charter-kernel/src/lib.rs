//! The kernel.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

mod actors;
mod algorithm;
pub mod canonical;
mod compile;
mod content;
pub mod definition;
pub mod digest;
mod door;
mod envelope;
mod essence;
mod event;
mod explain;
mod interlock;
mod judge;
mod lane;
mod ledger;
mod machine;
mod names;
mod outline;
mod problem;
mod query;
mod refusal;
mod restore;
mod run;
mod schema;
mod scope;
mod snapshot;
mod snapshot_text;
mod step;
mod time;
mod work;

pub use definition::Definition;
pub use digest::Digest;
pub use envelope::{EffectId, Envelope, Event, Principal};
pub use essence::Lens;
pub use explain::Legal;
pub use ledger::{Entry, EntryStatus, Ledger};
pub use machine::Machine;
pub use outline::{Outline, StateOutline, TransitionOutline};
pub use problem::Problem;
pub use query::Query;
pub use refusal::{Candidate, Code, Explanation, Refusal};
pub use restore::RestoreError;
pub use schema::{Misfit, Schema};
pub use scope::{ROOTS, SCXML_ROOTS};
pub use snapshot::{Actor, Invocation, Snapshot, Status, Timer};
pub use step::{Effect, EffectKind, Note, Step, TimerChange, Verdict};
