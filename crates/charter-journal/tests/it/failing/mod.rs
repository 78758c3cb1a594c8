//! Tests that acknowledged records survive and nothing is written twice: on a full disk, after
//! partial writes, while another program locks the file, and if a process dies between any two
//! writes.

mod locking;
mod power_cut;
mod processes;

use std::path::Path;

use crate::common::*;
use charter_journal::{
    Append, MemoryStore, RunFilter, SqliteOptions, SqliteStore, Store, StoreError, StoredSnapshot, load, verify,
};
use charter_kernel::{Digest, Machine, Principal};
use serde_json::json;

/// Continues a run from its state in the store.
fn resume<'m>(store: &SqliteStore, machine: &'m Machine, run: &str) -> Driver<'m> {
    let loaded = load(store, machine, run).unwrap();
    Driver::resume(machine, loaded.chain, loaded.snapshot, T0 + 1_000_000)
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_space() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(LOOSE);
    let by = Principal::default();
    let mut acknowledged = 0;
    {
        let (mut driver, first) = Driver::start(&machine, "a");
        let options = SqliteOptions { max_bytes: 400_000, ..SqliteOptions::default() };
        let store = SqliteStore::open_with(&file, &options).unwrap();
        store.put_charter(&stored(LOOSE)).unwrap();
        store.append(vec![first]).unwrap();
        let text = "x".repeat(50_000);
        store.put_snapshot("a", &StoredSnapshot { seq: 0, text }).unwrap();
        let refused = loop {
            let append = driver.send("SET", json!("x".repeat(3_000)), &by);
            match store.append(vec![append.clone()]) {
                Ok(()) => acknowledged += 1,
                Err(e) => {
                    assert_eq!(
                        e.to_string(),
                        "nothing was written: the disk is full, or the file has reached its size limit; fix the cause and try again"
                    );
                    break append;
                }
            }
        };
        assert!(acknowledged > 20, "{acknowledged}");
        // The error is the same every time, and reading still works.
        assert!(matches!(store.append(vec![refused.clone()]), Err(StoreError::NotWritten { .. })));
        assert_eq!(store.run("a").unwrap().unwrap().seq, acknowledged);
        assert_eq!(store.stopped(), None);
        assert!(store.full_for().is_some());
        // Once there is space again, the same record is accepted.
        store.forget_snapshots().unwrap();
        store.append(vec![refused]).unwrap();
        assert_eq!(store.full_for(), None);
        acknowledged += 1;
        assert_eq!(store.container_problems().unwrap(), Vec::<String>::new());
    }
    let store = SqliteStore::open(&file).unwrap();
    let mut driver = resume(&store, &machine, "a");
    assert_eq!(driver.chain.next_seq(), acknowledged + 1);
    let append = driver.send("SET", json!("x".repeat(3_000)), &by);
    store.append(vec![append]).unwrap();
    assert_eq!(verify(&store, None).unwrap().findings, []);
}

#[test]
fn a_lock_held_by_another_program_loses_nothing() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    store.put_charter(&stored(LOOSE)).unwrap();
    let machine = machine(LOOSE);
    let (mut driver, first) = Driver::start(&machine, "a");
    store.append(vec![first]).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = driver.send("GO", json!({}), &Principal::default());
    assert_eq!(
        store.append(vec![append.clone()]).unwrap_err().to_string(),
        "nothing was written: another program is writing to the file; fix the cause and try again"
    );
    other.execute_batch("ROLLBACK").unwrap();
    store.append(vec![append]).unwrap();
    assert_eq!(store.run("a").unwrap().unwrap().seq, 1);
}

/// Number of events in the workload.
const EVENTS: usize = 200;

/// Builds a fixed workload of two interleaved runs, with snapshots, effects, timers and refusals.
fn workload() -> Vec<Append> {
    let (desk, loose) = (machine(DESK), machine(LOOSE));
    let acts = some_acts(EVENTS / 2 - 1);
    let runs = [drive(&desk, "a", &acts), drive(&loose, "b", &acts)];
    let [a, b] = runs.map(Vec::into_iter);
    let all: Vec<_> = a.zip(b).flat_map(|(a, b)| [a, b]).collect();
    assert_eq!(all.len(), EVENTS);
    all
}

fn put_charters(store: &SqliteStore) {
    for source in [DESK, LOOSE] {
        store.put_charter(&stored(source)).unwrap();
    }
}

/// Returns the number of events of the workload in a store, after checking that they are a prefix
/// of it.
fn kept(store: &SqliteStore) -> usize {
    let seqs = ["a", "b"].map(|run| store.run(run).unwrap().map(|r| r.seq as usize + 1));
    let [a, b] = seqs.map(Option::unwrap_or_default);
    assert!(a == b || a == b + 1, "{a} of one run, {b} of the other");
    a + b
}

/// Reopens a store after a crash and checks that it contains all acknowledged events and at most
/// one more, that it can be verified, and that the workload continues to the same end.
fn recovers(file: &Path, acknowledged: usize, workload: &[Append]) {
    let store = SqliteStore::open(file).unwrap();
    let kept = kept(&store);
    assert!(kept == acknowledged || kept == acknowledged + 1, "{acknowledged} acknowledged, {kept} stored");
    if kept == 0 {
        // The charters are part of the workload.
        put_charters(&store);
    }
    for append in workload.iter().skip(kept) {
        store.append(vec![append.clone()]).unwrap();
    }
    assert_eq!(verify(&store, None).unwrap().findings, []);
    for last in workload.iter().rev().take(2) {
        let info = store.run(&last.record.run).unwrap().unwrap();
        assert_eq!((info.seq, info.hash), (last.record.seq, last.record.hash));
    }
}

#[test]
fn the_same_events_give_the_same_heads_in_memory_and_in_a_file() {
    let workload = workload();
    let folder = Folder::new();
    let memory = MemoryStore::new();
    let file = SqliteStore::open(&folder.file("journal.db")).unwrap();
    // The records are the same in one batch and in many.
    let heads = [(&memory as &dyn Store, EVENTS), (&file, 1)].map(|(store, batch)| {
        for source in [DESK, LOOSE] {
            store.put_charter(&stored(source)).unwrap();
        }
        for batch in workload.chunks(batch) {
            store.append(batch.to_vec()).unwrap();
        }
        let runs = store.runs(&RunFilter::default()).unwrap();
        runs.into_iter().map(|r| r.hash).collect::<Vec<Digest>>()
    });
    assert_eq!(heads[0], heads[1]);
    assert_eq!(heads[0].len(), 2);
}
