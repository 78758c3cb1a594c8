//! The grammar of the charter language, version 1, as one table: per kind of object its keys, their values and a line of docs.

use super::{Field, Form, Object, Pattern};

// Macros, not functions: only struct literals may stand behind a reference in a static.
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
/// A value that may stand alone or in a list.
macro_rules! one_or_many {
    ($what:literal, $($form:expr),+; $item:expr) => {
        Form::OneOf { what: $what, forms: &[$($form),+, Form::List(&$item)] }
    };
}

/// What most objects are: no exclusive keys, no free keys, not empty.
pub(super) const PLAIN: Object = Object {
    name: "",
    what: "",
    doc: "",
    fields: &[],
    one_of: &[],
    open: false,
    may_be_empty: false,
};

// ---- texts of a certain look ----

static ID: Pattern = Pattern {
    what: "a name such as `my-charter`",
    regex: "^[a-z][a-z0-9-]*$",
    test: |text| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    },
    help: "lower-case letters, digits and `-`, beginning with a letter",
};

static VERSION: Pattern = Pattern {
    what: "a semantic version such as `1.2.0`",
    regex: r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
    test: is_version,
    help: "three numbers, such as `1.2.0`, `0.3.1` or `2.0.0-beta.1`",
};

static LENGTH: Pattern = Pattern {
    what: "a length of time such as `2s`",
    regex: r"^[0-9]+(\.[0-9]+)?(w|d|h|m|s|ms)([0-9]+(\.[0-9]+)?(d|h|m|s|ms))*$",
    test: |text| {
        text.ends_with(|c: char| c.is_ascii_alphabetic())
            && matches!(
                crate::read::delay::from_text(text),
                Some(charter_kernel::definition::Delay::Ms(_))
            )
    },
    help: "the host reads it, not the charter: `500ms`, `5s`, `1h30m`, or milliseconds; no name and no expression",
};

static VARIABLE: Pattern = Pattern {
    what: "the name of a variable",
    regex: "^[A-Za-z_][A-Za-z0-9_]*$",
    test: |text| {
        text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    },
    help: "letters, digits and `_`, not beginning with a digit",
};

fn is_version(text: &str) -> bool {
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text
        .split_once('-')
        .map_or((text, None), |(core, pre)| (core, Some(pre)));
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    };
    let word = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(word)
        && build.is_none_or(word)
}

// ---- values that may be written in several ways ----

static ROLE: Form = Form::Name("a role");
/// For keys that the host reads: a length of time without names and expressions.
static LENGTH_OF_TIME: Form = Form::OneOf {
    what: "a length of time such as `2s`, or milliseconds",
    forms: &[
        Form::Pattern(&LENGTH),
        Form::Int {
            least: 0,
            most: (1 << 53) - 1,
        },
    ],
};
static ROLES: Form = one_or_many!("a role or a list of roles", Form::Name("a role"); ROLE);
static RULE: Form = Form::Name("a rule");
static COMPUTED: Form = Form::Computed;
static TEXT: Form = Form::Text;
static TAGS: Form = one_or_many!("a word or a list of words", Form::Text; TEXT);
static STATE_NAME: Form = Form::Name("a state");
static TARGETS: Form =
    one_or_many!("a target or a list of targets", Form::Name("a state"); STATE_NAME);
static STATE_NAMES: Form =
    one_or_many!("a state or a list of states", Form::Name("a state"); STATE_NAME);
static TEMPLATE: Form = Form::Template;

static TRANSITIONS: Form = one_or_many!("a transition (a target, an object, or a list of them)", Form::Name("a state"), Form::Object(&TRANSITION); TRANSITION_ITEM);
static TRANSITION_ITEM: Form = Form::OneOf {
    what: "a transition",
    forms: &[Form::Name("a state"), Form::Object(&TRANSITION)],
};
static ON_MAP: Form = Form::Map {
    key: "event",
    of: &TRANSITIONS,
};
static ON: Form = one_or_many!("an object with a key for each event", Form::Map { key: "event", of: &TRANSITIONS }; ON_MAP);
static AFTER_MAP: Form = Form::Map {
    key: "delay",
    of: &TRANSITIONS,
};
static AFTER: Form = one_or_many!("an object with a key for each delay", Form::Map { key: "delay", of: &TRANSITIONS }; AFTER_MAP);

