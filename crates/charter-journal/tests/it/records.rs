//! Properties of records: they are reproducible from their content, identical on every host, and
//! hashed as documented.

use crate::common::*;
use charter_journal::{Chain, GENESIS, MemoryStore, Record, RecordError, Store, Verdict, fork, load, replay};
use charter_kernel::{Digest, Envelope, Event, Principal, Timestamp, digest::canonical};
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(20, 150)))]

    #[test]
    fn a_record_is_reproduced_from_its_input(acts in prop::collection::vec(any_act(), 0..25)) {
        for source in ALL {
            let machine = machine(source);
            let (mut before, mut prev) = (None, GENESIS);
            for append in drive(&machine, "r", &acts) {
                let record = append.record;
                // The text is canonical JSON according to another implementation, and the hash is
                // as documented.
                let mut json: Json = serde_json::from_str(record.text()).unwrap();
                prop_assert_eq!(record.text(), serde_json_canonicalizer::to_string(&json).unwrap());
                json.as_object_mut().unwrap().remove("hash");
                prop_assert_eq!(record.hash, Digest::of_bytes(serde_json_canonicalizer::to_string(&json).unwrap().as_bytes()));
                prop_assert!(record.is_intact());
                prop_assert_eq!(record.prev, prev);
                prev = record.hash;
                // Text and envelope survive a round trip.
                let read = Record::read(record.text()).unwrap();
                prop_assert_eq!(&*read, &*record);
                match record.envelope() {
                    Err(RecordError::Redacted) => prop_assert_eq!(record.verdict, Verdict::Refused),
                    Err(e) => prop_assert!(false, "{}", e),
                    Ok(envelope) => {
                        let outcome = match &before {
                            None => machine.start("r", &envelope),
                            Some(s) => machine.step(s, &envelope),
                        };
                        let id = record.has_given_id().then_some(record.id.as_ref());
                        let again = Record::of(&machine, "r", id, record.prev, &envelope, before.as_ref(), &outcome);
                        prop_assert_eq!(again.text(), record.text());
                        if let Ok(step) = outcome { before = Some(step.snapshot); }
                    }
                }
                // The generic serializer produces the same text for the snapshot.
                let s = before.as_ref().unwrap();
                let slow = serde_json_canonicalizer::to_string(&machine.snapshot_json(s)).unwrap();
                prop_assert_eq!(&machine.snapshot_text(s), &slow);
                prop_assert_eq!(record.snapshot, Digest::of_bytes(slow.as_bytes()));
                prop_assert_eq!(&machine.restore(&serde_json::from_str(&slow).unwrap()).unwrap(), s);
            }
        }
    }

    #[test]
    fn replay_gives_the_run_with_and_without_snapshots(acts in prop::collection::vec(any_act(), 0..25), every in 0u64..6) {
        for source in ALL {
            let machine = machine(source);
            let store = MemoryStore::new();
            store.put_charter(&stored(source)).unwrap();
            let (mut driver, first) = Driver::start(&machine, "r");
            driver.chain = driver.chain.clone().snapshot_every(every);
            store.append(vec![first]).unwrap();
            let mut states = vec![driver.snapshot.clone()];
            for act in &acts {
                store.append(vec![driver.act(act)]).unwrap();
                states.push(driver.snapshot.clone());
            }
            for round in 0..2 {
                for (seq, state) in states.iter().enumerate() {
                    let got = replay(&store, &machine, "r", Some(seq as u64)).unwrap();
                    prop_assert_eq!(&got, state, "round {}", round);
                }
                let loaded = load(&store, &machine, "r").unwrap();
                prop_assert_eq!(loaded.chain.hash(), driver.chain.hash());
                prop_assert_eq!(loaded.chain.next_seq(), driver.chain.next_seq());
                store.forget_snapshots().unwrap();
            }
        }
    }

    #[test]
    fn pending_timers_and_open_effects_match_the_snapshot(acts in prop::collection::vec(any_act(), 0..30)) {
        for source in ALL {
            let machine = machine(source);
            let store = MemoryStore::new();
            store.put_charter(&stored(source)).unwrap();
            let (mut driver, first) = Driver::start(&machine, "r");
            store.append(vec![first]).unwrap();
            for act in &acts {
                store.append(vec![driver.act(act)]).unwrap();
                let s = driver.snapshot.as_ref().unwrap();
                if s.status() == charter_kernel::Status::Active {
                    let mut expected: Vec<_> = s.timers().iter().map(|t| (t.due, t.id.to_string(), t.generation)).collect();
                    expected.sort();
                    let pending = store.pending_timers(Timestamp::MAX, 1_000).unwrap();
                    prop_assert_eq!(pending.into_iter().map(|t| (t.due, t.timer, t.generation)).collect::<Vec<_>>(), expected);
                }
                if s.held() == 0 {
                    let mut expected: Vec<_> = s.invocations().filter(|(_, i)| !i.is_machine()).map(|(_, i)| (i.effect.seq, i.effect.index)).collect();
                    expected.sort_unstable();
                    let open = store.open_effects(None, 1_000).unwrap();
                    prop_assert_eq!(open.into_iter().map(|e| (e.seq, e.index)).collect::<Vec<_>>(), expected);
                }
            }
        }
    }

    #[test]
    fn a_fork_shares_the_history_and_then_diverges(acts in prop::collection::vec(any_act(), 0..15), more in prop::collection::vec(any_act(), 0..5), at in any::<prop::sample::Index>()) {
        for source in ALL {
            let machine = machine(source);
            let store = MemoryStore::new();
            store.put_charter(&stored(source)).unwrap();
            let appends = drive(&machine, "r", &acts);
            let at = at.index(appends.len()) as u64;
            store.append(appends.clone()).unwrap();
            let forked = fork(&store, &machine, "r", at, "f", at.is_multiple_of(2)).unwrap();
            let origin = store.records("f", 0, 1).unwrap().remove(0).forked_from.clone().unwrap();
            prop_assert_eq!((origin.run.as_ref(), origin.seq, origin.hash), ("r", at, appends[at as usize].record.hash));
            prop_assert_eq!(&forked.snapshot, &replay(&store, &machine, "f", None).unwrap());
            let mut driver = Driver::resume(&machine, forked.chain, forked.snapshot, T0 + 1_000_000);
            for act in &more {
                store.append(vec![driver.act(act)]).unwrap();
            }
            prop_assert_eq!(replay(&store, &machine, "f", None).unwrap(), driver.snapshot);
            prop_assert!(fork(&store, &machine, "r", at, "f", at.is_multiple_of(2)).is_err(), "it exists");
        }
    }
}

