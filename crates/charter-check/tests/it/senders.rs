//! Who starts a run and who answers the task of a person: any principal that may, not the system.

use charter_check::{Options, Report, Verdict};
use charter_scenario::lines::RawLine;
use charter_scenario::step::{LineResult, StepSession};
use serde_json::{Value as Json, json};

use crate::support::{machine, report_with};

fn report(source: &str) -> Report {
    report_with(source, &Options::default())
}

/// The verdict of a property, and its counterexample.
fn verdict(report: &Report, id: &str) -> (Verdict, Vec<Json>) {
    let name = format!("property `{id}` ");
    let found = report.findings.iter().find(|f| f.message.starts_with(&name)).unwrap();
    (found.verdict.unwrap(), found.witness.clone())
}

/// Gives lines to `charter step`, all of them, and returns the last state.
fn step(source: &str, lines: &[Json]) -> Json {
    let machine = machine(source);
    let mut session = StepSession::start(&machine, "run", json!({}), 0, &mut Vec::new()).unwrap();
    let mut out = Vec::new();
    for (line, number) in lines.iter().zip(1..) {
        let text = line.to_string();
        out.clear();
        let result = session.line(number, &RawLine::Bytes(text.as_bytes()), &mut out);
        assert_eq!(result, LineResult::Accepted, "{text}: {}", String::from_utf8_lossy(&out));
    }
    serde_json::from_slice(&out).unwrap()
}

const PAY: &str = r#"
roles: {clerk: {}}
events:
  REQUEST: {by: clerk, data: {type: object, maxProperties: 0}}
actors:
  review: {kind: human, title: Pay it?, by: clerk, output: {type: boolean}, timeout: 24h}
context: {clerk: null, reviewer: null}
initial: open
states:
  open: {on: {REQUEST: {target: reviewing, actions: {assign: {clerk: "= by.id"}}}}}
  reviewing:
    invoke:
      src: review
      onDone:
        - {when: event.output, target: paid, actions: {assign: {reviewer: "= by.id"}}}
        - rejected
      onError: rejected
  paid: {type: final}
  rejected: {type: final}
properties:
  - {id: reviewed, never: in('paid') && context.clerk == context.reviewer}
  - {id: never-ana, never: "in('paid') && context.reviewer == 'ana'"}
  - {id: never-eve, never: "in('paid') && context.reviewer == 'eve'"}
"#;

#[test]
fn a_person_answers_a_task() {
    let found = report(PAY);
    for id in ["reviewed", "never-ana"] {
        let (decided, lines) = verdict(&found, id);
        assert_eq!(decided, Verdict::Violated, "{id}");
        let end = step(PAY, &lines);
        assert_eq!((&end["state"], &end["context"]["reviewer"]), (&json!(["paid"]), &json!("ana")), "{id}");
    }
    // Nobody of this name was tried.
    assert_eq!(verdict(&found, "never-eve").0, Verdict::Undecided);
}

#[test]
fn only_who_may_answer_does() {
    let report = report(&PAY.replace("assign: {reviewer: \"= by.id\"}", "assign: {reviewer: \"= by.roles\"}"));
    let (_, lines) = verdict(&report, "reviewed");
    assert!(lines.iter().all(|line| line["done"].is_null() || line["by"]["roles"] == json!(["clerk"])), "{lines:?}");
}

const OWN: &str = r#"
roles: {clerk: {}}
events: {GO: {by: clerk, data: {type: object, maxProperties: 0}}}
context: {owner: null, role: null}
initial: a
states:
  a:
    entry: {assign: {owner: "= by.id", role: "= by.kind"}}
    always: [{when: "by.id == 'ana'", target: anas}, {when: "by.auth == 'local'", target: local}]
    on: {GO: done}
  anas: {on: {GO: done}}
  local: {on: {GO: done}}
  done: {type: final}
properties:
  - {id: never-ana, never: "context.owner == 'ana'"}
  - {id: never-ana2, never: "in('anas')"}
  - {id: sys, always: "context.owner == 'system'"}
  - {id: kind, never: "context.role == 'agent'"}
"#;

#[test]
fn anybody_may_start_a_run() {
    let found = report(OWN);
    for id in ["never-ana", "never-ana2", "sys"] {
        let (decided, lines) = verdict(&found, id);
        assert_eq!(decided, Verdict::Violated, "{id}");
        assert_eq!(step(OWN, &lines)["context"]["owner"], json!("ana"), "{id}");
    }
    assert_eq!(verdict(&found, "kind").0, Verdict::Undecided);
    assert!(found.findings.iter().all(|f| f.code != "transition-not-taken" && f.code != "state-not-reached"));
}

#[test]
fn who_cancels_a_run_is_not_known() {
    let source = "
context: {who: null}
initial: a
states:
  a: {exit: {assign: {who: '= by.id'}}, after: {1h: b}}
  b: {type: final}
properties: [{id: p, never: context.who == 'zoe'}]
";
    assert_eq!(verdict(&report(source), "p").0, Verdict::Undecided);
}

#[test]
fn events_that_are_raised_have_the_sender_of_the_step() {
    let source = "
events: {GO: {data: {type: object, maxProperties: 0}}}
initial: a
states:
  a: {entry: [{raise: {type: GO}}], on: {GO: [{target: mine, when: by.id == 'ana'}, {target: other}]}}
  mine: {type: final}
  other: {type: final}
properties: [{id: p, never: in('mine')}]
";
    let (decided, lines) = verdict(&report(source), "p");
    assert_eq!(decided, Verdict::Violated);
    assert_eq!(step(source, &lines)["state"], json!(["mine"]));
}

/// The lines say how the run starts: its input, also if it is null, who starts it, and when.
#[test]
fn a_counterexample_can_be_stepped_as_it_is() {
    let null = "
input: {type: [object, 'null']}
events: {GO: {data: {type: object, maxProperties: 0}}}
states:
  a: {on: {GO: [{when: input == null, target: bad}, {target: ok}]}}
  ok: {type: final}
  bad: {type: final}
properties: [{id: p, never: in('bad')}]
";
    let timed = "
events: {E: {data: {type: object, maxProperties: 0}}}
states:
  a: {after: {1s: b}}
  b: {on: {E: {target: bad}}, after: {1s: c}}
  c: {type: final}
  bad: {type: final}
properties: [{id: p, never: in('bad')}]
";
    for source in [null, timed] {
        let (_, lines) = verdict(&report(source), "p");
        assert!(lines[0]["start"].is_object());
        assert_eq!(step(source, &lines)["state"], json!(["bad"]));
    }
}

#[test]
fn two_events_are_tried_with_different_data() {
    for schema in ["{type: string, maxLength: 40}", "{type: integer, minimum: 3}", "{type: string, enum: [x, y]}"] {
        let source = "
events: {SET: {data: {type: object, required: [name], properties: {name: SCHEMA}}}}
context: {a: null, b: null}
initial: one
states:
  one: {on: {SET: {target: two, actions: {assign: {a: '= event.name'}}}}}
  two: {on: {SET: {target: three, actions: {assign: {b: '= event.name'}}}}}
  three: {type: final}
properties: [{id: same, always: \"!in('three') || context.a == context.b\"}]
"
        .replace("SCHEMA", schema);
        let (decided, lines) = verdict(&report(&source), "same");
        assert_eq!(decided, Verdict::Violated, "{schema}");
        assert_eq!(step(&source, &lines)["state"], json!(["three"]));
    }
}
