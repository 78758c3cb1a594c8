//! Shared test helpers: charters, and a driver that sends any sequence of events to a run.
#![allow(dead_code, unreachable_pub)] // parts are unused without the feature `sqlite`

use charter_journal::{Append, Chain, Record, Store, StoredCharter};
use charter_kernel::{Auth, Envelope, Event, Machine, Principal, PrincipalKind, Refusal, Snapshot, Step};
pub use charter_test_support::{Folder, definition, machine};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// A charter with invocations, timers, an approval, a quorum, permits and obligations, guards, and
/// an error in an action.
pub const DESK: &str = "
charter: 1
id: desk
roles: {clerk: {}, boss: {}}
input: {type: object}
context: {count: 0, seen: null, change: null, float: 1.5}
events:
  ASK: {by: clerk, data: {type: object, properties: {amount: {type: number}}}}
  APPROVE: {by: boss}
  REJECT: {by: boss}
  VOTE: {}
  WORK: {}
  BREAK: {}
  AGAIN: {by: clerk}
  FLAG: {whilePaused: true}
actors:
  judge: {kind: model, output: {type: object}, timeout: 10s}
ledger:
  token: {}
  duty: {}
initial: idle
states:
  idle:
    on:
      ASK:
        target: judging
        actions:
          - assign: {count: '= context.count + 1', seen: '= event.data'}
          - grant: {kind: token, key: \"= 't' + string(context.count)\", uses: 1, expires: '= now + duration(\"5s\")', data: '= event.data'}
          - open: {kind: duty, key: \"= 'd' + string(context.count)\", due: '= now + duration(\"20s\")'}
      FLAG: {actions: [{emit: {type: FLAGGED, data: {n: '= context.count'}}}]}
      VOTE: {target: closed, quorum: {count: 2, of: boss}}
      '*': {actions: [{log: odd}]}
  judging:
    invoke:
      src: judge
      input: {seen: '= context.seen'}
      onDone: {target: review, actions: {assign: {change: '= event.output'}}}
      onError: {target: idle, actions: [{close: {kind: duty, all: true, as: failed}}]}
    after: {60s: idle}
  review:
    on:
      APPROVE: {target: working, approves: context.change}
      REJECT: idle
    after: {30s: idle}
  working:
    on:
      WORK:
        target: working
        guard: {and: [enough]}
        requires: [{use: {kind: token, key: \"= 't' + string(context.count)\"}}]
      BREAK: {actions: [{assign: {count: '= context.count / 0'}}]}
      AGAIN:
        - {target: closed, when: 'context.seen.nope > 1'}
        - {target: idle, when: 'event.really', actions: [{close: {kind: duty, key: \"= 'd' + string(context.count)\"}}]}
  closed: {type: final}
guards: {enough: context.count > 0}
";

/// A charter with several spawned machines in one run, an interlock, and delayed sends.
pub const PLANS: &str = "
charter: 1
id: plans
events: {SUBMIT: {}, NEXT: {}, SELECT: {}, DROP: {}, LATER: {}}
initial: open
states:
  open:
    on:
      SUBMIT: {actions: [{spawn: {machine: plan, id: '= event.plan', input: {by: '= by.id'}}}]}
      NEXT: busy
      LATER: {actions: [{send: {type: NEXT, delay: 5s, id: later}}]}
      DROP: {actions: [{cancel: later}]}
  busy:
    on: {NEXT: over, SUBMIT: {target: open, actions: [{raise: {type: LATER}}]}}
  over: {type: final, output: '= size(actors)'}
machines:
  plan:
    context: {name: '= input.by'}
    initial: pending
    states:
      pending: {on: {SELECT: selected, DROP: dropped}, after: {9s: dropped}}
      selected: {on: {DROP: dropped}}
      dropped: {type: final}
interlocks:
  - {id: fits, given: root, machine: plan, allow: {open: [pending, selected], busy: [selected]}}
";

/// A charter that is not strict, so unknown events are ignored; with non-ASCII names and data, and
/// without declared events.
pub const LOOSE: &str = "
charter: 1
id: loose
strict: false
context: {'straße': 1, a𐀀: {}, a: [1e17, 0.1], n: 0}
initial: a
states:
  a:
    entry: [{assign: {n: '= context.n + 1'}}]
    on:
      GO: b
      SET: {actions: [{assign: {a: '= event.data', a𐀀: {deep: ['= context.a']}}}]}
  b:
    type: parallel
    on: {GO: a}
    states:
      left: {initial: one, states: {one: {on: {SET: two}}, two: {always: {target: one, when: context.n > 3}}, h: {type: history, target: one}}}
      right: {invoke: {src: worker, id: w}, on: {done.invoke.w: {actions: [{log: {done: '= event.output'}}]}}}
actors: {worker: {kind: tool}}
";

pub const ALL: [&str; 3] = [DESK, PLANS, LOOSE];

pub fn stored(source: &str) -> StoredCharter {
    StoredCharter::new(&definition(source), "test.yaml", source)
}

pub const T0: i64 = 1_795_255_200_000;

/// An input for a run, expected or hostile.
#[derive(Debug, Clone)]
pub enum Act {
    Send {
        kind: String,
        data: Json,
        by: Principal,
        to: Option<String>,
        expected: Option<u64>,
        id: Option<String>,
    },
    /// An answer to the n-th open invocation, or to one that does not exist.
    Answer {
        which: usize,
        ok: bool,
        data: Json,
        named: bool,
    },
    /// The n-th pending timer, on time or early, or a timer that has ended.
    Timer {
        which: usize,
        late: i64,
        generation_off: u64,
    },
    /// One of the currently legal events, so that runs make progress.
    Legal {
        which: usize,
        data: Json,
    },
    Restart,
}

pub fn any_data() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-5i64..5).prop_map(Json::from),
        prop_oneof![Just(2.0), Just(-0.0), Just(1e17), Just(1e300), Just(0.1), Just(9_007_199_254_740_993.0)]
            .prop_map(|f: f64| Json::from(f)),
        prop_oneof![Just(u64::MAX), Just(1u64 << 53)].prop_map(Json::from),
        "[a-z\u{0}\"\\\\é𐀀\u{e000}]{0,5}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-c𐀀\u{e000}]{1,2}|amount|plan|digest|really", inner, 0..4)
                .prop_map(|m| m.into_iter().collect()),
        ]
    })
}

fn any_by() -> impl Strategy<Value = Principal> {
    prop_oneof![
        5 => Just(Principal::new("ana", &["clerk", "boss"])),
        2 => Just(Principal::new("bob", &["boss", "operator"])),
        1 => Just(Principal::new("bob", &["boss"]).of_kind(PrincipalKind::Agent).authenticated(Auth::Key)),
        1 => Just(Principal::new("bob", &["boss"]).authenticated(Auth::None)),
        1 => Just(Principal::new("", &[])),
        1 => Just(Principal::new("eve", &["system"])),
    ]
}

pub fn any_act() -> impl Strategy<Value = Act> {
    let kind = prop_oneof![
        8 => prop::sample::select(vec!["ASK", "APPROVE", "REJECT", "VOTE", "WORK", "BREAK", "AGAIN", "FLAG", "SUBMIT", "NEXT", "SELECT", "DROP", "LATER", "GO", "SET"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["charter.pause", "charter.resume", "charter.resume", "done.invoke.x", "nobody.knows"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    // Mostly data that the charters above accept.
    let data = prop_oneof![
        3 => Just(json!({})),
        3 => prop::sample::select(vec!["p1", "p2"]).prop_map(|p| json!({"plan": p, "really": true, "amount": 3})),
        2 => any_data(),
    ];
    let to = prop_oneof![5 => Just(None), 1 => Just(Some("root".to_owned())), 2 => Just(Some("p1".to_owned())), 1 => any::<String>().prop_map(Some)];
    let expected = prop_oneof![8 => Just(None), 1 => (0u64..9).prop_map(Some), 1 => Just(Some(u64::MAX))];
    let id = prop_oneof![3 => Just(None), 1 => "[a-c]{1,2}".prop_map(Some)];
    prop_oneof![
        8 => (kind, data, any_by(), to, expected, id).prop_map(|(kind, data, by, to, expected, id)| Act::Send { kind, data, by, to, expected, id }),
        4 => (0usize..3, prop::bool::weighted(0.8), any_data(), any::<bool>()).prop_map(|(which, ok, data, named)| Act::Answer { which, ok, data, named }),
        4 => (0usize..3, prop_oneof![Just(0i64), Just(-1), Just(1_000)], prop_oneof![4 => Just(0u64), 1 => Just(1), 1 => Just(u64::MAX)])
            .prop_map(|(which, late, generation_off)| Act::Timer { which, late, generation_off }),
        8 => (0usize..5, prop::sample::select(vec![json!({}), json!({"really": true, "amount": 3, "plan": "p1"}), json!({"really": false, "plan": "p2"})])).prop_map(|(which, data)| Act::Legal { which, data }),
        1 => Just(Act::Restart),
    ]
}

/// Checks that a record, which contains no message, renders to the same message as the refusal
/// itself.
fn check_refusal(
    machine: &Machine,
    before: Option<&Snapshot>,
    envelope: &Envelope,
    refusal: &Refusal,
    record: &Record,
) {
    let details = serde_json::to_value(record.refusal.as_deref()).unwrap_or_default();
    for part in [&details, &details["candidates"][0], &details["misfits"][0]] {
        assert_eq!(part.get("message"), None, "{details}");
    }
    let story = record.explanation(Some(machine));
    let direct = machine.explain(before, envelope, refusal);
    if matches!(envelope.event, Event::External { .. }) {
        assert_eq!(story.as_ref(), Some(&direct));
    }
    let read = Record::read(record.text()).unwrap_or_else(|e| panic!("{e}"));
    let without_charter = read.explanation(None).unwrap_or_else(|| panic!("{details}"));
    assert_eq!(without_charter.code, refusal.code);
    assert!(!without_charter.message.is_empty(), "{details}");
    let shown: Json = serde_json::from_str(&record.shown(Some(machine))).unwrap_or_default();
    assert_eq!(shown["refusal"]["message"], json!(story.map(|s| s.message)));
}

/// Drives a run with acts, without a store. It returns the records to append.
#[derive(Clone)]
pub struct Driver<'m> {
    pub machine: &'m Machine,
    pub chain: Chain,
    pub snapshot: Option<Snapshot>,
    pub now: i64,
    /// Event ids that were used; a store accepts each one once.
    used: std::collections::BTreeSet<String>,
}

impl<'m> Driver<'m> {
    pub fn start(machine: &'m Machine, run: &str) -> (Driver<'m>, Append) {
        let mut driver = Driver { machine, chain: Chain::new(run), snapshot: None, now: T0, used: Default::default() };
        let append = driver.apply(Envelope::host(0, Event::Start { input: json!({"n": 1}) }, T0), None);
        (driver, append)
    }

    /// Continues a run. The acts get no event ids, because the run may already have used any of
    /// them.
    pub fn resume(machine: &'m Machine, chain: Chain, snapshot: Option<Snapshot>, now: i64) -> Driver<'m> {
        let used = ["a", "b", "c"].into_iter().flat_map(|x| ["", "a", "b", "c"].map(|y| format!("{x}{y}"))).collect();
        Driver { machine, chain, snapshot, now, used }
    }

    pub fn apply(&mut self, envelope: Envelope, id: Option<&str>) -> Append {
        let outcome = match &self.snapshot {
            None => self.machine.start(self.chain.run(), &envelope),
            Some(before) => self.machine.step(before, &envelope),
        };
        let append = self.chain.append(self.machine, id, &envelope, self.snapshot.as_ref(), &outcome);
        self.chain.advance(&append);
        if let Err(refusal) = &outcome {
            check_refusal(self.machine, self.snapshot.as_ref(), &envelope, refusal, &append.record);
        }
        if let Ok(Step { snapshot, .. }) = outcome {
            self.snapshot = Some(snapshot);
        }
        append
    }

    pub fn send(&mut self, kind: &str, data: Json, by: &Principal) -> Append {
        self.now += 7;
        let envelope = Envelope::event(self.chain.next_seq(), kind, data, by.clone(), self.now);
        self.apply(envelope, None)
    }

    pub fn act(&mut self, act: &Act) -> Append {
        self.now += 700;
        let seq = self.chain.next_seq();
        let snapshot = self.snapshot.clone().unwrap_or_else(|| panic!("the run has not started"));
        match act {
            Act::Send { kind, data, by, to, expected, id } => {
                let mut data = data.clone();
                // An approval needs the correct digest.
                if kind == "APPROVE" {
                    let change = snapshot.actor("root").and_then(|a| a.variable("change")).cloned().unwrap_or_default();
                    data = json!({"digest": charter_kernel::Digest::of_json(&change).hex(), "reason": "fine"});
                }
                let envelope = Envelope {
                    to: to.clone(),
                    expected_seq: *expected,
                    ..Envelope::event(seq, kind, data, by.clone(), self.now)
                };
                let id = id.as_deref().filter(|id| self.used.insert((*id).to_owned()));
                self.apply(envelope, id)
            }
            Act::Answer { which, ok, data, named } => {
                let open: Vec<_> = snapshot.invocations().map(|(_, i)| (i.id.to_string(), i.effect)).collect();
                let (invocation, effect) = open
                    .get(*which)
                    .cloned()
                    .unwrap_or_else(|| ("judge".into(), charter_kernel::EffectId { seq: 1, index: 0 }));
                let effect = named.then_some(effect);
                let event = if *ok {
                    Event::Done { invocation, effect, output: json!({"confidence": 0.9, "of": data}) }
                } else {
                    Event::Failed { invocation, effect, error: data.clone() }
                };
                self.apply(Envelope::host(seq, event, self.now), None)
            }
            Act::Timer { which, late, generation_off } => {
                let timer = snapshot.timers().get(*which).map(|t| (t.id.to_string(), t.generation, t.due.0));
                let (timer, generation, due) = timer.unwrap_or_else(|| ("root:idle/after/1".into(), 1, self.now));
                self.now = self.now.max(due + late);
                self.apply(
                    Envelope::host(
                        seq,
                        Event::Timer { timer, generation: generation.wrapping_add(*generation_off) },
                        self.now,
                    ),
                    None,
                )
            }
            Act::Legal { which, data } => {
                let by = Principal::new("ana", &["clerk", "boss"]);
                let legal = self.machine.legal(&snapshot, &by, self.now);
                let (kind, to) = match legal.get(*which % legal.len().max(1)) {
                    Some(l) => (l.r#type.clone(), Some(l.to.clone())),
                    None => ("WORK".to_owned(), None),
                };
                self.act(&Act::Send { kind, data: data.clone(), by, to, expected: None, id: None })
            }
            Act::Restart => self.apply(Envelope::host(seq, Event::Start { input: json!(u64::MAX) }, self.now), None),
        }
    }
}

/// Executes a complete run in memory.
pub fn drive(machine: &Machine, run: &str, acts: &[Act]) -> Vec<Append> {
    let (mut driver, first) = Driver::start(machine, run);
    let mut appends = vec![first];
    appends.extend(acts.iter().map(|act| driver.act(act)));
    appends
}

/// Executes a complete run of every charter and writes it to a store.
pub fn fill(store: &dyn Store, acts: &[Act], prefix: &str) -> Vec<Vec<Record>> {
    ALL.iter()
        .enumerate()
        .map(|(i, source)| {
            let machine = machine(source);
            store.put_charter(&stored(source)).unwrap_or_else(|e| panic!("{e}"));
            let appends = drive(&machine, &format!("{prefix}{i}"), acts);
            let records = appends.iter().map(|a| a.record.clone()).collect();
            for chunk in appends.chunks(3) {
                store.append(chunk.to_vec()).unwrap_or_else(|e| panic!("{e}"));
            }
            records
        })
        .collect()
}

/// Returns a fixed sequence of acts.
pub fn some_acts(n: usize) -> Vec<Act> {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let tree = prop::collection::vec(any_act(), n).new_tree(&mut runner);
    tree.unwrap_or_else(|e| panic!("{e}")).current()
}
