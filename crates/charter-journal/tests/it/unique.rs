//! Unique keys: no store gives one to two runs, however the records arrive.

use std::sync::Barrier;

use charter_journal::{Append, Deletion, MemoryStore, Record, SqliteStore, Store, StoreError, export, import, verify};
use charter_kernel::{Envelope, Machine, Principal, Timestamp, Unique};
use charter_test_support::cases;
use proptest::prelude::*;
use serde_json::json;

use crate::common::*;

pub(crate) const SHOP: &str = "
charter: 1
id: shop
events: {PAY: {unique: {key: event.order}}, NOTE: {}}
states: {open: {on: {PAY: {}, NOTE: {}}}}
";

/// Sends an order for which the host has found nobody.
pub(crate) fn pay(driver: &mut Driver<'_>, order: &str) -> Append {
    let mut envelope =
        Envelope::event(driver.chain.next_seq(), "PAY", json!({"order": order}), Principal::new("ana", &[]), T0);
    envelope.unique = Some(Unique { key: order.into(), taken_by: None });
    driver.apply(envelope, None)
}

pub(crate) fn started<'m>(store: &dyn Store, machine: &'m Machine, run: &str) -> Driver<'m> {
    store.put_charter(&stored(SHOP)).unwrap();
    let (driver, first) = Driver::start(machine, run);
    store.append(vec![first]).unwrap();
    driver
}

pub(crate) fn on_each_store(test: impl Fn(&dyn Store)) {
    test(&MemoryStore::new());
    let folder = Folder::new();
    test(&SqliteStore::open(&folder.file("journal.db")).unwrap());
}

pub(crate) fn taken(run: &str, seq: u64, order: &str, holder: &str) -> StoreError {
    let (event, key) = ("PAY".into(), format!("\"{order}\""));
    StoreError::KeyTaken { run: run.into(), seq, event, key, holder: holder.into() }
}

pub(crate) fn holder(store: &dyn Store, order: &str) -> Option<String> {
    store.key_holder("PAY", &json!(order)).unwrap()
}

#[test]
fn a_key_is_accepted_once_by_all_runs() {
    let machine = machine(SHOP);
    on_each_store(|store| {
        assert!(store.keeps_keys());
        let [mut a, mut b] = ["a", "b"].map(|run| started(store, &machine, run));
        assert_eq!(holder(store, "o1"), None);
        store.append(vec![pay(&mut a, "o1")]).unwrap();
        assert_eq!(holder(store, "o1").as_deref(), Some("a"));
        let before = b.clone();
        // The host of `b` has looked before the record of `a` was there.
        assert_eq!(store.append(vec![pay(&mut b, "o1")]), Err(taken("b", 1, "o1", "a")));
        assert_eq!(store.append(vec![pay(&mut a, "o1")]), Err(taken("a", 2, "o1", "a")));
        // A refused batch leaves nothing behind, not even the keys before the one that is taken.
        let mut b = before;
        let batch = vec![pay(&mut b, "o2"), pay(&mut b, "o1")];
        assert_eq!(store.append(batch.clone()), Err(taken("b", 2, "o1", "a")));
        assert_eq!(holder(store, "o2"), None);
        store.append(batch[..1].to_vec()).unwrap();
        assert_eq!(holder(store, "o2").as_deref(), Some("b"));
        assert!(verify(store, None).unwrap().is_verified());
    });
}

#[test]
fn one_batch_cannot_have_a_key_twice() {
    let machine = machine(SHOP);
    on_each_store(|store| {
        let [mut a, mut b] = ["a", "b"].map(|run| started(store, &machine, run));
        let batch = vec![pay(&mut a, "o1"), pay(&mut b, "o1")];
        assert_eq!(store.append(batch), Err(taken("b", 1, "o1", "a")));
        assert_eq!(holder(store, "o1"), None);
    });
}

#[test]
fn a_refused_event_leaves_the_key_free() {
    let machine = machine(&SHOP.replace("PAY: {},", "PAY: {when: event.order == 'x'},"));
    let store = MemoryStore::new();
    let source = SHOP.replace("PAY: {},", "PAY: {when: event.order == 'x'},");
    store.put_charter(&stored(&source)).unwrap();
    let (mut driver, first) = Driver::start(&machine, "a");
    let refused = pay(&mut driver, "o1");
    assert_eq!(refused.record.refusal.as_ref().unwrap().code.word(), "guard");
    store.append(vec![first, refused]).unwrap();
    assert_eq!(holder(&store, "o1"), None);
}

