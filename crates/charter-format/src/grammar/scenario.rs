//! The grammar of scenario files.

use super::table::{PLAIN, may, must};
use super::{Field, Form, Object};

/// The codes of `charter_kernel::Code::ALL`, as a scenario writes them.
pub(crate) static CODES: [&str; 26] = [
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
    "taken",
    "unreserved",
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
    "too-costly",
    "interlock",
];

/// The words of `PrincipalKind::ALL`.
static KINDS: [&str; 3] = ["person", "agent", "service"];
/// The words of `Auth::ALL`.
static AUTHS: [&str; 8] = ["key", "session", "socket", "oidc", "ssh", "passkey", "local", "none"];

static NAME: Form = Form::Name("a role");
static ROLES: Form =
    Form::OneOf { what: "a role or a list of roles", forms: &[Form::Name("a role"), Form::List(&NAME)] };
static STATE: Form = Form::Name("a state");
static STATES: Form =
    Form::OneOf { what: "a state or a list of states", forms: &[Form::Name("a state"), Form::List(&STATE)] };
static PRINCIPAL_FORM: Form = Form::OneOf {
    what: "a role, a list of roles, or an object with `roles`, `kind` and `auth`",
    forms: &[Form::Name("a role"), Form::List(&NAME), Form::Object(&PRINCIPAL)],
};
static TEXT: Form = Form::Text;
static TIMESTAMP: Form = Form::OneOf {
    what: "a timestamp such as `2026-11-21T10:00:00Z`",
    forms: &[Form::Text, Form::Int { min: i64::MIN, max: i64::MAX }],
};
static TICK: Form = Form::OneOf {
    what: "a duration such as `72h`, or a timestamp such as `2026-11-21T10:00:00Z`",
    forms: &[Form::Text, Form::Int { min: 0, max: i64::MAX }],
};
static TEMPLATE: Form = Form::Template;
static CEL: Form = Form::Cel;
static CONDITIONS: Form =
    Form::OneOf { what: "an expression or a list of expressions", forms: &[Form::Cel, Form::List(&CEL)] };
static STEP_FORM: Form = Form::Object(&STEP);
static SCENARIO_FORM: Form = Form::Object(&SCENARIO);
static SEQ: Form = Form::Int { min: 0, max: i64::MAX };

