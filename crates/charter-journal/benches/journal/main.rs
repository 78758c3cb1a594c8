//! Measures the journal and, in the same run, an fsync of the disk and SQLite alone writing the
//! same bytes.
//!
//! `cargo bench -p charter-journal` takes a few minutes; `-- quick` measures less; `-- memory`
//! measures only the sections with that word in their name. Files are in the temporary folder of
//! the system; set `TMPDIR` to measure another disk.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod measure;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use charter_journal::{Append, Chain, MemoryStore, RunFilter, SqliteStore, Store, StoredCharter, replay, verify};
use charter_kernel::{Definition, Envelope, Event, Machine, Principal, Snapshot};
use measure::{Folder, Start, in_turns, per_core, rate};
use serde_json::json;

/// A charter with a timer in each state, a small context, and an effect in every fourth record.
const CHARTER: &str = "
charter: 1
id: bench
roles: {founder: {}}
context: {count: 0, last: null, note: a line of text that stays}
events:
  NEXT: {by: founder, data: {type: object, required: [message], properties: {message: {type: string}}}}
initial: one
states:
  one: {on: {NEXT: {target: two, actions: {assign: {count: '= context.count + 1', last: '= event.message'}}}}, after: {24h: four}}
  two: {on: {NEXT: {target: three, when: 'context.count > 0'}}, after: {24h: four}}
  three: {on: {NEXT: {target: four, actions: [{emit: {type: MOVED, data: {count: '= context.count'}}}]}}, after: {24h: one}}
  four: {on: {NEXT: one}, after: {24h: one}}
";

/// Measures and prints one section.
type Section = fn(&Bench);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let quick = arguments.iter().any(|a| a == "quick");
    let wanted = |name: &str| arguments.iter().filter(|a| *a != "quick").all(|a| name.contains(a.as_str()));
    let bench = Bench { folder: Folder::new(), machine: machine(), quick };
    let sections: [(&str, Section); 5] = [
        ("durable events", durable),
        ("make records", make),
        ("replay and verify in memory", in_memory),
        ("replay and verify in a file", in_a_file),
        ("open 1M records", open),
    ];
    for (name, section) in sections {
        if wanted(name) {
            println!("\n{name}");
            section(&bench);
        }
    }
}

struct Bench {
    folder: Folder,
    machine: Machine,
    quick: bool,
}

fn definition() -> Definition {
    charter_format::read(CHARTER, "bench.yaml", &charter_format::ReadOptions::default()).unwrap().definition
}

fn machine() -> Machine {
    Machine::compile(definition()).unwrap()
}

fn stored() -> StoredCharter {
    StoredCharter::new(&definition(), "bench.yaml", CHARTER)
}

/// A run that builds its records as a host does.
struct Run<'m> {
    machine: &'m Machine,
    chain: Chain,
    snapshot: Option<Snapshot>,
}