#[test]
fn the_documented_record() {
    let machine = machine(DESK);
    let (mut driver, first) = Driver::start(&machine, "018f");
    let ana = Principal::new("ana", &["clerk", "boss"]);
    let ask = driver.send("ASK", json!({"amount": 2.0}), &ana).record;
    let start: Json = serde_json::from_str(first.record.text()).unwrap();
    for key in [
        "v",
        "run",
        "seq",
        "at",
        "id",
        "charter",
        "to",
        "by",
        "event",
        "verdict",
        "from",
        "state",
        "transitions",
        "effects",
        "snapshot",
        "prev",
        "hash",
    ] {
        assert!(start.get(key).is_some(), "{key}");
    }
    assert_eq!(start["event"], json!({"type": "charter.start", "data": {"n": 1}}));
    assert_eq!(start["prev"], format!("sha256:{}", "0".repeat(64)));
    assert_eq!((&start["from"], &start["state"]), (&json!([]), &json!(["idle"])));
    let ask: Json = serde_json::from_str(ask.text()).unwrap();
    assert_eq!(ask["at"], "2026-11-21T10:00:00.007Z");
    assert_eq!(ask["by"], json!({"id": "ana", "roles": ["clerk", "boss"]}));
    assert_eq!(ask["event"], json!({"type": "ASK", "data": {"amount": 2}}));
    assert_eq!((&ask["from"], &ask["state"]), (&json!(["idle"]), &json!(["judging"])));
    assert_eq!(ask["transitions"], json!(["idle/on/ASK/0"]));
    assert_eq!(
        ask["effects"],
        json!([{"id": "018f/1/0", "kind": "invoke", "invocation": "judge", "src": "judge", "input": {"seen": {"amount": 2}}}])
    );
    assert_eq!(ask["ledger"][0]["kind"], "token");
    let refused: Json = serde_json::from_str(driver.send("ASK", json!({}), &ana).record.text()).unwrap();
    assert_eq!(refused["verdict"], "refused");
    assert_eq!(
        (&refused["state"], &refused["effects"], &refused["refusal"]["code"]),
        (&refused["from"], &json!([]), &json!("unhandled"))
    );
}

#[test]
fn data_refused_by_validation_is_redacted() {
    let machine = machine(LOOSE);
    let (mut driver, _) = Driver::start(&machine, "r");
    let ana = Principal::new("ana", &[]);
    let large = json!({"text": "x".repeat(2 << 20)});
    let deep = (0..200).fold(Json::Null, |inner, _| json!([inner]));
    for (data, code) in [(large, "too-large"), (deep, "too-large"), (json!({"n": u64::MAX}), "schema")] {
        let record = driver.send("SET", data.clone(), &ana).record;
        assert!(record.text().len() < 2_000);
        assert_eq!(record.refusal.as_ref().unwrap().code.word(), code);
        assert_eq!(record.envelope(), Err(RecordError::Redacted));
        let redacted = record.event.redacted.unwrap();
        assert_eq!(redacted.size as usize, data.to_string().len());
        assert_eq!(redacted.digest, Digest::of_bytes(data.to_string().as_bytes()));
    }
    // RFC 8785 serializes both numbers identically; the digest of the redacted data still tells
    // them apart.
    let one = driver.send("SET", json!({"n": u64::MAX}), &ana).record;
    let again = |n: u64| Envelope::event(1, "SET", json!({"n": n}), ana.clone(), T0);
    assert!(!one.is_of(&again(u64::MAX - 1)));
    assert!(one.is_of(&again(u64::MAX)));
}

