//! Tests of what a journal keeps about runs that came from another one.

use std::path::Path;

use charter_journal::{
    AcceptHead, MemoryStore, SqliteOptions, SqliteStore, Store, StoreError, export, fork, import, verify,
};
use charter_kernel::{Digest, Timestamp};
use rusqlite::Connection;

use crate::common::*;
use crate::heads::beside;
use crate::operator::{deletion, finished};

/// A journal with a run `own`, and then the import of a run `r0`.
fn with_import(file: &Path) -> u64 {
    let (source, store) = (MemoryStore::new(), SqliteStore::open(file).unwrap());
    fill(&source, &some_acts(6), "r");
    fill(&store, &some_acts(3), "own");
    let mut text = Vec::new();
    export(&source, "r0", &mut text).unwrap();
    import(&store, &mut text.as_slice()).unwrap();
    source.records("r0", 0, usize::MAX).unwrap().len() as u64
}

fn by_hand(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}

fn findings(file: &Path) -> Vec<String> {
    let report = verify(&SqliteStore::open_read_only(file).unwrap(), None).unwrap();
    report.findings.iter().map(ToString::to_string).collect()
}

fn accepted(file: &Path) -> SqliteStore {
    let accept = AcceptHead { reason: "I did that".into(), by: "ana".into(), at: Timestamp(T0) };
    SqliteStore::open_with(file, &SqliteOptions { accept_head: Some(accept), ..SqliteOptions::default() }).unwrap()
}

#[test]
fn an_import_is_an_entry_of_the_head() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let records = with_import(&file);
    let store = SqliteStore::open(&file).unwrap();
    let head = store.head().unwrap().unwrap();
    assert_eq!(head.entries, head.records + 1);
    assert_eq!((store.imported("r0").unwrap(), store.imported("own0").unwrap()), (records, 0));
    // A fork of it has an entry of its own.
    let machine = charter_journal::machine(&store, store.run("r0").unwrap().unwrap().charter).unwrap();
    fork(&store, &machine, "r0", 1, "f", true).unwrap();
    assert_eq!(store.imported("f").unwrap(), 2);
    store.rebuild().unwrap();
    let report = verify(&store, None).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.remarks, ["from another journal came the runs `r0`, `f`"]);
    drop(store);
    assert_eq!(findings(&file), [""; 0]);
}

#[test]
fn a_removed_or_forged_import_is_a_finding_and_gives_no_trust() {
    let delete = "DELETE FROM interventions WHERE kind = 'imported'";
    let fewer = "UPDATE interventions SET json = json_set(json, '$.records', 1)";
    let other = "UPDATE interventions SET run = 'x', json = json_set(json, '$.run', 'x')";
    let heads = format!("DELETE FROM heads WHERE n IN (SELECT n FROM interventions); {delete}");
    // Also with a hash that is right.
    let attacks = [
        (delete, false, "includes 1 interventions (deletions, imports), but the file has 0"),
        (&heads, false, "but the file has 0"),
        (fewer, false, "has been changed"),
        (fewer, true, "is not one that the head includes"),
        (other, true, "is not one that the head includes"),
    ];
    for (attack, rehash, why) in attacks {
        let folder = Folder::new();
        let file = folder.file("journal.db");
        with_import(&file);
        by_hand(&file, attack);
        if rehash {
            let sql = Connection::open(&file).unwrap();
            let json: String = sql.query_row("SELECT json FROM interventions", [], |row| row.get(0)).unwrap();
            let hash = Digest::of_bytes(json.as_bytes()).to_string();
            sql.execute("UPDATE interventions SET hash = ?1", [hash]).unwrap();
        }
        let found = findings(&file);
        assert!(found.iter().any(|f| f.contains(why)), "{attack}: {found:#?}");
        let refused = SqliteStore::open(&file).unwrap_err();
        assert!(matches!(&refused, StoreError::Head { why: said, .. } if said.contains(why)), "{attack}: {refused}");
        // Also if somebody accepts that.
        drop(accepted(&file));
        let store = SqliteStore::open(&file).unwrap();
        let imported = store.imported("r0");
        assert!(imported.as_ref().is_err_and(|e| e.to_string().contains("came from another journal")), "{attack}");
        assert_eq!(store.imported("own0"), Ok(0));
    }
}

