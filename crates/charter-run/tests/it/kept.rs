//! A host that keeps nothing in memory writes the same records as one that does.

use charter_kernel::{Digest, EffectId, Principal, Timestamp};
use charter_run::{EventInput, Input, Kept, KeptError, Run};
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::json;

use crate::host::{Host, boss, machine};

#[derive(Debug, Clone)]
enum Act {
    Wait(i64),
    Send(&'static str, i64, Option<u8>, bool),
    Answer(u64, Result<i64, ()>, bool),
    Settle(u64, bool),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => prop_oneof![Just(1), Just(1_800_000), Just(3_600_000)].prop_map(Act::Wait),
        4 => (
            prop_oneof![8 => Just("NOTE"), 4 => Just("CHANGE"), 1 => Just("STOP"), 1 => Just("charter.pause"), 2 => Just("charter.resume")],
            0..3i64, proptest::option::of(0..3u8), any::<bool>()
        ).prop_map(|(kind, n, id, boss)| Act::Send(kind, n, id, boss)),
        2 => (0..3u64, prop_oneof![(0..2i64).prop_map(Ok), Just(Err(()))], any::<bool>())
            .prop_map(|(seq, outcome, again)| Act::Answer(seq, outcome, again)),
        1 => (0..4u64, any::<bool>()).prop_map(|(seq, boss)| Act::Settle(seq, boss)),
    ]
}

fn input(act: &Act, now: Timestamp) -> Input {
    let who = |is_boss: bool| if is_boss { boss() } else { Principal::new("eve", &["operator"]) };
    match act {
        Act::Wait(_) => Input::Due,
        Act::Send(kind, n, id, is_boss) => Input::Event(EventInput {
            id: id.map(|id| format!("k{id}")),
            ..EventInput::new(kind, json!({"n": n}), who(*is_boss))
        }),
        Act::Answer(seq, outcome, again) => Input::Outcome {
            effect: EffectId { seq: *seq, index: 0 },
            attempt: 1,
            outcome: outcome.map(|n| json!({"n": n})).map_err(|()| json!({"code": "x", "message": "y"})),
            again_at: again.then(|| Timestamp(now.0 + 5)),
        },
        Act::Settle(seq, is_boss) => {
            Input::Settled { effect: EffectId { seq: *seq, index: 0 }, outcome: Ok(json!("ok")), by: who(*is_boss) }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60, 300), ..ProptestConfig::default() })]

    #[test]
    fn a_host_without_memory_writes_the_same_records(acts in prop::collection::vec(act(), 1..40)) {
        let machine = machine();
        let mut hosts = [Host::started(&machine), Host::started(&machine)];
        hosts[1].forgetful = true;
        for act in &acts {
            let [a, b] = &mut hosts;
            for host in [&mut *a, &mut *b] {
                if let Act::Wait(ms) = act {
                    host.now = Timestamp(host.now.0 + ms);
                }
            }
            let (one, other) = (a.give(input(act, a.now)), b.give(input(act, b.now)));
            prop_assert_eq!(one.reply, other.reply);
            prop_assert_eq!(one.troubles, other.troubles);
            prop_assert_eq!(a.run.open(), b.run.open());
            prop_assert_eq!(a.run.next_due(), b.run.next_due());
        }
        prop_assert_eq!(&hosts[0].records, &hosts[1].records);
    }
}

#[test]
fn parts_that_do_not_belong_together_are_not_restored() {
    let machine = machine();
    let mut host = Host::started(&machine);
    host.send("CHANGE", json!(null), None);
    let kept = || host.run.kept(&machine, host.records.last().cloned());
    let other = Kept { snapshot: Some("{}".into()), ..kept() };
    assert_eq!(Run::restore(&machine, "r", 1, other).unwrap_err(), KeptError::OtherSnapshot { seq: 1 });
    let older = Kept { last: host.records.first().cloned(), ..kept() };
    assert_eq!(Run::restore(&machine, "r", 1, older).unwrap_err(), KeptError::OtherSnapshot { seq: 0 });
    assert_ne!(Digest::of_bytes(kept().snapshot.unwrap().as_bytes()), host.records[0].snapshot);
}

#[test]
fn hashes_of_ids_are_stored_so_they_never_change() {
    let machine = machine();
    let mut host = Host::started(&machine);
    let event = EventInput { id: Some("e1".into()), ..EventInput::new("NOTE", json!({"n": 1}), boss()) };
    host.give(Input::Event(event));
    let kept = host.run.kept(&machine, host.records.last().cloned());
    assert_eq!(kept.json()["recent"], json!({"incomplete": false, "ids": [[143555335, 1]]}));
    assert!(matches!(Kept::read(json!({"last": 1})), Err(KeptError::NotKept(_))));
}
