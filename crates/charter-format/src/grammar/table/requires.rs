//! The keys under `requires`: ledger requirements.

use super::PLAIN;
use super::forms::RULE;
use super::macros::{may, must};
use crate::grammar::{Form, Object};

pub(super) static REQUIRE: Object = Object {
    name: "require",
    what: "a ledger requirement",
    doc: "A permit or obligation that a transition requires.",
    fields: &[&[
        may!("use", Form::Object(&USE), "A live permit; taking the transition consumes one use."),
        may!("open", Form::Object(&REQUIRE_OPEN), "An open obligation."),
        may!("none", Form::Object(&REQUIRE_NONE), "No open obligation of the kind."),
    ]],
    one_of: &["use", "open", "none"],
    ..PLAIN
};

static USE: Object = Object {
    name: "use",
    what: "a permit",
    doc: "A live permit.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        must!("key", Form::Template, "Which one."),
        may!(
            "when",
            Form::Cel,
            "Whether this use is within the scope of the permit: CEL in which `entry` is the permit."
        ),
        may!("rules", Form::Object(&PERMIT_RULES), "The rules that refusals name, by cause."),
    ]],
    ..PLAIN
};

static PERMIT_RULES: Object = Object {
    name: "permitRules",
    what: "the rules of a permit",
    doc: "The rules that refusals name, by what is wrong with the permit.",
    fields: &[&[
        may!("missing", RULE, "It was never granted."),
        may!("revoked", RULE, "It was revoked."),
        may!("expired", RULE, "It has expired."),
        may!("exhausted", RULE, "It has no uses left."),
        may!("scope", RULE, "Its `when` does not hold."),
    ]],
    ..PLAIN
};

static REQUIRE_OPEN: Object = Object {
    name: "requireOpen",
    what: "an obligation",
    doc: "An open obligation.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        must!("key", Form::Template, "Which one."),
        may!("rule", RULE, "The rule that a refusal names."),
    ]],
    ..PLAIN
};

static REQUIRE_NONE: Object = Object {
    name: "requireNone",
    what: "a kind of obligation",
    doc: "No open obligation of the kind.",
    fields: &[&[
        must!("kind", Form::Name("an entry of `ledger`"), "An entry of `ledger`."),
        may!("rule", RULE, "The rule that a refusal names."),
    ]],
    ..PLAIN
};
