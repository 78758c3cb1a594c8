//! The keys of charts: states, transitions, guards and invocations.

use super::PLAIN;
use super::forms::{
    AFTER, APPROVES, BLOCK, BLOCKS, COUNT, GUARD, INITIAL, INVOKES, ON, QUORUM, REQUIRES, ROLE, ROLES, RULE,
    STATE_FORM, TAGS, TARGETS, TEMPLATE, TRANSITIONS,
};
use super::macros::{may, must};
use crate::grammar::{Field, Form, Object};

pub(super) static CHART: &[Field] = &[
    may!("input", Form::Schema, "JSON Schema (2020-12) of its input."),
    may!("context", Form::Map { key: "variable", of: &TEMPLATE }, "Variables with their initial values."),
    may!("output", Form::Template, "Its output when it is done."),
];

pub(super) static STATE_BODY: &[Field] = &[
    may!(
        "type",
        Form::Word(&["atomic", "compound", "parallel", "final", "history"]),
        "The type of state (default: compound with `states`, otherwise atomic)."
    ),
    may!("initial", INITIAL, "The initial state of a compound state (default: its first child)."),
    may!("states", Form::Map { key: "state", of: &STATE_FORM }, "Child states, in document order."),
    may!("on", ON, "Transitions by event: a type, `prefix.*`, or `*`."),
    may!("always", TRANSITIONS, "Transitions without an event."),
    may!("after", AFTER, "Transitions after a delay: `24h`, milliseconds, a name from `delays`, or `= CEL`."),
    may!("entry", BLOCKS, "Actions on entry."),
    may!("exit", BLOCKS, "Actions on exit."),
    may!("invoke", INVOKES, "Actors that run while the state is active."),
    may!("onDone", TRANSITIONS, "Transitions when a final child (or every region) completes the state."),
    may!("data", Form::Map { key: "variable", of: &TEMPLATE }, "Variables bound on the first entry (imports)."),
    may!("tags", TAGS, "Labels for people and tools, such as `waiting`."),
];

static STATE_HEAD: &[Field] = &[
    may!("id", Form::Text, "A name for `#id` targets anywhere in the statechart."),
    may!("description", Form::Text, "Its purpose."),
    may!("meta", Form::Any, "Arbitrary data for tools."),
];

/// A state.
pub(super) static STATE: Object = Object {
    name: "state",
    what: "a state",
    doc: "A state: atomic, compound, parallel, final or history.",
    fields: &[
        STATE_HEAD,
        STATE_BODY,
        &[
            may!("output", Form::Template, "The output of a final state."),
            may!("history", Form::Word(&["shallow", "deep"]), "With `type: history`: its depth (default shallow)."),
            may!("target", TARGETS, "With `type: history`: the default if its parent has never been exited."),
            may!("actions", BLOCK, "With `type: history`: run when the default is taken."),
        ],
    ],
    may_be_empty: true,
    ..PLAIN
};

pub(super) static MACHINE: Object = Object {
    name: "machine",
    what: "a machine",
    doc: "A statechart that a run can spawn or invoke.",
    fields: &[
        STATE_HEAD,
        &[may!("types", Form::Object(&MACHINE_TYPES), "The JSON Schema of its context.")],
        CHART,
        STATE_BODY,
    ],
    ..PLAIN
};

static MACHINE_TYPES: Object = Object {
    name: "machineTypes",
    what: "the types of a machine",
    doc: "The JSON Schema of a machine's context.",
    fields: &[&[must!("context", Form::Schema, "JSON Schema of the context.")]],
    ..PLAIN
};

pub(super) static STATECHART: Object = Object {
    name: "statechart",
    what: "a statechart import",
    doc: "Imports the statechart from another file.",
    fields: &[&[
        must!("import", Form::Text, "The file, relative to this one."),
        must!("format", Form::Word(&["xstate", "scxml"]), "The format of the file."),
    ]],
    ..PLAIN
};

// ---- transitions ----