impl<'m> Run<'m> {
    fn new(machine: &'m Machine, id: &str) -> Run<'m> {
        Run { machine, chain: Chain::new(id), snapshot: None }
    }

    fn next(&mut self) -> Append {
        let seq = self.chain.next_seq();
        let at = 1_795_255_200_000 + i64::try_from(seq).unwrap() * 1_000;
        let envelope = match seq {
            0 => Envelope::host(0, Event::Start { input: json!({}) }, at),
            _ => Envelope::event(
                seq,
                "NEXT",
                json!({"message": "Should we raise prices?"}),
                Principal::new("ana", &["founder"]),
                at,
            ),
        };
        let outcome = match &self.snapshot {
            None => self.machine.start(self.chain.run(), &envelope),
            Some(before) => self.machine.step(before, &envelope),
        };
        let append = self.chain.append(self.machine, None, &envelope, self.snapshot.as_ref(), &outcome);
        self.chain.advance(&append);
        self.snapshot = Some(outcome.unwrap().snapshot);
        append
    }
}

/// Builds the records of many runs, grouped by run.
fn appends(bench: &Bench, prefix: &str, runs: usize, records: usize) -> Vec<Vec<Append>> {
    (0..runs)
        .map(|i| {
            let mut run = Run::new(&bench.machine, &format!("018f2c7e-{prefix}-7000-8000-{i:012}"));
            (0..records).map(|_| run.next()).collect()
        })
        .collect()
}

fn durable(bench: &Bench) {
    let events = if bench.quick { 1_500 } else { 6_000 };
    let sample = &appends(bench, "size", 1, 20)[0];
    let bytes: usize = sample.iter().map(|a| a.record.text().len()).sum::<usize>() / sample.len();
    println!("  (records of {bytes} bytes)");

    let mut file = std::fs::File::create(bench.folder.file("fsync")).unwrap();
    file.set_len(8 << 20).unwrap();
    let start = Start::now();
    for _ in 0..events {
        file.write_all(&vec![1; bytes]).unwrap();
        file.sync_data().unwrap();
    }
    rate("the disk: write the same bytes, fdatasync", events, start);

    // One run, in which each event waits for its commit.
    let one = appends(bench, "one1", 1, events).remove(0);
    let (alone, ours) = in_turns(
        events,
        ["SQLite alone, a transaction for each", "journal, 1 run"],
        |round| bare(&bench.folder.file(&format!("bare1-{round}")), &one, 1),
        |round| {
            let store = opened(bench, &format!("one{round}"));
            let one = one.clone();
            Box::new(move || {
                for append in one {
                    store.append(vec![append]).unwrap();
                }
            })
        },
    );
    println!("  -> {:.2} x the time of a bare transaction (goal: at most 1.3)", alone / ours);

    for runs in [8, 1_000] {
        let each = (events * if runs == 8 { 4 } else { 20 } / runs).max(10);
        let all = appends(bench, &format!("{runs:04}"), runs, each);
        // The records in the order in which a fair host writes them.
        let mut order = Vec::with_capacity(runs * each);
        for i in 0..each {
            order.extend(all.iter().map(|run| run[i].clone()));
        }
        let (alone, ours) = in_turns(
            runs * each,
            [&format!("SQLite alone, {runs} records a transaction"), &format!("journal, {runs} runs")],
            |round| {
                let file = bench.folder.file(&format!("bare{runs}-{round}"));
                bare(&file, &order, runs);
            },
            |round| {
                let store = Arc::new(opened(bench, &format!("many{runs}-{round}")));
                let all = all.clone();
                Box::new(move || concurrent(&store, all))
            },
        );
        println!("  -> {:.2} x the rate of a bare batched insert (goal: at least 0.8)", ours / alone);
    }
}

fn opened(bench: &Bench, name: &str) -> SqliteStore {
    let store = SqliteStore::open(&bench.folder.file(name)).unwrap();
    store.put_charter(&stored()).unwrap();
    store
}

/// Keeps one event of every run in flight; the next event of a run is submitted once the previous
/// one is durable.
fn concurrent(store: &Arc<SqliteStore>, all: Vec<Vec<Append>>) {
    let (sender, done) = channel();
    let mut waiting: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
    let mut open = 0;
    let submit = |run: usize, append: Append| {
        let sender = sender.clone();
        store.submit(
            vec![append],
            Box::new(move |result| {
                result.unwrap();
                sender.send(run).unwrap();
            }),
        );
    };
    for (run, appends) in waiting.iter_mut().enumerate() {
        if let Some(append) = appends.next() {
            submit(run, append);
            open += 1;
        }
    }
    while open > 0 {
        let run = done.recv().unwrap();
        match waiting[run].next() {
            Some(append) => submit(run, append),
            None => open -= 1,
        }
    }
}

/// Writes a minimal journal without this crate: the records, the head of the run, a pending timer,
/// and some snapshots.
fn bare(path: &Path, appends: &[Append], group: usize) {
    let c = rusqlite::Connection::open(path).unwrap();
    c.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; PRAGMA cache_size = -32768;
         CREATE TABLE records(n INTEGER PRIMARY KEY, run TEXT, seq INTEGER, json TEXT); CREATE UNIQUE INDEX r ON records(run, seq);
         CREATE TABLE runs(run TEXT PRIMARY KEY, seq INTEGER, hash TEXT) WITHOUT ROWID;
         CREATE TABLE timers(run TEXT, timer TEXT, due INTEGER, PRIMARY KEY(run, timer)) WITHOUT ROWID;
         CREATE TABLE snapshots(run TEXT, seq INTEGER, json TEXT);",
    )
    .unwrap();
    c.set_prepared_statement_cache_capacity(32);
    for chunk in appends.chunks(group) {
        c.execute_batch("BEGIN IMMEDIATE").unwrap();
        for Append { record, snapshot, .. } in chunk {
            let (run, seq) = (record.run.as_ref(), i64::try_from(record.seq).unwrap());
            c.prepare_cached("INSERT INTO records(run, seq, json) VALUES (?1, ?2, ?3)")
                .unwrap()
                .execute((run, seq, record.text()))
                .unwrap();
            c.prepare_cached("INSERT OR REPLACE INTO runs VALUES (?1, ?2, ?3)")
                .unwrap()
                .execute((run, seq, record.hash.to_string()))
                .unwrap();
            c.prepare_cached("INSERT OR REPLACE INTO timers VALUES (?1, 'timer', ?2)")
                .unwrap()
                .execute((run, record.at.0))
                .unwrap();
            if let Some(text) = snapshot {
                c.prepare_cached("INSERT INTO snapshots VALUES (?1, ?2, ?3)")
                    .unwrap()
                    .execute((run, seq, text))
                    .unwrap();
            }
        }
        c.execute_batch("COMMIT").unwrap();
    }
}

