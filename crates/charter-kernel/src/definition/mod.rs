//! The core form of a charter: its meaning without syntactic sugar, file names and layout.
//!
//! `charter-format` reads YAML and JSON into this form; importers translate XState and SCXML into
//! it; [`crate::Machine::compile`] turns it into tables. Order is significant (document order
//! decides between transitions), so every map keeps its order, and the [digest](Definition::digest)
//! of a definition covers that order. Every part of a definition has an address, a JSON pointer
//! such as `/states/review/on/APPROVE/0/when`; errors contain it, and `charter-format` maps it to a
//! line and a column.

mod action;
mod chart;
mod condition;
mod outside;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

pub use action::{Action, Block, Branch, Send};
pub use chart::{
    After, Chart, Choose, Initial, Invoke, On, PERMIT_FAILURES, Quorum, Require, State, StateKind, Transition,
};
pub use condition::{FinalRule, Interlock, InterlockRule, Property, PropertyRule};
pub use outside::{Projection, Stream};

use crate::digest::Digest;

/// A whole charter. Read one with `charter-format`, or build it in Rust and
/// [compile](crate::Machine::compile) it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Version of the language: 1.
    pub charter: u32,
    /// Name of the charter: `[a-z][a-z0-9-]*`.
    pub id: String,
    /// Semantic version of this charter (not of the language).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// A title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether events that SCXML would ignore are refused: true for charters, false for imports.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub strict: bool,
    /// The roles of principals. `system` and `operator` always exist.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub roles: IndexMap<String, Role>,
    /// Named JSON Schemas; `#/types/NAME` refers to them. `context` is the schema of the root's
    /// context.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub types: IndexMap<String, Json>,
    /// Every event that may be sent from outside.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub events: IndexMap<String, EventDecl>,
    /// Named conditions.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub guards: IndexMap<String, Guard>,
    /// Named lists of actions.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actions: IndexMap<String, Block>,
    /// Named delays.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub delays: IndexMap<String, Delay>,
    /// Services outside the run that may be invoked; only the host interprets their `kind`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actors: IndexMap<String, ActorDecl>,
    /// Kinds of permits and obligations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ledger: IndexMap<String, LedgerDecl>,
    /// Rules that refusals name, each with an explanation.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rules: IndexMap<String, Template>,
    /// Statecharts that a run can spawn or invoke.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub machines: IndexMap<String, Chart>,
    /// The statechart of the run itself.
    pub root: Chart,
    /// Invariants across the actors of a run, checked after every event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interlocks: Vec<Interlock>,
    /// Limits on the cost of one event.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
    /// Properties for `charter check`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// How the items of a recorded stream become events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// SQL views of a journal over emitted events; the kernel does not read them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub projections: IndexMap<String, Projection>,
    /// Arbitrary data for tools; the kernel does not read it.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub meta: Json,
}

impl Definition {
    /// Computes the SHA-256 digest of the compact JSON text of this form. It covers the order of
    /// every map, is the same for YAML and JSON sources of the same charter, and ignores their
    /// layout and comments.
    #[must_use]
    pub fn digest(&self) -> Digest {
        // Serializing plain data into a `Vec` cannot fail; an empty text would give a digest that
        // matches nothing.
        Digest::of_bytes(&serde_json::to_vec(self).unwrap_or_default())
    }
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_true(b: &bool) -> bool {
    *b
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_false(b: &bool) -> bool {
    !*b
}

/// The roles that every charter has without declaring them.
pub const BUILT_IN_ROLES: [&str; 2] = ["system", "operator"];

/// An entry of `roles`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An entry of `events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct EventDecl {
    /// Roles that may send it; empty: anyone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// JSON Schema (2020-12) of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    /// Whether it is accepted while the run is paused (for events that end work safely).
    #[serde(default, skip_serializing_if = "is_false")]
    pub while_paused: bool,
    /// The key that at most one event of this type may have, across all runs of a journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique: Option<UniqueDecl>,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// `unique` of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniqueDecl {
    /// CEL expression over `event` and `by` for the key: a string, an integer or a boolean.
    pub key: String,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Guard {
    /// An entry of `guards`.
    Name(String),
    /// Inline CEL; only in the entries of `guards` (a transition writes it as `when`).
    Cel(String),
    /// All conditions must hold.
    And(Vec<Guard>),
    /// At least one condition must hold.
    Or(Vec<Guard>),
    /// The condition must not hold. If it fails to evaluate, its negation does not hold either.
    Not(Box<Guard>),
}

/// A value computed when it is needed: JSON in which a string that begins with `= ` in the source
/// is a CEL expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Template {
    /// Literal JSON.
    Literal(Json),
    /// CEL, without the leading `= `.
    Cel(String),
    /// A list with computed parts.
    List(Vec<Template>),
    /// An object with computed parts.
    Object(IndexMap<String, Template>),
}

impl Template {
    /// The literal parts of the value as they are written, with null for the computed ones.
    pub(crate) fn example(&self) -> Json {
        match self {
            Template::Literal(json) => json.clone(),
            Template::Cel(_) => Json::Null,
            Template::List(items) => items.iter().map(Template::example).collect(),
            Template::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value.example())).collect(),
        }
    }
}

impl Default for Template {
    fn default() -> Self {
        Template::Literal(Json::Null)
    }
}

/// A delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Delay {
    /// An entry of `delays`.
    Name(String),
    /// Milliseconds.
    Ms(u64),
    /// CEL expression for a duration, milliseconds, or a string such as `24h`.
    Cel(String),
}

/// An entry of `actors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct ActorDecl {
    /// The kind of executor that runs it on the host: `model`, `tool`, `exec`, `http`, `human`,
    /// `scripted`, `machine`, ...
    pub kind: String,
    /// JSON Schema of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// JSON Schema of the output; an answer that does not match it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// Time limit of an invocation. Then the invocation is cancelled, and `error.invoke.ID` with
    /// the code `timeout` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Delay>,
    /// The other keys of the actor, for the host.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: IndexMap<String, Json>,
}

/// An entry of `ledger`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct LedgerDecl {
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Limits, each with a documented default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Microsteps per event.
    pub microsteps: u32,
    /// Fuel per expression.
    pub expression: u64,
    /// Actors per run, including finished ones.
    pub actors: u32,
    /// Pending timers per run.
    pub timers: u32,
    /// Bytes of data per event.
    pub data: u64,
    /// Fuel per event, with everything that it sets off.
    #[serde(skip_serializing_if = "Limits::is_usual_fuel")]
    pub fuel: u64,
    /// Bytes built per event: values, effects, the record and the snapshot.
    #[serde(skip_serializing_if = "Limits::is_usual_bytes")]
    pub bytes: u64,
}

/// The largest value of `limits.bytes`: the record of any event fits into a journal.
pub const MAX_LIMIT_BYTES: u64 = 28 << 20;

impl Default for Limits {
    fn default() -> Self {
        Limits {
            microsteps: 1_000,
            expression: 10_000,
            actors: 10_000,
            timers: 10_000,
            data: 1 << 20,
            fuel: 1_000_000,
            bytes: 16 << 20,
        }
    }
}

impl Limits {
    fn is_default(&self) -> bool {
        *self == Limits::default()
    }

    // The digest of a charter that sets other limits must not change.
    fn is_usual_fuel(fuel: &u64) -> bool {
        *fuel == Limits::default().fuel
    }

    fn is_usual_bytes(bytes: &u64) -> bool {
        *bytes == Limits::default().bytes
    }
}
