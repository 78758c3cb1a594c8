//! The core form of a charter: what a document means once sugar, names of files and layout are gone.
//!
//! `charter-format` reads YAML and JSON into this form; importers translate XState and SCXML into it; [`crate::Machine::compile`]
//! turns it into tables. Order is meaning here (document order decides between transitions), so every map keeps its order, and the
//! [digest](Definition::digest) of a definition covers that order. Every part of a definition has an address, a JSON pointer such as
//! `/states/review/on/APPROVE/0/when`; errors carry it, and `charter-format` maps it to a line and a column.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::digest::Digest;

/// A whole charter (03-language). Read one with `charter-format`, or build it in Rust and [compile](crate::Machine::compile) it.
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
    /// A line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// More for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Refuse what SCXML would ignore (03, "Strict"). Charters: true; imports: false.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub strict: bool,
    /// Who may act. `system` and `operator` always exist.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub roles: IndexMap<String, Role>,
    /// Named JSON Schemas; `#/types/NAME` refers to them. `context` is the schema of the root's context.
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
    /// What may be invoked outside the run; `kind` means something to the host only.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub actors: IndexMap<String, ActorDecl>,
    /// Kinds of permits and obligations.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub ledger: IndexMap<String, LedgerDecl>,
    /// Rules that refusals name, each with the sentence that explains a refusal.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rules: IndexMap<String, Template>,
    /// Statecharts that a run can spawn or invoke.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub machines: IndexMap<String, Chart>,
    /// The statechart of the run itself.
    pub root: Chart,
    /// What must hold across the actors of a run after every event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interlocks: Vec<Interlock>,
    /// Bounds on what one event may cost.
    #[serde(default, skip_serializing_if = "Limits::is_default")]
    pub limits: Limits,
    /// What `charter check` has to show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Property>,
    /// How recorded items become events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// SQL views that a journal offers over what runs emit; the kernel does not read them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub projections: IndexMap<String, Projection>,
    /// Free data for tools; the kernel does not read it.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub meta: Json,
}

impl Definition {
    /// SHA-256 over the compact JSON text of this form: covers the order of every map, is the same for YAML and JSON sources of the
    /// same charter, and ignores their layout and comments.
    #[must_use]
    pub fn digest(&self) -> Digest {
        // Serialising plain data into a Vec cannot fail; an empty text would only make the digest match nothing.
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

/// An entry of `projections`: a view with a row for each emitted event of one type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// What a row is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Type of the emitted events.
    pub of: String,
    /// Name of a column -> where its value is in the data of the event: names of fields with dots between them. Each view has the
    /// columns `run`, `seq` and `at` before these.
    pub columns: IndexMap<String, String>,
}

impl Projection {
    /// Whether a view or a column can have this name: it begins with a small letter, has small letters, digits and underscores, at most 63 in
    /// all, and does not begin with `sqlite_`.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        name.len() <= 63
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_')
            && !name.starts_with("sqlite_")
    }

    /// Whether a path can be used: names of letters, digits, underscores and hyphens, with dots between them.
    #[must_use]
    pub fn is_path(path: &str) -> bool {
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'-';
        path.len() <= 256
            && path
                .split('.')
                .all(|p| !p.is_empty() && p.bytes().all(plain))
    }
}

/// An entry of `roles`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// What the role is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// An entry of `events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct EventDecl {
    /// Roles that may send it; empty: anybody.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// JSON Schema (2020-12) of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
    /// Accepted while the run is paused too (what ends work safely).
    #[serde(default, skip_serializing_if = "is_false")]
    pub while_paused: bool,
    /// What it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Guard {
    /// An entry of `guards`.
    Name(String),
    /// CEL in place; only in the entries of `guards` (a transition writes it as `when`).
    Cel(String),
    /// All hold.
    And(Vec<Guard>),
    /// At least one holds.
    Or(Vec<Guard>),
    /// Does not hold. A condition that fails to evaluate does not hold either way.
    Not(Box<Guard>),
}

