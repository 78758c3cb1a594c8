//! Random streams of legal and mutated packets never reach what OMEN forbids. The monitor
//! implements the protocol independently of the charter and sees only the items and their results.
//! The same streams compare the fast path with the slow path, and the fast schema validator with
//! `jsonschema`.

mod monitor;
mod stream;

use std::collections::BTreeMap;

use charter_format::ReadOptions;
use charter_kernel::Machine;
use charter_scenario::conform::{Judge, StreamClock};
use charter_scenario::lines::RawLine;
use charter_test_support::cases;
use monitor::{Monitor, Seen};
use stream::Stream;

const LINES: u64 = 260;

#[test]
fn random_streams_never_reach_what_omen_forbids() {
    let source = include_str!("../../../../../charters/omen/charter.yaml");
    let document = charter_format::read(source, "omen", &ReadOptions::default()).unwrap();
    let machine = &Machine::compile(document.definition).unwrap();
    let mut second = BTreeMap::new();
    for (name, event) in &machine.definition().events {
        let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
        let options = options.should_validate_formats(true);
        second.insert(name.as_str(), options.build(event.data.as_ref().unwrap()).unwrap());
    }
    let mut sum = Seen::default();
    let streams = u64::from(cases(8, 24));
    for seed in 0..streams {
        let mut judge = Judge::new(machine, &StreamClock::Stream).unwrap();
        let mut slow = Judge::new(machine, &StreamClock::Stream).unwrap().without_fast_path();
        let (mut stream, mut monitor) = (Stream::new(seed), Monitor::default());
        let mut told = Vec::new();
        for number in 1..=LINES {
            let item = stream.next();
            let bytes = item.to_string();
            let raw = RawLine::Bytes(bytes.as_bytes());
            let line = judge.line(number, &raw);
            assert_eq!(line, slow.line(number, &raw), "seed {seed}, line {number}: {bytes}");
            let kind = item.pointer("/header/packet_type").and_then(|t| t.as_str());
            if let Some((kind, validator)) = kind.and_then(|k| second.get_key_value(k)) {
                assert_eq!(machine.surely_fits(kind, &item), validator.is_valid(&item), "{item}");
            }
            let told_now = serde_json::to_string(&line).unwrap();
            told.push(format!("{item}\n    {told_now}"));
            if let Err(wrong) = monitor.look(&item, &line) {
                let tail: Vec<&str> = told.iter().rev().take(30).rev().map(String::as_str).collect();
                panic!("seed {seed}, line {number}: {wrong}\n{}", tail.join("\n"));
            }
            stream.told(&item, &line);
        }
        sum.add(&monitor.seen);
    }
    // The test is meaningless unless the streams come close to forbidden behavior.
    let Seen { accepted, refused, writes, loops, escalations, safe_modes, cleared, overdue } = sum;
    let counts = [accepted, refused, writes, loops, escalations, safe_modes, cleared, overdue];
    assert!(counts.iter().all(|n| *n >= streams * 10 / 24), "{sum:?}");
}