static BLOCK: Form = one_or_many!("an action (a name, an object, or a list of them)", Form::Name("an action"), Form::Object(&ACTION); ACTION_ITEM);
static ACTION_ITEM: Form = Form::OneOf {
    what: "an action",
    forms: &[Form::Name("an action"), Form::Object(&ACTION)],
};
static BLOCKS: Form = one_or_many!("an action (a name, an object, or a list of them)", Form::Name("an action"), Form::Object(&ACTION); BLOCKS_ITEM);
static BLOCKS_ITEM: Form = one_or_many!("an action or a list of actions", Form::Name("an action"), Form::Object(&ACTION); ACTION_ITEM);

static GUARD: Form = Form::OneOf {
    what: "the name of a guard, or a combination of guards",
    forms: &[Form::Name("a guard"), Form::Object(&COMBINATION)],
};
static GUARD_ENTRY: Form = Form::OneOf {
    what: "an expression, or a combination of guards",
    forms: &[Form::Cel, Form::Object(&COMBINATION)],
};
static INITIAL: Form =
    one_or_many!("a state", Form::Name("a state"), Form::Object(&INITIAL_OBJECT); STATE_NAME);
static RAISED: Form = Form::OneOf {
    what: "an event type, or an object with `type` and `data`",
    forms: &[Form::Text, Form::Object(&EVENT_TO_RAISE)],
};
static BRANCH_FORM: Form = Form::Object(&BRANCH);
static BRANCHES: Form = one_or_many!("a list of branches", Form::Object(&BRANCH); BRANCH_FORM);
static INVOKE_FORM: Form = Form::Object(&INVOKE);
static INVOKES: Form =
    one_or_many!("an invocation or a list of them", Form::Object(&INVOKE); INVOKE_FORM);
static REQUIRE_FORM: Form = Form::Object(&REQUIRE);
static REQUIRES: Form = one_or_many!("what the ledger must hold (an object or a list of them)", Form::Object(&REQUIRE); REQUIRE_FORM);
static COUNT: Form = Form::Int {
    least: 1,
    most: u32::MAX as i64,
};
static QUORUM: Form = Form::OneOf {
    what: "a number of people, or an object with `count` and `of`",
    forms: &[
        Form::Int {
            least: 1,
            most: u32::MAX as i64,
        },
        Form::Object(&QUORUM_OBJECT),
    ],
};
static SCHEMA: Form = Form::Schema;
static DELAY: Form = Form::Delay;
static STATE_FORM: Form = Form::Object(&STATE);

// ---- the document ----

