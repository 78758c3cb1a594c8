#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod actors;
mod algorithm;
mod answer;
mod budget;
mod candidates;
pub mod canonical;
mod compile;
mod content;
pub mod definition;
mod demands;
pub mod digest;
mod envelope;
mod event;
mod explain;
mod fast_path;
mod fault;
mod fingerprint;
mod interlock;
mod invocations;
mod ledger;
mod legal;
mod machine;
mod names;
mod observer;
mod outline;
mod principal;
mod problem;
mod query;
mod refusal;
mod requirement;
mod restore;
mod run;
mod schema;
mod scope;
mod selection;
mod sender;
mod sender_name;
mod snapshot;
mod step;
mod time;
mod transaction;
mod unique;
mod unknown;
mod validate;
pub mod visible;
mod ways;

pub use answer::{BadAnswer, check_answer, is_larger};
pub use budget::Work;
pub use definition::Definition;
pub use demands::{Approval, Demands, OtherQuorum, QuorumState, Withheld, WithheldBy};
pub use digest::Digest;
pub use envelope::{EffectId, Envelope, Event};
pub use explain::{Condition, RefusalContext, RequirementMet, Taken};
pub use fingerprint::FingerprintFilter;
pub use ledger::{Entry, EntryStatus, Ledger};
pub use legal::{ANY_EVENT, Legal, NotLegal};
pub use machine::Machine;
pub use outline::{Outline, StateOutline, TransitionOutline};
pub use principal::{Auth, MAX_PRINCIPAL_ID_BYTES, Principal, PrincipalKind, UnknownWord};
pub use problem::Problem;
pub use query::Query;
pub use refusal::{
    ApprovalDetails, Candidate, CandidateDetails, Cause, Code, Explanation, ExpressionError, LedgerDetails, Refusal,
    RefusalDetails,
};
pub use restore::RestoreError;
pub use schema::{ExactNumber, Kind, Misfit, MisfitDetails, Schema, SchemaError, TooCostly, View, example_text};
pub use scope::{FUNCTIONS, ROOTS, SCXML_ROOTS};
pub use sender::{AUTHENTICATED_ONLY, NOT_BY, PERSONS_ONLY, SENDER_RULES};
pub use sender_name::{InvalidName, RESERVED_NAMES, check_name};
pub use snapshot::{Actor, Invocation, Snapshot, Status, Timer};
pub use step::{Effect, EffectKind, Note, NoteKind, Step, TimerChange, Verdict};
pub use time::{Millis, Timestamp, parse_delay};
pub use unique::{MAX_KEY_BYTES, TakenKeys, Unique};
pub use unknown::{ANYBODY, Place, Unknowns};
