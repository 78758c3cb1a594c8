//! The grammar of the charter language, version 1, as one table: for each object, its keys, their
//! values and a line of documentation. This module contains the root of a document and the
//! declarations.

mod action;
mod chart;
mod forms;
mod macros;
mod requires;
mod texts;

use super::{Form, Object};
use chart::{CHART, MACHINE, STATE_BODY, STATECHART};
use charter_kernel::definition::MAX_LIMIT_BYTES;
use forms::{BLOCK, COMPUTED, COUNT, DELAY, DURATION, GUARD_ENTRY, ROLES, RULE, SCHEMA, STATE_NAMES, TEMPLATE};
pub(super) use macros::{may, must};
use texts::{ID, VERSION};

/// The default for other objects: no alternative keys, no unknown keys, not empty.
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
            must!("charter", Form::Int { min: 1, max: 1 }, "Version of the charter language: 1."),
            must!("id", Form::Pattern(&ID), "Name of the charter: lowercase letters, digits and `-`."),
            may!("version", Form::Pattern(&VERSION), "Semantic version of this charter."),
            may!("title", Form::Text, "A short title."),
            may!("description", Form::Text, "A longer description."),
            may!(
                "strict",
                Form::Bool,
                "Refuse events that SCXML would ignore: unhandled, undeclared and malformed ones (default true)."
            ),
            may!(
                "roles",
                Form::Map { key: "role", of: &Form::Object(&ROLE_ENTRY) },
                "The roles of principals. `system` and `operator` always exist."
            ),
            may!(
                "types",
                Form::Map { key: "type", of: &SCHEMA },
                "Named JSON Schemas, referred to as `#/types/NAME`. `context` is the schema of the context."
            ),
            may!(
                "events",
                Form::Map { key: "event", of: &Form::Object(&EVENT) },
                "The events that principals can send."
            ),
            may!("guards", Form::Map { key: "guard", of: &GUARD_ENTRY }, "Named conditions."),
            may!("actions", Form::Map { key: "action", of: &BLOCK }, "Named actions."),
            may!("delays", Form::Map { key: "delay", of: &DELAY }, "Named durations."),
            may!(
                "actors",
                Form::Map { key: "actor", of: &Form::Object(&ACTOR) },
                "Services outside the run that can be invoked."
            ),
            may!(
                "ledger",
                Form::Map { key: "kind", of: &Form::Object(&LEDGER_ENTRY) },
                "Kinds of permits and obligations."
            ),
            may!(
                "rules",
                Form::Map { key: "rule", of: &TEMPLATE },
                "Rules that refusals name, each with a sentence that explains the refusal; one that starts with `= ` is an expression."
            ),
            may!(
                "machines",
                Form::Map { key: "machine", of: &Form::Object(&MACHINE) },
                "Statecharts that a run can spawn or invoke."
            ),
            may!(
                "interlocks",
                Form::List(&Form::Object(&INTERLOCK)),
                "Invariants across the actors of a run, checked after every event."
            ),
            may!("limits", Form::Object(&LIMITS), "Limits on the cost of one event."),
            may!("properties", Form::List(&Form::Object(&PROPERTY)), "Properties that `charter check` verifies."),
            may!("stream", Form::Object(&STREAM), "How recorded or incoming items become events."),
            may!("statechart", Form::Object(&STATECHART), "Imports the statechart from another file."),
            may!(
                "projections",
                Form::Map { key: "view", of: &Form::Object(&PROJECTION) },
                "SQL views over the events that runs emit."
            ),
            may!("meta", Form::Any, "Arbitrary data for tools."),
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
    doc: "A role of principals.",
    fields: &[&[may!("description", Form::Text, "The purpose of the role.")]],
    may_be_empty: true,
    ..PLAIN
};

static EVENT: Object = Object {
    name: "event",
    what: "an event declaration",
    doc: "An event that can be sent from outside.",
    fields: &[&[
        may!("by", ROLES, "Roles that may send it (default: anyone)."),
        may!("data", Form::Schema, "JSON Schema (2020-12) of its data."),
        may!(
            "whilePaused",
            Form::Bool,
            "Also accepted while the run is paused, to finish work safely (default false)."
        ),
        may!(
            "unique",
            Form::Object(&UNIQUE),
            "The key that at most one event of this type may have, across all runs of a journal."
        ),
        may!("description", Form::Text, "What it means."),
    ]],
    may_be_empty: true,
    ..PLAIN
};

static UNIQUE: Object = Object {
    name: "unique",
    what: "a unique key",
    doc: "A key that at most one event of a type may have, across all runs of a journal.",
    fields: &[&[must!(
        "key",
        Form::Cel,
        "The key: an expression over `event` and `by` for a string, an integer or a boolean."
    )]],
    ..PLAIN
};

static ACTOR: Object = Object {
    name: "actor",
    what: "an actor",
    doc: "What may be invoked outside the run. Unknown keys are passed to the host.",
    fields: &[&[
        must!(
            "kind",
            Form::Text,
            "The executor of the host that runs it: `model`, `tool`, `exec`, `http`, `human`, ..."
        ),
        may!("input", Form::Schema, "JSON Schema of the input."),
        may!("output", Form::Schema, "JSON Schema of the output; an answer that does not match is refused."),
        may!("timeout", Form::Delay, "How long an invocation may take, including all attempts."),
        may!("attemptTimeout", DURATION, "How long one attempt may take (default: depends on its kind)."),
        may!("retry", Form::Object(&RETRY), "When to retry after a temporary failure."),
        may!(
            "idempotent",
            Form::Bool,
            "Repeating it under the same key has no further effect: after a restart the host starts it again."
        ),
        may!("as", ROLES, "The roles under which it sends events to its run."),
        may!("id", Form::Text, "The principal id under which it sends them (default: its name)."),
    ]],
    open: true,
    ..PLAIN
};

