//! The grammar of the charter language, version 1, as one table: per kind of object its keys, their values and a line of docs. Here stands
//! the root of a document and what it declares.

mod action;
mod chart;
mod forms;
mod macros;
mod requires;
mod texts;

use super::{Form, Object};
use chart::{CHART, MACHINE, STATE_BODY, STATECHART};
use forms::{BLOCK, COMPUTED, COUNT, DELAY, GUARD_ENTRY, LENGTH_OF_TIME, ROLES, RULE, SCHEMA, STATE_NAMES, TEMPLATE};
use macros::{may, must};
use texts::{ID, VERSION};

/// What most objects are: no exclusive keys, no free keys, not empty.
pub(super) const PLAIN: Object =
    Object { name: "", what: "", doc: "", fields: &[], one_of: &[], open: false, may_be_empty: false };

// ---- the document ----

/// A charter.
pub(crate) static CHARTER: Object = Object {
    name: "charter",
    what: "a charter",
    doc: "A charter: statecharts plus roles, evidence, permits and approvals.",
    fields: &[
        &[
            must!("charter", Form::Int { least: 1, most: 1 }, "Version of the charter language: 1."),
            must!("id", Form::Pattern(&ID), "Name of the charter: lower-case letters, digits and `-`."),
            may!("version", Form::Pattern(&VERSION), "Semantic version of this charter."),
            may!("title", Form::Text, "A line for people."),
            may!("description", Form::Text, "More for people."),
            may!(
                "strict",
                Form::Bool,
                "Refuse what SCXML would ignore: unhandled, undeclared and ill-formed events (default true)."
            ),
            may!(
                "roles",
                Form::Map { key: "role", of: &Form::Object(&ROLE_ENTRY) },
                "Who may act. `system` and `operator` always exist."
            ),
            may!(
                "types",
                Form::Map { key: "type", of: &SCHEMA },
                "Named JSON Schemas; `#/types/NAME` refers to them. `context` is that of the context."
            ),
            may!(
                "events",
                Form::Map { key: "event", of: &Form::Object(&EVENT) },
                "Every event that a person or program may send."
            ),
            may!("guards", Form::Map { key: "guard", of: &GUARD_ENTRY }, "Named conditions."),
            may!("actions", Form::Map { key: "action", of: &BLOCK }, "Named actions."),
            may!("delays", Form::Map { key: "delay", of: &DELAY }, "Named lengths of time."),
            may!(
                "actors",
                Form::Map { key: "actor", of: &Form::Object(&ACTOR) },
                "What may be invoked outside the run."
            ),
            may!(
                "ledger",
                Form::Map { key: "kind", of: &Form::Object(&LEDGER_ENTRY) },
                "Kinds of permits and obligations."
            ),
            may!(
                "rules",
                Form::Map { key: "rule", of: &TEMPLATE },
                "Rules that refusals name, each with the sentence that explains a refusal; one that begins with `= ` is an expression."
            ),
            may!(
                "machines",
                Form::Map { key: "machine", of: &Form::Object(&MACHINE) },
                "Statecharts that a run can spawn or invoke."
            ),
            may!(
                "interlocks",
                Form::List(&Form::Object(&INTERLOCK)),
                "What must hold across the actors of a run after every event."
            ),
            may!("limits", Form::Object(&LIMITS), "Bounds on what one event may cost."),
            may!("properties", Form::List(&Form::Object(&PROPERTY)), "What `charter check` has to show."),
            may!("stream", Form::Object(&STREAM), "How recorded or arriving items become events."),
            may!("statechart", Form::Object(&STATECHART), "Takes the statechart from another file."),
            may!(
                "projections",
                Form::Map { key: "view", of: &Form::Object(&PROJECTION) },
                "SQL views that a journal offers over what runs emit."
            ),
            may!("meta", Form::Any, "Free data for tools."),
        ],
        CHART,
        STATE_BODY,
    ],
    ..PLAIN
};

// ---- declarations ----

static ROLE_ENTRY: Object = Object {
    name: "role",
    what: "a role",
    doc: "Who may act.",
    fields: &[&[may!("description", Form::Text, "What the role is for.")]],
    may_be_empty: true,
    ..PLAIN
};

static EVENT: Object = Object {
    name: "event",
    what: "an event declaration",
    doc: "An event that may be sent from outside.",
    fields: &[&[
        may!("by", ROLES, "Roles that may send it; none: anybody."),
        may!("data", Form::Schema, "JSON Schema (2020-12) of its data."),
        may!("whilePaused", Form::Bool, "Accepted while the run is paused too: what ends work safely (default false)."),
        may!("description", Form::Text, "What it means."),
    ]],
    may_be_empty: true,
    ..PLAIN
};

static ACTOR: Object = Object {
    name: "actor",
    what: "an actor",
    doc: "What may be invoked outside the run. Keys that the language does not know go to the host.",
    fields: &[&[
        must!("kind", Form::Text, "Which executor of the host runs it: `model`, `tool`, `exec`, `http`, `human`, ..."),
        may!("input", Form::Schema, "JSON Schema of the input."),
        may!("output", Form::Schema, "JSON Schema of the output; an answer that does not fit is refused."),
        may!("timeout", Form::Delay, "How long an invocation may take, all attempts together."),
        may!("attemptTimeout", LENGTH_OF_TIME, "How long one attempt may take (default: what its kind allows)."),
        may!("retry", Form::Object(&RETRY), "When it is tried again after a failure that may pass."),
        may!(
            "idempotent",
            Form::Bool,
            "Doing it twice under the same key is like doing it once: if the host stops meanwhile, it is asked again."
        ),
        may!("as", ROLES, "The roles under which it sends events to its run, if it does."),
        may!("id", Form::Text, "The name under which it sends them (default: its own)."),
    ]],
    open: true,
    ..PLAIN
};

