//! Timers that fire at one instant, and those that are refused: each is a record of its own.

use charter_check::{Options, Report, Verdict};

use crate::support::report_with;

fn report(source: &str) -> Report {
    report_with(source, &Options::default())
}

fn verdict(report: &Report, id: &str) -> Verdict {
    let name = format!("property `{id}` ");
    report.findings.iter().find(|f| f.message.starts_with(&name)).unwrap().verdict.unwrap()
}

const REFUSED: &str = "
events: {GO: {data: {type: object, maxProperties: 0}}}
initial: a
states:
  a: {after: {1h: b}}
  b: {after: {0ms: c}, on: {GO: d}}
  c: {type: final}
  d: {type: final}
interlocks: [{id: i, assert: \"!in('c')\"}]
properties:
  - {id: b, never: in('b')}
  - {id: d, never: in('d')}
";

#[test]
fn a_timer_that_is_refused_leaves_what_the_one_before_it_did() {
    let rule = REFUSED
        .replace("interlocks: [{id: i, assert: \"!in('c')\"}]", "rules: {R: no}")
        .replace("{0ms: c}", "{0ms: {when: 'true', refuse: R}}");
    for source in [REFUSED, &rule] {
        let found = report(source);
        assert_eq!((verdict(&found, "b"), verdict(&found, "d")), (Verdict::Violated, Verdict::Violated), "{source}");
        let reached = |f: &charter_check::Finding| f.code == "state-not-reached" && !f.message.contains("`c`");
        assert!(!found.findings.iter().any(reached), "{:#?}", found.findings);
    }
}

#[test]
fn a_run_stays_where_its_timer_or_its_answer_is_refused() {
    let timer = "
events: {GO: {data: {type: object, maxProperties: 0}}}
states:
  a: {after: {1h: b}, on: {GO: c}}
  b: {type: final}
  c: {type: final}
interlocks: [{id: i, assert: \"!in('b')\"}]
properties: [{id: e, eventually: in('b') || in('c')}]
";
    let answer = "
events: {GO: {data: {type: object, maxProperties: 0}}}
actors: {w: {kind: exec, command: [cat], timeout: 1h, output: {enum: [1, 2]}}}
states:
  a: {invoke: {src: w, onDone: b, onError: b}, on: {GO: c}}
  b: {type: final}
  c: {type: final}
interlocks: [{id: i, assert: \"!in('b')\"}]
properties: [{id: e, eventually: in('b') || in('c')}]
";
    for source in [timer, answer] {
        assert_ne!(verdict(&report(source), "e"), Verdict::Proved, "{source}");
    }
}

#[test]
fn a_refused_timer_does_not_hold_up_the_others() {
    let regions = "
states:
  p:
    type: parallel
    states:
      x: {initial: x1, states: {x1: {after: {1h: x2}}, x2: {type: final}}}
      y: {initial: y1, states: {y1: {after: {2h: y2}}, y2: {type: final}}}
    onDone: f
  f: {type: final}
interlocks: [{id: i, assert: \"!in('p.x.x2') || in('p.y.y2')\"}]
properties: [{id: e, eventually: in('f')}]
";
    assert_ne!(verdict(&report(regions), "e"), Verdict::Violated);
}

#[test]
fn a_state_between_two_timers_of_one_instant_is_not_proved_away() {
    let source = "
events: {X: {data: {type: object, maxProperties: 0}}}
states:
  a: {after: {1s: b}}
  b: {after: {0ms: c}, entry: {emit: paid}, on: {X: d}}
  c: {type: final}
  d: {type: final}
properties: [{id: nb, never: in('b')}]
";
    let found = report(source);
    assert_ne!(verdict(&found, "nb"), Verdict::Proved);
    assert!(found.findings.iter().all(|f| f.verdict != Some(Verdict::Proved)), "{:#?}", found.findings);
}