pub(super) static TRANSITION: Object = Object {
    name: "transition",
    what: "a transition",
    doc: "A transition; its position determines what selects it.",
    fields: &[&[
        may!(
            "target",
            TARGETS,
            "`sibling`, `sibling.child`, `.child`, `#id` or `#id.child`; a list for regions; without a target, no state is exited."
        ),
        may!("guard", GUARD, "A name from `guards`, or `{and: []}`, `{or: []}`, `{not: }`."),
        may!("when", Form::Cel, "A condition in CEL; with `guard`, both must hold."),
        may!("by", ROLES, "Roles that may take it."),
        may!(
            "approves",
            APPROVES,
            "CEL expression for the value to approve; the sender sends its digest as `event.digest`."
        ),
        may!("requires", REQUIRES, "The permits and obligations that it requires."),
        may!("quorum", QUORUM, "How many different principals must send the event."),
        may!(
            "agents",
            Form::Bool,
            "With `approves` or `quorum`: agents and services may take it too, not only persons (default false)."
        ),
        may!(
            "refuse",
            RULE,
            "An entry of `rules`: if this transition is selected, the event is refused and the refusal names the rule."
        ),
        may!("actions", BLOCK, "Run between exits and entries."),
        may!("reenter", Form::Bool, "Exit and re-enter the source even if the target is inside it (default false)."),
        may!("description", Form::Text, "What it means."),
        may!("meta", Form::Any, "Arbitrary data for tools."),
    ]],
    ..PLAIN
};

pub(super) static COMBINATION: Object = Object {
    name: "combination",
    what: "a combination of guards",
    doc: "A combination of guards.",
    fields: &[&[
        may!("and", Form::List(&GUARD), "All hold."),
        may!("or", Form::List(&GUARD), "At least one holds."),
        may!("not", GUARD, "Does not hold."),
    ]],
    one_of: &["and", "or", "not"],
    ..PLAIN
};

static NOT_BY: &[Field] = &[may!(
    "not_by",
    Form::Cel,
    "CEL expression for the principals that may not take the transition (four eyes): an id, a list of ids, or null."
)];

pub(super) static APPROVES_OBJECT: Object = Object {
    name: "approves",
    what: "an approval",
    doc: "The value to approve, and who may not approve it.",
    fields: &[
        &[must!(
            "value",
            Form::Cel,
            "CEL expression for the value to approve; the sender sends its digest as `event.digest`."
        )],
        NOT_BY,
    ],
    ..PLAIN
};

pub(super) static QUORUM_OBJECT: Object = Object {
    name: "quorum",
    what: "a quorum",
    doc: "How many different principals must send the event.",
    fields: &[
        &[must!("count", COUNT, "The number of principals."), may!("of", ROLE, "The role that they must have.")],
        NOT_BY,
    ],
    ..PLAIN
};

pub(super) static INITIAL_OBJECT: Object = Object {
    name: "initial",
    what: "an initial transition",
    doc: "The initial transition of a compound state, with actions.",
    fields: &[&[
        must!("target", TARGETS, "The initial state."),
        may!("actions", BLOCK, "Run after the entry actions of the state, before those of its children."),
    ]],
    ..PLAIN
};

pub(super) static INVOKE: Object = Object {
    name: "invoke",
    what: "an invocation",
    doc: "An actor that runs while the state is active.",
    fields: &[&[
        may!("src", Form::Name("an actor or a machine"), "An entry of `actors` or of `machines`."),
        may!("machine", Form::Name("a machine"), "An entry of `machines`."),
        may!("id", Form::Text, "Id of the invocation (default: `src`)."),
        may!("idLocation", Form::Text, "A context variable that receives the id (imports)."),
        may!("input", Form::Template, "Input, evaluated when the invocation starts."),
        may!("timeout", Form::Delay, "Overrides the timeout of the actor."),
        may!("onDone", TRANSITIONS, "Transitions when it is done."),
        may!("onError", TRANSITIONS, "Transitions when it fails."),
        may!("finalize", BLOCK, "Run on every event that comes from the invoked machine (SCXML)."),
        may!("autoforward", Form::Bool, "Pass a copy of every external event on to the invoked machine (SCXML)."),
    ]],
    one_of: &["src", "machine"],
    ..PLAIN
};