static RETRY: Object = Object {
    name: "retry",
    what: "a retry policy",
    doc: "Retries with growing pauses.",
    fields: &[&[
        may!("attempts", Form::Int { min: 1, max: 100 }, "The number of attempts, including the first (default 1)."),
        may!("backoff", DURATION, "The pause after the first attempt (default 1s)."),
        may!("factor", Form::Any, "The growth of the pause, from 1 to 10 (default 2)."),
        may!("max", DURATION, "The longest pause (default 5m)."),
        may!(
            "jitter",
            Form::Any,
            "The random part of the pause, from 0 to 1 (default 0.5); always the same for the same effect."
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
    doc: "An SQL view with a row for each emitted event of one type; the columns `run`, `seq` and `at` come first.",
    fields: &[&[
        may!("description", Form::Text, "The meaning of a row."),
        must!("of", Form::Text, "The type of the emitted events."),
        must!(
            "columns",
            Form::Map { key: "column", of: &Form::Text },
            "The path of each column in the data of the event: field names separated by dots."
        ),
    ]],
    ..PLAIN
};

static INTERLOCK: Object = Object {
    name: "interlock",
    what: "an interlock",
    doc: "An invariant across the actors of a run, checked after every event.",
    fields: &[&[
        must!("id", Form::Text, "Its name, for refusals."),
        may!("description", Form::Text, "Why."),
        may!("given", Form::Name("an actor"), "Table: the id of the actor whose state selects the row."),
        may!("machine", Form::Name("a machine"), "Table: the machine whose actors are checked."),
        may!(
            "allow",
            Form::Map { key: "state", of: &STATE_NAMES },
            "Table: for each state of `given`, the states that actors of `machine` may be in."
        ),
        may!(
            "final",
            Form::Word(&["settled", "always"]),
            "Table: whether actors that are already final are checked (`settled`: only once `given` is final)."
        ),
        may!("assert", Form::Cel, "A condition over the next snapshot, in CEL."),
    ]],
    one_of: &["allow", "assert"],
    ..PLAIN
};

static LIMITS: Object = Object {
    name: "limits",
    what: "limits",
    doc: "Limits on the cost of one event.",
    fields: &[&[
        may!("microsteps", COUNT, "Microsteps per event (default 1000)."),
        may!("expression", Form::Int { min: 1, max: i64::MAX }, "Fuel per expression (default 10000)."),
        may!("actors", COUNT, "Actors in a run, including finished ones (default 10000)."),
        may!("timers", COUNT, "Timers pending in a run (default 10000)."),
        may!("data", Form::Int { min: 1, max: i64::MAX }, "Bytes of data per event (default 1048576)."),
        may!(
            "fuel",
            Form::Int { min: 1, max: i64::MAX },
            "Fuel per event, with everything that it sets off (default 1000000)."
        ),
        may!(
            "bytes",
            Form::Int { min: 1, max: MAX_LIMIT_BYTES as i64 },
            "Bytes built per event: values, effects, the record and the snapshot (default 16777216)."
        ),
    ]],
    ..PLAIN
};

static PROPERTY: Object = Object {
    name: "property",
    what: "a property",
    doc: "A property that `charter check` verifies.",
    fields: &[&[
        must!("id", Form::Text, "Its name."),
        may!("description", Form::Text, "Why."),
        may!("never", Form::Cel, "Holds in no reachable snapshot."),
        may!("unless-before", Form::Text, "With `never`: only before an event of this type was accepted."),
        may!("always", Form::Cel, "Holds in every reachable snapshot."),
        may!("eventually", Form::Cel, "Holds eventually on every path, if effects are answered fairly."),
    ]],
    one_of: &["never", "always", "eventually"],
    ..PLAIN
};

static STREAM: Object = Object {
    name: "stream",
    what: "a stream",
    doc: "How recorded or incoming items become events; expressions over `item`.",
    fields: &[&[
        may!("run", Form::Computed, "The run of an item."),
        may!("type", Form::Computed, "Event type."),
        may!("id", Form::Computed, "Event id."),
        may!("at", Form::Computed, "Time of the event."),
        may!("data", Form::Computed, "Event data."),
        may!("to", Form::Computed, "The actor that it is for."),
        may!("by", Form::Computed, "Principal: `{id, roles, kind, auth}`."),
        may!("input", Form::Computed, "The input of a run that the item starts."),
        may!(
            "clocks",
            Form::Map { key: "clock", of: &COMPUTED },
            "Other timestamps of an item that can serve as its time, by name (`--clock NAME`)."
        ),
        may!("duplicate", RULE, "The rule that refusals of duplicate items name."),
        may!(
            "summary",
            Form::Map { key: "name", of: &COMPUTED },
            "Values for reports besides state and ledger: expressions over the run."
        ),
    ]],
    ..PLAIN
};
