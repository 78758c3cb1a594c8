//! The kernel: `(machine, snapshot, envelope) -> step or refusal`. It does no I/O and reads no clock.
//!
//! ```
//! use charter_kernel::{Code, Definition, Envelope, Event, Machine, Principal};
//! use serde_json::json;
//!
//! // The core form of a charter; `charter-format` reads it from YAML.
//! let definition: Definition = serde_json::from_value(json!({
//!     "charter": 1, "id": "door", "roles": {"guard": {}},
//!     "events": {"OPEN": {"by": ["guard"]}},
//!     "root": {"state": {"states": {
//!         "closed": {"on": [{"events": ["OPEN"], "transitions": [{"target": ["open"]}]}]},
//!         "open": {},
//!     }}},
//! })).unwrap();
//! let machine = Machine::compile(definition).unwrap();
//!
//! // Time, sender and data come in; a new snapshot or a refusal comes out.
//! let start = Envelope::host(0, Event::Start { input: json!({}) }, 0);
//! let closed = machine.start("run-1", &start).unwrap().snapshot;
//! let by_nobody = Envelope::event(1, "OPEN", json!({}), Principal::new("eve", &[]), 0);
//! assert_eq!(machine.step(&closed, &by_nobody).unwrap_err().code, Code::Authority);
//! let by_guard = Envelope::event(2, "OPEN", json!({}), Principal::new("gus", &["guard"]), 0);
//! let open = machine.step(&closed, &by_guard).unwrap().snapshot;
//! assert_eq!(open.actor("root").unwrap().state().collect::<Vec<_>>(), ["open"]);
//! ```

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
mod answer;
pub mod canonical;
mod compile;
mod content;
pub mod definition;
pub mod digest;
mod envelope;
mod event;
mod explain;
mod fast_path;
mod fingerprint;
mod interlock;
mod invocations;
mod ledger;
mod legal;
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
mod selection;
mod snapshot;
mod step;
mod time;
mod transaction;
mod validate;

pub use answer::{BadAnswer, check_answer, is_larger};
pub use definition::Definition;
pub use digest::Digest;
pub use envelope::{EffectId, Envelope, Event, Principal};
pub use explain::RefusalContext;
pub use fingerprint::FingerprintFilter;
pub use ledger::{Entry, EntryStatus, Ledger};
pub use legal::Legal;
pub use machine::Machine;
pub use outline::{Outline, StateOutline, TransitionOutline};
pub use problem::Problem;
pub use query::Query;
pub use refusal::{
    ApprovalDetails, Candidate, CandidateDetails, Cause, Code, Explanation, ExpressionError, LedgerDetails, Refusal,
    RefusalDetails,
};
pub use restore::RestoreError;
pub use schema::{Kind, Misfit, MisfitDetails, Schema, View};
pub use scope::{ROOTS, SCXML_ROOTS};
pub use snapshot::{Actor, Invocation, Snapshot, Status, Timer};
pub use step::{Effect, EffectKind, Note, NoteKind, Step, TimerChange, Verdict};
pub use time::{Millis, Timestamp, parse_delay};
