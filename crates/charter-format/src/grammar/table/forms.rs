//! Values that can be written in several ways: one or many, a name or an object, a map of events.

use super::action::{ACTION, BRANCH, EVENT_TO_RAISE};
use super::chart::{APPROVES_OBJECT, COMBINATION, INITIAL_OBJECT, INVOKE, QUORUM_OBJECT, STATE, TRANSITION};
use super::macros::one_or_many;
use super::requires::REQUIRE;
use super::texts::LENGTH;
use crate::grammar::Form;

pub(super) static ROLE: Form = Form::Name("a role");

/// A duration that is neither a name nor an expression, for keys that the host evaluates.
pub(super) static DURATION: Form = Form::OneOf {
    what: "a duration such as `2s`, or milliseconds",
    forms: &[Form::Pattern(&LENGTH), Form::Int { min: 0, max: charter_expr::MAX_DELAY_MS }],
};

pub(super) static ROLES: Form = one_or_many!("a role or a list of roles", Form::Name("a role"); ROLE);

pub(super) static RULE: Form = Form::Name("a rule");

pub(super) static COMPUTED: Form = Form::Computed;

static TEXT: Form = Form::Text;

pub(super) static TAGS: Form = one_or_many!("a word or a list of words", Form::Text; TEXT);

static STATE_NAME: Form = Form::Name("a state");

pub(super) static TARGETS: Form = one_or_many!("a target or a list of targets", Form::Name("a state"); STATE_NAME);

pub(super) static STATE_NAMES: Form = one_or_many!("a state or a list of states", Form::Name("a state"); STATE_NAME);

pub(super) static TEMPLATE: Form = Form::Template;

pub(super) static TRANSITIONS: Form = one_or_many!("a transition (a target, an object, or a list of them)", Form::Name("a state"), Form::Object(&TRANSITION); TRANSITION_ITEM);

static TRANSITION_ITEM: Form =
    Form::OneOf { what: "a transition", forms: &[Form::Name("a state"), Form::Object(&TRANSITION)] };

static ON_MAP: Form = Form::Map { key: "event", of: &TRANSITIONS };

pub(super) static ON: Form =
    one_or_many!("an object with a key for each event", Form::Map { key: "event", of: &TRANSITIONS }; ON_MAP);

static AFTER_MAP: Form = Form::Map { key: "delay", of: &TRANSITIONS };

pub(super) static AFTER: Form =
    one_or_many!("an object with a key for each delay", Form::Map { key: "delay", of: &TRANSITIONS }; AFTER_MAP);

pub(super) static BLOCK: Form = one_or_many!("an action (a name, an object, or a list of them)", Form::Name("an action"), Form::Object(&ACTION); ACTION_ITEM);

static ACTION_ITEM: Form = Form::OneOf { what: "an action", forms: &[Form::Name("an action"), Form::Object(&ACTION)] };

pub(super) static BLOCKS: Form = one_or_many!("an action (a name, an object, or a list of them)", Form::Name("an action"), Form::Object(&ACTION); BLOCKS_ITEM);

static BLOCKS_ITEM: Form =
    one_or_many!("an action or a list of actions", Form::Name("an action"), Form::Object(&ACTION); ACTION_ITEM);

pub(super) static GUARD: Form = Form::OneOf {
    what: "the name of a guard, or a combination of guards",
    forms: &[Form::Name("a guard"), Form::Object(&COMBINATION)],
};

pub(super) static GUARD_ENTRY: Form =
    Form::OneOf { what: "an expression, or a combination of guards", forms: &[Form::Cel, Form::Object(&COMBINATION)] };

pub(super) static INITIAL: Form =
    one_or_many!("a state", Form::Name("a state"), Form::Object(&INITIAL_OBJECT); STATE_NAME);

pub(super) static RAISED: Form = Form::OneOf {
    what: "an event type, or an object with `type` and `data`",
    forms: &[Form::Text, Form::Object(&EVENT_TO_RAISE)],
};

static BRANCH_FORM: Form = Form::Object(&BRANCH);

pub(super) static BRANCHES: Form = one_or_many!("a list of branches", Form::Object(&BRANCH); BRANCH_FORM);

static INVOKE_FORM: Form = Form::Object(&INVOKE);

pub(super) static INVOKES: Form = one_or_many!("an invocation or a list of them", Form::Object(&INVOKE); INVOKE_FORM);

static REQUIRE_FORM: Form = Form::Object(&REQUIRE);

pub(super) static REQUIRES: Form =
    one_or_many!("a ledger requirement (an object or a list of them)", Form::Object(&REQUIRE); REQUIRE_FORM);

pub(super) static COUNT: Form = Form::Int { min: 1, max: u32::MAX as i64 };

pub(super) static APPROVES: Form = Form::OneOf {
    what: "an expression, or an object with `value` and `not_by`",
    forms: &[Form::Cel, Form::Object(&APPROVES_OBJECT)],
};

pub(super) static QUORUM: Form = Form::OneOf {
    what: "a number of people, or an object with `count` and `of`",
    forms: &[Form::Int { min: 1, max: u32::MAX as i64 }, Form::Object(&QUORUM_OBJECT)],
};

pub(super) static SCHEMA: Form = Form::Schema;

pub(super) static DELAY: Form = Form::Delay;

pub(super) static STATE_FORM: Form = Form::Object(&STATE);
