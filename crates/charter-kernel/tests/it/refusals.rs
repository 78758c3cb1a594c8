//! Which of several reasons a refusal names.

use serde_json::json;

use crate::common::Run;

#[test]
fn the_candidate_that_came_furthest_gives_the_code() {
    let chart = "
roles: {a: {}, b: {}}
context: {n: 1}
events: {E: {}}
states:
  s: {on: {E: [{by: b, target: t}, {by: a, when: context.n > 1, target: t}]}}
  t: {}
";
    let mut run = Run::start(chart);
    assert_eq!(run.by("x", &["a"]).refused("E", json!({})), "guard");
    assert_eq!(run.by("x", &[]).refused("E", json!({})), "authority");
}

#[test]
fn what_a_refusal_names_does_not_depend_on_the_order_of_the_transitions() {
    // Two transitions that come equally far, or fail with the same code; what the refusal names.
    for (one, other, code, rule) in [
        ("when: context.n > 1, approves: {value: context.n, not_by: context.me}", "approves: context.n", "stale", None),
        ("approves: {value: context.n, not_by: context.me}", "by: b", "authority", Some("not-by")),
        // The condition of the first one does not hold, so it came less far.
        (
            "when: context.n > 1, approves: {value: context.n, not_by: context.me}",
            "when: context.n > 0, agents: true, quorum: {count: 2, of: b}",
            "authority",
            None,
        ),
        (
            "requires: {none: {kind: o, rule: R2}}",
            "requires: {none: {kind: o, rule: R1}}",
            "obligation.open",
            Some("R1"),
        ),
        ("requires: {none: {kind: o}}", "requires: {none: {kind: o, rule: R1}}", "obligation.open", Some("R1")),
        (
            "requires: {use: {kind: p, key: k, rules: {missing: R1}}}",
            "requires: {none: {kind: o, rule: R2}}",
            "obligation.open",
            Some("R2"),
        ),
    ] {
        let chart = |on: String| {
            format!(
                "
roles: {{a: {{}}, b: {{}}}}
rules: {{R1: one, R2: two}}
ledger: {{o: {{}}, p: {{}}}}
context: {{n: 1, me: ana}}
events: {{E: {{}}}}
states:
  s: {{entry: {{open: {{kind: o, key: k}}}}, on: {{E: [{on}]}}}}
  t: {{}}
"
            )
        };
        let named = |on: String| {
            let mut run = Run::start(&chart(on));
            let refused = run.by("ana", &["a"]).try_send("E", json!({})).map(|_| ()).unwrap_err();
            let candidates = refused.candidates.len();
            (refused.code.word(), refused.rule, refused.message, candidates)
        };
        let forth = named(format!("{{target: t, {one}}}, {{target: t, {other}}}"));
        let back = named(format!("{{target: t, {other}}}, {{target: t, {one}}}"));
        assert_eq!(forth, back);
        assert_eq!((forth.0, forth.1.as_deref(), forth.3), (code, rule, 2), "{one}, {other}");
    }
}