fn make(bench: &Bench) {
    let n = if bench.quick { 50_000 } else { 300_000 };
    let mut run = Run::new(&bench.machine, "018f2c7e-make-7000-8000-000000000000");
    run.next();
    let start = Start::now();
    for _ in 0..n {
        std::hint::black_box(run.next());
    }
    per_core("kernel step + record + hashes", n, start, "");
    let snapshot = run.snapshot.clone().unwrap();
    let start = Start::now();
    for _ in 0..n {
        std::hint::black_box(bench.machine.snapshot_digest(std::hint::black_box(&snapshot)));
    }
    let bytes = bench.machine.snapshot_text(&snapshot).len();
    per_core(&format!("of it: digest of a snapshot of {bytes} bytes"), n, start, "");
    let append = run.next();
    let start = Start::now();
    for _ in 0..n {
        std::hint::black_box(append.record.envelope().unwrap());
    }
    per_core("a record back to its envelope", n, start, "");
}

fn fill(store: &dyn Store, bench: &Bench, runs: usize, records: usize) {
    store.put_charter(&stored()).unwrap();
    for run in appends(bench, "fill", runs, records) {
        for chunk in run.chunks(1_000) {
            store.append(chunk.to_vec()).unwrap();
        }
    }
}

/// The number of runs and the number of records per run.
fn size(bench: &Bench) -> (usize, usize) {
    (10, if bench.quick { 5_000 } else { 30_000 })
}

fn in_memory(bench: &Bench) {
    let (runs, records) = size(bench);
    let store = MemoryStore::new();
    fill(&store, bench, runs, records);
    replays(bench, &store);
    verifies(bench, &store);
}

fn in_a_file(bench: &Bench) {
    let (runs, records) = size(bench);
    let store = SqliteStore::open(&bench.folder.file("read")).unwrap();
    fill(&store, bench, runs, records);
    replays(bench, &store);
    verifies(bench, &store);
    let start = Start::now();
    assert!(verify(&store, None).unwrap().is_verified());
    // Verification uses two threads, so this measures wall-clock time.
    rate("verify all, with the file and the projections, records", runs * records, start);
    let start = Start::now();
    store.rebuild().unwrap();
    rate("rebuild the projections, records", runs * records, start);
}

fn replays(bench: &Bench, store: &dyn Store) {
    let (runs, records) = size(bench);
    let list = store.runs(&RunFilter::default()).unwrap();
    let all = || {
        for info in &list {
            std::hint::black_box(replay(store, &bench.machine, &info.run, None).unwrap());
        }
    };
    let start = Start::now();
    all();
    per_core(&format!("open a run of {records} records, with snapshots"), runs, start, "");
    store.forget_snapshots().unwrap();
    let start = Start::now();
    all();
    per_core("replay, records", runs * records, start, "goal: 300,000");
}

fn verifies(bench: &Bench, store: &dyn Store) {
    let (runs, records) = size(bench);
    let list = store.runs(&RunFilter::default()).unwrap();
    let start = Start::now();
    for info in &list {
        assert!(verify(store, Some(&info.run)).unwrap().is_verified());
    }
    per_core("verify, records", runs * records, start, "goal: 300,000");
}

fn open(bench: &Bench) {
    let (runs, records) = (1_000, if bench.quick { 100 } else { 1_000 });
    let path = bench.folder.file("open");
    let start = Start::now();
    {
        let store = SqliteStore::open(&path).unwrap();
        store.put_charter(&stored()).unwrap();
        for i in 0..runs {
            let mut run = Run::new(&bench.machine, &format!("018f2c7e-open-7000-8000-{i:012}"));
            store.append((0..records).map(|_| run.next()).collect()).unwrap();
        }
    }
    rate("write them, 1,000 records a transaction", runs * records, start);
    println!("  the file has {} MB", std::fs::metadata(&path).unwrap().len() >> 20);
    let start = Start::now();
    let store = SqliteStore::open(&path).unwrap();
    let list = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(list.len(), runs);
    println!("  open the store and list {runs} runs: {:.1} ms (goal: < 1 s)", start.wall.elapsed().as_secs_f64() * 1e3);
    let start = Start::now();
    std::hint::black_box(replay(&store, &bench.machine, &list[500].run, None).unwrap());
    println!("  load one of them:                {:.2} ms", start.wall.elapsed().as_secs_f64() * 1e3);
}
