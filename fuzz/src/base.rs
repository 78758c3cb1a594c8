//! The journal that is damaged: one run of the charter `desk`, the same each time.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use charter_format::{ReadOptions, read};
use charter_journal::{Append, Chain, JournalHead, MemoryStore, Record, SqliteStore, Store, StoredCharter, export};
use charter_kernel::{Envelope, Event, Machine, Principal};
use serde_json::json;
use tempfile::TempDir;

pub(crate) const RUN: &str = "r";

const DESK: &str = include_str!("../charters/desk.yaml");

/// The contents of files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// A journal file of a process that was killed: most records are in its log.
pub(crate) struct Base {
    pub(crate) files: Files,
    pub(crate) head: JournalHead,
}

static WORK: LazyLock<(StoredCharter, Vec<Append>)> = LazyLock::new(work);

static BASE: LazyLock<Base> = LazyLock::new(|| {
    let folder = folder();
    let store = SqliteStore::open(&folder.path().join("journal.db")).unwrap();
    fill(&store);
    let files = ["journal.db", "journal.db-head", "journal.db-wal"];
    let files = files.map(|name| (name.to_owned(), std::fs::read(folder.path().join(name)).unwrap())).into();
    Base { files, head: store.head().unwrap().unwrap() }
});

fn work() -> (StoredCharter, Vec<Append>) {
    let definition = read(DESK, "desk.yaml", &ReadOptions::default()).unwrap().definition;
    let stored = StoredCharter::new(&definition, "desk.yaml", DESK);
    let machine = Machine::compile(definition).unwrap();
    let by = Principal::new("ana", &["clerk", "boss"]);
    let mut chain = Chain::new(RUN);
    let mut appends = Vec::new();
    let start = Envelope::host(0, Event::Start { input: json!({}) }, 1_795_255_200_000);
    let started = machine.start(RUN, &start);
    appends.push(chain.append(&machine, None, &start, None, &started));
    let mut snapshot = started.unwrap().snapshot;
    chain.advance(&appends[0]);
    for (n, name) in ["ASK", "APPROVE", "ASK", "VOTE", "ASK", "NOTHING", "FLAG", "VOTE"].into_iter().enumerate() {
        let seq = chain.next_seq();
        let at = 1_795_255_200_000 + 1_000 * i64::try_from(seq).unwrap();
        let event = Envelope::event(seq, name, json!({"amount": n}), by.clone(), at);
        let outcome = machine.step(&snapshot, &event);
        let append = chain.append(&machine, Some(&format!("id {n}")), &event, Some(&snapshot), &outcome);
        chain.advance(&append);
        appends.push(append);
        if let Ok(step) = outcome {
            snapshot = step.snapshot;
        }
    }
    (stored, appends)
}

fn fill(store: &dyn Store) {
    store.put_charter(&WORK.0).unwrap();
    for append in &WORK.1 {
        store.append(vec![append.clone()]).unwrap();
    }
}

/// A folder in memory, if there is one.
pub(crate) fn folder() -> TempDir {
    let memory = tempfile::Builder::new().prefix("charter-fuzz-").tempdir_in("/dev/shm");
    memory.unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

pub(crate) fn files() -> &'static Base {
    &BASE
}

pub(crate) fn records() -> Vec<Record> {
    WORK.1.iter().map(|append| append.record.clone()).collect()
}

/// The run as an export.
pub(crate) fn exported() -> String {
    let store = MemoryStore::new();
    fill(&store);
    let mut out = Vec::new();
    export(&store, RUN, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}
