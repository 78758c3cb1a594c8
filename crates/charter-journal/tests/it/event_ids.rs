//! Tests of the table `event_ids`: it is filled in bulk, survives crashes, is compared with the
//! records and can be rebuilt.

use charter_journal::{Append, SqliteOptions, SqliteStore, Store, StoreError, verify};
use charter_kernel::{Envelope, Machine, Principal};
use serde_json::json;

use crate::common::*;

/// Opens a file that adds event ids to their table in groups of `at_once`.
fn open(folder: &Folder, at_once: u64) -> SqliteStore {
    let options = SqliteOptions { ids_at_once: at_once, ..SqliteOptions::default() };
    SqliteStore::open_with(&folder.file("journal.db"), &options).unwrap()
}

/// Sends an event with an id.
fn send(driver: &mut Driver<'_>, id: &str) -> Append {
    let by = Principal::new("ana", &["clerk"]);
    let envelope = Envelope::event(driver.chain.next_seq(), "SET", json!({"n": 1}), by, driver.now);
    driver.apply(envelope, Some(id))
}

/// Builds the next event of a run, with an id, without advancing the driver.
fn event(driver: &Driver<'_>, id: &str) -> Append {
    send(&mut driver.clone(), id)
}

/// Starts a run and sends events with the ids `k0`, `k1`, ....
fn started<'m>(store: &SqliteStore, machine: &'m Machine, run: &str, events: usize) -> Driver<'m> {
    store.put_charter(&stored(LOOSE)).unwrap();
    let (mut driver, first) = Driver::start(machine, run);
    let mut appends = vec![first];
    for n in 0..events {
        appends.push(send(&mut driver, &format!("k{n}")));
    }
    for batch in appends.chunks(40) {
        store.append(batch.to_vec()).unwrap();
    }
    driver
}

/// The number of ids in the table, after every group that was due has been added.
fn in_table(store: &SqliteStore) -> u64 {
    // The job is taken after the ids of earlier ones have been added.
    store.put_blob(b"").unwrap();
    let sql = "SELECT count(*) FROM event_ids";
    store.query(|c| c.query_row(sql, [], |row| row.get::<_, u32>(0))).unwrap().into()
}

fn taken(run: &str, id: &str, seq: u64) -> Result<(), StoreError> {
    Err(StoreError::IdTaken { run: run.into(), id: id.into(), seq })
}

/// Checks that the ids `k0` to `k(n-1)` of a run are recognized and that `new` is not.
fn recognizes(store: &SqliteStore, driver: &Driver<'_>, run: &str, n: u64) {
    for k in [0, 1, n / 2, n - 1] {
        let id = format!("k{k}");
        assert_eq!(store.append(vec![event(driver, &id)]), taken(run, &id, k + 1));
        assert_eq!(store.find(run, &id).unwrap().unwrap().seq, k + 1);
    }
    assert_eq!(store.find(run, "new").unwrap(), None);
    assert_eq!(store.find(run, &format!("{run}/0")).unwrap(), None);
    assert_eq!(store.container_problems().unwrap(), Vec::<String>::new());
}

#[test]
fn ids_are_added_in_groups_and_recognized_before_and_after() {
    let machine = machine(LOOSE);
    for at_once in [1, 40, 64, 1_000] {
        let folder = Folder::new();
        let store = open(&folder, at_once);
        let mut a = started(&store, &machine, "a", 100);
        let b = started(&store, &machine, "b", 20);
        let expected = if at_once == 1_000 { 0..=0 } else { 60..=120 };
        assert!(expected.contains(&in_table(&store)), "{at_once}: {}", in_table(&store));
        recognizes(&store, &a, "a", 100);
        recognizes(&store, &b, "b", 20);
        // Opened again, the writer knows nothing yet.
        drop(store);
        let store = open(&folder, at_once);
        recognizes(&store, &b, "b", 20);
        recognizes(&store, &a, "a", 100);
        store.append(vec![send(&mut a, "new")]).unwrap();
        assert_eq!(store.append(vec![event(&a, "new")]), taken("a", "new", 101));
    }
}

