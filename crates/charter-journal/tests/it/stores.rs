//! Tests that hold for every store.

use std::sync::{Arc, Barrier};

use crate::common::*;
use crate::sqlite_file::dump;
use charter_journal::{
    Append, MemoryStore, OpenEffect, RunFilter, SqliteOptions, SqliteStore, Store, StoreError, StoredSnapshot, load,
    replay,
};
use charter_kernel::{Digest, Envelope, Event, Principal, Status, Timestamp};
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::json;

pub(crate) fn on_each_store(test: impl Fn(&dyn Store)) {
    test(&MemoryStore::new());
    let folder = Folder::new();
    test(&SqliteStore::open(&folder.file("journal.db")).unwrap());
    // Event ids are added to their table at once, instead of in groups.
    let options = SqliteOptions { ids_at_once: 1, ..SqliteOptions::default() };
    test(&SqliteStore::open_with(&folder.file("other.db"), &options).unwrap());
}

#[test]
fn records_are_read_in_order_and_in_pages() {
    on_each_store(|store| {
        let runs = fill(store, &some_acts(40), "r");
        for records in &runs {
            let run = records[0].run.as_ref();
            assert_eq!(&store.records(run, 0, usize::MAX).unwrap(), records);
            assert_eq!(store.records(run, 3, 2).unwrap(), records[3..5]);
            assert_eq!(store.records(run, 1_000, 2).unwrap(), []);
            assert_eq!(store.records(run, u64::MAX, 2).unwrap(), []);
            let (info, last) = (store.run(run).unwrap().unwrap(), records.last().unwrap());
            assert_eq!(
                (info.seq, info.hash, info.charter, info.status),
                (last.seq, last.hash, last.charter, last.status)
            );
            assert_eq!((info.started, info.updated), (records[0].at, last.at));
        }
        assert_eq!(store.run("nobody").unwrap(), None);
        assert_eq!(store.records("nobody", 0, 9).unwrap(), []);
        let mut seen = Vec::new();
        store
            .scan(None, 0, &mut |row| {
                seen.push((row.run.to_owned(), row.seq, row.text.to_vec()));
                assert_eq!((row.hash.len(), row.at.len()), (71, 24));
                true
            })
            .unwrap();
        let expected: Vec<_> =
            runs.iter().flatten().map(|r| (r.run.to_string(), r.seq as i64, r.text().as_bytes().to_vec())).collect();
        assert_eq!(seen, expected);
        let mut seen = Vec::new();
        store
            .scan(Some("r1"), 2, &mut |row| {
                seen.push(row.seq);
                seen.len() < 3
            })
            .unwrap();
        assert_eq!(seen, [2, 3, 4]);
    });
}

#[test]
fn a_batch_that_does_not_continue_its_run_is_refused_as_a_whole() {
    on_each_store(|store| {
        let machine = machine(DESK);
        let appends = drive(&machine, "a", &some_acts(4));
        let unknown = store.append(vec![appends[0].clone()]).unwrap_err();
        assert_eq!(unknown, StoreError::UnknownCharter { digest: machine.digest() });
        store.put_charter(&stored(DESK)).unwrap();
        store.put_charter(&stored(DESK)).unwrap();
        store.append(appends[..2].to_vec()).unwrap();
        let other = drive(&machine, "b", &[]);
        let conflict = |batch: &[Append]| match store.append(batch.to_vec()).unwrap_err() {
            StoreError::Conflict { run, seq, expected, .. } => (run, seq, expected),
            e => panic!("{e}"),
        };
        // A record that is repeated, too early, or in the middle of an otherwise valid batch.
        assert_eq!(conflict(&appends[1..2]), ("a".into(), 1, 2));
        assert_eq!(conflict(&appends[3..4]), ("a".into(), 3, 2));
        assert_eq!(conflict(&[other[0].clone(), appends[2].clone(), appends[4].clone()]), ("a".into(), 4, 3));
        assert_eq!(store.run("b").unwrap(), None);
        assert_eq!(store.run("a").unwrap().unwrap().seq, 1);
        // The correct sequence number, but another history.
        let (mut driver, _) = Driver::start(&machine, "a");
        driver.send("nobody", json!({}), &Principal::default());
        let fake = driver.send("ASK", json!({}), &Principal::new("x", &["clerk"]));
        assert_eq!(conflict(&[fake]), ("a".into(), 2, 2));
        store.append(vec![other[0].clone(), appends[2].clone(), appends[3].clone(), appends[4].clone()]).unwrap();
        assert_eq!(store.run("a").unwrap().unwrap().seq, 4);
        assert_eq!(store.run("b").unwrap().unwrap().seq, 0);
    });
}