/// A file: one scenario, or several that share the top-level keys.
pub(crate) static FILE: Object = Object {
    name: "scenarioFile",
    what: "a scenario file",
    doc: "One or more executable tests of a charter.",
    fields: &[
        SCENARIO_FIELDS,
        &[
            may!(
                "charter",
                Form::Text,
                "The charter: a path relative to this file, or the name of a bundled charter (default: `charter.yaml` in the parent folder)."
            ),
            may!("before", Form::List(&STEP_FORM), "Steps at the start of each scenario."),
            may!(
                "scenarios",
                Form::List(&SCENARIO_FORM),
                "Several scenarios; each inherits the top-level keys that it does not set."
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
    doc: "Steps of a run and expectations.",
    fields: &[SCENARIO_FIELDS],
    one_of: &["steps", "refused"],
    ..PLAIN
};

static SCENARIO_FIELDS: &[Field] = &[
    may!("name", Form::Text, "What it tests, in one sentence."),
    may!("description", Form::Text, "A longer description."),
    may!(
        "principals",
        Form::Map { key: "principal", of: &PRINCIPAL_FORM },
        "Principals by id: roles, or `{roles, kind, auth}`, so that `as: ana` is enough."
    ),
    may!("input", Form::Template, "The input of the run (default `{}`)."),
    may!("at", TIMESTAMP, "When the run starts (default 1970-01-01T00:00:00Z)."),
    may!("as", Form::Text, "Who starts the run: a name from `principals` (default: the system)."),
    may!("steps", Form::List(&STEP_FORM), "The steps, in order."),
    may!("refused", Form::Object(&START_REFUSED), "The start of the run is refused."),
];

static PRINCIPAL: Object = Object {
    name: "principal",
    what: "a principal",
    doc: "What is known of a principal.",
    fields: &[&[may!("roles", ROLES, "Its roles.")], IDENTITY],
    ..PLAIN
};

static IDENTITY: &[Field] = &[
    may!("kind", Form::Word(&KINDS), "What the sender is (default `person`)."),
    may!("auth", Form::Word(&AUTHS), "How the sender was authenticated (default `local`)."),
];

static START_REFUSED: Object = Object {
    name: "startRefused",
    what: "a refused start",
    doc: "The refusal of the start.",
    fields: &[REFUSAL],
    ..PLAIN
};

static REFUSAL: &[Field] = &[
    must!("code", Form::Word(&CODES), "The refusal code."),
    may!("rule", Form::Text, "The rule that the refusal names."),
    may!("message", Form::Text, "A part of the message."),
];

static STEP: Object = Object {
    name: "step",
    what: "a step",
    doc: "An event, an answer, passing time, or an expectation.",
    fields: &[&[
        may!("send", Form::Object(&SEND), "A principal sends an event that is not refused."),
        may!("refused", Form::Object(&REFUSED), "An event or an answer that is refused."),
        may!("done", Form::Object(&DONE), "An invoked actor answers."),
        may!("error", Form::Object(&ERROR), "An invoked actor fails."),
        may!("expect", Form::Object(&EXPECT), "The state of the run, and what the last step did."),
        may!(
            "tick",
            TICK,
            "Time passes and timers fire: a duration such as `72h`, a name from `delays`, or a timestamp to advance to."
        ),
        may!("restore", Form::Bool, "Writes the snapshot as JSON and reads it back, as every step does."),
        may!("repeat", Form::Object(&REPEAT), "Repeats steps."),
        may!("description", Form::Text, "The reason."),
    ]],
    one_of: &["send", "refused", "done", "error", "expect", "tick", "restore", "repeat"],
    ..PLAIN
};

static SENDER: &[Field] = &[
    may!("data", Form::Template, "Event data; a string that starts with `= ` is an expression over the run."),
    may!("as", Form::Text, "The sender: a name from `principals`, or any name with `roles`."),
    may!("roles", ROLES, "The sender's roles (default: those under `principals`)."),
    may!("expected_seq", SEQ, "The last record that the sender has seen."),
    may!("taken_by", Form::Text, "A run that has the unique key of the event already (default: none)."),
];

static ADDRESS: &[Field] = &[
    may!("to", Form::Text, "The actor it is for (default: the root)."),
    may!("at", TIMESTAMP, "The time (default: that of the previous step)."),
];

static SEND: Object = Object {
    name: "send",
    what: "a sent event",
    doc: "A principal sends an event.",
    fields: &[
        &[
            must!("type", Form::Text, "Event type."),
            may!("verdict", Form::Word(&["accepted", "vote", "ignored"]), "The verdict (default `accepted`)."),
        ],
        SENDER,
        IDENTITY,
        ADDRESS,
    ],
    ..PLAIN
};

static REFUSED: Object = Object {
    name: "refused",
    what: "a refused event",
    doc: "An event or an answer (`actor`) that is refused.",
    fields: &[
        &[may!("type", Form::Text, "Event type.")],
        SENDER,
        IDENTITY,
        ADDRESS,
        &[
            may!("actor", Form::Text, "Id of the invocation that answers."),
            may!("output", Form::Template, "Its answer."),
            may!("error", Form::Template, "Its error: `{code, message, ...}`."),
        ],
        REFUSAL,
    ],
    one_of: &["type", "actor"],
    ..PLAIN
};

static ANSWER: &[Field] = &[
    must!("actor", Form::Text, "Id of the invocation."),
    may!("verdict", Form::Word(&["accepted", "ignored", "late"]), "The verdict (default `accepted`)."),
];

static PERSON: &[Field] = &[
    may!("as", Form::Text, "The person who answers the task of a `human` actor (default: the system)."),
    may!("roles", ROLES, "The person's roles (default: those under `principals`)."),
];

static DONE: Object = Object {
    name: "done",
    what: "an answer",
    doc: "An invoked actor answers.",
    fields: &[ANSWER, &[may!("output", Form::Template, "The answer.")], PERSON, IDENTITY, ADDRESS],
    ..PLAIN
};

static ERROR: Object = Object {
    name: "error",
    what: "a failure",
    doc: "An invoked actor fails.",
    fields: &[
        ANSWER,
        &[may!("error", Form::Template, "`{code, message, ...}` (default: the code `error`).")],
        PERSON,
        IDENTITY,
        ADDRESS,
    ],
    ..PLAIN
};

static EXPECT: Object = Object {
    name: "expect",
    what: "an expectation",
    doc: "The state of the run, and what the last step did. Omitted keys are not checked.",
    fields: &[
        IDENTITY,
        &[
            may!(
                "actor",
                Form::Text,
                "The actor whose state, status, context and output are checked (default: the root)."
            ),
            may!("state", STATES, "The active states: all of these and no others."),
            may!(
                "status",
                Form::Word(&["active", "paused", "done", "failed", "cancelled"]),
                "The status of the run or of the actor."
            ),
            may!(
                "context",
                Form::Map { key: "variable", of: &TEMPLATE },
                "Variables of the context; objects may have more fields."
            ),
            may!("output", Form::Template, "The output; objects may have more fields."),
            may!("invocations", Form::List(&TEXT), "Ids of its active invocations, in any order."),
            may!(
                "effects",
                Form::List(&TEMPLATE),
                "The effects of the last step, in order; each may have more fields."
            ),
            may!("legal", Form::List(&TEXT), "Event types that are legal now for `as`, in any order."),
            may!("as", Form::Text, "With `legal`: the principal."),
            may!("roles", ROLES, "With `legal`: the roles of the principal."),
            may!("ledger", Form::Template, "Permits and obligations by kind and key; there may be more."),
            may!("actors", Form::List(&TEXT), "Ids of the machines in the run, in any order, without the root."),
            may!("stuck", Form::Bool, "Whether the run is stuck: no event, answer or timer can advance it."),
            may!(
                "assert",
                CONDITIONS,
                "Conditions over `context`, `input`, `actors`, `ledger`, `run`, `now`, `output` and `effects`."
            ),
        ],
    ],
    ..PLAIN
};

static REPEAT: Object = Object {
    name: "repeat",
    what: "a repetition",
    doc: "Repeats steps.",
    fields: &[&[
        must!("times", Form::Int { min: 1, max: 1000 }, "The number of times."),
        must!("steps", Form::List(&STEP_FORM), "The steps to repeat."),
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

    #[test]
    fn kinds_and_authentications_are_those_of_the_kernel() {
        assert_eq!(super::KINDS, charter_kernel::PrincipalKind::ALL.map(charter_kernel::PrincipalKind::word));
        assert_eq!(super::AUTHS, charter_kernel::Auth::ALL.map(charter_kernel::Auth::word));
    }
}
