//! The charters of the suite: the bundled ones, with their scenarios as routes through them, and
//! random ones.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use charter_format::scenario::{Act, Computed, Scenario, ScenarioStep, Sending, What, read_scenarios};
use charter_format::{ReadOptions, read, read_file};
use charter_journal::StoredCharter;
use charter_kernel::definition::Template;
use charter_kernel::{Definition, Digest, Machine, Principal, Snapshot, Timestamp};
use charter_run::EventInput;
use serde_json::{Value as Json, json};

/// When a run of a random charter starts.
const BEGIN: Timestamp = Timestamp(1_795_255_200_000);
/// Upper limit of the steps of a route.
const MAX_STEPS: usize = 100;

/// A charter in which each rule of the hosts matters after a few inputs: retries, refused answers
/// and timers, a task.
const JOB: &str = "
charter: 1
id: job
roles: {boss: {}}
events: {NOTE: {data: {type: object, properties: {n: {type: integer}}}}, CHANGE: {}, AGAIN: {}, STOP: {by: boss}}
context: {got: null, share: null}
actors:
  worker: {kind: work, retry: {attempts: 3, backoff: 100ms}}
  judge: {kind: human, by: boss}
initial: working
states:
  working:
    invoke:
      src: worker
      id: work
      onDone: {target: reviewing, actions: {assign: {got: '= event.output', share: '= 1 / event.output.n'}}}
      onError: failed
    on: {STOP: failed, NOTE: {actions: {log: '= event.n'}}, CHANGE: {actions: {assign: {got: 7}}}}
    after:
      1h: {actions: {assign: {share: '= 1 / (context.got == null ? 0 : 1)'}}}
      2h: failed
  reviewing:
    invoke: {src: judge, id: review, onDone: done, onError: working}
    on: {NOTE: {actions: {log: '= event.n'}}}
  failed: {on: {AGAIN: working}}
  done: {type: final}
";

/// A charter whose events have unique keys: of one event, of a vote, and of one that may be refused
/// after its key was found free.
const SHOP: &str = "
charter: 1
id: shop
roles: {clerk: {}, boss: {}}
events:
  PAY: {data: {type: object, required: [n], properties: {n: {type: integer}}}, unique: {key: event.n}}
  BACK: {by: [clerk, boss], unique: {key: \"by.id + '/' + string(event.n)\"}}
  NOTE: {}
context: {paid: 0}
initial: open
states:
  open:
    on:
      PAY: {when: 'event.n != 3', actions: {assign: {paid: '= context.paid + event.n'}}}
      BACK: {target: closed, quorum: {count: 2}}
      NOTE: {actions: {log: '= context.paid'}}
  closed: {on: {PAY: open}}
";

/// The keys of `PAY` in `shop` that another run has.
const PAID: [i64; 2] = [0, 2];

/// A charter with plausible inputs.
#[derive(Debug)]
pub(crate) struct Charter {
    pub(crate) name: String,
    pub(crate) machine: Arc<Machine>,
    pub(crate) stored: StoredCharter,
    pub(crate) routes: Vec<Route>,
    /// What another run has accepted before.
    pub(crate) others: Vec<EventInput>,
}

/// Inputs of a run, in an order that makes sense.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) begin: Timestamp,
    pub(crate) input: Json,
    pub(crate) steps: Vec<Step>,
}

/// A step of a route.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) at: Option<Timestamp>,
    pub(crate) what: Input,
}

#[derive(Debug, Clone)]
pub(crate) enum Input {
    Event {
        to: Option<String>,
        r#type: String,
        data: Template,
        by: Principal,
    },
    Answer {
        invocation: String,
        result: Result<Template, Template>,
    },
    /// The next timer fires.
    Tick,
}

