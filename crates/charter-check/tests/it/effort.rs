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

/// Ten independent toggles, which have more states than the effort suffices for. Each event raises
/// another one `times` times, and reads a list of so many items.
fn toggles(times: usize, items: usize) -> String {
    let list: Vec<String> = (0..items).map(|i| i.to_string()).collect();
    let (mut events, mut on, mut context, mut all) = (String::new(), String::new(), String::new(), String::new());
    for i in 0..10 {
        let _ = write!(
            events,
            "T{i}: {{data: {{type: object, required: [now], properties: {{now: {{type: boolean}}}}}}}}, "
        );
        let _ = write!(
            on,
            "T{i}: {{when: 'event.now && context.l.size() > 0', actions: [{{assign: {{t{i}: '= !context.t{i}', c: 0}}}}, {{raise: AGAIN}}]}}, "
        );
        let _ = write!(context, "t{i}: false, ");
        let _ = write!(all, "context.t{i} && ");
    }
    format!(
        "events: {{{events}AGAIN: {{}}}}
context: {{{context}c: 0, l: [{}]}}
states:
  a:
    on: {{{on} AGAIN: {{when: context.c < {times}, actions: [{{assign: {{c: '= context.c + 1'}}}}, {{raise: AGAIN}}]}}}}
properties: [{{id: p, never: '{all} context.c < 0 && context.l.size() == 0'}}]
",
        list.join(", ")
    )
}

/// The steps from above, and the edges from below, of an exploration that the effort ends.
#[track_caller]
fn steps(times: usize, items: usize) -> (usize, usize) {
    let report = report_with(&toggles(times, items), &Options { effort: 400, ..Options::default() });
    assert!(!report.explored.complete, "{:#?}", all(&report));
    (report.explored.abstract_steps, report.explored.edges)
}

#[test]
fn an_event_that_raises_others_costs_as_much_as_they_do() {
    let (few, many) = (steps(1, 1), steps(300, 1));
    assert!(few.0 > many.0 * 2 && many.0 > 0, "steps from above: {few:?}, {many:?}");
    assert!(few.1 > many.1 * 5 && many.1 > 0, "edges from below: {few:?}, {many:?}");
}

#[test]
fn states_with_long_values_cost_what_comparing_them_does() {
    let (short, long) = (steps(1, 1), steps(1, 5_000));
    assert!(short.1 > long.1 * 2 && long.1 > 0, "edges from below: {short:?}, {long:?}");
}

#[test]
fn properties_that_cost_much_are_paid_for_from_below() {
    let charter = |items: usize| {
        let list: Vec<String> = (0..items).map(|i| i.to_string()).collect();
        format!(
            "events: {{GO: {{}}}}
context: {{l: [{}], n: 0}}
states: {{a: {{on: {{GO: {{actions: {{assign: {{n: '= context.n + 1'}}}}}}}}}}}}
properties: [{{id: p, never: 'context.l.exists(x, x * 3 == 7 + context.n * 0) || context.n < 0'}}]
",
            list.join(", ")
        )
    };
    let states =
        |items: usize| report_with(&charter(items), &Options { effort: 40, ..Options::default() }).explored.states;
    let (short, long) = (states(1), states(500));
    assert!(short > long * 5 && long > 0, "{short}, {long}");
}
