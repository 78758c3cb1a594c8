//! The text of a charter.

use charter_format::{Diagnostics, Document, ReadOptions, json, read};
use charter_kernel::{Envelope, Event, Machine, Principal};
use serde_json::json;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some(document) = checked(text, read(text, "charter.yaml", &ReadOptions::default())) else {
        return;
    };
    if let Ok(written) = json(&document.definition) {
        let again = read(&written, "charter.json", &ReadOptions::default());
        let again = again.unwrap_or_else(|e| panic!("written, but not read: {}\n{written}", e.render(false)));
        assert_eq!(again.definition, document.definition, "{written}");
    }
    if let Some(machine) = compiled(document) {
        steps(&machine);
    }
}

/// Checks that errors have a place and a reason.
pub(crate) fn checked(text: &str, read: Result<Document, Diagnostics>) -> Option<Document> {
    match read {
        Ok(document) => Some(document),
        Err(problems) => {
            assert!(!problems.list.is_empty(), "refused without a reason");
            for problem in &problems.list {
                assert!(problem.line > 0 && !problem.message.is_empty(), "{problem:?}");
                assert!(problem.span.end <= text.len() + 1, "{problem:?}");
            }
            assert!(!problems.render(false).is_empty());
            None
        }
    }
}

pub(crate) fn compiled(document: Document) -> Option<Machine> {
    match Machine::compile(document.definition.clone()) {
        Ok(machine) => Some(machine),
        Err(problems) => {
            assert!(!problems.is_empty(), "not compiled without a reason");
            for problem in &problems {
                assert!(document.diagnose(problem).line > 0, "{problem:?}");
            }
            None
        }
    }
}

/// Starts a machine and sends it its first events.
pub(crate) fn steps(machine: &Machine) {
    let start = Envelope::host(0, Event::Start { input: json!({}) }, 1_000);
    let Ok(step) = machine.start("r", &start) else {
        return;
    };
    let mut snapshot = step.snapshot;
    let names: Vec<String> = machine.definition().events.keys().take(6).cloned().collect();
    let roles: Vec<&str> = machine.definition().roles.keys().map(String::as_str).collect();
    for (seq, name) in (1..).zip(names.iter().map(String::as_str).chain(["GO"])) {
        let event = Envelope::event(seq, name, json!({"n": 1}), Principal::new("ana", &roles), 2_000);
        if let Ok(step) = machine.step(&snapshot, &event) {
            snapshot = step.snapshot;
        }
    }
    let text = machine.snapshot_text(&snapshot);
    let restored = machine.restore(&serde_json::from_str(&text).unwrap());
    assert_eq!(restored.map(|s| machine.snapshot_text(&s)).ok(), Some(text), "a snapshot is not its JSON");
}
