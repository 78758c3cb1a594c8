//! Random charters.

use charter_kernel::Definition;
use charter_kernel::definition::{
    Action, ActorDecl, After, Chart, Delay, EventDecl, Initial, Invoke, LedgerDecl, On, Require, State, StateKind,
    Template, Transition,
};
use indexmap::IndexMap;
use serde_json::json;

/// The bytes that a charter is generated from, consumed from the front so that shrinking stays
/// simple.
struct Dice<'d>(&'d [u8], usize);

impl Dice<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        let value = self.0.get(self.1).copied().unwrap_or(0) as usize;
        self.1 += 1;
        value % sides.max(1)
    }
}

/// The events of a random charter; all have data `{n}`.
pub const EVENTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

fn cel(text: &str) -> Template {
    Template::Cel(text.into())
}

fn action(dice: &mut Dice<'_>) -> Action {
    let assign = |name: &str, text: &str| Action::Assign(IndexMap::from([(name.to_string(), cel(text))]));
    match dice.roll(16) {
        0 => assign("a", "context.a + 1"),
        1 => assign("a", "context.a / 2"),
        2 => assign("a", "context.a * 3 - 7"),
        3 => assign("b", "context.b * 1.5"),
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
        _ => assign("b", "context.b == 0 ? 0.5 : context.a / 4.0"),
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
        let src = ["kid", "work", "work", "judge"][dice.roll(4)];
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

/// Generates a charter from bytes; the same bytes give the same charter. It may be invalid, for
/// example because the ids of invocations clash.
///
/// Its actors are `work` (kind `exec`, with retries), `judge` (kind `human`) and the machine `kid`.
#[must_use]
pub fn random_definition(bytes: &[u8]) -> Definition {
    let dice = &mut Dice(bytes, 0);
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
    let context = [("a", json!(1)), ("b", json!(0.5)), ("list", json!([1.0]))];
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
    let config = [("retry", json!({"attempts": 3, "backoff": "100ms"})), ("idempotent", json!(dice.roll(2) == 0))];
    let work = ActorDecl {
        kind: "exec".into(),
        timeout: Some(Delay::Ms(700)),
        config: config.into_iter().map(|(key, value)| (key.to_string(), value)).collect(),
        ..ActorDecl::default()
    };
    let judge = ActorDecl { kind: "human".into(), ..ActorDecl::default() };
    Definition {
        charter: 1,
        id: "generated".into(),
        strict,
        events: EVENTS.iter().map(|e| ((*e).to_string(), EventDecl::default())).collect(),
        actors: IndexMap::from([("work".to_string(), work), ("judge".to_string(), judge)]),
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
