//! Packets per second through the whole of `charter conform omen`: a line is parsed, fitted to its schema, moved through the machine with all
//! its rules, and told. Beside it, in the same run, what parsing alone and parsing with a general JSON Schema validator cost.
//! `cargo bench -p charter-cli --bench conform`; one thread.

use std::hint::black_box;

use charter_cli::conform::{Clock, Judge};
use charter_cli::load::load;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use serde_json::Value as Json;

/// One episode, from its first observation to its end by a person: 19 lines of 1.9 kB, two loops of verification and a WRITE with its token.
const EPISODE: &str = include_str!("episode.jsonl");
const EPISODES: usize = 200;
/// Interleaved line by line.
const AT_ONCE: usize = 4;

fn main() {
    divan::main();
}

/// Episodes of their own, interleaved.
fn stream() -> Vec<String> {
    let mut lines = Vec::new();
    for group in (0..EPISODES).step_by(AT_ONCE) {
        for line in EPISODE.lines() {
            for episode in group..group + AT_ONCE {
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
    let loaded = load("omen").expect("the charter");
    let lines = stream();
    let (items, bytes) = counts(&lines);
    bencher.counter(items).counter(bytes).bench_local(|| {
        let mut judge = Judge::new(&loaded.machine, &Clock::Stream).expect("a stream");
        let mut out = Vec::new();
        for (number, line) in (1..).zip(&lines) {
            let told = judge.line(number, line.as_bytes());
            assert!(told.valid, "{told:?}");
            out.clear();
            serde_json::to_writer(&mut out, &told).expect("JSON");
            black_box(&out);
        }
    });
}

/// What any program pays that makes JSON values of the lines.
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

/// That, and the crate `jsonschema` on the schema of each packet, compiled once.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn peer_value_and_jsonschema(bencher: Bencher<'_, '_>) {
    let loaded = load("omen").expect("the charter");
    let events = &loaded.machine.definition().events;
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