#[test]
fn an_id_is_taken_once_and_find_returns_its_record() {
    on_each_store(|store| {
        store.put_charter(&stored(DESK)).unwrap();
        let machine = machine(DESK);
        let (mut driver, first) = Driver::start(&machine, "a");
        store.append(vec![first]).unwrap();
        let ana = Principal::new("ana", &["clerk"]);
        let event =
            |driver: &Driver<'_>, data| Envelope::event(driver.chain.next_seq(), "ASK", data, ana.clone(), driver.now);
        let send = |driver: &Driver<'_>, data| driver.clone().apply(event(driver, data), Some("k"));
        let asked = send(&driver, json!({"amount": 2.0}));
        store.append(vec![asked.clone()]).unwrap();
        driver.chain.advance(&asked);
        let (again, other) = (send(&driver, json!({"amount": 2})), send(&driver, json!({"amount": 3})));
        for append in [&again, &other] {
            let taken = StoreError::IdTaken { run: "a".into(), id: "k".into(), seq: 1 };
            assert_eq!(store.append(vec![append.clone()]), Err(taken));
        }
        assert_eq!(store.records("a", 0, 10).unwrap().len(), 2);
        let found = store.find("a", "k").unwrap().unwrap();
        assert_eq!(found, asked.record);
        assert!(found.is_of(&event(&driver, json!({"amount": 2}))));
        assert!(!found.is_of(&event(&driver, json!({"amount": 3}))));
        // A generated id is not an event id that a sender chose.
        assert_eq!(store.find("a", "a/0").unwrap(), None);
        assert_eq!(store.find("b", "k").unwrap(), None);
    });
}

/// Two writers may have queued their records before one of them is committed.
#[test]
fn an_id_is_taken_once_within_a_batch() {
    on_each_store(|store| {
        store.put_charter(&stored(DESK)).unwrap();
        let machine = machine(DESK);
        let (mut driver, first) = Driver::start(&machine, "a");
        store.append(vec![first]).unwrap();
        let ana = Principal::new("ana", &["clerk"]);
        let mut send = |id: &str| {
            let data = json!({"amount": 2.0});
            let event = Envelope::event(driver.chain.next_seq(), "ASK", data, ana.clone(), driver.now);
            let append = driver.clone().apply(event, Some(id));
            driver.chain.advance(&append);
            append
        };
        let (one, again) = (send("k"), send("k"));
        let taken = StoreError::IdTaken { run: "a".into(), id: "k".into(), seq: 1 };
        assert_eq!(store.append(vec![one.clone(), again]), Err(taken));
        // Nothing of the batch was stored, and the store accepts the first of the two.
        assert_eq!(store.run("a").unwrap().unwrap().seq, 0);
        assert_eq!(store.find("a", "k").unwrap(), None);
        store.append(vec![one.clone()]).unwrap();
        assert_eq!(store.find("a", "k").unwrap(), Some(one.record));
    });
}

