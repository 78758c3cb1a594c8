//! Tests the writer with commits that fail before any write, in the middle, during the sync, or
//! after it (the last two cannot be distinguished from outside). The faults are injected at every
//! commit of a workload of 60 events (200 with `CHARTER_TESTS=full`).

use charter_kernel::{Envelope, Event, Machine, Principal, Snapshot};
use charter_test_support::{Folder, cases};
use rusqlite::ffi;
use serde_json::json;

use super::*;
use crate::chain::Chain;
use crate::replay::load;
use crate::sqlite::head::Heads;
use crate::sqlite::ids::Ids;
use crate::sqlite::{SqliteOptions, SqliteStore};
use crate::store::{Append, Store, StoredCharter};
use crate::verify::verify;

const CHARTER: &str = "
charter: 1
id: pump
context: {n: 0}
events: {GO: {}, ASK: {}}
states:
  a: {on: {GO: {target: b, actions: {assign: {n: '= context.n + 1'}}}}, after: {60s: b}}
  b: {on: {GO: a, ASK: {actions: [{emit: {type: ASKED, data: {n: '= context.n'}}}]}}}
";

pub(in crate::sqlite) fn charter() -> (Machine, StoredCharter) {
    let definition = charter_test_support::definition(CHARTER);
    let stored = StoredCharter::new(&definition, "pump.yaml", CHARTER);
    (Machine::compile(definition).unwrap(), stored)
}

/// A minimal host that sends events to one run: step, append, and only then advance.
pub(in crate::sqlite) struct Host<'m> {
    pub(in crate::sqlite) machine: &'m Machine,
    pub(in crate::sqlite) chain: Chain,
    pub(in crate::sqlite) snapshot: Option<Snapshot>,
}

