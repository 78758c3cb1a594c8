//! The grammar of scenario files (04-interfaces, "Scenario file"), in the same vocabulary as that of charters.

use super::table::PLAIN;
use super::{Field, Form, Object};

macro_rules! may {
    ($key:literal, $form:expr, $doc:literal) => {
        Field {
            key: $key,
            form: &$form,
            required: false,
            doc: $doc,
        }
    };
}
macro_rules! must {
    ($key:literal, $form:expr, $doc:literal) => {
        Field {
            key: $key,
            form: &$form,
            required: true,
            doc: $doc,
        }
    };
}

/// The codes of `charter_kernel::Code::ALL`, as words.
pub(crate) static CODES: [&str; 23] = [
    "too-large",
    "charter-mismatch",
    "reserved",
    "unknown-event",
    "finished",
    "paused",
    "unknown-actor",
    "stale",
    "authority",
    "schema",
    "unhandled",
    "guard",
    "rule",
    "permit.missing",
    "permit.revoked",
    "permit.expired",
    "permit.exhausted",
    "permit.scope",
    "obligation.missing",
    "obligation.open",
    "execution",
    "runaway",
    "interlock",
];

static NAME: Form = Form::Name("a role");
static ROLES: Form = Form::OneOf {
    what: "a role or a list of roles",
    forms: &[Form::Name("a role"), Form::List(&NAME)],
};
static STATE: Form = Form::Name("a state");
static STATES: Form = Form::OneOf {
    what: "a state or a list of states",
    forms: &[Form::Name("a state"), Form::List(&STATE)],
};
static TEXT: Form = Form::Text;
static MOMENT: Form = Form::OneOf {
    what: "a moment such as `2026-11-21T10:00:00Z`",
    forms: &[
        Form::Text,
        Form::Int {
            least: i64::MIN,
            most: i64::MAX,
        },
    ],
};
static TICK: Form = Form::OneOf {
    what: "a length of time such as `72h`, or a moment such as `2026-11-21T10:00:00Z`",
    forms: &[
        Form::Text,
        Form::Int {
            least: 0,
            most: i64::MAX,
        },
    ],
};
static TEMPLATE: Form = Form::Template;
static CEL: Form = Form::Cel;
static CONDITIONS: Form = Form::OneOf {
    what: "an expression or a list of expressions",
    forms: &[Form::Cel, Form::List(&CEL)],
};
static STEP_FORM: Form = Form::Object(&STEP);
static SCENARIO_FORM: Form = Form::Object(&SCENARIO);
static SEQ: Form = Form::Int {
    least: 0,
    most: i64::MAX,
};

/// A whole file: one scenario, or several that share what is on top.
pub(crate) static FILE: Object = Object {
    name: "scenarioFile",
    what: "a scenario file",
    doc: "An executable test of a charter, or several.",
    fields: &[
        SCENARIO_FIELDS,
        &[
            may!(
                "charter",
                Form::Text,
                "The charter: a path relative to this file, or the name of a bundled one (default: `charter.yaml` beside the folder of this file)."
            ),
            may!(
                "before",
                Form::List(&STEP_FORM),
                "Steps that each scenario begins with."
            ),
            may!(
                "scenarios",
                Form::List(&SCENARIO_FORM),
                "Several scenarios; what is not in one of them is taken from the top."
            ),
        ],
    ],
    one_of: &["steps", "scenarios", "refused"],
    ..PLAIN
};

/// One of several scenarios in a file.
static SCENARIO: Object = Object {
    name: "scenario",
    what: "a scenario",
    doc: "What happens to a run, and what is expected of it.",
    fields: &[SCENARIO_FIELDS],
    one_of: &["steps", "refused"],
    ..PLAIN
};

static SCENARIO_FIELDS: &[Field] = &[
    may!("name", Form::Text, "What it shows, in a sentence."),
    may!("description", Form::Text, "More about it."),
    may!(
        "principals",
        Form::Map {
            key: "principal",
            of: &ROLES
        },
        "Roles by principal, so that `as: ana` is enough."
    ),
    may!(
        "input",
        Form::Template,
        "What the run starts with (default `{}`)."
    ),
    may!(
        "at",
        MOMENT,
        "When the run starts (default 1970-01-01T00:00:00Z)."
    ),
    may!("steps", Form::List(&STEP_FORM), "What happens, in order."),
    may!(
        "refused",
        Form::Object(&START_REFUSED),
        "The start itself is refused."
    ),
];

static START_REFUSED: Object = Object {
    name: "startRefused",
    what: "a refused start",
    doc: "How the start is refused.",
    fields: &[REFUSAL],
    ..PLAIN
};

static REFUSAL: &[Field] = &[
    must!("code", Form::Word(&CODES), "The refusal code."),
    may!("rule", Form::Text, "The rule that it names."),
    may!("message", Form::Text, "A part of the message."),
];

static STEP: Object = Object {
    name: "step",
    what: "a step",
    doc: "Something happens, or is expected.",
    fields: &[&[
        may!(
            "send",
            Form::Object(&SEND),
            "A principal sends an event, which is not refused."
        ),
        may!(
            "refused",
            Form::Object(&REFUSED),
            "An event or an answer that is refused."
        ),
        may!("done", Form::Object(&DONE), "An invoked actor answers."),
        may!("error", Form::Object(&ERROR), "An invoked actor fails."),
        may!(
            "expect",
            Form::Object(&EXPECT),
            "How the run stands now, and what the last step did."
        ),
        may!(
            "tick",
            TICK,
            "Time passes: a length such as `72h` or a name from `delays`, or until a moment. Timers fire."
        ),
        may!(
            "restore",
            Form::Bool,
            "The snapshot goes through JSON and back, which changes nothing (every step does it, too)."
        ),
        may!(
            "repeat",
            Form::Object(&REPEAT),
            "The same steps several times."
        ),
        may!("description", Form::Text, "Why."),
    ]],
    one_of: &[
        "send", "refused", "done", "error", "expect", "tick", "restore", "repeat",
    ],
    ..PLAIN
};

