//! Checks a charter from code: findings with lines, and the trace that leads to a violated
//! property.
//!
//! `cargo run -p charter --example check`

use std::error::Error;

use charter::check::{Options, Severity, check};
use charter::kernel::Machine;

const SOURCE: &str = "
charter: 1
id: door
events: {OPEN: {}, CLOSE: {}, LOCK: {}}
context: {locked: false}
properties:
  - {id: open-and-locked, never: \"in('opened') && context.locked\"}
states:
  closed: {on: {OPEN: opened, LOCK: {actions: {assign: {locked: true}}}}}
  opened: {on: {CLOSE: closed}}
";

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let document = charter::format::read(SOURCE, "door.yaml", &Default::default())?;
    let machine = Machine::compile(document.definition.clone()).map_err(|problems| format!("{problems:?}"))?;
    let report = check(&document, &machine, &Options::default());
    for finding in &report.findings {
        println!("door.yaml:{}:{}: {}: {}", finding.line, finding.column, finding.code, finding.message);
    }
    println!("{} states explored", report.explored.states);
    assert!(report.findings.iter().any(|f| f.severity == Severity::Error), "LOCK, OPEN violates the property");
    Ok(())
}
