//! One statechart of the core form: its states, transitions, what they require, and invocations.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::action::Block;
use super::{Delay, Guard, Template, is_false};

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