static SENDER: &[Field] = &[
    may!(
        "data",
        Form::Template,
        "Event data; a text that begins with `= ` is an expression over the run."
    ),
    may!(
        "as",
        Form::Text,
        "Who sends it: a name from `principals`, or any with `roles`."
    ),
    may!(
        "roles",
        ROLES,
        "The sender's roles (default: those under `principals`)."
    ),
    may!(
        "expected_seq",
        SEQ,
        "The last record that the sender has seen."
    ),
];

static ADDRESS: &[Field] = &[
    may!("to", Form::Text, "The actor it is for (default: the root)."),
    may!("at", MOMENT, "When (default: the last moment)."),
];

static SEND: Object = Object {
    name: "send",
    what: "a sent event",
    doc: "A principal sends an event.",
    fields: &[
        &[
            must!("type", Form::Text, "Event type."),
            may!(
                "verdict",
                Form::Word(&["accepted", "vote", "ignored"]),
                "What becomes of it (default `accepted`)."
            ),
        ],
        SENDER,
        ADDRESS,
    ],
    ..PLAIN
};

static REFUSED: Object = Object {
    name: "refused",
    what: "a refused event",
    doc: "An event, or an answer (`actor`), that is refused.",
    fields: &[
        &[may!("type", Form::Text, "Event type.")],
        SENDER,
        ADDRESS,
        &[
            may!("actor", Form::Text, "Id of the invocation that answers."),
            may!("output", Form::Template, "Its answer."),
            may!(
                "error",
                Form::Template,
                "Its error: `{code, message, ...}`."
            ),
        ],
        REFUSAL,
    ],
    one_of: &["type", "actor"],
    ..PLAIN
};

static ANSWER: &[Field] = &[
    must!("actor", Form::Text, "Id of the invocation."),
    may!(
        "verdict",
        Form::Word(&["accepted", "ignored", "late"]),
        "What becomes of it (default `accepted`)."
    ),
];

static DONE: Object = Object {
    name: "done",
    what: "an answer",
    doc: "An invoked actor answers.",
    fields: &[
        ANSWER,
        &[may!("output", Form::Template, "The answer.")],
        ADDRESS,
    ],
    ..PLAIN
};

static ERROR: Object = Object {
    name: "error",
    what: "a failure",
    doc: "An invoked actor fails.",
    fields: &[
        ANSWER,
        &[may!(
            "error",
            Form::Template,
            "`{code, message, ...}` (default: the code `error`)."
        )],
        ADDRESS,
    ],
    ..PLAIN
};

static EXPECT: Object = Object {
    name: "expect",
    what: "an expectation",
    doc: "How the run stands now, and what the last step did. What is not mentioned may be anything.",
    fields: &[&[
        may!(
            "actor",
            Form::Text,
            "Whose state, status, context and output (default: the root's)."
        ),
        may!(
            "state",
            STATES,
            "The active states: each one named is active, and none is active beside them."
        ),
        may!(
            "status",
            Form::Word(&["active", "paused", "done", "failed", "cancelled"]),
            "Of the run, or of the actor."
        ),
        may!(
            "context",
            Form::Map {
                key: "variable",
                of: &TEMPLATE
            },
            "Variables of the context; objects may have more fields than are given here."
        ),
        may!(
            "output",
            Form::Template,
            "What it gave; objects may have more fields than are given here."
        ),
        may!(
            "invocations",
            Form::List(&TEXT),
            "Ids of the services at work for it, in any order."
        ),
        may!(
            "effects",
            Form::List(&TEMPLATE),
            "What the last step asks of the host, one by one; each may have more fields than are given here."
        ),
        may!(
            "legal",
            Form::List(&TEXT),
            "Event types that are legal now for `as`, in any order."
        ),
        may!("as", Form::Text, "With `legal`: for whom."),
        may!("roles", ROLES, "With `legal`: their roles."),
        may!(
            "ledger",
            Form::Template,
            "Permits and obligations by kind and key; there may be more."
        ),
        may!(
            "actors",
            Form::List(&TEXT),
            "Ids of the machines in the run, in any order, without the root."
        ),
        may!(
            "stuck",
            Form::Bool,
            "Whether nothing can happen to the run any more."
        ),
        may!(
            "assert",
            CONDITIONS,
            "Expressions that are true; they see `context`, `input`, `actors`, `ledger`, `run`, `now`, `output`, `effects`."
        ),
    ]],
    ..PLAIN
};

static REPEAT: Object = Object {
    name: "repeat",
    what: "a repetition",
    doc: "The same steps several times.",
    fields: &[&[
        must!(
            "times",
            Form::Int {
                least: 1,
                most: 1000
            },
            "How often."
        ),
        must!("steps", Form::List(&STEP_FORM), "What happens each time."),
    ]],
    ..PLAIN
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_codes_are_those_of_the_kernel() {
        let words: Vec<&str> = charter_kernel::Code::ALL.iter().map(|c| c.word()).collect();
        assert_eq!(super::CODES.as_slice(), words.as_slice());
    }
}