/// A value computed when it is needed: literal JSON in which strings that began with `= ` are CEL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Template {
    /// JSON as it stands.
    Literal(Json),
    /// CEL, without the leading `= `.
    Cel(String),
    /// A list with something computed in it.
    List(Vec<Template>),
    /// An object with something computed in it.
    Object(IndexMap<String, Template>),
}

impl Default for Template {
    fn default() -> Self {
        Template::Literal(Json::Null)
    }
}

/// A length of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Delay {
    /// An entry of `delays`.
    Name(String),
    /// Milliseconds.
    Ms(u64),
    /// CEL giving a duration, milliseconds, or a text such as `24h`.
    Cel(String),
}

/// An entry of `actors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct ActorDecl {
    /// Which executor of the host runs it: `model`, `tool`, `exec`, `http`, `human`, `scripted`, `machine`, ...
    pub kind: String,
    /// JSON Schema of the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// JSON Schema of the output; an answer that does not fit it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Json>,
    /// How long an invocation may take; then it is cancelled and `error.invoke.ID` with code `timeout` follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Delay>,
    /// Everything else under the actor: for the host.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config: IndexMap<String, Json>,
}

/// An entry of `ledger`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct LedgerDecl {
    /// What the permit allows or the obligation demands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A statechart: the root of a run, or an entry of `machines`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// JSON Schema of what the chart starts with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Context variables in document order, with their first values.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub context: IndexMap<String, Template>,
    /// JSON Schema of the context, if declared; else its type is inferred from the first values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_schema: Option<Json>,
    /// What the chart gives when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Template>,
    /// The root state: its key is the name of the chart.
    pub state: State,
}

/// What a state is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum StateKind {
    /// No children.
    #[default]
    Atomic,
    /// Exactly one child is active.
    Compound,
    /// All children are active.
    Parallel,
    /// Entering it completes its parent.
    Final,
    /// Stands for the children of its parent that were active last.
    Shallow,
    /// Stands for the atomic descendants of its parent that were active last.
    Deep,
}

impl StateKind {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    fn is_atomic(&self) -> bool {
        matches!(self, StateKind::Atomic)
    }
}

/// A state. Its path is the keys from the root down, joined by `.`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// A name that `#id` targets find anywhere in the chart; default: the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Kind of state.
    #[serde(default, skip_serializing_if = "StateKind::is_atomic")]
    pub kind: StateKind,
    /// Where a compound state starts (default: the first child); for a history state what it stands for before its parent was left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Initial>,
    /// Children in document order.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub states: IndexMap<String, State>,
    /// Transitions that an event takes, in document order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<On>,
    /// Eventless transitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<Transition>,
    /// Transitions taken when the state has been active for a time. The first part is the text of the delay, which names the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// Transitions taken when a final child (or every region) completes the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_done: Vec<Transition>,
    /// Blocks run on entry. An error ends its block only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry: Vec<Block>,
    /// Blocks run on exit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit: Vec<Block>,
    /// Actors that work while the state is active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invoke: Vec<Invoke>,
    /// Context variables bound on the first entry (SCXML's late binding); imports only.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub data: IndexMap<String, Template>,
    /// What a final state gives to `done.state` (or, at the top, the output of the chart).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Template>,
    /// Words for people and tools, e.g. `waiting`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What the state is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Free data for tools.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub meta: Json,
}

/// The default entry of a compound or history state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Initial {
    /// Where to go; written as in [`Transition::target`], seen from inside the state.
    pub target: Vec<String>,
    /// Run after the entry of the state and before that of its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Block,
}

/// One key of `on`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// Descriptors, any of which may match: an event type, `prefix.*`, or `*`.
    pub events: Vec<String>,
    /// Tried in order.
    pub transitions: Vec<Transition>,
}

/// One key of `after`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The key as written; the event is `after.KEY.STATE`.
    pub key: String,
    /// How long the state has to be active.
    pub delay: Delay,
    /// Tried in order.
    pub transitions: Vec<Transition>,
}