static RETRY: Object = Object {
    name: "retry",
    what: "a plan for further attempts",
    doc: "Further attempts, each after a longer pause.",
    fields: &[&[
        may!("attempts", Form::Int { least: 1, most: 100 }, "How often it is tried in all (default 1)."),
        may!("backoff", LENGTH_OF_TIME, "The pause after the first attempt (default 1s)."),
        may!("factor", Form::Any, "By how much the pause grows each time, 1 to 10 (default 2)."),
        may!("max", LENGTH_OF_TIME, "The longest pause (default 5m)."),
        may!(
            "jitter",
            Form::Any,
            "How much of the pause is left to chance, 0 to 1 (default 0.5); the same for the same effect."
        ),
    ]],
    ..PLAIN
};

static LEDGER_ENTRY: Object = Object {
    name: "ledgerKind",
    what: "a kind of permit or obligation",
    doc: "A kind of permit or obligation.",
    fields: &[&[may!("description", Form::Text, "What the permit allows or the obligation demands.")]],
    may_be_empty: true,
    ..PLAIN
};

static PROJECTION: Object = Object {
    name: "projection",
    what: "a projection",
    doc: "An SQL view with a row for each emitted event of one type, with the columns `run`, `seq` and `at` before its own.",
    fields: &[&[
        may!("description", Form::Text, "What a row is."),
        must!("of", Form::Text, "Type of the emitted events."),
        must!(
            "columns",
            Form::Map { key: "column", of: &Form::Text },
            "Where the value of a column is in the data of the event: names of fields with dots between them."
        ),
    ]],
    ..PLAIN
};

static INTERLOCK: Object = Object {
    name: "interlock",
    what: "an interlock",
    doc: "What must hold across the actors of a run after every event.",
    fields: &[&[
        must!("id", Form::Text, "Its name, given in refusals."),
        may!("description", Form::Text, "Why."),
        may!("given", Form::Name("an actor"), "Table: id of the actor whose state is looked up."),
        may!("machine", Form::Name("a machine"), "Table: the machine whose actors are judged."),
        may!(
            "allow",
            Form::Map { key: "state", of: &STATE_NAMES },
            "Table: state of `given` -> states that actors of `machine` may be in."
        ),
        may!(
            "final",
            Form::Word(&["settled", "always"]),
            "Table: whether actors that were final already are judged (`settled`: not until `given` is final)."
        ),
        may!("assert", Form::Cel, "CEL over the candidate snapshot."),
    ]],
    one_of: &["allow", "assert"],
    ..PLAIN
};

static LIMITS: Object = Object {
    name: "limits",
    what: "limits",
    doc: "Bounds on what one event may cost.",
    fields: &[&[
        may!("microsteps", COUNT, "Microsteps that one event may take (default 1000)."),
        may!("expression", Form::Int { least: 1, most: i64::MAX }, "Steps of fuel for one expression (default 10000)."),
        may!("actors", COUNT, "Actors in a run, finished ones included (default 10000)."),
        may!("timers", COUNT, "Timers pending in a run (default 10000)."),
        may!(
            "data",
            Form::Int { least: 1, most: i64::MAX },
            "Bytes of data that one event may carry (default 1048576)."
        ),
    ]],
    ..PLAIN
};

static PROPERTY: Object = Object {
    name: "property",
    what: "a property",
    doc: "What `charter check` has to show.",
    fields: &[&[
        must!("id", Form::Text, "Its name."),
        may!("description", Form::Text, "Why."),
        may!("never", Form::Cel, "Holds in no reachable snapshot."),
        may!("unless-before", Form::Text, "With `never`: or in none before an accepted event of this type."),
        may!("always", Form::Cel, "Holds in every reachable snapshot."),
        may!("eventually", Form::Cel, "Holds sooner or later on every path, under fair answers of effects."),
    ]],
    one_of: &["never", "always", "eventually"],
    ..PLAIN
};

static STREAM: Object = Object {
    name: "stream",
    what: "a stream",
    doc: "How recorded or arriving items become events; expressions over `item`.",
    fields: &[&[
        may!("run", Form::Computed, "Which run an item belongs to."),
        may!("type", Form::Computed, "Event type."),
        may!("id", Form::Computed, "Event id."),
        may!("at", Form::Computed, "Time of the event."),
        may!("data", Form::Computed, "Event data."),
        may!("to", Form::Computed, "Actor addressed."),
        may!("by", Form::Computed, "Principal: `{id, roles}`."),
        may!("input", Form::Computed, "Input of a run that an item opens."),
        may!(
            "clocks",
            Form::Map { key: "clock", of: &COMPUTED },
            "Further times of an item that may be taken as its time, by name (`--clock NAME`)."
        ),
        may!("duplicate", RULE, "The rule that is named when an item comes a second time."),
        may!(
            "summary",
            Form::Map { key: "name", of: &COMPUTED },
            "What a report says of a run beside its state and ledger: expressions over the run."
        ),
    ]],
    ..PLAIN
};
