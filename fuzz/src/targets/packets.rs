//! Lines of `charter conform omen`.

use std::sync::LazyLock;

use charter_format::{ReadOptions, read};
use charter_kernel::Machine;
use charter_scenario::conform::{Judge, StreamClock};
use charter_scenario::lines::RawLine;

/// Maximum number of lines of an input.
const LINES: usize = 64;

static OMEN: LazyLock<Machine> = LazyLock::new(|| {
    let text = include_str!("../../../charters/omen/charter.yaml");
    let document = read(text, "omen", &ReadOptions::default()).unwrap();
    Machine::compile(document.definition).unwrap()
});

pub(crate) fn run(data: &[u8]) {
    let judge = || Judge::new(&OMEN, &StreamClock::Stream).unwrap();
    let (mut judge, mut other) = (judge(), judge().without_fast_path());
    for (number, line) in (1..).zip(data.split(|byte| *byte == b'\n').take(LINES)) {
        let line = RawLine::Bytes(line);
        let text = serde_json::to_string(&judge.line(number, &line)).unwrap();
        assert_eq!(serde_json::to_string(&other.line(number, &line)).unwrap(), text);
    }
}
