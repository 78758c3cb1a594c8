//! One statechart of the core form: states, transitions with their requirements, and invocations.

use std::collections::BTreeSet;

use charter_expr::Numbers;
use charter_expr::schema::SchemaNode;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::action::Block;
use super::{Delay, Guard, Template, is_false};

/// A statechart: the root of a run, or an entry of `machines`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    /// JSON Schema of the chart's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    /// Context variables in document order, with their initial values.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub context: IndexMap<String, Template>,
    /// JSON Schema of the context, if declared; otherwise its type is inferred from the initial
    /// values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_schema: Option<Json>,
    /// The chart's output when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Template>,
    /// Stops selecting eventless transitions, until the next event, after some were taken and
    /// changed nothing (as in XState): the active states are the same, no variable or ledger entry
    /// was written, no actor started or stopped, and no state with an invocation or a history child
    /// was left; imports only. Without it such a loop is refused as `runaway`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub settles: bool,
    /// The root state: its key is the name of the chart.
    pub state: State,
}

impl Chart {
    /// The types of the numbers in some context variables: those that the schema of the context
    /// declares, and for the other variables those of their first values as they are written.
    /// In imports (`strict` is false) first values declare nothing, because JavaScript has one type
    /// of number.
    ///
    /// Empty if no variable has any.
    pub fn numbers<'n>(&self, variables: impl IntoIterator<Item = &'n str>, strict: bool) -> Vec<Option<Numbers>> {
        let first = |name: &str| self.context.get(name).filter(|_| strict).map_or(Json::Null, Template::example);
        let examples = variables.into_iter().map(|name| (name, first(name)));
        let types = Numbers::of_fields(self.context_schema.as_ref(), examples);
        if types.iter().all(Option::is_none) { Vec::new() } else { types }
    }

    /// The context variables that the chart declares, by an initial value or in the schema of its
    /// context. `None` if the schema allows any others: `additionalProperties`,
    /// `unevaluatedProperties` or `patternProperties` is there and not `false`. A schema without
    /// these keywords allows no others.
    #[must_use]
    pub fn declared_variables(&self) -> Option<BTreeSet<&str>> {
        let mut names: BTreeSet<&str> = self.context.keys().map(String::as_str).collect();
        let mut stack: Vec<SchemaNode<'_>> = self.context_schema.iter().map(SchemaNode::new).collect();
        // Each step goes deeper in the schema, and combinations of references end at a limit.
        let mut left = MAX_SCHEMAS;
        while let Some(node) = stack.pop() {
            let others = ["additionalProperties", "unevaluatedProperties", "patternProperties"];
            if left == 0 || others.iter().any(|k| node.get(k).is_some_and(|v| *v != Json::Bool(false))) {
                return None;
            }
            left = left.saturating_sub(1);
            names.extend(
                node.get("properties").and_then(Json::as_object).into_iter().flatten().map(|(n, _)| n.as_str()),
            );
            names.extend(node.required());
            let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|k| node.get(k)?.as_array()).flatten();
            let conditional = ["then", "else"].iter().filter_map(|k| node.part(k));
            stack.extend(parts.filter_map(|part| node.below(part)).chain(conditional).chain(node.target()));
        }
        Some(names)
    }
}

/// Upper limit of the schemas that are read to find the declared variables of a chart.
const MAX_SCHEMAS: usize = 10_000;

/// The kinds of states.
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
    /// Shallow history: the children of its parent that were last active.
    Shallow,
    /// Deep history: the atomic descendants of its parent that were last active.
    Deep,
}

impl StateKind {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    fn is_atomic(&self) -> bool {
        matches!(self, StateKind::Atomic)
    }
}

/// A state. Its path consists of the keys from the root down, joined by `.`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// An id for `#id` targets anywhere in the chart; default: the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Kind of state.
    #[serde(default, skip_serializing_if = "StateKind::is_atomic")]
    pub kind: StateKind,
    /// The initial child of a compound state (default: the first); for a history state, its target
    /// until its parent has been left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<Initial>,
    /// Children in document order.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub states: IndexMap<String, State>,
    /// Transitions on events, in document order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<On>,
    /// Eventless transitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always: Vec<Transition>,
    /// Transitions taken when the state has been active for a given time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// Transitions taken when a final child (or every region) completes the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_done: Vec<Transition>,
    /// Blocks run on entry. An error ends only its own block.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entry: Vec<Block>,
    /// Blocks run on exit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exit: Vec<Block>,
    /// Actors invoked while the state is active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invoke: Vec<Invoke>,
    /// Context variables bound on the first entry (SCXML's late binding); imports only.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub data: IndexMap<String, Template>,
    /// The data of `done.state` for a final state (at the top level, the output of the chart).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Template>,
    /// Labels for people and tools, e.g. `waiting`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arbitrary data for tools.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub meta: Json,
}