/// The charters that are bundled with the program, and two that are called `job` and `shop`.
pub(crate) static NAMED: LazyLock<Vec<Arc<Charter>>> = LazyLock::new(|| {
    let small = |name, text| {
        let document = read(text, name, &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        Charter::plain(name, document.definition).expect("it compiles")
    };
    let pay = |n: i64| EventInput::new("PAY", json!({"n": n}), Principal::new("ann", &["clerk"]));
    let shop = Charter { others: PAID.map(pay).into(), ..small("shop", SHOP) };
    let bundled = ["automaton", "feijoa", "fred", "omen", "sentinel"].map(Charter::bundled);
    bundled.into_iter().chain([small("job", JOB), shop]).map(Arc::new).collect()
});

impl Charter {
    fn bundled(name: &str) -> Charter {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters").join(name);
        let document = read_file(&folder.join("charter.yaml"), &ReadOptions::default());
        let files = std::fs::read_dir(folder.join("scenarios")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        let scenarios = files.iter().flat_map(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            let file = read_scenarios(&text, &file.display().to_string()).unwrap_or_else(|e| panic!("{e}"));
            file.scenarios
        });
        let routes: Vec<Route> = scenarios.filter(|s| s.refused.is_none()).map(|s| route(&s)).collect();
        assert!(!routes.is_empty(), "`{name}` has no scenarios");
        let definition = document.unwrap_or_else(|e| panic!("{e}")).definition;
        Charter::new(name, definition, routes).expect("a bundled charter compiles")
    }

    /// Compiles a charter; `None` if it does not compile.
    fn new(name: &str, definition: Definition, routes: Vec<Route>) -> Option<Charter> {
        let stored = StoredCharter::new(&definition, "case.yaml", "");
        let machine = Arc::new(Machine::compile(definition).ok()?);
        Some(Charter { name: name.into(), machine, stored, routes, others: Vec::new() })
    }

    /// Creates a random charter from bytes; `None` if it does not compile.
    pub(crate) fn random(bytes: &[u8]) -> Option<Charter> {
        let mut definition = charter_test_support::random_definition(bytes);
        // A loop that sets thousands of timers would take minutes in hosts that forget everything.
        let limits = &mut definition.limits;
        (limits.microsteps, limits.timers, limits.actors) =
            (limits.microsteps.min(100), limits.timers.min(30), limits.actors.min(30));
        Charter::plain("random", definition)
    }

    /// Creates a charter whose route is one event of each type.
    fn plain(name: &str, definition: Definition) -> Option<Charter> {
        let roles: Vec<&str> = definition.roles.keys().map(String::as_str).collect();
        let event = |r#type: &String| Input::Event {
            to: None,
            r#type: r#type.clone(),
            data: Template::Literal(json!({"n": 1})),
            by: Principal::new("ann", &roles),
        };
        let steps = definition.events.keys().map(|r#type| Step { at: None, what: event(r#type) }).collect();
        let route = Route { begin: BEGIN, input: json!({}), steps };
        Charter::new(name, definition, vec![route])
    }
}

fn route(scenario: &Scenario) -> Route {
    let input = match scenario.input.as_ref().map(|input| &input.template) {
        Some(Template::Literal(input)) => input.clone(),
        _ => json!({}),
    };
    let mut steps = Vec::new();
    add(&scenario.steps, scenario, &mut steps);
    Route { begin: Timestamp(scenario.at), input, steps }
}

fn add(from: &[ScenarioStep], scenario: &Scenario, steps: &mut Vec<Step>) {
    for step in from {
        match &step.act {
            Act::Send(sending) | Act::Refused(sending, _) if steps.len() < MAX_STEPS => {
                steps.push(Step { at: sending.at.map(Timestamp), what: sent(sending, scenario) });
            }
            Act::Tick(_) if steps.len() < MAX_STEPS => steps.push(Step { at: None, what: Input::Tick }),
            Act::Repeat { times, steps: repeated } => {
                (0..(*times).min(3)).for_each(|_| add(repeated, scenario, steps));
            }
            _ => {}
        }
    }
}

fn sent(sending: &Sending, scenario: &Scenario) -> Input {
    let value = |part: &Option<Computed>| part.as_ref().map_or(Template::Literal(Json::Null), |c| c.template.clone());
    match &sending.what {
        What::Event { kind, data } => {
            let by = scenario.principal(&sending.sender);
            Input::Event { to: sending.to.clone(), r#type: kind.clone(), data: value(data), by }
        }
        What::Done { actor, output } => Input::Answer { invocation: actor.clone(), result: Ok(value(output)) },
        What::Failed { actor, error } => Input::Answer { invocation: actor.clone(), result: Err(value(error)) },
    }
}

/// Computes a value of a route. Of all expressions, only the digest of a variable is computed, as
/// approvals need it; others become text, which a charter refuses.
pub(crate) fn value(template: &Template, snapshot: Option<&Snapshot>) -> Json {
    match template {
        Template::Literal(value) => value.clone(),
        Template::Cel(text) => {
            let name = text.trim().strip_prefix("digest(context.").and_then(|rest| rest.strip_suffix(')'));
            let root = snapshot.and_then(|s| s.actor("root"));
            let found = name.and_then(|name| root?.variable(name));
            found.map_or(json!(text), |value| json!(Digest::of_json(value).hex()))
        }
        Template::List(items) => items.iter().map(|item| value(item, snapshot)).collect(),
        Template::Object(fields) => fields
            .iter()
            .map(|(key, item)| (key.clone(), value(item, snapshot)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}
