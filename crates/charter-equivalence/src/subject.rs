//! What the suite compares: a host with one run.

use std::sync::Arc;

use charter_journal::StoredCharter;
use charter_kernel::definition::ActorDecl;
use charter_kernel::{Machine, Timestamp};
use charter_run::{Bounds, Denied, EventInput};
use serde_json::json;

use crate::inputs::TraceInput;

/// The id of the run.
pub const RUN: &str = "r";
/// The id of another run, which is not compared.
pub const OTHER: &str = "o";

/// The charter of a case, and the limits of the hosts.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The compiled charter.
    pub machine: Arc<Machine>,
    /// The charter in the form stored with its runs.
    pub stored: StoredCharter,
    /// The limits.
    pub bounds: Bounds,
    /// The events that another run, [`OTHER`], has accepted before: it has their unique keys. The
    /// limits hold for this run, too.
    pub others: Vec<EventInput>,
}

/// A host with one run, [`RUN`]. It does not execute actors: the suite tells it when an attempt is
/// over. Actors of the kind `human` are tasks.
pub trait Subject {
    /// Applies an input at a time that never decreases, and does everything else that is due by
    /// then, until nothing is due anymore. Returns the answers to the senders of the input.
    fn give(&mut self, at: Timestamp, input: &TraceInput) -> Vec<Answer>;

    /// Stops the host without warning and starts it again at a time. What is not stored is lost.
    fn kill(&mut self, at: Timestamp);

    /// Returns the texts of the records from a sequence number on.
    fn records(&mut self, from: u64) -> Vec<String>;
}

/// The answer to the sender of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A new record is the result; it may be a refusal.
    Made(u64),
    /// The input is a repetition, and this record is its result.
    Repeated(u64),
    /// The run does not wait for it.
    NotAwaited,
    /// The input is denied; see [`answer_code`].
    Denied(String),
}

/// Returns a text for a denied input that does not depend on the words of the host.
#[must_use]
pub fn answer_code(denied: &Denied) -> String {
    match denied {
        Denied::NeverStarted => "never-started".into(),
        Denied::RunExists => "run-exists".into(),
        Denied::IdTaken { id, seq } => format!("id-taken {id} {seq}"),
        Denied::IdLength { bytes } => format!("id-length {bytes}"),
        Denied::IdReserved { prefix } => format!("id-reserved {prefix}"),
        Denied::DataTooLarge { limit, .. } => format!("data-too-large {limit}"),
        Denied::TooManyRecords { limit } => format!("too-many-records {limit}"),
        Denied::NoTask { task } => format!("no-task {task}"),
        Denied::NotYours { task, by, .. } => format!("not-yours {task} {by}"),
        Denied::PersonsOnly { task, by, .. } => format!("persons-only {task} {by}"),
        other => format!("{other:?}"),
    }
}

/// Whether an interrupted attempt of an actor may be repeated: as the charter says, and by default
/// only a task of a person.
#[must_use]
pub fn idempotent(decl: Option<&ActorDecl>) -> bool {
    decl.is_some_and(|d| match d.config.get("idempotent") {
        None => d.kind == "human",
        Some(value) => *value == json!(true),
    })
}