#[test]
fn a_run_with_more_ids_than_are_remembered_recognizes_all() {
    let machine = machine(LOOSE);
    let folder = Folder::new();
    for at_once in [2_000, 10_000] {
        let run = format!("r{at_once}");
        let store = open(&folder, at_once);
        let driver = started(&store, &machine, &run, 4_500);
        drop(store);
        let store = open(&folder, at_once);
        recognizes(&store, &driver, &run, 4_500);
        store.append(vec![event(&driver, "new")]).unwrap();
    }
}

#[test]
fn many_records_without_ids_do_not_make_later_openings_slow() {
    let machine = machine(LOOSE);
    let folder = Folder::new();
    let store = open(&folder, 2);
    store.put_charter(&stored(LOOSE)).unwrap();
    let (mut driver, first) = Driver::start(&machine, "a");
    store.append(vec![first]).unwrap();
    for _ in 0..30 {
        let append = driver.send("GO", json!({}), &Principal::default());
        store.append(vec![append]).unwrap();
    }
    assert_eq!(in_table(&store), 0);
    let until = |c: &rusqlite::Connection| c.query_row("SELECT n FROM event_ids_until", [], |row| row.get::<_, i64>(0));
    assert!((24..=31).contains(&store.query(until).unwrap()));
}

/// Changes a closed file with SQL from outside.
fn change(folder: &Folder, sql: &str) {
    rusqlite::Connection::open(folder.file("journal.db")).unwrap().execute_batch(sql).unwrap();
}

/// What turns a file into one that was written before the table existed.
const FORMER: &str = "DROP TABLE event_ids; DROP TABLE event_ids_until;
    CREATE INDEX records_id ON records(run, id) WHERE id <> run || '/' || seq;";

#[test]
fn a_file_that_was_written_before_the_table_existed_gets_it() {
    let machine = machine(LOOSE);
    let folder = Folder::new();
    let driver = started(&open(&folder, 0), &machine, "a", 50);
    change(&folder, FORMER);
    {
        let reader = SqliteStore::open_read_only(&folder.file("journal.db")).unwrap();
        assert_eq!(verify(&reader, None).unwrap().findings, []);
        assert_eq!(reader.find("a", "k7").unwrap().unwrap().seq, 8);
        assert_eq!(reader.find("a", "new").unwrap(), None);
    }
    let store = open(&folder, 0);
    assert_eq!(in_table(&store), 50);
    recognizes(&store, &driver, "a", 50);
    assert_eq!(verify(&store, None).unwrap().findings, []);
    let former = "SELECT count(*) FROM sqlite_schema WHERE name = 'records_id'";
    assert_eq!(store.query(|c| c.query_row(former, [], |row| row.get::<_, u32>(0))).unwrap(), 0);
}

#[test]
fn changes_to_the_table_are_reported_and_rebuilt() {
    let machine = machine(LOOSE);
    for sql in [
        "DELETE FROM event_ids WHERE id = 'k3'",
        "DELETE FROM event_ids",
        "INSERT INTO event_ids VALUES ('a', 'other', 3)",
        "INSERT INTO event_ids VALUES ('b', 'other', 3)",
        "UPDATE event_ids SET id = 'other' WHERE id = 'k3'",
        "UPDATE event_ids SET run = 'b' WHERE id = 'k3'",
        "UPDATE event_ids SET seq = 9 WHERE id = 'k3'",
        "UPDATE event_ids SET seq = 2 WHERE id = 'k3'",
        "DELETE FROM event_ids_until",
        "UPDATE event_ids_until SET n = 3",
    ] {
        let folder = Folder::new();
        let driver = started(&open(&folder, 10), &machine, "a", 10);
        change(&folder, sql);
        let found = |store: &SqliteStore| -> Vec<String> {
            verify(store, None).unwrap().findings.iter().map(ToString::to_string).collect()
        };
        let reader = SqliteStore::open_read_only(&folder.file("journal.db")).unwrap();
        let expected = ["table `event_ids` does not match the records; run `charter rebuild`"];
        assert_eq!(found(&reader), expected, "{sql}");
        drop(reader);
        let store = open(&folder, 10);
        store.rebuild().unwrap();
        assert_eq!(found(&store), Vec::<String>::new(), "{sql}");
        recognizes(&store, &driver, "a", 10);
    }
}

