//! Measures the packets per second of the complete `charter conform omen`: each line is parsed,
//! validated, stepped through the machine with all its rules, and reported. The same run measures,
//! for comparison, parsing alone, and parsing with a general JSON Schema validator. Run it with
//! `cargo bench -p charter-scenario --bench conform`; it uses one thread.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use std::hint::black_box;

use charter_format::ReadOptions;
use charter_kernel::Machine;
use charter_scenario::conform::{Judge, StreamClock};
use charter_scenario::lines::RawLine;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use serde_json::Value as Json;

const OMEN: &str = include_str!("../../../charters/omen/charter.yaml");
/// One episode, from its first observation until a person ends it: 19 lines of 1.9 kB each, with
/// two verification loops and a `WRITE` with its token.
const EPISODE: &str = include_str!("episode.jsonl");
const EPISODES: usize = 200;
/// The number of episodes that are interleaved line by line.
const CONCURRENT: usize = 4;

fn main() {
    divan::main();
}

fn omen() -> Machine {
    let document = charter_format::read(OMEN, "omen", &ReadOptions::default()).expect("the charter");
    Machine::compile(document.definition).expect("the charter")
}

/// Returns the lines of distinct, interleaved episodes.
fn stream() -> Vec<String> {
    let mut lines = Vec::new();
    for group in (0..EPISODES).step_by(CONCURRENT) {
        for line in EPISODE.lines() {
            for episode in group..group + CONCURRENT {
                let line = line.replace("corr_0", &format!("corr_{episode}"));
                lines.push(line.replace("pkt_0_", &format!("pkt_{episode}_")));
            }
        }
    }
    lines
}

fn counts(lines: &[String]) -> (ItemsCount, BytesCount) {
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    (ItemsCount::new(lines.len()), BytesCount::new(bytes))
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn conform(bencher: Bencher<'_, '_>) {
    let machine = omen();
    let lines = stream();
    let (items, bytes) = counts(&lines);
    bencher.counter(items).counter(bytes).bench_local(|| {
        let mut judge = Judge::new(&machine, &StreamClock::Stream).expect("a stream");
        let mut out = Vec::new();
        for (number, line) in (1..).zip(&lines) {
            let judgment = judge.line(number, &RawLine::Bytes(line.as_bytes()));
            assert!(judgment.valid, "{judgment:?}");
            out.clear();
            serde_json::to_writer(&mut out, &judgment).expect("JSON");
            black_box(&out);
        }
    });
}

/// Measures what it costs any program to parse the lines to JSON values.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn peer_serde_json_value(bencher: Bencher<'_, '_>) {
    let lines = stream();
    let (items, bytes) = counts(&lines);
    bencher.counter(items).counter(bytes).bench_local(|| {
        for line in &lines {
            black_box(serde_json::from_str::<Json>(line).expect("JSON"));
        }
    });
}

/// Like `peer_serde_json_value`, but also validates each packet with the crate `jsonschema`; the
/// schemas are compiled once.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn peer_value_and_jsonschema(bencher: Bencher<'_, '_>) {
    let machine = omen();
    let events = &machine.definition().events;
    let validators: std::collections::BTreeMap<&str, jsonschema::Validator> = events
        .iter()
        .filter_map(|(name, event)| {
            let schema = event.data.as_ref()?;
            let validator = jsonschema::draft202012::new(schema).expect("a schema");
            Some((name.as_str(), validator))
        })
        .collect();
    let lines = stream();
    let (items, bytes) = counts(&lines);
    bencher.counter(items).counter(bytes).bench_local(|| {
        for line in &lines {
            let value: Json = serde_json::from_str(line).expect("JSON");
            if let Some(kind) = value["header"]["packet_type"].as_str() {
                assert!(validators[kind].is_valid(&value));
            }
        }
    });
}