/// A charter.
pub(crate) static CHARTER: Object = Object {
    name: "charter",
    what: "a charter",
    doc: "A charter: statecharts plus roles, evidence, permits and approvals.",
    fields: &[
        &[
            must!(
                "charter",
                Form::Int { least: 1, most: 1 },
                "Version of the charter language: 1."
            ),
            must!(
                "id",
                Form::Pattern(&ID),
                "Name of the charter: lower-case letters, digits and `-`."
            ),
            may!(
                "version",
                Form::Pattern(&VERSION),
                "Semantic version of this charter."
            ),
            may!("title", Form::Text, "A line for people."),
            may!("description", Form::Text, "More for people."),
            may!(
                "strict",
                Form::Bool,
                "Refuse what SCXML would ignore: unhandled, undeclared and ill-formed events (default true)."
            ),
            may!(
                "roles",
                Form::Map {
                    key: "role",
                    of: &Form::Object(&ROLE_ENTRY)
                },
                "Who may act. `system` and `operator` always exist."
            ),
            may!(
                "types",
                Form::Map {
                    key: "type",
                    of: &SCHEMA
                },
                "Named JSON Schemas; `#/types/NAME` refers to them. `context` is that of the context."
            ),
            may!(
                "events",
                Form::Map {
                    key: "event",
                    of: &Form::Object(&EVENT)
                },
                "Every event that a person or program may send."
            ),
            may!(
                "guards",
                Form::Map {
                    key: "guard",
                    of: &GUARD_ENTRY
                },
                "Named conditions."
            ),
            may!(
                "actions",
                Form::Map {
                    key: "action",
                    of: &BLOCK
                },
                "Named actions."
            ),
            may!(
                "delays",
                Form::Map {
                    key: "delay",
                    of: &DELAY
                },
                "Named lengths of time."
            ),
            may!(
                "actors",
                Form::Map {
                    key: "actor",
                    of: &Form::Object(&ACTOR)
                },
                "What may be invoked outside the run."
            ),
            may!(
                "ledger",
                Form::Map {
                    key: "kind",
                    of: &Form::Object(&LEDGER_ENTRY)
                },
                "Kinds of permits and obligations."
            ),
            may!(
                "rules",
                Form::Map {
                    key: "rule",
                    of: &TEMPLATE
                },
                "Rules that refusals name, each with the sentence that explains a refusal; one that begins with `= ` is an expression."
            ),
            may!(
                "machines",
                Form::Map {
                    key: "machine",
                    of: &Form::Object(&MACHINE)
                },
                "Statecharts that a run can spawn or invoke."
            ),
            may!(
                "interlocks",
                Form::List(&Form::Object(&INTERLOCK)),
                "What must hold across the actors of a run after every event."
            ),
            may!(
                "limits",
                Form::Object(&LIMITS),
                "Bounds on what one event may cost."
            ),
            may!(
                "properties",
                Form::List(&Form::Object(&PROPERTY)),
                "What `charter check` has to show."
            ),
            may!(
                "stream",
                Form::Object(&STREAM),
                "How recorded or arriving items become events."
            ),
            may!(
                "statechart",
                Form::Object(&STATECHART),
                "Takes the statechart from another file."
            ),
            may!(
                "projections",
                Form::Map {
                    key: "view",
                    of: &Form::Object(&PROJECTION)
                },
                "SQL views that a journal offers over what runs emit."
            ),
            may!("meta", Form::Any, "Free data for tools."),
        ],
        CHART,
        STATE_BODY,
    ],
    ..PLAIN
};

static CHART: &[Field] = &[
    may!(
        "input",
        Form::Schema,
        "JSON Schema (2020-12) of what it starts with."
    ),
    may!(
        "context",
        Form::Map {
            key: "variable",
            of: &TEMPLATE
        },
        "Variables with their first values."
    ),
    may!("output", Form::Template, "What it gives when it is done."),
];

static STATE_BODY: &[Field] = &[
    may!(
        "type",
        Form::Word(&["atomic", "compound", "parallel", "final", "history"]),
        "Kind of state; default: compound with `states`, else atomic."
    ),
    may!(
        "initial",
        INITIAL,
        "Where a compound state starts (default: its first child)."
    ),
    may!(
        "states",
        Form::Map {
            key: "state",
            of: &STATE_FORM
        },
        "Child states; their order is meaning."
    ),
    may!(
        "on",
        ON,
        "Transitions by event: a type, `prefix.*`, or `*`."
    ),
    may!("always", TRANSITIONS, "Transitions that need no event."),
    may!(
        "after",
        AFTER,
        "Transitions after a time: `24h`, a name from `delays`, milliseconds, or `= CEL`."
    ),
    may!("entry", BLOCKS, "Actions on entry."),
    may!("exit", BLOCKS, "Actions on exit."),
    may!(
        "invoke",
        INVOKES,
        "Actors that work while the state is active."
    ),
    may!(
        "onDone",
        TRANSITIONS,
        "Transitions when a final child (or every region) completes the state."
    ),
    may!(
        "data",
        Form::Map {
            key: "variable",
            of: &TEMPLATE
        },
        "Variables bound on the first entry (imports)."
    ),
    may!(
        "tags",
        TAGS,
        "Words for people and tools, such as `waiting`."
    ),
];