#[test]
fn a_row_that_names_another_record_is_damage_and_not_a_repetition() {
    let machine = machine(LOOSE);
    let folder = Folder::new();
    let driver = started(&open(&folder, 10), &machine, "a", 10);
    change(&folder, "INSERT INTO event_ids VALUES ('a', 'new', 3)");
    let store = open(&folder, 10);
    let why = "the journal is damaged: the table `event_ids` names a record of run `a` for the event id `new` that does not have it; run `charter verify` for details";
    assert_eq!(store.append(vec![event(&driver, "new")]).unwrap_err().to_string(), why);
    assert_eq!(store.find("a", "new").unwrap_err().to_string(), why);
    assert_eq!(store.stopped(), None);
}

#[test]
fn a_position_beyond_the_last_record_is_lowered() {
    let machine = machine(LOOSE);
    let folder = Folder::new();
    let mut driver = started(&open(&folder, 10), &machine, "a", 10);
    change(&folder, "UPDATE event_ids_until SET n = 999");
    let store = open(&folder, 10);
    store.append(vec![send(&mut driver, "new")]).unwrap();
    drop(store);
    let store = open(&folder, 10);
    assert_eq!(store.append(vec![event(&driver, "new")]), taken("a", "new", 11));
}

#[test]
fn tables_that_are_missing_or_different_are_made_again() {
    let machine = machine(LOOSE);
    for sql in [
        "DROP TABLE event_ids",
        "DROP TABLE event_ids_until",
        "DROP TABLE event_ids; CREATE VIEW event_ids AS SELECT 1",
        "ALTER TABLE event_ids ADD COLUMN mine TEXT",
        "DROP TABLE event_ids_until; CREATE TABLE event_ids_until(mine)",
    ] {
        let folder = Folder::new();
        let driver = started(&open(&folder, 10), &machine, "a", 10);
        change(&folder, sql);
        let reader = SqliteStore::open_read_only(&folder.file("journal.db")).unwrap();
        assert!(!verify(&reader, None).unwrap().is_verified(), "{sql}");
        assert_eq!(reader.find("a", "k3").unwrap().unwrap().seq, 4, "{sql}");
        drop(reader);
        let store = open(&folder, 10);
        recognizes(&store, &driver, "a", 10);
        assert_eq!(verify(&store, None).unwrap().findings, [], "{sql}");
    }
}

#[test]
fn a_group_that_finds_no_space_is_added_later() {
    let folder = Folder::new();
    let machine = machine(LOOSE);
    let mut driver = started(&open(&folder, 10_000), &machine, "a", 1_000);
    change(&folder, "UPDATE event_ids_until SET n = 0; DELETE FROM event_ids; VACUUM");
    let max_bytes = std::fs::metadata(folder.file("journal.db")).unwrap().len();
    let options = SqliteOptions { max_bytes, ids_at_once: 10, ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&folder.file("journal.db"), &options).unwrap();
    assert_eq!(in_table(&store), 0);
    recognizes(&store, &driver, "a", 1_000);
    assert_eq!(store.stopped(), None);
    drop(store);
    let store = open(&folder, 10);
    assert_eq!(in_table(&store), 1_000);
    store.append(vec![send(&mut driver, "new")]).unwrap();
    assert_eq!(store.append(vec![event(&driver, "new")]), taken("a", "new", 1_001));
}
