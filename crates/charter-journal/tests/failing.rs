//! What is acknowledged survives, and nothing is written twice: on a full disk, when another program holds the file, when a process dies
//! between any two writes.

mod common;

use std::path::Path;

use charter_journal::{
    SqliteOptions, SqliteStore, Store, StoreError, StoredSnapshot, load, verify,
};
use charter_kernel::{Machine, Principal};
use common::*;
use serde_json::json;

/// The run goes on from what the store has; its end.
fn resume<'m>(store: &SqliteStore, machine: &'m Machine, run: &str) -> Driver<'m> {
    let loaded = load(store, machine, run).unwrap();
    Driver {
        machine,
        chain: loaded.chain,
        snapshot: loaded.snapshot,
        now: T0 + 1_000_000,
    }
}

fn limited(file: &Path, max_bytes: u64) -> SqliteStore {
    SqliteStore::open_with(file, &SqliteOptions { max_bytes }).unwrap()
}

#[test]
fn a_full_disk_refuses_what_has_no_room_and_takes_it_when_there_is_room() {
    let folder = Folder::new("full");
    let file = folder.file();
    let machine = machine(LOOSE);
    let by = Principal::default();
    let mut acknowledged = 0;
    {
        let (mut driver, first) = Driver::start(&machine, "a");
        let store = limited(&file, 400_000);
        store.put_charter(&stored(LOOSE)).unwrap();
        store.append(vec![first]).unwrap();
        let text = "x".repeat(50_000);
        store
            .put_snapshot("a", &StoredSnapshot { seq: 0, text })
            .unwrap();
        let refused = loop {
            let append = driver.send("SET", json!("x".repeat(3_000)), &by);
            match store.append(vec![append.clone()]) {
                Ok(()) => acknowledged += 1,
                Err(e) => {
                    assert_eq!(
                        e.to_string(),
                        "nothing was written: the disk is full (or the file has reached its size limit); mend that and try again"
                    );
                    break append;
                }
            }
        };
        assert!(acknowledged > 20, "{acknowledged}");
        // Still the same, again and again; reading goes on.
        assert!(matches!(
            store.append(vec![refused.clone()]),
            Err(StoreError::NotWritten { .. })
        ));
        assert_eq!(store.run("a").unwrap().unwrap().seq, acknowledged);
        assert_eq!(store.stopped(), None);
        // There is room again: the same record is taken.
        store.forget_snapshots().unwrap();
        store.append(vec![refused]).unwrap();
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