/// A transition. What selects it (event, nothing, time, completion) is said by where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// Empty: targetless. Each: `sibling`, `sibling.child`, `.child`, `#id`, `#id.child`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<String>,
    /// A named or combined condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// A condition in CEL; both given: both must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Roles that may take it; empty: whoever may send the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// CEL of the value whose digest the sender must name in `event.digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approves: Option<String>,
    /// What the ledger must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Require>,
    /// How many different principals have to send the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
    /// An entry of `rules`: if this transition is selected, the whole event is refused in the name of that rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuse: Option<String>,
    /// Run between exits and entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Block,
    /// Leave and re-enter the source even where SCXML would allow an internal transition.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reenter: bool,
    /// What is left may be the inside of a parallel state, which itself stays (XState's domain: the least common ancestor of any kind);
    /// imports only. SCXML leaves the parallel state too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub parallel_domain: bool,
    /// What the transition means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Free data for tools.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub meta: Json,
}

/// `quorum` of a transition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// How many different principals.
    pub count: u32,
    /// The role they must have; empty: those of `by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// What can be wrong with a permit: the ends of the codes `permit.*`.
pub const PERMIT_FAILURES: [&str; 5] = ["missing", "revoked", "expired", "exhausted", "scope"];

/// One line of `requires`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Require {
    /// A live permit, of which one use is counted when the transition is taken.
    Use {
        /// An entry of `ledger`.
        kind: String,
        /// Which one.
        key: Template,
        /// CEL over the permit, bound to `entry`: is this use within its scope?
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<String>,
        /// What failed (one of [`PERMIT_FAILURES`]) -> the entry of `rules` that a refusal names.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        rules: IndexMap<String, String>,
    },
    /// An open obligation.
    Open {
        /// An entry of `ledger`.
        kind: String,
        /// Which one.
        key: Template,
        /// The entry of `rules` that a refusal names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// No open obligation of the kind.
    None {
        /// An entry of `ledger`.
        kind: String,
        /// The entry of `rules` that a refusal names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
}

/// Actions run in order; the first error ends the block.
pub type Block = Vec<Action>;

/// Something a step does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Action {
    /// An entry of `actions`.
    Name(String),
    /// Sets context variables: `name`, `name.field`, `name[CEL]`. All values are computed before the first is set.
    Assign(IndexMap<String, Template>),
    /// An event at the end of the internal queue of this actor.
    Raise {
        /// Event type.
        r#type: Template,
        /// Event data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// An event for an actor of the run, now or later.
    Send(Send),
    /// Takes back a delayed `send`, by its id.
    Cancel(Template),
    /// An event for subscribers outside the run.
    Emit {
        /// Event type.
        r#type: Template,
        /// Event data.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// A line for people.
    Log {
        /// What to say.
        value: Template,
        /// A word in front of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    },
    /// Starts a machine (or a service) as an actor of the run that outlives the state.
    Spawn {
        /// An entry of `machines` or of `actors`.
        machine: String,
        /// Id of the new actor.
        id: Template,
        /// Its input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Template>,
    },
    /// Ends a spawned actor.
    Stop(Template),
    /// The first branch whose `when` holds.
    If(Vec<Branch>),
    /// Runs a block for each item of a list (or each key of a map).
    Each {
        /// CEL of the list.
        r#in: String,
        /// Name of the item.
        r#as: String,
        /// Name of the position (of the key, for a map).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<String>,
        /// The block.
        r#do: Block,
    },
    /// Gives a permit.
    Grant {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; used once in a run.
        key: Template,
        /// How often it may be used; default: without limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uses: Option<Template>,
        /// Until when (a timestamp, RFC 3339 text, or milliseconds since 1970).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires: Option<Template>,
        /// Its scope and whatever else belongs to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Ends a permit, or all of a kind.
    Revoke {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Template>,
    },
    /// Opens an obligation.
    Open {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; used once in a run.
        key: Template,
        /// When it is overdue: a delay from now (`24h`, a duration), a timestamp, or RFC 3339 text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<Template>,
        /// Whatever belongs to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Template>,
    },
    /// Fulfils an obligation, or all of a kind.
    Close {
        /// An entry of `ledger`.
        kind: String,
        /// Which one; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<Template>,
        /// How it was fulfilled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        r#as: Option<Template>,
    },
}

/// `send`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// An actor id, `parent` or `self` (default); imports: also SCXML's `#_internal`, `#_parent`, `#_ID`, `#_scxml_RUN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Template>,
    /// Event type.
    pub r#type: Template,
    /// Event data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Template>,
    /// How long to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// A name by which `cancel` finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Template>,
    /// A context variable that receives the id (SCXML's `idlocation`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_location: Option<String>,
    /// CEL of the event processor's name (SCXML's `type`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<Template>,
}

/// A branch of `if`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// CEL; none: always (the last branch).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The block.
    #[serde(default)]
    pub r#do: Block,
}

/// An entry of `invoke`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Invoke {
    /// An entry of `actors` or of `machines`.
    pub src: String,
    /// Which machine instead of `src`, if that is computed when the invocation starts (SCXML's `srcexpr`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choose: Option<Choose>,
    /// Id of the invocation; default: `src`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// A context variable that receives the id (SCXML's `idlocation`); imports only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_location: Option<String>,
    /// Input, evaluated when the invocation starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Template>,
    /// Overrides the actor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Delay>,
    /// Transitions on `done.invoke.ID`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_done: Vec<Transition>,
    /// Transitions on `error.invoke.ID`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_error: Vec<Transition>,
    /// Run on every event that comes from the invoked machine, before selection (SCXML).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalize: Block,
    /// Pass a copy of every external event on to the invoked machine (SCXML).
    #[serde(default, skip_serializing_if = "is_false")]
    pub autoforward: bool,
}

/// A machine that is chosen by a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Choose {
    /// CEL of a text.
    pub value: String,
    /// That text -> an entry of `machines`. Any other text is an `error.execution`.
    pub machines: IndexMap<String, String>,
}