#[test]
fn snapshots_are_stored_and_can_all_be_deleted() {
    on_each_store(|store| {
        store.put_charter(&stored(LOOSE)).unwrap();
        let machine = machine(LOOSE);
        let (mut driver, first) = Driver::start(&machine, "a");
        driver.chain = driver.chain.clone().snapshot_every(4);
        store.append(vec![first]).unwrap();
        for _ in 0..10 {
            store.append(vec![driver.send("GO", json!({}), &Principal::default())]).unwrap();
        }
        let at = |seq| store.snapshot("a", seq).unwrap().map(|s| s.seq);
        assert_eq!(
            [at(0), at(3), at(4), at(7), at(8), at(u64::MAX)],
            [Some(0), Some(0), Some(4), Some(4), Some(8), Some(8)]
        );
        let mut seen = Vec::new();
        store
            .scan_snapshots(None, &mut |run, seq, text| {
                let record = store.records(run, seq, 1).unwrap().remove(0);
                assert_eq!(record.snapshot, Digest::of_bytes(text));
                seen.push(seq);
            })
            .unwrap();
        assert_eq!(seen, [0, 4, 8]);
        // A wrong snapshot is skipped.
        store.put_snapshot("a", &StoredSnapshot { seq: 9, text: "{}".into() }).unwrap();
        assert_eq!(load(store, &machine, "a").unwrap().snapshot, driver.snapshot);
        assert_eq!(
            store.put_snapshot("b", &StoredSnapshot { seq: 0, text: "{}".into() }),
            Err(StoreError::UnknownRun("b".into()))
        );
        store.forget_snapshots().unwrap();
        assert_eq!(at(u64::MAX), None);
        assert_eq!(load(store, &machine, "a").unwrap().snapshot, driver.snapshot);
    });
}

#[test]
fn runs_are_filtered_and_paged() {
    on_each_store(|store| {
        fill(store, &some_acts(5), "r");
        store.put_charter(&stored(DESK)).unwrap();
        let desk = machine(DESK);
        let (mut driver, first) = Driver::start(&desk, "paused");
        let pause = driver.send("charter.pause", json!({}), &Principal::new("op", &["operator"]));
        store.append(vec![first, pause]).unwrap();
        let list = |filter: &RunFilter| store.runs(filter).unwrap().into_iter().map(|i| i.run).collect::<Vec<_>>();
        assert_eq!(list(&RunFilter::default()), ["paused", "r0", "r1", "r2"]);
        assert_eq!(list(&RunFilter { limit: 2, after: Some("paused".into()), ..RunFilter::default() }), ["r0", "r1"]);
        assert_eq!(list(&RunFilter { status: Some(Status::Paused), ..RunFilter::default() }), ["paused"]);
        assert_eq!(list(&RunFilter { charter: Some(desk.digest()), ..RunFilter::default() }), ["paused", "r0"]);
        assert_eq!(
            list(&RunFilter {
                charter: Some(desk.digest()),
                status: Some(Status::Paused),
                after: Some("q".into()),
                limit: 9
            }),
            [""; 0]
        );
    });
}

#[test]
fn pending_timers_and_open_effects_are_listed() {
    on_each_store(|store| {
        store.put_charter(&stored(DESK)).unwrap();
        let machine = machine(DESK);
        let ana = Principal::new("ana", &["clerk", "operator"]);
        for run in ["a", "b", "c"] {
            let (mut driver, first) = Driver::start(&machine, run);
            let asked = driver.send("ASK", json!({}), &ana);
            store.append(vec![first, asked]).unwrap();
            if run == "b" {
                store.append(vec![driver.send("charter.pause", json!({}), &ana)]).unwrap();
            }
            if run == "c" {
                store.append(vec![driver.send("charter.cancel", json!({}), &ana)]).unwrap();
            }
        }
        let effect = |run: &str| OpenEffect { run: run.into(), seq: 1, index: 0 };
        assert_eq!(store.open_effects(None, 9).unwrap(), [effect("a"), effect("b")]);
        assert_eq!(store.open_effects(Some(&effect("a")), 9).unwrap(), [effect("b")]);
        assert_eq!(store.open_effects(None, 1).unwrap(), [effect("a")]);
        // Timers of a paused run do not fire.
        let due = |until| {
            store
                .pending_timers(Timestamp(until), 9)
                .unwrap()
                .into_iter()
                .map(|t| (t.run, t.due.0 - T0))
                .collect::<Vec<_>>()
        };
        assert_eq!(due(T0 + 10_006), []);
        assert_eq!(due(T0 + 20_007), [("a".into(), 10_007), ("a".into(), 20_007)]);
        assert_eq!(due(i64::MAX).len(), 3);
        assert_eq!(store.pending_timers(Timestamp::MAX, 1).unwrap()[0].due, Timestamp(T0 + 10_007));
    });
}

