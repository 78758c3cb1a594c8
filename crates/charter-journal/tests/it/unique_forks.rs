//! Unique keys of forks: a live fork shares the keys of what was done once, and no others.

use charter_journal::{MemoryStore, SqliteStore, Store, export, fork, import, machine as machine_of};
use charter_kernel::{Digest, Machine};

use crate::common::*;
use crate::unique::*;

#[test]
fn a_fork_has_the_records_of_its_origin_without_taking_their_keys() {
    let machine = machine(SHOP);
    on_each_store(|store| {
        let mut a = started(store, &machine, "a");
        store.append(vec![pay(&mut a, "o1"), pay(&mut a, "o2")]).unwrap();
        let digest: Digest = machine.digest();
        let machine = machine_of(store, digest).unwrap();
        let live = fork(store, &machine, "a", 1, "live", false).unwrap();
        let dry = fork(store, &machine, "a", 1, "dry", true).unwrap();
        assert_eq!(holder(store, "o1").as_deref(), Some("a"));
        let mut live = Driver::resume(&machine, live.chain, live.snapshot, T0);
        let mut dry = Driver::resume(&machine, dry.chain, dry.snapshot, T0);
        // A live fork is a run like any other; a dry one repeats what its origin did.
        assert_eq!(store.append(vec![pay(&mut live.clone(), "o2")]), Err(taken("live", 2, "o2", "a")));
        store.append(vec![pay(&mut dry, "o2"), pay(&mut dry, "o3")]).unwrap();
        assert_eq!(holder(store, "o3"), None);
        store.append(vec![pay(&mut live, "o3")]).unwrap();
        assert_eq!(["o1", "o2", "o3"].map(|order| holder(store, order)).map(Option::unwrap), ["a", "a", "live"]);
        assert_eq!(findings(store), [""; 0]);
    });
}

/// A dry fork of a run that accepts an order, which another run pays.
fn dry_and_paid<'m>(store: &dyn Store, machine: &'m Machine) -> Driver<'m> {
    let mut b = started(store, machine, "b");
    drop(started(store, machine, "a"));
    let dry = fork(store, &machine_of(store, machine.digest()).unwrap(), "a", 0, "dry", true).unwrap();
    let mut dry = Driver::resume(machine, dry.chain, dry.snapshot, T0);
    store.append(vec![pay(&mut dry, "o1")]).unwrap();
    store.append(vec![pay(&mut b, "o1")]).unwrap();
    b
}

#[test]
fn a_live_fork_does_not_share_a_key_that_another_run_has() {
    let machine = machine(SHOP);
    on_each_store(|store| {
        let mut b = dry_and_paid(store, &machine);
        let error = fork(store, &machine, "dry", 1, "live", false).unwrap_err();
        assert_eq!(error.to_string(), taken("live", 1, "o1", "b").to_string());
        assert_eq!(store.run("live").unwrap(), None);
        // Also not if the other run is the origin of the dry fork, but has paid after it.
        fork(store, &machine, "b", 0, "dry2", true).unwrap();
        let dry = fork(store, &machine, "dry2", 0, "dry3", true).unwrap();
        let mut dry = Driver::resume(&machine, dry.chain, dry.snapshot, T0);
        store.append(vec![pay(&mut dry, "o1")]).unwrap();
        assert!(fork(store, &machine, "dry3", 1, "live", false).is_err());
        // Another dry fork is possible, and so is a live one of the run that has paid.
        fork(store, &machine, "dry", 1, "drier", true).unwrap();
        fork(store, &machine, "b", 1, "live", false).unwrap();
        store.append(vec![pay(&mut b, "o2")]).unwrap();
        assert_eq!(["o1", "o2"].map(|order| holder(store, order)).map(Option::unwrap), ["b", "b"]);
        assert_eq!(findings(store), [""; 0]);
    });
}

#[test]
fn one_live_fork_of_a_dry_one_takes_its_keys() {
    let machine = machine(SHOP);
    on_each_store(|store| {
        drop(started(store, &machine, "a"));
        let dry = fork(store, &machine, "a", 0, "dry", true).unwrap();
        let mut dry = Driver::resume(&machine, dry.chain, dry.snapshot, T0);
        store.append(vec![pay(&mut dry, "o1")]).unwrap();
        fork(store, &machine, "dry", 1, "live", false).unwrap();
        assert_eq!(holder(store, "o1").as_deref(), Some("live"));
        let error = fork(store, &machine, "dry", 1, "more", false).unwrap_err();
        assert_eq!(error.to_string(), taken("more", 1, "o1", "live").to_string());
        // What was done once is shared by the forks of the run that did it, also through a dry one.
        fork(store, &machine, "live", 1, "dry2", true).unwrap();
        fork(store, &machine, "dry2", 1, "live2", false).unwrap();
        assert_eq!(findings(store), [""; 0]);
    });
}

#[test]
fn a_fork_whose_shared_keys_are_taken_is_not_imported() {
    let machine = machine(SHOP);
    let theirs = MemoryStore::new();
    drop(started(&theirs, &machine, "a"));
    let dry = fork(&theirs, &machine, "a", 0, "dry", true).unwrap();
    let mut dry = Driver::resume(&machine, dry.chain, dry.snapshot, T0);
    theirs.append(vec![pay(&mut dry, "o1")]).unwrap();
    fork(&theirs, &machine, "dry", 1, "live", false).unwrap();
    let mut exported = Vec::new();
    export(&theirs, "live", &mut exported).unwrap();
    // A run of the same name as the origin is not the origin.
    for paid_by in ["b", "dry"] {
        on_each_store(|store| {
            let mut driver = started(store, &machine, paid_by);
            store.append(vec![pay(&mut driver, "o1")]).unwrap();
            let error = import(store, &mut exported.as_slice()).unwrap_err();
            assert_eq!(error.to_string(), taken("live", 1, "o1", paid_by).to_string());
            assert_eq!(store.run("live").unwrap(), None);
        });
    }
}

#[test]
fn a_fork_that_shares_a_key_with_another_run_is_found() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let machine = machine(SHOP);
    {
        let store = SqliteStore::open(&file).unwrap();
        drop(dry_and_paid(&store, &machine));
        // As a program without this rule would write it.
        rusqlite::Connection::open(&file).unwrap().execute_batch("UPDATE unique_keys SET key = 'x'").unwrap();
        fork(&store, &machine, "dry", 1, "live", false).unwrap();
        store.rebuild().unwrap();
    }
    let store = SqliteStore::open(&file).unwrap();
    let expected = "run `live`, record 1: it accepts `PAY` with the key \"o1\", which is unique across runs, but record 1 of run `b` has that key";
    assert_eq!(findings(&store), [expected]);
}
