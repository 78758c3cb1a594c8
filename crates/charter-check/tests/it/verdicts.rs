//! What `check` says is so: nothing is called proved that some data, principals or times refute.

use crate::support::{all, report_with};
use charter_check::{Finding, Options, Report, Severity, Verdict};

fn report(source: &str) -> Report {
    report_with(source, &Options::default())
}

/// The finding about the only property.
#[track_caller]
fn property(report: &Report) -> &Finding {
    let found: Vec<&Finding> = report.findings.iter().filter(|f| f.code.starts_with("property-")).collect();
    assert_eq!(found.len(), 1, "{:#?}", all(report));
    found[0]
}

/// `sat`: its forbidden state `bad` can be reached; `unsat`: it cannot.
#[track_caller]
fn decided(sat: &str, unsat: &str) {
    let found = report(sat);
    assert_eq!(property(&found).verdict, Some(Verdict::Violated), "{:#?}", all(&found));
    assert!(!property(&found).events().is_empty());
    assert!(!found.explored.complete, "data, principals or times have other values, too");
    let found = report(unsat);
    assert_eq!(property(&found).verdict, Some(Verdict::Proved), "{:#?}", all(&found));
}

const NEVER: &str = "properties: [{id: p, never: \"in('bad')\"}]\n";

#[test]
fn a_quorum_beside_the_remembered_proposer_is_found() {
    let charter = |count: u32, not_by: &str| {
        format!(
            "
roles: {{director: {{}}}}
events: {{PROPOSE: {{by: director}}, YES: {{by: director}}}}
context: {{proposer: null}}
states:
  idle: {{on: {{PROPOSE: {{target: asked, actions: {{assign: {{proposer: '= by.id'}}}}}}}}}}
  asked: {{on: {{YES: {{target: bad, quorum: {{count: {count}, of: director}}, when: {not_by}}}}}, after: {{1h: idle}}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    decided(&charter(2, "by.id != context.proposer"), &charter(2, "by.id != by.id"));
    decided(&charter(3, "by.id != context.proposer"), &charter(3, "by.id == context.proposer"));
}

#[test]
fn seven_votes_are_found() {
    let charter = |votes: u32| {
        format!(
            "
events: {{VOTE: {{}}, END: {{}}}}
context: {{voters: []}}
states:
  open:
    on:
      VOTE: {{when: '!(by.id in context.voters) && size(context.voters) < 7', actions: {{assign: {{voters: '= context.voters + [by.id]'}}}}}}
      END: {{target: bad, when: size(context.voters) == {votes}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    decided(&charter(7), &charter(8));
}

#[test]
fn three_different_people_in_a_row_are_found() {
    let charter = |last: &str| {
        format!(
            "
events: {{NEXT: {{}}}}
context: {{a: null, b: null}}
states:
  one: {{on: {{NEXT: {{target: two, actions: {{assign: {{a: '= by.id'}}}}}}}}}}
  two: {{on: {{NEXT: {{target: three, when: by.id != context.a, actions: {{assign: {{b: '= by.id'}}}}}}}}}}
  three: {{on: {{NEXT: {{target: bad, when: {last}}}}}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    decided(&charter("by.id != context.a && by.id != context.b"), &charter("by.id == context.a && by.id == context.b"));
}

#[test]
fn data_is_found_by_solving_linear_conditions() {
    let charter = |when: &str| {
        format!(
            "
events: {{GO: {{data: {{type: object, required: [n], properties: {{n: {{type: integer}}}}}}}}}}
states:
  a: {{on: {{GO: {{target: bad, when: '{when}'}}}}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    decided(&charter("event.n * 7 == 4921"), &charter("event.n * 7 == 4922"));
    decided(&charter("3 - 2 * (event.n + event.n) == -397"), &charter("3 - 2 * (event.n + event.n) == -398"));
    decided(&charter("event.n * 7 > 4921"), &charter("event.n * 0 == 1"));
    // An overflow of the solver is no solution, and no panic.
    let found = report(&charter("event.n * 9223372036854775807 * 2 == 4"));
    assert_eq!(property(&found).verdict, Some(Verdict::Undecided), "{:#?}", all(&found));
    assert!(!found.explored.complete && found.is_undecided());
}

#[test]
fn a_property_of_states_that_were_not_reached_is_not_called_proved() {
    // The condition has no solution that is tried, so `bad` is not seen, but a person can find one.
    let source = format!(
        "
events: {{GO: {{data: {{type: object, required: [s], properties: {{s: {{type: string}}}}}}}}}}
states:
  a: {{on: {{GO: {{target: bad, when: \"event.s.size() == 3 && event.s.matches('^x[0-9]y$')\"}}}}}}
  bad: {{type: final}}
{NEVER}"
    );
    let found = report(&source);
    let held = property(&found);
    assert_eq!(held.verdict, Some(Verdict::Undecided), "{}", held.message);
    assert!(held.message.contains("event.s.size() == 3") && held.message.contains("line "), "{}", held.message);
    assert!(found.explored.cut[0].contains("only some data of the event was tried"), "{:?}", found.explored.cut);
}

/// Each makes a charter depend on something of which not every value is tried. Then the property is
/// proved only from above, and only where it holds for all values.
#[test]
fn what_was_not_tried_is_covered_or_not_proved() {
    let proved = "
events: {GO: {}, BACK: {}}
context: {n: 0, m: {}}
states:
  a: {on: {GO: {target: b, actions: {assign: {n: '= context.n + 1'}}}}}
  b: {on: {BACK: {target: a, when: context.n < 3}}}
properties: [{id: p, never: context.n > 3}]
";
    let found = report(proved);
    assert_eq!(property(&found).verdict, Some(Verdict::Proved), "{:#?}", all(&found));
    assert_eq!(property(&found).message, "property `p` (never) is proved");
    assert!(found.explored.complete && found.explored.cut.is_empty());
    for (from, to, why, holds) in [
        ("when: context.n < 3", "when: context.n < 3 && event.x != 4", "only some data of the event was tried", true),
        ("when: context.n < 3", "when: context.n < 3 && by.id != 'zoe'", "only some principals were tried", true),
        ("when: context.n < 3", "when: \"now < timestamp('2031-01-01T00:00:00Z')\"", "only the times", false),
        ("when: context.n < 3", "when: context.n < 3 && run.id != 'x'", "only one run id was tried", true),
        (
            "when: context.n < 3",
            "when: context.n < 3, quorum: {count: 2}",
            "only some groups of principals were tried",
            true,
        ),
        ("when: context.n < 3", "when: \"actors.root.status == 'active'\"", "was not paused or cancelled", false),
        ("= context.n + 1", "= event.by", "only some data of the event was tried", false),
        ("= context.n + 1", "= size(by.id)", "only some principals were tried", false),
        ("= context.n + 1'", "= context.n + 1', 'm[event.k]': 1", "only some data of the event was tried", true),
        ("= context.n + 1'", "= context.n + 1', 'm[by.id]': 1", "only some principals were tried", true),
        ("= context.n + 1'", "= context.n + 1', 'm[by.kind]': 1", "only some principals were tried", true),
        ("  b: {on", "  b: {exit: [{assign: {n: 9}}], on", "was not cancelled", false),
        ("  b: {on", "  b: {entry: [{log: '= 1 / event.z'}], on", "only some data of the event was tried", true),
        ("b: {on", "b: {after: {1h: a, '= context.n * 1000': a}, on", "two timers are pending at once", false),
        ("b: {on", "b: {after: {'= event.ms': a}, on", "only some data of the event was tried", false),
        ("never: context.n > 3", "never: \"actors.root.status == 'paused'\"", "was not paused or cancelled", false),
    ] {
        let source = proved.replace(from, to);
        assert_ne!(source, proved, "{to}");
        let found = report(&source);
        assert!(!found.explored.complete, "{to}");
        assert_eq!(property(&found).verdict == Some(Verdict::Proved), holds, "{to}");
        assert!(found.explored.cut.iter().any(|c| c.contains(why)), "{to}: {:?}", found.explored.cut);
    }
}

#[test]
fn a_principal_with_two_roles_can_move_two_regions_at_once() {
    // Neither role alone leads to `b.y` while `a.x` is left in the same step.
    let source = "
roles: {r: {}, s: {}}
events: {GO: {by: [r, s]}}
states:
  p:
    type: parallel
    states:
      a: {states: {x: {on: {GO: {target: y, by: r}}}, y: {}}}
      b: {states: {x: {on: {GO: {target: y, by: s}}}, y: {}}}
";
    let found = report(source);
    assert!(!found.explored.complete, "{:?}", found.explored);
    assert!(found.explored.cut[0].contains("principals with several roles"), "{:?}", found.explored.cut);
}

#[test]
fn verdicts_are_in_the_json_form() {
    let source = "events: {GO: {}}\nstates: {a: {on: {GO: b}}, b: {type: final}}\n";
    let of = |property: &str| {
        let found = report(&format!("{source}properties: [{{id: p, {property}}}]\n"));
        let json = serde_json::to_value(&found).unwrap();
        let findings = json["findings"].as_array().unwrap().clone();
        let about = findings.into_iter().find(|f| f["code"].as_str().unwrap().starts_with("property-")).unwrap();
        (about["verdict"].clone(), json["explored"]["complete"].clone())
    };
    assert_eq!(of("never: \"in('a') && in('b')\""), ("proved".into(), true.into()));
    assert_eq!(of("never: \"in('b')\""), ("violated".into(), true.into()));
    assert_eq!(of("never: \"in('b') && run.id == 'x'\""), ("undecided".into(), false.into()));
}

#[test]
fn a_property_with_a_type_error_has_no_verdict() {
    // The error is behind `&&`, where no state evaluates it.
    let source = |never: &str| {
        format!(
            "events: {{GO: {{}}}}\nstates: {{a: {{on: {{GO: b}}}}, b: {{}}}}\nproperties: [{{id: p, never: {never}}}]\n"
        )
    };
    assert_eq!(property(&report(&source("\"in('a') && in('b')\""))).verdict, Some(Verdict::Proved));
    for never in ["\"in('a') && in('b') && event.x == 3\"", "\"in('a') && in('b') && 'x' + 1 == 2\""] {
        let found = report(&source(never));
        assert!(found.findings.iter().any(|f| f.severity == Severity::Error), "{never}: {:#?}", all(&found));
        let property = property(&found);
        assert_eq!(property.verdict, Some(Verdict::Undecided), "{never}: {}", property.message);
        assert!(property.message.ends_with("not decided: its condition has an error"), "{}", property.message);
    }
}

#[test]
fn functions_with_a_namespace_and_names_of_types_have_values() {
    let charter = |condition: &str| {
        format!(
            "
events: {{GO: {{data: {{type: object, required: [n], properties: {{n: {{type: integer, minimum: -9, maximum: 9}}}}}}}}}}
states:
  idle: {{on: {{GO: {{target: bad, when: \"{condition}\"}}}}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    for condition in ["math.abs(event.n) > 3", "math.greatest(event.n, 2) == event.n", "type(event.n) == int"] {
        let found = report(&charter(condition));
        assert_ne!(property(&found).verdict, Some(Verdict::Proved), "{condition}: {:#?}", all(&found));
    }
}

#[test]
fn an_approval_may_write_the_digest_in_another_way() {
    let source = format!(
        "
roles: {{reviewer: {{}}}}
events: {{OK: {{by: reviewer, data: {{type: object, required: [digest], properties: {{digest: {{type: string}}}}}}}}, GO: {{}}}}
context: {{plan: {{steps: 3}}, named: null}}
states:
  asked: {{on: {{OK: {{target: approved, approves: context.plan, actions: {{assign: {{named: '= event.digest'}}}}}}}}}}
  approved: {{on: {{GO: {{target: bad, when: context.named != digest(context.plan)}}}}}}
  bad: {{type: final}}
{NEVER}"
    );
    assert_ne!(property(&report(&source)).verdict, Some(Verdict::Proved));
}

#[test]
fn any_number_of_actors_under_computed_ids() {
    let charter = |allowed: &str, property: &str| {
        format!(
            "
events: {{ADD: {{data: {{type: object, required: [id], properties: {{id: {{type: string, minLength: 1}}}}}}}}, STEP: {{}}, NEXT: {{}}}}
states:
  open: {{on: {{ADD: {{actions: {{spawn: {{machine: part, id: '= event.id'}}}}}}, NEXT: closed}}}}
  closed: {{on: {{NEXT: open}}}}
machines:
  part: {{states: {{new: {{on: {{STEP: made}}}}, made: {{on: {{STEP: bad}}}}, bad: {{}}}}}}
interlocks:
  - {{id: together, given: root, machine: part, allow: {{open: [new, made], closed: {allowed}}}}}
properties: [{{id: p, never: \"{property}\"}}]
"
        )
    };
    let is_bad = "actors.exists(id, a, a.machine == 'part' && 'bad' in a.state)";
    decided(&charter("[made, bad]", is_bad), &charter("[made]", is_bad));
    // Two of them, of which one is followed only.
    let two = format!("{is_bad} && actors.exists(id, a, a.machine == 'part' && 'new' in a.state)");
    let named = "actors.exists(id, a, id == 'x' && 'bad' in a.state)";
    for property_of in [two.as_str(), named] {
        let found = report(&charter("[made]", property_of));
        assert_ne!(property(&found).verdict, Some(Verdict::Proved), "{property_of}");
    }
}

#[test]
fn obligations_that_become_overdue_are_covered() {
    let charter = |target: &str| {
        format!(
            "
events: {{ASK: {{data: {{type: object, required: [id], properties: {{id: {{type: string, minLength: 1}}}}}}}}}}
ledger: {{order: {{}}}}
states:
  idle: {{on: {{ASK: {{target: asked, actions: {{open: {{kind: order, key: '= event.id', due: 1h}}}}}}}}}}
  asked: {{on: {{charter.overdue: {target}}}}}
  late: {{type: final}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    decided(&charter("bad"), &charter("late"));
}

#[test]
fn lists_of_unknown_length_are_covered_if_what_is_done_does_not_matter() {
    let charter = |action: &str| {
        format!(
            "
events: {{ALL: {{data: {{type: object, required: [items], properties: {{items: {{type: array, items: {{type: integer}}}}}}}}}}}}
context: {{last: 0, seen: false}}
states:
  idle: {{on: {{ALL: {{target: done, actions: [{{each: {{in: '= event.items', as: item, do: {{assign: {{{action}}}}}}}}}]}}}}}}
  done: {{always: {{target: bad, when: context.seen}}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    assert_eq!(property(&report(&charter("last: '= item'"))).verdict, Some(Verdict::Proved));
    assert_ne!(property(&report(&charter("seen: '= item > 3'"))).verdict, Some(Verdict::Proved));
}

#[test]
fn references_in_schemas_are_followed() {
    let charter = |letter: &str| {
        format!(
            "
types:
  letter: {{enum: [a, b, c]}}
  inner: {{type: object, required: [l], properties: {{l: {{$ref: '#/types/letter'}}}}, additionalProperties: false}}
  outer: {{type: object, required: [inner], properties: {{inner: {{$ref: '#/types/inner'}}}}}}
events: {{GO: {{data: {{$ref: '#/types/outer'}}}}}}
states:
  idle: {{on: {{GO: {{target: bad, when: \"event.inner.l == '{letter}' || has(event.inner.m)\"}}}}}}
  bad: {{type: final}}
{NEVER}"
        )
    };
    decided(&charter("c"), &charter("d"));
}

#[test]
fn a_transition_that_an_interlock_always_refuses_is_a_remark() {
    let charter = |allowed: &str| {
        format!(
            "events: {{GO: {{}}, FAIL: {{}}}}
context: {{n: 0}}
initial: a
states: {{a: {{on: {{GO: b, FAIL: c}}}}, b: {{}}, c: {{on: {{GO: b}}}}}}
interlocks: [{{id: no-failure, assert: \"{allowed}\"}}]
"
        )
    };
    let found = |source: &str| {
        let report = report_with(source, &Options::default());
        let of = report.findings.iter().find(|f| f.code == "transition-not-taken" && f.message.contains("FAIL"));
        of.map(|f| (f.severity, f.verdict, f.message.clone()))
    };
    let message = "`a/on/FAIL/0` is never taken: an interlock refuses each event that would take it";
    assert_eq!(
        found(&charter("!('c' in actors.root.state)")),
        Some((Severity::Info, Some(Verdict::Proved), message.to_owned()))
    );
    assert_eq!(found(&charter("true")), None);
}