#[test]
fn two_threads_cannot_have_one_key() {
    let folder = Folder::new();
    let machine = machine(SHOP);
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    let mut runs: Vec<_> = (0..4).map(|i| started(&store, &machine, &format!("r{i}"))).collect();
    for order in ["o1", "o2", "o3"] {
        let barrier = Barrier::new(runs.len());
        let won: Vec<bool> = std::thread::scope(|scope| {
            let (store, barrier) = (&store, &barrier);
            let threads: Vec<_> = runs
                .iter_mut()
                .map(|run| {
                    scope.spawn(move || {
                        let before = run.clone();
                        let append = pay(run, order);
                        barrier.wait();
                        let result = store.append(vec![append]);
                        if result.is_err() {
                            *run = before;
                        }
                        match result {
                            Ok(()) => true,
                            Err(StoreError::KeyTaken { .. }) => false,
                            Err(e) => panic!("{e}"),
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(won.iter().filter(|w| **w).count(), 1);
    }
    assert!(verify(&store, None).unwrap().is_verified());
}

pub(crate) fn findings(store: &dyn Store) -> Vec<String> {
    verify(store, None).unwrap().findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_table_that_does_not_match_is_found_and_rebuilt() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(SHOP);
    {
        let store = SqliteStore::open(&file).unwrap();
        let [mut a, mut b] = ["a", "b"].map(|run| started(&store, &machine, run));
        store.append(vec![pay(&mut a, "o1"), pay(&mut a, "o2")]).unwrap();
        store.append(vec![pay(&mut b, "o3")]).unwrap();
    }
    for change in [
        "DELETE FROM unique_keys WHERE key = '\"o1\"'",
        "UPDATE unique_keys SET run = 'b' WHERE key = '\"o1\"'",
        "UPDATE unique_keys SET n = 17 WHERE key = '\"o1\"'",
        "INSERT INTO unique_keys(event, key, run, seq, n) VALUES ('PAY', '\"o9\"', 'a', 1, 1)",
    ] {
        rusqlite::Connection::open(&file).unwrap().execute_batch(change).unwrap();
        let store = SqliteStore::open(&file).unwrap();
        assert_eq!(
            findings(&store),
            ["table `unique_keys` does not match the records; run `charter rebuild`"],
            "{change}"
        );
        store.rebuild().unwrap();
        assert_eq!(findings(&store), [""; 0]);
        let holders = ["o1", "o2", "o3", "o9"].map(|order| holder(&store, order));
        assert_eq!(holders, [Some("a".into()), Some("a".into()), Some("b".into()), None]);
    }
}

#[test]
fn two_records_with_one_key_are_found() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(SHOP);
    {
        let store = SqliteStore::open(&file).unwrap();
        let mut a = started(&store, &machine, "a");
        let mut b = started(&store, &machine, "b");
        store.append(vec![pay(&mut a, "o1")]).unwrap();
        // As a program without this rule would write it.
        rusqlite::Connection::open(&file).unwrap().execute_batch("UPDATE unique_keys SET key = 'x'").unwrap();
        store.append(vec![pay(&mut b, "o1")]).unwrap();
        store.rebuild().unwrap();
        assert_eq!(holder(&store, "o1").as_deref(), Some("a"));
    }
    let store = SqliteStore::open(&file).unwrap();
    let expected = "run `b`, record 1: it accepts `PAY` with the key \"o1\", which is unique across runs, but record 1 of run `a` has that key";
    assert_eq!(findings(&store), [expected]);
}

const ENDING: &str = "
charter: 1
id: shop
events: {PAY: {unique: {key: event.order}}}
states: {open: {on: {PAY: paid}}, paid: {type: final}}
";

fn ended(store: &dyn Store, machine: &Machine, run: &str, order: &str) -> Result<Record, StoreError> {
    store.put_charter(&stored(ENDING)).unwrap();
    let (mut driver, first) = Driver::start(machine, run);
    let paid = pay(&mut driver, order);
    store.append(vec![first, paid.clone()]).map(|()| paid.record)
}

fn deletion(run: &str) -> Deletion {
    Deletion { run: run.into(), reason: "old".into(), by: "ana".into(), at: Timestamp(T0) }
}

#[test]
fn a_deleted_run_keeps_its_keys() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(ENDING);
    let mut exported = Vec::new();
    {
        let store = SqliteStore::open(&file).unwrap();
        ended(&store, &machine, "a", "o1").unwrap();
        ended(&store, &machine, "b", "o2").unwrap();
        export(&store, "a", &mut exported).unwrap();
        store.delete(deletion("a")).unwrap();
        store.rebuild().unwrap();
        assert_eq!(findings(&store), [""; 0]);
    }
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(holder(&store, "o1").as_deref(), Some("a"));
    assert_eq!(ended(&store, &machine, "c", "o1").unwrap_err(), taken("c", 1, "o1", "a"));
    // The run itself can be imported again, and deleted.
    import(&store, &mut exported.as_slice()).unwrap();
    assert_eq!(findings(&store), [""; 0]);
    store.rebuild().unwrap();
    store.delete(deletion("a")).unwrap();
    assert_eq!(findings(&store), [""; 0]);
    assert_eq!(["o1", "o2"].map(|order| holder(&store, order)).map(Option::unwrap), ["a", "b"]);
    drop(store);
    // The keys of a deleted run have no records any more, but its deletion has their digest.
    rusqlite::Connection::open(&file).unwrap().execute_batch("DELETE FROM unique_keys WHERE key = '\"o1\"'").unwrap();
    let store = SqliteStore::open(&file).unwrap();
    let expected = "table `unique_keys`: the keys of run `a` are not those that it had when it was deleted";
    assert_eq!(findings(&store), [expected]);
}

#[test]
fn a_run_whose_keys_are_taken_is_not_imported() {
    let machine = machine(SHOP);
    on_each_store(|store| {
        let other = MemoryStore::new();
        let mut driver = started(&other, &machine, "theirs");
        other.append(vec![pay(&mut driver, "o1")]).unwrap();
        let mut exported = Vec::new();
        export(&other, "theirs", &mut exported).unwrap();
        let mut ours = started(store, &machine, "ours");
        store.append(vec![pay(&mut ours, "o1")]).unwrap();
        let error = import(store, &mut exported.as_slice()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "run `theirs`, record 1: run `ours` has accepted `PAY` with the key \"o1\", which is unique across runs"
        );
        assert_eq!(store.run("theirs").unwrap(), None);
        // A run with a free key takes it.
        let other = MemoryStore::new();
        let mut driver = started(&other, &machine, "more");
        other.append(vec![pay(&mut driver, "o2")]).unwrap();
        let mut exported = Vec::new();
        export(&other, "more", &mut exported).unwrap();
        import(store, &mut exported.as_slice()).unwrap();
        assert_eq!(store.append(vec![pay(&mut ours, "o2")]), Err(taken("ours", 2, "o2", "more")));
    });
}

#[test]
fn a_file_without_the_table_gets_it() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(SHOP);
    drop(started(&SqliteStore::open(&file).unwrap(), &machine, "a"));
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.execute_batch("DROP TABLE unique_keys; DROP INDEX interventions_run; PRAGMA user_version = 3").unwrap();
    drop(sql);
    let store = SqliteStore::open_read_only(&file).unwrap();
    assert_eq!((holder(&store, "o1"), findings(&store)), (None, vec![]));
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    let mut b = started(&store, &machine, "b");
    store.append(vec![pay(&mut b, "o1")]).unwrap();
    assert_eq!((holder(&store, "o1").as_deref(), findings(&store)), (Some("b"), vec![]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12, 500)))]

    /// Random orders of random runs, in batches, with restarts and rebuilds: a key is accepted
    /// once, and by the run that the store names.
    #[test]
    fn no_key_is_accepted_twice(
        acts in prop::collection::vec((0usize..3, prop::collection::vec((0usize..3, 0u8..5), 1..4)), 1..24),
    ) {
        let folder = Folder::new();
        let file = folder.file("journal.db");
        let machine = machine(SHOP);
        let mut store = SqliteStore::open(&file).unwrap();
        let memory = MemoryStore::new();
        let mut runs: Vec<_> = ["a", "b", "c"].map(|run| {
            started(&memory, &machine, run);
            started(&store, &machine, run)
        }).into();
        for (what, sends) in acts {
            match what {
                0 => {
                    drop(store);
                    store = SqliteStore::open(&file).unwrap();
                }
                1 => store.rebuild().unwrap(),
                _ => {}
            }
            let before = runs.clone();
            let batch: Vec<Append> = sends.iter().map(|(run, order)| pay(&mut runs[*run], &format!("o{order}"))).collect();
            let result = store.append(batch.clone());
            prop_assert_eq!(&memory.append(batch), &result);
            if result.is_err() {
                runs = before;
            }
        }
        let mut accepted = std::collections::BTreeMap::new();
        for run in ["a", "b", "c"] {
            for record in store.records(run, 1, 1_000).unwrap() {
                let key = record.unique.as_ref().unwrap().key.clone();
                prop_assert_eq!(accepted.insert(key.to_string(), run), None);
                prop_assert_eq!(store.key_holder("PAY", &key).unwrap(), Some(run.to_owned()));
            }
        }
        prop_assert_eq!(findings(&store), Vec::<String>::new());
    }
}
