//! Measures a server in a process of its own, with a journal in a file:
//!
//! - `cargo bench -p charter-server --bench load`: 1,000 idle readers of live streams and 64
//!   writers at once, beside the journal alone with as many writers in the same rounds; memory of
//!   the server; times of answers at half of its load.
//! - `... -- steps`: jobs of six durable steps, embedded and over HTTP, as JSON lines, which
//!   `benches/peers.py` compares with other programs.
//!
//! `quick` measures less. Files are in the temporary folder of the system; set `TMPDIR` to measure
//! another disk.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unwrap_used, missing_docs)]

mod client;
mod host;
mod jobs;
mod journal;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::Connection;
use host::Hosted;
use serde_json::json;

const READERS: usize = 1_000;
const WRITERS: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let has = |word: &str| arguments.iter().any(|a| a == word);
    if let Some(at) = arguments.iter().position(|a| a == "serve") {
        return host::serve(Path::new(&arguments[at + 1]));
    }
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match has("steps") {
        true => threads.block_on(jobs::measure(has("quick"))),
        false => threads.block_on(load(has("quick"))),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn load(quick: bool) {
    let folder = tempfile::tempdir().unwrap();
    let hosted = Hosted::start(&folder.path().join("served.db"));
    println!("memory of the server at its start: {} MB", hosted.resident_mb());
    hosted.start_run("idle").await;
    for writer in 0..WRITERS {
        hosted.start_run(&format!("w{writer}")).await;
    }
    let mut readers = Vec::new();
    for _ in 0..READERS {
        readers.push(hosted.reader("/v1/runs/idle/stream").await);
    }
    println!("with {READERS} idle readers: {} MB", hosted.resident_mb());
    let (rounds, seconds) = if quick { (3, 2) } else { (5, 5) };
    let (mut alone, mut served) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let file = folder.path().join(format!("alone{round}.db"));
        alone.push(journal::rate(&file, WRITERS, Duration::from_secs(seconds)));
        served.push(full(&hosted, Duration::from_secs(seconds)).await);
    }
    let ratios: Vec<f64> = served.iter().zip(&alone).map(|(ours, bare)| ours / bare).collect();
    let (alone, served) = (median(alone), median(served));
    println!("the journal alone, {WRITERS} writers: {alone:.0} records/s");
    println!("POST /events, {WRITERS} writers, {READERS} idle readers: {served:.0}/s");
    println!("ratio: {:.2} (of each round: {})", median(ratios.clone()), shown(&ratios));
    let mut times = paced(&hosted, served / 2.0, Duration::from_secs(seconds * 2)).await;
    times.sort_unstable();
    let at = |part: f64| times[((times.len() as f64 * part) as usize).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!(
        "at half of it ({} events): p50 {:.1} ms, p99 {:.1} ms, slowest {:.1} ms",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    println!("memory of the server at the end: {} MB, at most {} MB", hosted.resident_mb(), hosted.peak_mb());
    let gone = readers.iter_mut().filter(|reader| reader.is_finished()).count();
    println!("readers that lost their stream: {gone}");
}

fn shown(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(", ")
}

/// Events per second of writers who send one event after the other.
async fn full(hosted: &Hosted, time: Duration) -> f64 {
    let begin = Instant::now();
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let target = hosted.target();
            tokio::spawn(async move {
                let mut connection = Connection::open(&target).await;
                let mut sent = 0u32;
                while begin.elapsed() < time {
                    connection.send_event(&format!("w{writer}")).await;
                    sent += 1;
                }
                sent
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    f64::from(sum) / begin.elapsed().as_secs_f64()
}

/// The times of answers to events that are sent at a fixed rate, from the moment when each was due:
/// a slow answer also delays the ones behind it.
async fn paced(hosted: &Hosted, rate: f64, time: Duration) -> Vec<Duration> {
    let interval = Duration::from_secs_f64(WRITERS as f64 / rate);
    let begin = tokio::time::Instant::now() + Duration::from_millis(50);
    let target = Arc::new(hosted.target());
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let target = target.clone();
            tokio::spawn(async move {
                let mut connection = Connection::open(&target).await;
                let mut times = Vec::new();
                // The writers are spread over the interval.
                let mut due = begin + interval.mul_f64(writer as f64 / WRITERS as f64);
                while due < begin + time {
                    tokio::time::sleep_until(due).await;
                    connection.send_event(&format!("w{writer}")).await;
                    times.push(due.elapsed());
                    due += interval;
                }
                times
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    all
}

/// The body of an event that every run of the bench accepts.
fn event() -> String {
    json!({"type": "NEXT", "data": {"message": "Should we raise prices?"}}).to_string()
}