#[test]
fn charters_and_blobs_are_stored_by_digest() {
    on_each_store(|store| {
        let charter = stored(PLANS);
        store.put_charter(&charter).unwrap();
        assert_eq!(store.charter(charter.digest).unwrap(), Some(charter.clone()));
        assert_eq!(store.charters().unwrap(), std::slice::from_ref(&charter));
        assert_eq!(charter_journal::machine(store, charter.digest).unwrap().digest(), charter.digest);
        let mut changed = charter.clone();
        changed.core = changed.core.replace("plans", "plane");
        assert!(matches!(store.put_charter(&changed), Err(StoreError::Damaged(_))));
        let blob = store.put_blob(b"large").unwrap();
        assert_eq!(store.put_blob(b"large").unwrap(), blob);
        assert_eq!(store.blob(blob).unwrap(), Some(b"large".to_vec()));
        assert_eq!(store.blob(Digest::of_bytes(b"")).unwrap(), None);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(8, 25)))]

    #[test]
    fn all_stores_end_in_the_same_head_and_a_rebuild_gives_identical_projections(acts in prop::collection::vec(any_act(), 0..25)) {
        let folder = Folder::new();
        let (memory, file) = (MemoryStore::new(), SqliteStore::open(&folder.file("journal.db")).unwrap());
        prop_assert_eq!(fill(&memory, &acts, "r"), fill(&file, &acts, "r"));
        prop_assert_eq!(memory.runs(&RunFilter::default()).unwrap(), file.runs(&RunFilter::default()).unwrap());
        prop_assert_eq!(memory.pending_timers(Timestamp::MAX, 999).unwrap(), file.pending_timers(Timestamp::MAX, 999).unwrap());
        prop_assert_eq!(memory.open_effects(None, 999).unwrap(), file.open_effects(None, 999).unwrap());
        prop_assert_eq!(emitted(&memory, usize::MAX), emitted(&file, usize::MAX));
        prop_assert_eq!(file.container_problems().unwrap(), Vec::<String>::new());
        // The first rebuild also adds the event ids that would be added later.
        let without_ids = |text: String| text.lines().filter(|l| !l.starts_with("event_ids")).map(str::to_owned).collect::<Vec<_>>();
        let before = dump(&file);
        file.rebuild().unwrap();
        prop_assert_eq!(without_ids(dump(&file)), without_ids(before));
        let before = dump(&file);
        file.rebuild().unwrap();
        prop_assert_eq!(dump(&file), before);
    }
}

#[test]
fn concurrent_appends_share_commits_independently() {
    let folder = Folder::new();
    let store = Arc::new(SqliteStore::open(&folder.file("journal.db")).unwrap());
    store.put_charter(&stored(LOOSE)).unwrap();
    let machine = Arc::new(machine(LOOSE));
    let (threads, events) = (8, 30);
    let barrier = Arc::new(Barrier::new(threads));
    let workers: Vec<_> = (0..threads)
        .map(|t| {
            let (store, machine, barrier) = (store.clone(), machine.clone(), barrier.clone());
            std::thread::spawn(move || {
                let run = format!("run-{t}");
                let (mut driver, first) = Driver::start(&machine, &run);
                barrier.wait();
                store.append(vec![first.clone()]).unwrap();
                for _ in 0..events {
                    // Another sender submits a wrong sequence number in between.
                    assert!(matches!(store.append(vec![first.clone()]), Err(StoreError::Conflict { .. })));
                    store.append(vec![driver.send("GO", json!({}), &Principal::default())]).unwrap();
                }
                driver.chain.hash()
            })
        })
        .collect();
    let heads: Vec<_> = workers.into_iter().map(|w| w.join().unwrap()).collect();
    for (t, head) in heads.into_iter().enumerate() {
        let info = store.run(&format!("run-{t}")).unwrap().unwrap();
        assert_eq!((info.seq, info.hash), (events, head));
        assert!(replay(&*store, &machine, &info.run, None).unwrap().is_some());
    }
}

