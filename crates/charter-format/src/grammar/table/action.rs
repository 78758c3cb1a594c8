//! The keys of actions.

use super::PLAIN;
use super::forms::{BLOCK, BRANCHES, RAISED, TEMPLATE};
use super::macros::{may, must};
use super::texts::VARIABLE;
use crate::grammar::{Form, Object};

pub(super) static ACTION: Object = Object {
    name: "action",
    what: "an action",
    doc: "An action: exactly one of these keys.",
    fields: &[&[
        may!(
            "assign",
            Form::Map { key: "path", of: &TEMPLATE },
            "Sets context variables: `name`, `name.field`, `name[CEL]`."
        ),
        may!("raise", RAISED, "Appends an event to the internal queue."),
        may!("send", Form::Object(&SEND), "Sends an event to an actor of the run, now or later."),
        may!("cancel", Form::Template, "Cancels a delayed `send` by its id."),
        may!("emit", RAISED, "Emits an event to subscribers outside the run."),
        may!("log", Form::Template, "Writes a line to the log."),
        may!("label", Form::Text, "With `log`: a label in front of it."),
        may!("spawn", Form::Object(&SPAWN), "Starts a machine as an actor of the run."),
        may!("stop", Form::Template, "Stops a spawned actor by its id."),
        may!("if", BRANCHES, "Runs the first branch whose `when` holds."),
        may!("each", Form::Object(&EACH), "Runs a block for each item of a list."),
        may!("grant", Form::Object(&GRANT), "Grants a permit."),
        may!("revoke", Form::Object(&REVOKE), "Revokes a permit, or all of a kind."),
        may!("open", Form::Object(&OPEN), "Opens an obligation."),
        may!("close", Form::Object(&CLOSE), "Closes an obligation, or all of a kind."),
    ]],
    one_of: &[
        "assign", "raise", "send", "cancel", "emit", "log", "spawn", "stop", "if", "each", "grant", "revoke", "open",
        "close",
    ],
    ..PLAIN
};

pub(super) static EVENT_TO_RAISE: Object = Object {
    name: "eventToRaise",
    what: "an event",
    doc: "An event.",
    fields: &[&[must!("type", Form::Template, "Event type."), may!("data", Form::Template, "Event data.")]],
    ..PLAIN
};

static SEND: Object = Object {
    name: "send",
    what: "an event to send",
    doc: "Sends an event to an actor of the run, now or later.",
    fields: &[&[
        may!("to", Form::Template, "An actor id, `parent` or `self` (default)."),
        must!("type", Form::Template, "Event type."),
        may!("data", Form::Template, "Event data."),
        may!("delay", Form::Delay, "How long to wait."),
        may!("id", Form::Template, "The id that `cancel` refers to."),
        may!("idLocation", Form::Text, "A context variable that receives the id (imports)."),
        may!("processor", Form::Template, "The event processor's name (imports)."),
    ]],
    ..PLAIN
};

static SPAWN: Object = Object {
    name: "spawn",
    what: "an actor to spawn",
    doc: "Starts a machine (or a service) as an actor of the run that outlives the state.",
    fields: &[&[
        must!("machine", Form::Name("a machine"), "An entry of `machines` or of `actors`."),
        must!("id", Form::Template, "Id of the new actor."),
        may!("input", Form::Template, "Its input."),
    ]],
    ..PLAIN
};

pub(super) static BRANCH: Object = Object {
    name: "branch",
    what: "a branch",
    doc: "A branch of `if`; without `when` it always runs.",
    fields: &[&[may!("when", Form::Cel, "The condition, in CEL."), must!("do", BLOCK, "The actions.")]],
    ..PLAIN
};

static EACH: Object = Object {
    name: "each",
    what: "a loop",
    doc: "Runs a block for each item of a list (or each key of a map).",
    fields: &[&[
        must!("in", Form::Cel, "The list, in CEL."),
        must!("as", Form::Pattern(&VARIABLE), "The variable for the item."),
        may!("index", Form::Pattern(&VARIABLE), "The variable for the index (for a map, the key)."),
        must!("do", BLOCK, "The actions."),
    ]],
    ..PLAIN
};

static GRANT: Object = Object {
    name: "grant",
    what: "a permit",
    doc: "Grants a permit.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        must!("key", Form::Template, "Its key, unique in a run."),
        may!("uses", Form::Template, "How many times it can be used (default: no limit)."),
        may!("expires", Form::Template, "When it expires."),
        may!("data", Form::Template, "Its scope and other data."),
    ]],
    ..PLAIN
};

static REVOKE: Object = Object {
    name: "revoke",
    what: "a permit",
    doc: "Revokes a permit, or all of a kind.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        may!("key", Form::Template, "Its key."),
        may!("all", Form::Bool, "`true`: all of the kind."),
    ]],
    one_of: &["key", "all"],
    ..PLAIN
};

static OPEN: Object = Object {
    name: "open",
    what: "an obligation",
    doc: "Opens an obligation.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        must!("key", Form::Template, "Its key, unique in a run."),
        may!("due", Form::Template, "When it is overdue: a duration from now such as `24h`, or a timestamp."),
        may!("data", Form::Template, "Its data."),
    ]],
    ..PLAIN
};

static CLOSE: Object = Object {
    name: "close",
    what: "an obligation",
    doc: "Closes an obligation, or all of a kind.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        may!("key", Form::Template, "Its key."),
        may!("all", Form::Bool, "`true`: all of the kind."),
        may!("as", Form::Template, "How it was closed."),
    ]],
    one_of: &["key", "all"],
    ..PLAIN
};