/// The default entry of a compound or history state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Initial {
    /// The targets, as in [`Transition::target`], relative to the inside of the state.
    pub target: Vec<String>,
    /// Actions that run after the state's entry actions and before its children are entered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Block,
}

/// One key of `on`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// Descriptors, any of which may match: an event type, `prefix.*`, or `*`.
    pub events: Vec<String>,
    /// The transitions, tried in order.
    pub transitions: Vec<Transition>,
}

/// One key of `after`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct After {
    /// The key as written; the event is `after.KEY.STATE`.
    pub key: String,
    /// The delay.
    pub delay: Delay,
    /// The transitions, tried in order.
    pub transitions: Vec<Transition>,
}

/// A transition. Its position decides its trigger (event, time, completion or none).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// `sibling`, `sibling.child`, `.child`, `#id` or `#id.child`; an empty list is a targetless
    /// transition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target: Vec<String>,
    /// A named or combined condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    /// A condition in CEL; if both are given, both must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Roles that may take it; empty: all roles that may send the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// CEL expression for the approved value; the sender must send its digest as `event.digest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approves: Option<String>,
    /// CEL expression for the principals that may not take it (four eyes): an id, a list of ids, or
    /// null. Charters write it in `approves` or in `quorum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_by: Option<String>,
    /// Conditions on the ledger.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<Require>,
    /// How many different principals must send the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Quorum>,
    /// Admits principals of every kind; otherwise only persons may take a transition with
    /// `approves` or `quorum`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub agents: bool,
    /// An entry of `rules`: if this transition is selected, the event is refused by that rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuse: Option<String>,
    /// Actions that run after states are exited and before states are entered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Block,
    /// Exits and re-enters the source even where SCXML would allow an internal transition.
    #[serde(default, skip_serializing_if = "is_false")]
    pub reenter: bool,
    /// Restricts the exit to the inside of a parallel state (as in XState, where the domain is the
    /// least common ancestor of any kind); imports only. SCXML exits the parallel state too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub parallel_domain: bool,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Arbitrary data for tools.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub meta: Json,
}

/// `quorum` of a transition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// The number of different principals that are needed.
    pub count: u32,
    /// The roles they must have; empty: the roles in `by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
}

/// Why a permit cannot be used: the last parts of the codes `permit.*`.
pub const PERMIT_FAILURES: [&str; 5] = ["missing", "revoked", "expired", "exhausted", "scope"];

/// An entry of `requires`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Require {
    /// The permit must be usable; taking the transition consumes one use.
    Use {
        /// An entry of `ledger`.
        kind: String,
        /// The key of the permit.
        key: Template,
        /// CEL condition over the permit (`entry`): whether this use is within its scope.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        when: Option<String>,
        /// For each of [`PERMIT_FAILURES`], the entry of `rules` that a refusal names.
        #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
        rules: IndexMap<String, String>,
    },
    /// The obligation must be open.
    Open {
        /// An entry of `ledger`.
        kind: String,
        /// The key of the obligation.
        key: Template,
        /// The entry of `rules` that a refusal names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
    },
    /// No obligation of the kind may be open.
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
    /// An expression that selects the machine when the invocation starts, instead of `src` (SCXML's
    /// `srcexpr`); imports only.
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
    /// Overrides the actor's timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Delay>,
    /// Transitions on `done.invoke.ID`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_done: Vec<Transition>,
    /// Transitions on `error.invoke.ID`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_error: Vec<Transition>,
    /// Actions that run on every event from the invoked machine, before selection (SCXML).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalize: Block,
    /// Forwards a copy of every external event to the invoked machine (SCXML).
    #[serde(default, skip_serializing_if = "is_false")]
    pub autoforward: bool,
}

/// A machine selected by the value of an expression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Choose {
    /// CEL expression for a string.
    pub value: String,
    /// The entry of `machines` for each value. Any other value is an `error.execution`.
    pub machines: IndexMap<String, String>,
}
