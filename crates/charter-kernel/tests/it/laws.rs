//! Properties of generated charters and streams: snapshots survive the round trip through JSON,
//! refusals change nothing, the same envelopes give the same bytes, and nothing panics.

use charter_kernel::definition::{
    Action, ActorDecl, After, Chart, Delay, EventDecl, Initial, Invoke, LedgerDecl, On, Require, State, StateKind,
    Template, Transition,
};
use charter_kernel::{Definition, Digest, Envelope, Event, Machine, Principal, Snapshot};
use charter_test_support::cases;
use indexmap::IndexMap;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// The bytes that a charter is generated from, consumed from the front: shrinking stays simple.
struct Dice<'d>(&'d [u8], usize);

impl Dice<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        let value = self.0.get(self.1).copied().unwrap_or(0) as usize;
        self.1 += 1;
        value % sides.max(1)
    }
}

const EVENTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

fn cel(text: &str) -> Template {
    Template::Cel(text.into())
}

fn action(dice: &mut Dice<'_>) -> Action {
    let assign = |name: &str, text: &str| Action::Assign(IndexMap::from([(name.to_string(), cel(text))]));
    match dice.roll(16) {
        0 => assign("a", "context.a + 1"),
        1 => assign("a", "context.a / 2"),
        2 => assign("a", "context.a * 3 - 7"),
        3 => assign("b", "double(context.b) * 1.5"),
        4 => assign("b", "event.n"),
        5 => assign("list", "(context.list + [context.a]).filter(x, x != 3)"),
        6 => assign("list[0]", "context.b"),
        7 => Action::Raise {
            r#type: Template::Literal(json!("e0")),
            data: Some(Template::Object(IndexMap::from([("n".to_string(), cel("context.a"))]))),
        },
        8 => Action::Send(charter_kernel::definition::Send {
            r#type: Template::Literal(json!("e1")),
            data: Some(Template::Object(IndexMap::from([("n".to_string(), cel("context.b"))]))),
            delay: Some(Delay::Ms(50)),
            id: Some(Template::Literal(json!("d"))),
            ..Default::default()
        }),
        9 => Action::Cancel(Template::Literal(json!("d"))),
        10 => Action::Log { value: cel("context.b"), label: None },
        11 => Action::Grant {
            kind: "token".into(),
            key: cel("string(context.a)"),
            uses: Some(Template::Literal(json!(2))),
            expires: Some(Template::Literal(json!("1s"))),
            data: None,
        },
        12 => Action::Open {
            kind: "duty".into(),
            key: cel("string(context.a)"),
            due: Some(Template::Literal(json!("300ms"))),
            data: Some(cel("context.b")),
        },
        13 => Action::Close { kind: "duty".into(), key: None, r#as: Some(cel("context.a")) },
        14 => {
            Action::Spawn { machine: "kid".into(), id: cel("'k' + string(context.a)"), input: Some(cel("context.b")) }
        }
        _ => assign("b", "context.b == 0 ? 0.5 : double(context.a) / 4.0"),
    }
}

fn transition(dice: &mut Dice<'_>, states: usize, event: bool) -> Transition {
    let mut t = Transition::default();
    if dice.roll(5) > 0 {
        t.target = vec![format!("#s{}", dice.roll(states))];
    }
    t.when = match dice.roll(6) {
        0 if event => Some("event.n > 0".into()),
        1 => Some("context.a % 2 == 0".into()),
        2 => Some("context.b < 10.0".into()),
        3 => Some("size(context.list) < 4".into()),
        _ if !event => Some("context.a < 5".into()),
        _ => None,
    };
    if event && dice.roll(8) == 0 {
        t.requires = vec![Require::Use {
            kind: "token".into(),
            key: cel("string(context.a)"),
            when: None,
            rules: indexmap::IndexMap::new(),
        }];
    }
    t.reenter = dice.roll(4) == 0;
    t.actions = (0..dice.roll(3)).map(|_| action(dice)).collect();
    if !event {
        // Usually ends the loop of eventless transitions.
        t.actions.push(Action::Assign(IndexMap::from([("a".to_string(), cel("context.a + 1"))])));
    }
    t
}

fn state(dice: &mut Dice<'_>, next: &mut usize, budget: usize, depth: usize, states: usize) -> State {
    let mut s = State { id: Some(format!("s{}", *next)), ..State::default() };
    *next += 1;
    let children = if depth == 0 {
        2 + dice.roll(3)
    } else if depth < 3 {
        dice.roll(3)
    } else {
        0
    };
    for i in 0..children {
        if *next >= budget {
            break;
        }
        s.states.insert(format!("c{i}"), state(dice, next, budget, depth + 1, states));
    }
    if s.states.is_empty() {
        if depth > 1 && dice.roll(5) == 0 {
            s.kind = StateKind::Final;
            return s;
        }
    } else if depth > 0 && dice.roll(3) == 0 {
        s.kind = StateKind::Parallel;
    } else {
        s.kind = StateKind::Compound;
        if dice.roll(3) == 0 {
            let kind = if dice.roll(2) == 0 { StateKind::Shallow } else { StateKind::Deep };
            let target = vec![s.states.keys().next().unwrap().clone()];
            let id = Some(format!("s{}", *next));
            if *next < budget {
                *next += 1;
                s.states.insert(
                    "h".into(),
                    State { id, kind, initial: Some(Initial { target, actions: vec![] }), ..State::default() },
                );
            }
        }
    }
    for _ in 0..dice.roll(3) {
        let event = EVENTS[dice.roll(4)].to_string();
        s.on.push(On {
            events: vec![event],
            transitions: (0..=dice.roll(2)).map(|_| transition(dice, states, true)).collect(),
        });
    }
    if dice.roll(4) == 0 {
        s.always.push(transition(dice, states, false));
    }
    if dice.roll(4) == 0 {
        let ms = 100 * (1 + dice.roll(5) as u64);
        s.after.push(After {
            key: format!("{ms}"),
            delay: Delay::Ms(ms),
            transitions: vec![transition(dice, states, true)],
        });
    }
    if dice.roll(5) == 0 {
        let id = Some(format!("i{next}"));
        let (on_done, on_error) = (vec![transition(dice, states, false)], vec![transition(dice, states, false)]);
        let src = if dice.roll(3) == 0 { "kid" } else { "work" };
        s.invoke.push(Invoke {
            src: src.into(),
            id,
            input: Some(cel("context.b")),
            on_done,
            on_error,
            ..Invoke::default()
        });
    }
    s.entry = (0..dice.roll(2)).map(|_| vec![action(dice)]).collect();
    s.exit = (0..dice.roll(2)).map(|_| vec![action(dice)]).collect();
    s
}

fn definition(dice: &mut Dice<'_>) -> Definition {
    let strict = dice.roll(2) == 0;
    let states = 4 + dice.roll(12);
    let mut next = 0;
    let mut root = state(dice, &mut next, states, 0, states);
    root.id = None;
    // Targets are drawn from all state ids; states that were not generated are added here.
    for i in 0..states {
        if i == 0 || i >= next {
            root.states.insert(format!("x{i}"), State { id: Some(format!("s{i}")), ..State::default() });
        }
    }
    let context = [("a", json!(1)), ("b", json!(0.5)), ("list", json!([1]))];
    let kid = State {
        states: IndexMap::from([
            (
                "k".to_string(),
                State {
                    on: vec![On {
                        events: vec!["e2".into()],
                        transitions: vec![Transition { target: vec!["f".into()], ..Transition::default() }],
                    }],
                    ..State::default()
                },
            ),
            ("f".to_string(), State { kind: StateKind::Final, ..State::default() }),
        ]),
        ..State::default()
    };
    Definition {
        charter: 1,
        id: "generated".into(),
        strict,
        events: EVENTS.iter().map(|e| ((*e).to_string(), EventDecl::default())).collect(),
        actors: IndexMap::from([(
            "work".to_string(),
            ActorDecl { kind: "exec".into(), timeout: Some(Delay::Ms(700)), ..ActorDecl::default() },
        )]),
        ledger: IndexMap::from([
            ("token".to_string(), LedgerDecl::default()),
            ("duty".to_string(), LedgerDecl::default()),
        ]),
        machines: IndexMap::from([(
            "kid".to_string(),
            Chart { context: IndexMap::from([("n".to_string(), cel("input"))]), state: kid, ..Chart::default() },
        )]),
        root: Chart {
            context: context.into_iter().map(|(k, v)| (k.to_string(), Template::Literal(v))).collect(),
            state: root,
            ..Chart::default()
        },
        ..Definition::default()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Send(usize, Json),
    Wait(i64),
    Answer(bool, Json),
    Control(&'static str),
}

fn number() -> impl Strategy<Value = Json> {
    prop_oneof![
        (-5i64..5).prop_map(Json::from),
        (-5i64..5).prop_map(|i| json!(i as f64)),
        (-40i64..40).prop_map(|i| json!(i as f64 / 8.0)),
        Just(json!(1e17)),
        Just(json!(-0.0)),
        Just(json!(9007199254740991i64)),
        Just(json!("text")),
        Just(Json::Null),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0usize..4, number()).prop_map(|(e, n)| Op::Send(e, json!({"n": n}))),
        2 => (0i64..800).prop_map(Op::Wait),
        2 => (any::<bool>(), number()).prop_map(|(ok, n)| Op::Answer(ok, n)),
        1 => prop_oneof![Just("charter.pause"), Just("charter.resume"), Just("done.invoke.work")].prop_map(Op::Control),
    ]
}

/// Returns the snapshot after a round trip through JSON text, as a host would store it.
fn trip(machine: &Machine, snapshot: &Snapshot) -> Snapshot {
    let text = machine.snapshot_json(snapshot).to_string();
    machine.restore(&serde_json::from_str(&text).unwrap()).expect("a snapshot can be restored")
}

/// Runs a stream; with `restore`, every snapshot goes through JSON text before it is used. Returns
/// what a journal would contain.
fn run(machine: &Machine, ops: &[Op], restore: bool) -> Vec<(String, Digest)> {
    let mut out = Vec::new();
    let start = Envelope::host(0, Event::Start { input: json!({}) }, 0);
    let mut snapshot = match machine.start("r", &start) {
        Ok(step) => step.snapshot,
        Err(refusal) => return vec![(refusal.code.to_string(), Digest::default())],
    };
    let (mut seq, mut at) = (0u64, 0i64);
    for op in ops {
        let events = match op {
            Op::Send(e, data) => vec![Event::External { r#type: EVENTS[*e].into(), data: data.clone() }],
            Op::Control(kind) => vec![Event::External { r#type: (*kind).into(), data: json!({}) }],
            Op::Wait(ms) => {
                at += ms;
                let due = snapshot.timers().iter().filter(|t| t.due.0 <= at).take(3);
                due.map(|t| Event::Timer { timer: t.id.to_string(), generation: t.generation }).collect()
            }
            Op::Answer(ok, value) => {
                let first =
                    snapshot.invocations().find(|(_, i)| !i.is_machine()).map(|(_, i)| (i.id.to_string(), i.effect));
                let (invocation, effect) = first.map_or(("work".into(), None), |(id, e)| (id, Some(e)));
                let value = value.clone();
                vec![if *ok {
                    Event::Done { invocation, effect, output: value }
                } else {
                    Event::Failed { invocation, effect, error: value }
                }]
            }
        };
        for event in events {
            seq += 1;
            let envelope = Envelope {
                seq,
                to: None,
                event,
                by: Principal::new("op", &["operator"]),
                at: at.into(),
                expected_seq: None,
            };
            if restore {
                let back = trip(machine, &snapshot);
                assert_eq!(back, snapshot);
                snapshot = back;
            }
            let before = machine.snapshot_digest(&snapshot);
            match machine.step(&snapshot, &envelope) {
                Ok(step) => {
                    let names = machine.transition_names(&step, "root").collect::<Vec<_>>().join(" ");
                    let effects: Vec<String> = step.effects.iter().map(|e| e.json("r").to_string()).collect();
                    out.push((
                        format!("{} {names} {}", step.verdict.word(), effects.join(" ")),
                        machine.snapshot_digest(&step.snapshot),
                    ));
                    snapshot = step.snapshot;
                }
                Err(refusal) => {
                    assert_eq!(before, machine.snapshot_digest(&snapshot), "refused is unchanged");
                    let story = machine.explain(Some(&snapshot), &envelope, &refusal);
                    assert_eq!(story.code, refusal.code);
                    assert!(!story.message.is_empty());
                    out.push((refusal.code.to_string(), before));
                }
            }
            let _ = machine.is_stuck(&snapshot);
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60, 300), ..ProptestConfig::default() })]

    #[test]
    fn a_snapshot_is_its_json_and_the_same_stream_gives_the_same_bytes(bytes in proptest::collection::vec(any::<u8>(), 40..400), ops in proptest::collection::vec(op(), 1..25)) {
        let definition = definition(&mut Dice(&bytes, 0));
        let machine = match Machine::compile(definition) {
            Ok(machine) => machine,
            // A generated charter can be invalid, for example because the ids of invocations clash.
            Err(problems) => {
                prop_assert!(problems.iter().all(|p| ["duplicate-invocation", "bad-target"].contains(&p.code)), "{problems:?}");
                return Ok(());
            }
        };
        let plain = run(&machine, &ops, false);
        prop_assert_eq!(&plain, &run(&machine, &ops, true), "restoring between steps changes nothing");
        // Another machine of the same charter returns the same step, and so does the algorithm
        // without the fast path.
        let again = Machine::compile(machine.definition().clone()).unwrap().only_algorithm();
        prop_assert_eq!(&plain, &run(&again, &ops, false), "the algorithm alone");
    }

    #[test]
    fn a_definition_survives_its_own_json(bytes in proptest::collection::vec(any::<u8>(), 40..400)) {
        let definition = definition(&mut Dice(&bytes, 0));
        let text = serde_json::to_string(&definition).unwrap();
        let back: Definition = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.digest(), definition.digest());
    }

    #[test]
    fn restoring_anything_never_panics(at in 0usize..60, with in number(), bytes in proptest::collection::vec(any::<u8>(), 40..200)) {
        let Ok(machine) = Machine::compile(definition(&mut Dice(&bytes, 0))) else { return Ok(()) };
        let Ok(step) = machine.start("r", &Envelope::host(0, Event::Start { input: json!({}) }, 0)) else { return Ok(()) };
        let mut snapshot = machine.snapshot_json(&step.snapshot);
        // Replace the n-th leaf with another value.
        let mut stack = vec![&mut snapshot];
        let mut n = 0;
        while let Some(value) = stack.pop() {
            let leaf = value.as_array().is_none_or(Vec::is_empty) && value.as_object().is_none_or(serde_json::Map::is_empty);
            if leaf {
                if n == at {
                    *value = with.clone();
                }
                n += 1;
                continue;
            }
            match value {
                Json::Array(list) => stack.extend(list),
                Json::Object(map) => stack.extend(map.values_mut()),
                _ => {}
            }
        }
        if let Ok(back) = machine.restore(&snapshot) {
            for event in EVENTS {
                let _ = machine.step(&back, &Envelope::event(1, event, json!({"n": 1}), Principal::default(), 0));
            }
        }
    }
}