static STATE_HEAD: &[Field] = &[
    may!(
        "id",
        Form::Text,
        "A name that `#id` targets find anywhere in the statechart."
    ),
    may!("description", Form::Text, "What it is for."),
    may!("meta", Form::Any, "Free data for tools."),
];

/// A state.
static STATE: Object = Object {
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
            may!(
                "target",
                TARGETS,
                "With `type: history`: where to go before its parent was ever left."
            ),
            may!(
                "actions",
                BLOCK,
                "With `type: history`: run when `target` is taken."
            ),
        ],
    ],
    may_be_empty: true,
    ..PLAIN
};

static MACHINE: Object = Object {
    name: "machine",
    what: "a machine",
    doc: "A statechart that a run can spawn or invoke.",
    fields: &[
        STATE_HEAD,
        &[may!(
            "types",
            Form::Object(&MACHINE_TYPES),
            "The JSON Schema of its context."
        )],
        CHART,
        STATE_BODY,
    ],
    ..PLAIN
};

static MACHINE_TYPES: Object = Object {
    name: "machineTypes",
    what: "the types of a machine",
    doc: "The JSON Schema of a machine's context.",
    fields: &[&[must!(
        "context",
        Form::Schema,
        "JSON Schema of the context."
    )]],
    ..PLAIN
};

static STATECHART: Object = Object {
    name: "statechart",
    what: "a statechart elsewhere",
    doc: "Takes the statechart from another file.",
    fields: &[&[
        must!("import", Form::Text, "The file, relative to this one."),
        must!(
            "format",
            Form::Word(&["xstate", "scxml"]),
            "How it is written."
        ),
    ]],
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
        may!(
            "whilePaused",
            Form::Bool,
            "Accepted while the run is paused too: what ends work safely (default false)."
        ),
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
        must!(
            "kind",
            Form::Text,
            "Which executor of the host runs it: `model`, `tool`, `exec`, `http`, `human`, ..."
        ),
        may!("input", Form::Schema, "JSON Schema of the input."),
        may!(
            "output",
            Form::Schema,
            "JSON Schema of the output; an answer that does not fit is refused."
        ),
        may!(
            "timeout",
            Form::Delay,
            "How long an invocation may take, all attempts together."
        ),
        may!(
            "attemptTimeout",
            LENGTH_OF_TIME,
            "How long one attempt may take (default: what its kind allows)."
        ),
        may!(
            "retry",
            Form::Object(&RETRY),
            "When it is tried again after a failure that may pass."
        ),
        may!(
            "idempotent",
            Form::Bool,
            "Doing it twice under the same key is like doing it once: if the host stops meanwhile, it is asked again."
        ),
        may!(
            "as",
            ROLES,
            "The roles under which it sends events to its run, if it does."
        ),
        may!(
            "id",
            Form::Text,
            "The name under which it sends them (default: its own)."
        ),
    ]],
    open: true,
    ..PLAIN
};