#[test]
fn a_duplicate_event_is_found_by_its_id() {
    on_each_store(|store| {
        store.put_charter(&stored(LOOSE)).unwrap();
        let machine = machine(LOOSE);
        let (mut driver, first) = Driver::start(&machine, "a");
        store.append(vec![first]).unwrap();
        let by = Principal::new("ana", &["clerk"]);
        let event = |data| Envelope::event(1, "SET", data, by.clone(), T0);
        let large = "x".repeat(2 << 20);
        for (i, data) in [json!({"n": 2.0}), json!(1i64 << 60), json!({"text": large})].into_iter().enumerate() {
            let id = format!("k{i}");
            let mut sent = event(data.clone());
            sent.seq = driver.chain.next_seq();
            let append = driver.apply(sent, Some(&id));
            store.append(vec![append.clone()]).unwrap();
            let found = store.find("a", &id).unwrap().unwrap();
            assert_eq!(found, append.record);
            let again = Envelope {
                seq: 77,
                at: (T0 + 9).into(),
                expected_seq: Some(3),
                to: Some("root".into()),
                ..event(data.clone())
            };
            assert!(found.is_of(&again));
            let others = [
                event(json!({"other": data})),
                Envelope::event(1, "GO", data.clone(), by.clone(), T0),
                Envelope { by: Principal::new("ana", &[]), ..event(data.clone()) },
                Envelope { to: Some("p1".into()), ..event(data.clone()) },
                Envelope::host(1, Event::Start { input: data.clone() }, T0),
            ];
            assert!(others.iter().all(|other| !found.is_of(other)));
        }
        assert!(store.find("a", "k0").unwrap().unwrap().is_of(&event(json!({"n": 2}))));
    });
}

/// Returns at most `limit` emitted events of type `FLAGGED`.
fn emitted(store: &dyn Store, limit: usize) -> Vec<(String, u64, String)> {
    let mut all = Vec::new();
    let visit = &mut |run: &str, seq: u64, data: &str| {
        all.push((run.to_owned(), seq, data.to_owned()));
        all.len() < limit
    };
    store.emitted("FLAGGED", visit).unwrap();
    all
}

#[test]
fn emitted_events_are_visited_newest_first() {
    let machine = machine(DESK);
    on_each_store(|store| {
        store.put_charter(&stored(DESK)).unwrap();
        let ana = Principal::new("ana", &["clerk", "boss"]);
        let start = |run| Driver::start(&machine, run);
        let ((mut a, first_a), (mut b, first_b)) = (start("a"), start("b"));
        let flag = |d: &mut Driver<'_>| store.append(vec![d.send("FLAG", json!({}), &ana)]).unwrap();
        store.append(vec![first_b, first_a]).unwrap();
        // Three emits, not in the order of the run ids.
        flag(&mut b);
        flag(&mut a);
        flag(&mut b);
        let expected = [("b", 2), ("a", 1), ("b", 1)].map(|(run, seq)| (run.to_owned(), seq, "{\"n\":0}".to_owned()));
        assert_eq!(emitted(store, usize::MAX), expected);
        assert_eq!(emitted(store, 1), expected[..1]);
        store.emitted("OTHER", &mut |_, _, _| panic!("unexpected event")).unwrap();
    });
}
