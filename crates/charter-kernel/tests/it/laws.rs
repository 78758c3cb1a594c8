//! Properties of generated charters and streams: snapshots survive the round trip through JSON,
//! refusals change nothing, the same envelopes give the same bytes, and nothing panics.

use charter_kernel::{Definition, Digest, Envelope, Event, Machine, Principal, Snapshot};
use charter_test_support::{EVENTS, cases, random_definition};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

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
                unique: None,
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
        let definition = random_definition(&bytes);
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
        let definition = random_definition(&bytes);
        let text = serde_json::to_string(&definition).unwrap();
        let back: Definition = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.digest(), definition.digest());
    }

    #[test]
    fn restoring_anything_never_panics(at in 0usize..60, with in number(), bytes in proptest::collection::vec(any::<u8>(), 40..200)) {
        let Ok(machine) = Machine::compile(random_definition(&bytes)) else { return Ok(()) };
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