#[test]
fn an_import_that_is_removed_while_the_journal_is_open_gives_no_trust() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    with_import(&file);
    let store = SqliteStore::open(&file).unwrap();
    by_hand(&file, "DELETE FROM interventions");
    let refused = store.imported("r0").unwrap_err().to_string();
    assert!(refused.contains("the entry before its first record is missing, so whether run `r0` came"), "{refused}");
}

/// Earlier versions had a table `imports`, which the head did not cover.
#[test]
fn the_imports_of_an_earlier_version_become_entries() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    fill(&SqliteStore::open(&file).unwrap(), &some_acts(6), "r");
    by_hand(
        &file,
        "DROP INDEX interventions_run; DROP TABLE host_state; PRAGMA user_version = 4;
         CREATE TABLE imports(run TEXT NOT NULL PRIMARY KEY, records INTEGER NOT NULL) STRICT, WITHOUT ROWID;
         INSERT INTO imports SELECT run, seq + 1 FROM runs WHERE run <> 'r1'",
    );
    let read = SqliteStore::open_read_only(&file).unwrap();
    let last = read.run("r0").unwrap().unwrap().seq + 1;
    assert_eq!((read.imported("r0").unwrap(), read.imported("r1").unwrap()), (last, 0));
    let before = read.head().unwrap().unwrap();
    drop(read);
    assert_eq!(findings(&file), [""; 0]);
    for _ in 0..2 {
        let store = SqliteStore::open(&file).unwrap();
        assert_eq!((store.imported("r0").unwrap(), store.imported("r1").unwrap()), (last, 0));
        let head = store.head().unwrap().unwrap();
        assert_eq!((head.records, head.entries), (before.records, before.entries + before.runs - 1));
        assert_eq!(verify(&store, None).unwrap().findings, []);
    }
    assert_eq!(findings(&file), [""; 0]);
    assert!(beside(&file, "-head").exists());
    by_hand(&file, "DELETE FROM interventions WHERE run = 'r0'");
    assert!(matches!(SqliteStore::open(&file), Err(StoreError::Head { .. })));
}

/// The keys of calls are made of the id of the run: another one with it would repeat them.
#[test]
fn the_id_of_a_deleted_run_stays_reserved() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    store.put_charter(&stored(DESK)).unwrap();
    let own = store.put_blob(b"own").unwrap();
    let records = finished("a", own);
    store.append(records.clone()).unwrap();
    store.append(finished("a-2", own)).unwrap();
    let exported = |store: &dyn Store, run: &str| {
        let mut text = Vec::new();
        export(store, run, &mut text).unwrap();
        text
    };
    let whole = exported(&store, "a");
    store.delete(deletion("a")).unwrap();
    store.delete(deletion("a-2")).unwrap();
    let refused = store.append(records.clone()).unwrap_err();
    assert!(matches!(&refused, StoreError::RunDeleted { run, .. } if run == "a"), "{refused}");
    assert!(
        refused.to_string().contains("was deleted at 2026-11-21T10:00:00.000Z; its id stays reserved"),
        "{refused}"
    );
    assert!(refused.to_string().ends_with("choose another one, for example `a-3`"), "{refused}");
    // Neither may an import that lacks what it did, nor another run.
    let other = MemoryStore::new();
    other.put_charter(&stored(DESK)).unwrap();
    other.append(records[..1].to_vec()).unwrap();
    let elsewhere = MemoryStore::new();
    elsewhere.put_charter(&stored(DESK)).unwrap();
    elsewhere.append(finished("a", Digest::of_bytes(b"else"))).unwrap();
    for text in [exported(&other, "a"), exported(&elsewhere, "a")] {
        let refused = import(&store, &mut text.as_slice()).unwrap_err().to_string();
        assert!(refused.contains("only an export that ends with, or goes on after, its record 2"), "{refused}");
    }
    import(&store, &mut whole.as_slice()).unwrap();
    assert_eq!(verify(&store, None).unwrap().findings, []);
}
