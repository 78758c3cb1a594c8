//! The keys of charts: states, transitions, guards and invocations.

use super::PLAIN;
use super::forms::{
    AFTER, BLOCK, BLOCKS, COUNT, GUARD, INITIAL, INVOKES, ON, QUORUM, REQUIRES, ROLE, ROLES, RULE, STATE_FORM, TAGS,
    TARGETS, TEMPLATE, TRANSITIONS,
};
use super::macros::{may, must};
use crate::grammar::{Field, Form, Object};

pub(super) static CHART: &[Field] = &[
    may!("input", Form::Schema, "JSON Schema (2020-12) of what it starts with."),
    may!("context", Form::Map { key: "variable", of: &TEMPLATE }, "Variables with their first values."),
    may!("output", Form::Template, "What it gives when it is done."),
];

pub(super) static STATE_BODY: &[Field] = &[
    may!(
        "type",
        Form::Word(&["atomic", "compound", "parallel", "final", "history"]),
        "Kind of state; default: compound with `states`, else atomic."
    ),
    may!("initial", INITIAL, "Where a compound state starts (default: its first child)."),
    may!("states", Form::Map { key: "state", of: &STATE_FORM }, "Child states; their order is meaning."),
    may!("on", ON, "Transitions by event: a type, `prefix.*`, or `*`."),
    may!("always", TRANSITIONS, "Transitions that need no event."),
    may!("after", AFTER, "Transitions after a time: `24h`, a name from `delays`, milliseconds, or `= CEL`."),
    may!("entry", BLOCKS, "Actions on entry."),
    may!("exit", BLOCKS, "Actions on exit."),
    may!("invoke", INVOKES, "Actors that work while the state is active."),
    may!("onDone", TRANSITIONS, "Transitions when a final child (or every region) completes the state."),
    may!("data", Form::Map { key: "variable", of: &TEMPLATE }, "Variables bound on the first entry (imports)."),
    may!("tags", TAGS, "Words for people and tools, such as `waiting`."),
];

static STATE_HEAD: &[Field] = &[
    may!("id", Form::Text, "A name that `#id` targets find anywhere in the statechart."),
    may!("description", Form::Text, "What it is for."),
    may!("meta", Form::Any, "Free data for tools."),
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
            may!("output", Form::Template, "What a final state gives."),
            may!(
                "history",
                Form::Word(&["shallow", "deep"]),
                "With `type: history`: what it remembers (default shallow)."
            ),
            may!("target", TARGETS, "With `type: history`: where to go before its parent was ever left."),
            may!("actions", BLOCK, "With `type: history`: run when `target` is taken."),
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
    what: "a statechart elsewhere",
    doc: "Takes the statechart from another file.",
    fields: &[&[
        must!("import", Form::Text, "The file, relative to this one."),
        must!("format", Form::Word(&["xstate", "scxml"]), "How it is written."),
    ]],
    ..PLAIN
};

// ---- transitions ----

pub(super) static TRANSITION: Object = Object {
    name: "transition",
    what: "a transition",
    doc: "A transition. What selects it is said by where it stands.",
    fields: &[&[
        may!(
            "target",
            TARGETS,
            "`sibling`, `sibling.child`, `.child`, `#id`, `#id.child`; a list for regions; none: stays."
        ),
        may!("guard", GUARD, "A name from `guards`, or `{and: []}`, `{or: []}`, `{not: }`."),
        may!("when", Form::Cel, "A condition in CEL; both given: both must hold."),
        may!("by", ROLES, "Roles that may take it."),
        may!("approves", Form::Cel, "CEL of the value whose digest the sender must name in `event.digest`."),
        may!("requires", REQUIRES, "What the ledger must hold."),
        may!("quorum", QUORUM, "How many different principals have to send the event."),
        may!("refuse", RULE, "An entry of `rules`: the event is refused in its name if this transition is selected."),
        may!("actions", BLOCK, "Run between exits and entries."),
        may!(
            "reenter",
            Form::Bool,
            "Leave and re-enter the source even where an internal transition would do (default false)."
        ),
        may!("description", Form::Text, "What it means."),
        may!("meta", Form::Any, "Free data for tools."),
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

pub(super) static QUORUM_OBJECT: Object = Object {
    name: "quorum",
    what: "a quorum",
    doc: "How many different principals have to send the event.",
    fields: &[&[must!("count", COUNT, "How many."), may!("of", ROLE, "The role they must have.")]],
    ..PLAIN
};

pub(super) static INITIAL_OBJECT: Object = Object {
    name: "initial",
    what: "an initial transition",
    doc: "Where a compound state starts, with actions on the way.",
    fields: &[&[
        must!("target", TARGETS, "Where to go."),
        may!("actions", BLOCK, "Run after the entry of the state and before that of its children."),
    ]],
    ..PLAIN
};

pub(super) static INVOKE: Object = Object {
    name: "invoke",
    what: "an invocation",
    doc: "An actor that works while the state is active.",
    fields: &[&[
        may!("src", Form::Name("an actor or a machine"), "An entry of `actors` or of `machines`."),
        may!("machine", Form::Name("a machine"), "An entry of `machines`."),
        may!("id", Form::Text, "Id of the invocation (default: `src`)."),
        may!("idLocation", Form::Text, "A context variable that receives the id (imports)."),
        may!("input", Form::Template, "Input, evaluated when the invocation starts."),
        may!("timeout", Form::Delay, "Overrides the actor's."),
        may!("onDone", TRANSITIONS, "Transitions on its answer."),
        may!("onError", TRANSITIONS, "Transitions on its failure."),
        may!("finalize", BLOCK, "Run on every event that comes from the invoked machine (SCXML)."),
        may!("autoforward", Form::Bool, "Pass a copy of every external event on to the invoked machine (SCXML)."),
    ]],
    one_of: &["src", "machine"],
    ..PLAIN
};
