//! The work on a proof is limited by its steps, whatever the charter.

use std::fmt::Write as _;

use charter_check::{Options, Verdict};
use charter_test_support::cases;

use crate::support::{all, report_with};

/// Checks with little effort; the property is not decided, and why says how far it came.
#[track_caller]
fn ends(source: &str) {
    let report =
        report_with(source, &Options { max_states: 20, max_plain_states: 20, effort: 60, ..Options::default() });
    let finding = report.findings.iter().find(|f| f.code.starts_with("property-")).unwrap();
    assert_eq!(finding.verdict, Some(Verdict::Undecided), "{:#?}", all(&report));
    let why = ["the effort ended", "one event has too many"];
    assert!(why.iter().any(|why| finding.message.contains(why)), "{}", finding.message);
}

#[test]
fn independent_toggles() {
    let (mut on, mut context, mut always) = (String::new(), String::new(), String::new());
    for i in 0..40 {
        let _ = write!(on, "T{i}: {{when: event.now, actions: {{assign: {{t{i}: '= !context.t{i}'}}}}}}, ");
        let _ = write!(context, "t{i}: false, ");
        let _ = write!(always, "{}context.t{i}", if i == 0 { "" } else { " && " });
    }
    let data = "{data: {type: object, required: [now], properties: {now: {type: boolean}}}}";
    let events: String = (0..40).map(|i| format!("T{i}: {data}, ")).collect();
    ends(&format!(
        "events: {{{events}}}\ncontext: {{{context}}}\nstates: {{a: {{on: {{{on}}}}}}}\nproperties: [{{id: p, never: {always} && context.t0 == null}}]\n"
    ));
}

#[test]
fn many_regions() {
    let regions = cases(100, 2_000);
    let mut states = String::new();
    for i in 0..regions {
        let _ =
            write!(states, "r{i}: {{states: {{a: {{on: {{GO: {{target: b, when: event.n == {i}}}}}}}, b: {{}}}}}}, ");
    }
    ends(&format!(
        "events: {{GO: {{data: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}}}}}}\nstates: {{p: {{type: parallel, states: {{{states}}}}}}}\nproperties: [{{id: p, never: \"in('p.r0.b') && in('p.r1.b') && in('p.r2.b')\"}}]\n"
    ));
}

#[test]
fn many_states() {
    let count = cases(1_000, 5_000);
    let mut states = String::new();
    for i in 0..count {
        let next = (i + 1) % count;
        let _ = writeln!(states, "  s{i}: {{on: {{GO: {{target: s{next}, when: event.n > {i}}}}}}}");
    }
    ends(&format!(
        "events: {{GO: {{data: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}}}}}}\nstates:\n{states}properties: [{{id: p, never: \"in('s{}')\"}}]\n",
        count - 1
    ));
}

/// A property that can be proved, with states that take memory.
const SWITCH: &str = "
events: {GO: {data: {type: object, required: [n], properties: {n: {type: integer}}}}}
context: {on: false}
initial: a
states:
  a: {on: {GO: {target: b, when: event.n > 0, actions: {assign: {on: true}}}}}
  b: {}
properties: [{id: p, never: in('b') && !context.on}]
";

#[test]
fn memory() {
    let verdict = |memory: usize| {
        let options = Options { max_states: 20, max_plain_states: 20, memory, ..Options::default() };
        let report = report_with(SWITCH, &options);
        let finding = report.findings.iter().find(|f| f.code.starts_with("property-")).unwrap();
        (finding.verdict, finding.message.clone())
    };
    assert_eq!(verdict(Options::default().memory).0, Some(Verdict::Proved));
    let (little, why) = verdict(100);
    assert_eq!(little, Some(Verdict::Undecided), "{why}");
    assert!(why.contains("the limit of memory was reached"), "{why}");
}
