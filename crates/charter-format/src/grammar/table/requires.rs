//! The keys under `requires`: what the ledger must hold.

use super::PLAIN;
use super::forms::RULE;
use super::macros::{may, must};
use crate::grammar::{Form, Object};

pub(super) static REQUIRE: Object = Object {
    name: "require",
    what: "what the ledger must hold",
    doc: "What the ledger must hold for a transition.",
    fields: &[&[
        may!("use", Form::Object(&USE), "A live permit; one use is counted if the transition is taken."),
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
        may!("when", Form::Cel, "CEL over the permit, bound to `entry`: is this use within its scope?"),
        may!("rules", Form::Object(&PERMIT_RULES), "The rules that refusals name, by what failed."),
    ]],
    ..PLAIN
};

static PERMIT_RULES: Object = Object {
    name: "permitRules",
    what: "rules by what failed",
    doc: "The rules that refusals name, by what can be wrong with a permit.",
    fields: &[&[
        may!("missing", RULE, "It was never granted."),
        may!("revoked", RULE, "It was revoked."),
        may!("expired", RULE, "Its time is over."),
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
