//! Lines of `charter step`.

use std::sync::LazyLock;

use charter_format::{ReadOptions, read};
use charter_kernel::Machine;
use charter_scenario::lines::RawLine;
use charter_scenario::step::{LineResult, StepSession};
use serde_json::json;

/// Maximum number of lines of an input.
const LINES: usize = 64;

static MACHINES: LazyLock<Vec<Machine>> = LazyLock::new(|| {
    [include_str!("../../../docs/examples/payment.yaml"), include_str!("../../charters/desk.yaml")]
        .map(|text| {
            let document = read(text, "charter.yaml", &ReadOptions::default()).unwrap();
            Machine::compile(document.definition).unwrap()
        })
        .into()
});

pub(crate) fn run(data: &[u8]) {
    for machine in &*MACHINES {
        let mut out = Vec::new();
        let Ok(mut step) = StepSession::start(machine, "r", json!({}), 1_795_255_200_000, &mut out) else {
            panic!("the charter starts");
        };
        for (number, line) in (1..).zip(data.split(|byte| *byte == b'\n').take(LINES)) {
            let text = |step: &StepSession<'_>| machine.snapshot_text(step.session().snapshot());
            let before = text(&step);
            out.clear();
            let result = step.line(number, &RawLine::Bytes(line), &mut out);
            assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok() || out.is_empty());
            if result == LineResult::Invalid {
                assert_eq!(text(&step), before, "an invalid line has an effect");
            }
        }
        let text = machine.snapshot_text(step.session().snapshot());
        let restored = machine.restore(&serde_json::from_str(&text).unwrap());
        assert_eq!(restored.map(|s| machine.snapshot_text(&s)).ok(), Some(text), "a snapshot is not its JSON");
    }
}
