//! Measures durable events per second through the embedded host with journals in files. Each round
//! measures events with sender-supplied ids and events without them: their rate, and the CPU time
//! of the process per event, which depends less on the disk.
//!
//! `cargo bench -p charter-runtime` takes about a minute; `-- quick` measures less. The files are
//! in the system's temporary folder; set `TMPDIR` to measure another disk.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::sync::Arc;
use std::time::Instant;

use charter_actors::Folder;
use charter_journal::SqliteStore;
use charter_kernel::Principal;
use charter_runtime::{Charter, Limits, Options, Runtime, SendEvent, Start};
use cpu_time::ProcessTime;
use serde_json::json;

const CHARTER: &str = "
charter: 1
id: bench
context: {count: 0}
events: {NEXT: {data: {type: object, required: [message], properties: {message: {type: string}}}}}
initial: one
states:
  one: {on: {NEXT: {target: two, actions: {assign: {count: '= context.count + 1'}}}}, after: {24h: two}}
  two: {on: {NEXT: one}}
";

/// A case: whether events have ids, and whether the runs were restored from a journal with more
/// events than a run remembers the ids of.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    ids: bool,
    old: bool,
}

const CASES: [Case; 4] = [
    Case { name: "with ids, runs with a long past", ids: true, old: true },
    Case { name: "without ids, runs with a long past", ids: false, old: true },
    Case { name: "with ids, new runs", ids: true, old: false },
    Case { name: "without ids, new runs", ids: false, old: false },
];

fn main() {
    let quick = std::env::args().any(|a| a == "quick");
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for clients in [1, 8, 64] {
        let events = if quick { 2_000 } else { 10_000 } / clients;
        let rounds = if quick { 3 } else { 7 };
        let mut rates = [const { Vec::new() }; CASES.len()];
        let mut times = [const { Vec::new() }; CASES.len()];
        for _ in 0..rounds {
            for (i, case) in CASES.iter().enumerate() {
                let (rate, cpu_us) = tokio.block_on(measure(*case, clients, events));
                rates[i].push(rate);
                times[i].push(cpu_us);
            }
        }
        let (rates, times) = (rates.map(median), times.map(median));
        println!("\n{clients} clients, each with a run of its own (median of {rounds} rounds)");
        for (i, case) in CASES.iter().enumerate() {
            let without = CASES.iter().position(|other| other.old == case.old && !other.ids).unwrap();
            let (rate, cpu_us) = (rates[i], times[i]);
            println!(
                "  {:<36} {rate:>9.0}/s ({:>4.2} of those without ids), {cpu_us:>6.1} us of CPU ({:>4.2})",
                case.name,
                rate / rates[without],
                cpu_us / times[without]
            );
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn open(file: &std::path::Path) -> (Runtime, charter_kernel::Digest) {
    let store = Arc::new(SqliteStore::open(file).unwrap());
    let limits = Limits { events_per_second: 0, ..Limits::default() };
    let (runtime, _) = Runtime::open(store, Options { limits, ..Options::default() }).await.unwrap();
    let document = charter_format::read(CHARTER, "bench.yaml", &Default::default()).unwrap();
    let charter = runtime.add(Charter::new(&document, Folder::None).unwrap()).await.unwrap().digest();
    (runtime, charter)
}

/// Events per second, and microseconds of CPU time per event.
async fn measure(case: Case, clients: usize, events: usize) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal.db");
    let (mut runtime, charter) = open(&file).await;
    for client in 0..clients {
        let by = Principal::new("ann", &[]);
        let run = Some(format!("r{client}"));
        runtime.start(Start { charter, run, input: json!(null), by }).await.unwrap();
    }
    if case.old {
        send(&runtime, clients, 300, "old", true).await;
        runtime.shutdown(std::time::Duration::ZERO).await;
        drop(runtime);
        runtime = open(&file).await.0;
    }
    let (begin, cpu) = (Instant::now(), ProcessTime::now());
    send(&runtime, clients, events, "new", case.ids).await;
    let count = (clients * events) as f64;
    (count / begin.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64() * 1e6 / count)
}

/// Sends the events of each client, one after the other.
async fn send(runtime: &Runtime, clients: usize, events: usize, name: &'static str, ids: bool) {
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let runtime = runtime.clone();
            tokio::spawn(async move {
                let run = format!("r{client}");
                for n in 0..events {
                    let event = SendEvent::new(&run, "NEXT", json!({"message": "hello"}), Principal::new("ann", &[]));
                    let event = if ids { event.id(&format!("{name}-{client}-{n:08}")) } else { event };
                    runtime.send(event).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}
