//! An action that only copies data may fail for some of it: `error.execution` follows, and the rest
//! of the block is not done. That is behavior which no sample stands for.

use charter_check::{Options, Report, Verdict};

use crate::support::{all, report_with};

/// A charter whose event `E` has the fields `data` and the actions `actions`.
fn charter(data: &str, context: &str, actions: &str) -> String {
    format!(
        "roles: {{a: {{}}}}
events: {{E: {{by: a, data: {{type: object, additionalProperties: false, {data}}}}}}}
context: {{{context}}}
initial: s
states:
  s: {{on: {{E: {{actions: {actions}}}, error.execution: bad}}}}
  bad: {{type: final}}
properties: [{{id: p, never: in('bad')}}]
"
    )
}

fn check(source: &str) -> (Report, Option<Verdict>) {
    let report = report_with(source, &Options { max_states: 200, effort: 2_000, ..Options::default() });
    let verdict = report.findings.iter().find(|f| f.code.starts_with("property-")).unwrap().verdict;
    (report, verdict)
}

#[test]
fn a_copy_that_may_fail_is_not_all_behavior() {
    let fraction = "required: [x], properties: {x: {type: number}}";
    let optional = "properties: {x: {type: integer}}";
    let nested = "required: [x], properties: {x: {type: object, properties: {k: {type: string}}}}";
    for (data, context, actions) in [
        (fraction, "v: 1", "{assign: {v: = event.x}}"),
        (optional, "v: null", "{assign: {v: = event.x}}"),
        (optional, "v: null", "{log: = event.x}"),
        (optional, "v: null", "{emit: {type: k, data: {z: = event.x}}}"),
        (optional, "v: null", "{assign: {v: {a: [= event.x]}}}"),
        (nested, "v: null, w: null", "[{assign: {v: = event.x}}, {assign: {w: = context.v.k}}]"),
    ] {
        let source = charter(data, context, actions);
        let (report, verdict) = check(&source);
        assert_ne!(verdict, Some(Verdict::Proved), "{source}{:#?}", all(&report));
        let wrong = report.findings.iter().find(|f| {
            ["state-not-reached", "transition-not-taken"].contains(&f.code) && f.verdict == Some(Verdict::Proved)
        });
        assert_eq!(wrong, None, "{source}");
        assert!(!report.explored.complete, "{source}");
    }
}

#[test]
fn a_copy_that_cannot_fail_is_no_way_to_an_error() {
    let text = "required: [x], properties: {x: {type: string, maxLength: 10}}";
    let (report, verdict) = check(&charter(text, "v: null", "{assign: {v: = event.x}}"));
    assert_eq!(verdict, Some(Verdict::Proved), "{:#?}", all(&report));
}

#[test]
fn a_copy_of_what_the_run_itself_has_may_fail_on_one_of_two_ways() {
    let source = "
events: {ONE: {}, HALF: {}, GO: {}}
context: {from: null, to: 1}
initial: a
states:
  a:
    on:
      ONE: {target: b, actions: {assign: {from: 1}}}
      HALF: {target: b, actions: {assign: {from: 1.5}}}
  b: {on: {GO: {actions: {assign: {to: = context.from}}}, error.execution: bad}}
  bad: {type: final}
properties: [{id: p, never: in('bad')}]
";
    let (report, verdict) = check(source);
    assert_eq!(verdict, Some(Verdict::Violated), "{:#?}", all(&report));
}