static RETRY: Object = Object {
    name: "retry",
    what: "a plan for further attempts",
    doc: "Further attempts, each after a longer pause.",
    fields: &[&[
        may!(
            "attempts",
            Form::Int {
                least: 1,
                most: 100
            },
            "How often it is tried in all (default 1)."
        ),
        may!(
            "backoff",
            LENGTH_OF_TIME,
            "The pause after the first attempt (default 1s)."
        ),
        may!(
            "factor",
            Form::Any,
            "By how much the pause grows each time, 1 to 10 (default 2)."
        ),
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
    fields: &[&[may!(
        "description",
        Form::Text,
        "What the permit allows or the obligation demands."
    )]],
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
            Form::Map {
                key: "column",
                of: &Form::Text
            },
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
        may!(
            "given",
            Form::Name("an actor"),
            "Table: id of the actor whose state is looked up."
        ),
        may!(
            "machine",
            Form::Name("a machine"),
            "Table: the machine whose actors are judged."
        ),
        may!(
            "allow",
            Form::Map {
                key: "state",
                of: &STATE_NAMES
            },
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
        may!(
            "microsteps",
            COUNT,
            "Microsteps that one event may take (default 1000)."
        ),
        may!(
            "expression",
            Form::Int {
                least: 1,
                most: i64::MAX
            },
            "Steps of fuel for one expression (default 10000)."
        ),
        may!(
            "actors",
            COUNT,
            "Actors in a run, finished ones included (default 10000)."
        ),
        may!("timers", COUNT, "Timers pending in a run (default 10000)."),
        may!(
            "data",
            Form::Int {
                least: 1,
                most: i64::MAX
            },
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
        may!(
            "unless-before",
            Form::Text,
            "With `never`: or in none before an accepted event of this type."
        ),
        may!("always", Form::Cel, "Holds in every reachable snapshot."),
        may!(
            "eventually",
            Form::Cel,
            "Holds sooner or later on every path, under fair answers of effects."
        ),
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
        may!(
            "input",
            Form::Computed,
            "Input of a run that an item opens."
        ),
        may!(
            "clocks",
            Form::Map {
                key: "clock",
                of: &COMPUTED
            },
            "Further times of an item that may be taken as its time, by name (`--clock NAME`)."
        ),
        may!(
            "duplicate",
            RULE,
            "The rule that is named when an item comes a second time."
        ),
        may!(
            "summary",
            Form::Map {
                key: "name",
                of: &COMPUTED
            },
            "What a report says of a run beside its state and ledger: expressions over the run."
        ),
    ]],
    ..PLAIN
};

// ---- transitions ----

static TRANSITION: Object = Object {
    name: "transition",
    what: "a transition",
    doc: "A transition. What selects it is said by where it stands.",
    fields: &[&[
        may!(
            "target",
            TARGETS,
            "`sibling`, `sibling.child`, `.child`, `#id`, `#id.child`; a list for regions; none: stays."
        ),
        may!(
            "guard",
            GUARD,
            "A name from `guards`, or `{and: []}`, `{or: []}`, `{not: }`."
        ),
        may!(
            "when",
            Form::Cel,
            "A condition in CEL; both given: both must hold."
        ),
        may!("by", ROLES, "Roles that may take it."),
        may!(
            "approves",
            Form::Cel,
            "CEL of the value whose digest the sender must name in `event.digest`."
        ),
        may!("requires", REQUIRES, "What the ledger must hold."),
        may!(
            "quorum",
            QUORUM,
            "How many different principals have to send the event."
        ),
        may!(
            "refuse",
            RULE,
            "An entry of `rules`: the event is refused in its name if this transition is selected."
        ),
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

static COMBINATION: Object = Object {
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

static REQUIRE: Object = Object {
    name: "require",
    what: "what the ledger must hold",
    doc: "What the ledger must hold for a transition.",
    fields: &[&[
        may!(
            "use",
            Form::Object(&USE),
            "A live permit; one use is counted if the transition is taken."
        ),
        may!("open", Form::Object(&REQUIRE_OPEN), "An open obligation."),
        may!(
            "none",
            Form::Object(&REQUIRE_NONE),
            "No open obligation of the kind."
        ),
    ]],
    one_of: &["use", "open", "none"],
    ..PLAIN
};

static USE: Object = Object {
    name: "use",
    what: "a permit",
    doc: "A live permit.",
    fields: &[&[
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
        must!("key", Form::Template, "Which one."),
        may!(
            "when",
            Form::Cel,
            "CEL over the permit, bound to `entry`: is this use within its scope?"
        ),
        may!(
            "rules",
            Form::Object(&PERMIT_RULES),
            "The rules that refusals name, by what failed."
        ),
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
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
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
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
        may!("rule", RULE, "The rule that a refusal names."),
    ]],
    ..PLAIN
};

static QUORUM_OBJECT: Object = Object {
    name: "quorum",
    what: "a quorum",
    doc: "How many different principals have to send the event.",
    fields: &[&[
        must!("count", COUNT, "How many."),
        may!("of", ROLE, "The role they must have."),
    ]],
    ..PLAIN
};

static INITIAL_OBJECT: Object = Object {
    name: "initial",
    what: "an initial transition",
    doc: "Where a compound state starts, with actions on the way.",
    fields: &[&[
        must!("target", TARGETS, "Where to go."),
        may!(
            "actions",
            BLOCK,
            "Run after the entry of the state and before that of its children."
        ),
    ]],
    ..PLAIN
};

static INVOKE: Object = Object {
    name: "invoke",
    what: "an invocation",
    doc: "An actor that works while the state is active.",
    fields: &[&[
        may!(
            "src",
            Form::Name("an actor or a machine"),
            "An entry of `actors` or of `machines`."
        ),
        may!(
            "machine",
            Form::Name("a machine"),
            "An entry of `machines`."
        ),
        may!("id", Form::Text, "Id of the invocation (default: `src`)."),
        may!(
            "idLocation",
            Form::Text,
            "A context variable that receives the id (imports)."
        ),
        may!(
            "input",
            Form::Template,
            "Input, evaluated when the invocation starts."
        ),
        may!("timeout", Form::Delay, "Overrides the actor's."),
        may!("onDone", TRANSITIONS, "Transitions on its answer."),
        may!("onError", TRANSITIONS, "Transitions on its failure."),
        may!(
            "finalize",
            BLOCK,
            "Run on every event that comes from the invoked machine (SCXML)."
        ),
        may!(
            "autoforward",
            Form::Bool,
            "Pass a copy of every external event on to the invoked machine (SCXML)."
        ),
    ]],
    one_of: &["src", "machine"],
    ..PLAIN
};

// ---- actions ----

static ACTION: Object = Object {
    name: "action",
    what: "an action",
    doc: "Something a step does: exactly one of these keys.",
    fields: &[&[
        may!(
            "assign",
            Form::Map {
                key: "path",
                of: &TEMPLATE
            },
            "Sets context variables: `name`, `name.field`, `name[CEL]`."
        ),
        may!(
            "raise",
            RAISED,
            "An event at the end of the internal queue."
        ),
        may!(
            "send",
            Form::Object(&SEND),
            "An event for an actor of the run, now or later."
        ),
        may!(
            "cancel",
            Form::Template,
            "Takes back a delayed `send`, by its id."
        ),
        may!("emit", RAISED, "An event for subscribers outside the run."),
        may!("log", Form::Template, "A line for people."),
        may!("label", Form::Text, "With `log`: a word in front of it."),
        may!(
            "spawn",
            Form::Object(&SPAWN),
            "Starts a machine as an actor of the run."
        ),
        may!("stop", Form::Template, "Ends a spawned actor, by its id."),
        may!("if", BRANCHES, "The first branch whose `when` holds."),
        may!(
            "each",
            Form::Object(&EACH),
            "Runs a block for each item of a list."
        ),
        may!("grant", Form::Object(&GRANT), "Gives a permit."),
        may!(
            "revoke",
            Form::Object(&REVOKE),
            "Ends a permit, or all of a kind."
        ),
        may!("open", Form::Object(&OPEN), "Opens an obligation."),
        may!(
            "close",
            Form::Object(&CLOSE),
            "Fulfils an obligation, or all of a kind."
        ),
    ]],
    one_of: &[
        "assign", "raise", "send", "cancel", "emit", "log", "spawn", "stop", "if", "each", "grant",
        "revoke", "open", "close",
    ],
    ..PLAIN
};

static EVENT_TO_RAISE: Object = Object {
    name: "eventToRaise",
    what: "an event",
    doc: "An event.",
    fields: &[&[
        must!("type", Form::Template, "Event type."),
        may!("data", Form::Template, "Event data."),
    ]],
    ..PLAIN
};

static SEND: Object = Object {
    name: "send",
    what: "an event to send",
    doc: "An event for an actor of the run, now or later.",
    fields: &[&[
        may!(
            "to",
            Form::Template,
            "An actor id, `parent` or `self` (default)."
        ),
        must!("type", Form::Template, "Event type."),
        may!("data", Form::Template, "Event data."),
        may!("delay", Form::Delay, "How long to wait."),
        may!("id", Form::Template, "A name by which `cancel` finds it."),
        may!(
            "idLocation",
            Form::Text,
            "A context variable that receives the id (imports)."
        ),
        may!(
            "processor",
            Form::Template,
            "The event processor's name (imports)."
        ),
    ]],
    ..PLAIN
};

static SPAWN: Object = Object {
    name: "spawn",
    what: "what to spawn",
    doc: "Starts a machine (or a service) as an actor of the run that outlives the state.",
    fields: &[&[
        must!(
            "machine",
            Form::Name("a machine"),
            "An entry of `machines` or of `actors`."
        ),
        must!("id", Form::Template, "Id of the new actor."),
        may!("input", Form::Template, "Its input."),
    ]],
    ..PLAIN
};

static BRANCH: Object = Object {
    name: "branch",
    what: "a branch",
    doc: "A branch of `if`; without `when`: always.",
    fields: &[&[
        may!("when", Form::Cel, "A condition in CEL."),
        must!("do", BLOCK, "What to do."),
    ]],
    ..PLAIN
};

static EACH: Object = Object {
    name: "each",
    what: "a loop",
    doc: "Runs a block for each item of a list (or each key of a map).",
    fields: &[&[
        must!("in", Form::Cel, "CEL of the list."),
        must!("as", Form::Pattern(&VARIABLE), "Name of the item."),
        may!(
            "index",
            Form::Pattern(&VARIABLE),
            "Name of the position (of the key, for a map)."
        ),
        must!("do", BLOCK, "What to do."),
    ]],
    ..PLAIN
};

static GRANT: Object = Object {
    name: "grant",
    what: "a permit",
    doc: "Gives a permit.",
    fields: &[&[
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
        must!("key", Form::Template, "Which one; used once in a run."),
        may!(
            "uses",
            Form::Template,
            "How often it may be used (default: without limit)."
        ),
        may!("expires", Form::Template, "Until when."),
        may!(
            "data",
            Form::Template,
            "Its scope and whatever else belongs to it."
        ),
    ]],
    ..PLAIN
};

static REVOKE: Object = Object {
    name: "revoke",
    what: "a permit",
    doc: "Ends a permit, or all of a kind.",
    fields: &[&[
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
        may!("key", Form::Template, "Which one."),
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
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
        must!("key", Form::Template, "Which one; used once in a run."),
        may!(
            "due",
            Form::Template,
            "When it is overdue: a time from now such as `24h`, or a timestamp."
        ),
        may!("data", Form::Template, "Whatever belongs to it."),
    ]],
    ..PLAIN
};

static CLOSE: Object = Object {
    name: "close",
    what: "an obligation",
    doc: "Fulfils an obligation, or all of a kind.",
    fields: &[&[
        must!(
            "kind",
            Form::Name("an entry of `ledger`"),
            "An entry of `ledger`."
        ),
        may!("key", Form::Template, "Which one."),
        may!("all", Form::Bool, "`true`: all of the kind."),
        may!("as", Form::Template, "How it was fulfilled."),
    ]],
    one_of: &["key", "all"],
    ..PLAIN
};