impl Host<'_> {
    pub(in crate::sqlite) fn next(&self) -> (Append, Option<Snapshot>) {
        let seq = self.chain.next_seq();
        let at = 1_795_255_200_000 + i64::try_from(seq).unwrap();
        let kind = if seq.is_multiple_of(3) { "ASK" } else { "GO" };
        let by = Principal::new("ana", &[]);
        let (envelope, outcome) = match &self.snapshot {
            None => {
                let start = Envelope::host(0, Event::Start { input: json!({}) }, at);
                let outcome = self.machine.start(self.chain.run(), &start);
                (start, outcome)
            }
            Some(before) => {
                let event = Envelope::event(seq, kind, json!({}), by, at);
                let outcome = self.machine.step(before, &event);
                (event, outcome)
            }
        };
        let before = self.snapshot.as_ref();
        let id = format!("event {seq}");
        let append = self.chain.append(self.machine, Some(&id), &envelope, before, &outcome);
        let after = outcome.ok().map(|s| s.snapshot);
        (append, after.or_else(|| self.snapshot.clone()))
    }

    pub(in crate::sqlite) fn advance(&mut self, append: &Append, after: Option<Snapshot>) {
        self.chain.advance(append);
        self.snapshot = after;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitFault {
    Before,
    Torn,
    Sync,
    After,
    Full,
}

fn error(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

/// Returns a commit function that fails once, at the commit with index `at`.
fn failing(fault: CommitFault, mut at: usize) -> impl Committing {
    move |writing: &mut Writing<'_>, jobs: &mut Jobs<'_>| {
        if at > 0 {
            at -= 1;
            return commit(writing, jobs);
        }
        at = usize::MAX;
        let begin = |w: &Writing<'_>| w.connection.execute_batch("BEGIN IMMEDIATE");
        match fault {
            CommitFault::Before => Err(error(ffi::SQLITE_IOERR)),
            CommitFault::Torn => {
                begin(writing)?;
                perform(writing, jobs)?;
                Err(error(ffi::SQLITE_IOERR_WRITE))
            }
            // SQLite rolls back when a sync fails.
            CommitFault::Sync => {
                begin(writing)?;
                perform(writing, jobs)?;
                writing.connection.execute_batch("ROLLBACK")?;
                Err(error(ffi::SQLITE_IOERR_FSYNC))
            }
            CommitFault::After => {
                commit(writing, jobs)?;
                Err(error(ffi::SQLITE_IOERR_FSYNC))
            }
            CommitFault::Full => {
                begin(writing)?;
                perform(writing, jobs)?;
                Err(error(ffi::SQLITE_FULL))
            }
        }
    }
}

/// Sends events until the run has `events` records. Returns how many records were acknowledged, and
/// the failure that stopped the sender, if any.
fn send(store: &SqliteStore, machine: &Machine, events: u64) -> (u64, Option<StoreError>) {
    let mut host = match store.run("r").unwrap() {
        None => Host { machine, chain: Chain::new("r"), snapshot: None },
        Some(_) => {
            let loaded = load(store, machine, "r").unwrap();
            Host { machine, chain: loaded.chain, snapshot: loaded.snapshot }
        }
    };
    while host.chain.next_seq() < events {
        let (append, after) = host.next();
        match store.append(vec![append.clone()]) {
            Ok(()) => host.advance(&append, after),
            Err(e) => return (host.chain.next_seq(), Some(e)),
        }
    }
    (events, None)
}

#[test]
fn a_commit_that_fails_loses_nothing_and_writes_nothing_twice() {
    let (machine, stored) = charter();
    // One file receives the whole workload; before every event, the faults are injected into copies
    // of it.
    let base = Folder::new();
    let options = SqliteOptions { ids_at_once: 3, ..SqliteOptions::default() };
    let open = |folder: &Folder| SqliteStore::open_with(&folder.file("journal.db"), &options).unwrap();
    open(&base).put_charter(&stored).unwrap();
    for sent in 0..u64::from(cases(60, 200)) {
        let expected = {
            let ahead = Folder::new();
            std::fs::copy(base.file("journal.db"), ahead.file("journal.db")).unwrap();
            let store = open(&ahead);
            assert_eq!(send(&store, &machine, sent + 3), (sent + 3, None));
            store.run("r").unwrap().unwrap().hash
        };
        let all = [CommitFault::Before, CommitFault::Torn, CommitFault::Sync, CommitFault::After, CommitFault::Full];
        // Inject two of the five faults at every event.
        let turn = usize::try_from(sent).unwrap();
        for fault in [all[turn % 5], all[(turn + 2) % 5]] {
            let folder = Folder::new();
            std::fs::copy(base.file("journal.db"), folder.file("journal.db")).unwrap();
            fails_once(&folder, &machine, sent, fault);
            let store = open(&folder);
            assert_eq!(send(&store, &machine, sent + 3), (sent + 3, None));
            assert_eq!(store.run("r").unwrap().unwrap().hash, expected, "{fault:?}");
            if sent.is_multiple_of(9) {
                assert_eq!(verify(&store, None).unwrap().findings, []);
            }
        }
        assert_eq!(send(&open(&base), &machine, sent + 1), (sent + 1, None));
    }
}

/// Injects a fault into the next commit and checks what the sender receives.
fn fails_once(folder: &Folder, machine: &Machine, sent: u64, fault: CommitFault) {
    let options = SqliteOptions { ids_at_once: 3, ..SqliteOptions::default() };
    let store = SqliteStore::open_committing(&folder.file("journal.db"), &options, failing(fault, 0)).unwrap();
    let (acknowledged, failure) = send(&store, machine, sent + 3);
    assert_eq!(acknowledged, sent, "{fault:?}");
    let failure = failure.unwrap();
    if fault == CommitFault::Full {
        // The store stays usable.
        assert!(matches!(failure, StoreError::NotWritten { .. }), "{failure}");
        assert_eq!(store.stopped(), None);
        assert_eq!(send(&store, machine, sent + 2), (sent + 2, None));
        return;
    }
    assert!(failure.to_string().starts_with("writing the journal failed: "), "{failure}");
    // The writer has stopped for all jobs; reading still works.
    let again = store.put_blob(b"x").unwrap_err();
    assert!(matches!(again, StoreError::Stopped { .. }), "{again}");
    assert!(store.stopped().is_some());
    let kept = store.run("r").unwrap().map_or(0, |r| r.seq + 1);
    assert_eq!(kept, sent + u64::from(fault == CommitFault::After), "{fault:?}");
}

#[test]
fn a_failing_job_does_not_affect_others_in_its_commit() {
    let (machine, stored) = charter();
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    store.put_charter(&stored).unwrap();
    assert_eq!(send(&store, &machine, 3), (3, None));
    drop(store);
    // A row occupies the key of record 1 of the next run.
    rusqlite::Connection::open(folder.file("journal.db"))
        .unwrap()
        .execute_batch(
            "INSERT INTO records SELECT NULL, 's', 1, id, at, type, verdict, hash, json FROM records LIMIT 1",
        )
        .unwrap();
    let connection = rusqlite::Connection::open(folder.file("journal.db")).unwrap();
    let heads = Heads::open(&connection, &folder.file("journal.db"), None).unwrap();
    let mut writing = Writing::new(&connection, heads, Ids::open(&connection, 0).unwrap());
    let start = |run: &str| {
        let mut host = Host { machine: &machine, chain: Chain::new(run), snapshot: None };
        let (first, after) = host.next();
        host.advance(&first, after);
        vec![first, host.next().0]
    };
    let [t, s] = ["t", "s"].map(|run| Request { job: Job::Append(start(run)), reply: Box::new(drop) });
    let (sender, requests) = std::sync::mpsc::channel();
    assert!(sender.send(s).is_ok());
    let (health, stats) = (Health::default(), CommitStats::default());
    let mut jobs = Jobs::new(t, &requests, &stats);
    let results = write(&mut writing, &mut jobs, &health, &mut commit);
    assert!(
        matches!(&results[1], Err(StoreError::Damaged(why)) if why.contains("with the key of a new record")),
        "{results:?}"
    );
    assert_eq!(results[0], Ok(()));
    assert_eq!(health.stopped(), None);
}