#[test]
fn data_at_the_depth_limit_of_the_kernel_is_read_back() {
    let machine = machine(LOOSE);
    let (mut driver, _) = Driver::start(&machine, "r");
    let mut deepest = 0;
    for depth in 100..140 {
        let data = (0..depth).fold(json!(1), |inner, _| json!([inner]));
        let record = driver.send("SET", data, &Principal::new("ana", &[])).record;
        let read = Record::read(record.text()).unwrap();
        assert_eq!(*read, *record);
        if record.verdict != Verdict::Refused {
            assert!(record.envelope().is_ok());
            deepest = depth;
        }
    }
    assert!(deepest > 120, "{deepest}");
}

#[test]
fn a_refused_start_is_recorded() {
    let machine = machine(DESK);
    let start = Envelope::host(0, Event::Start { input: json!(1) }, T0);
    let outcome = machine.start("r", &start);
    let append = Chain::new("r").append(&machine, None, &start, None, &outcome);
    let r = &append.record;
    assert_eq!((r.verdict, r.status, r.status_word()), (Verdict::Refused, None, "refused"));
    assert_eq!(r.snapshot, Digest::of_bytes(b"null"));
    assert_eq!(r.envelope().unwrap(), start);
    assert_eq!(append.snapshot, None);
}

#[test]
fn timestamps_out_of_calendar_range_are_kept_exactly() {
    let machine = machine(LOOSE);
    let (mut driver, _) = Driver::start(&machine, "r");
    for at in [i64::MIN, i64::MAX, 253_402_300_800_000] {
        let envelope = Envelope::event(driver.chain.next_seq(), "GO", json!({}), Principal::new("ana", &[]), at);
        let record = driver.apply(envelope.clone(), None).record;
        assert_eq!(record.verdict, Verdict::Refused);
        assert_eq!(record.envelope().unwrap(), envelope);
    }
}

#[test]
fn canonical_json_is_unchanged() {
    // Every digest in every journal depends on this text, so it must never change.
    assert_eq!(
        canonical(&json!({"b": [1.0, 1e21, 0.1, "é\u{1}"], "a": null})),
        "{\"a\":null,\"b\":[1,1e+21,0.1,\"é\\u0001\"]}"
    );
}

/// The tests above cover only records that the driver produces.
#[test]
fn the_driver_reaches_every_feature() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let expected = "accepted refused ignored vote late active paused done redacted answer approval note fired set cancel \
        unhandled schema stale authority reserved unknown-event finished paused unknown-actor guard execution interlock permit.expired";
    let kinds = [
        "effect invoke",
        "effect cancel",
        "effect emit",
        "effect log",
        "entry granted",
        "entry expired",
        "entry open",
        "entry overdue",
        "entry closed",
    ];
    // A pause is rare: some 250 rounds reach one.
    let rounds = cases(80, 300);
    let expected: Vec<&str> =
        expected.split_whitespace().chain(kinds).filter(|e| rounds > 80 || *e != "paused").collect();
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..rounds {
        if expected.iter().all(|e| seen.contains(*e)) {
            break;
        }
        let acts = prop::collection::vec(any_act(), 30).new_tree(&mut runner).unwrap().current();
        for source in ALL {
            for append in drive(&machine(source), "r", &acts) {
                let r = append.record;
                seen.insert(r.verdict.word().to_owned());
                seen.insert(r.status_word().to_owned());
                seen.extend(r.refusal.iter().map(|x| x.code.word().to_owned()));
                seen.extend(r.timers.iter().map(|t| t.what.word().to_owned()));
                seen.extend(r.effects.iter().map(|e| format!("effect {}", e["kind"].as_str().unwrap())));
                seen.extend(r.ledger.iter().map(|e| format!("entry {}", e["status"].as_str().unwrap())));
                seen.extend((!r.approvals.is_empty()).then(|| "approval".to_owned()));
                seen.extend((!r.notes.is_empty()).then(|| "note".to_owned()));
                seen.extend(r.event.redacted.map(|_| "redacted".to_owned()));
                seen.extend(r.answers.iter().map(|_| "answer".to_owned()));
            }
        }
    }
    let missing: Vec<&&str> = expected.iter().filter(|e| !seen.contains(**e)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}; reached: {seen:?}");
}