/// An entry of `interlocks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interlock {
    /// Its name, given in refusals.
    pub id: String,
    /// What must hold.
    pub rule: InterlockRule,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The two forms of an interlock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum InterlockRule {
    /// For each state of an actor, the states that actors of a machine may be in.
    Table {
        /// Id of the actor whose state is looked up.
        given: String,
        /// The machine whose actors are judged.
        machine: String,
        /// State of `given` -> allowed states. A state that is not listed allows nothing.
        allow: IndexMap<String, Vec<String>>,
        /// Whether actors that were final already are judged.
        #[serde(default)]
        r#final: FinalRule,
    },
    /// CEL over the candidate snapshot.
    Assert(String),
}

/// Which final actors a table judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum FinalRule {
    /// An actor that was final before the event is exempt until `given` is final.
    Settled,
    /// Never exempt.
    #[default]
    Always,
}

/// Bounds (03, 06). Each has a default that is published in the docs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Microsteps that one event may take.
    pub microsteps: u32,
    /// Steps of fuel for one expression.
    pub expression: u64,
    /// Actors in a run, finished ones included.
    pub actors: u32,
    /// Timers pending in a run.
    pub timers: u32,
    /// Bytes of data that one event may carry.
    pub data: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            microsteps: 1_000,
            expression: 10_000,
            actors: 10_000,
            timers: 10_000,
            data: 1 << 20,
        }
    }
}

impl Limits {
    fn is_default(&self) -> bool {
        *self == Limits::default()
    }
}

/// An entry of `properties`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Property {
    /// Its name.
    pub id: String,
    /// What has to be shown.
    pub rule: PropertyRule,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The forms of a property; all strings but `unless_before` are CEL over a reachable snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum PropertyRule {
    /// Holds in no reachable snapshot, or in none that comes before an accepted event of the type `unless_before` (precedence).
    Never {
        /// The condition.
        when: String,
        /// An event type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unless_before: Option<String>,
    },
    /// Holds in every reachable snapshot.
    Always(String),
    /// Holds sooner or later on every path, under fair answers of effects.
    Eventually(String),
}

/// `stream`: CEL over `item`, without the leading `= `.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Which run an item belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Event type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// Event id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Time of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Event data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Actor addressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Principal: `{id, roles}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Input of a run that an item opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Further times of an item that may be taken as its time, by name (`--clock NAME`).
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub clocks: IndexMap<String, String>,
    /// The entry of `rules` that is named when an item comes a second time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<String>,
    /// What a report says of a run beside its state and ledger, by name: CEL over the run.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub summary: IndexMap<String, String>,
}
