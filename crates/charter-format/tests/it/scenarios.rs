//! Reading scenario files, and the messages for mistakes in them.

use charter_format::scenario::{Act, Tick, What, is_scenario_file, read_scenarios};
use charter_kernel::definition::{Delay, Template};

fn told(source: &str) -> String {
    let errors = match read_scenarios(source, "t.yaml") {
        Ok(file) => panic!("read as {:?}", file.scenarios),
        Err(errors) => errors,
    };
    let line = |item: &charter_format::Diagnostic| {
        let help = item.help.as_ref().map(|help| format!(" ({help})"));
        let help = help.unwrap_or_default();
        format!("{}:{} {} [{}] {}{help}", item.line, item.column, item.path, item.code, item.message)
    };
    errors.list.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_scenario_with_every_kind_of_step() {
    let source = "
name: a rejected recommendation comes back with the feedback
input: {userId: u1}
steps:
  - send: {type: START, data: {input: {message: Should we raise prices?}}, as: u1, roles: [founder]}
  - done: {actor: validateInput, output: {ok: true}}
  - expect: {state: [mental_models]}
  - refused: {type: HUMAN_APPROVED, as: u1, roles: [founder], code: unhandled}
  - tick: 72h
";
    let file = read_scenarios(source, "t.yaml").unwrap();
    let [scenario] = file.scenarios.as_slice() else { panic!() };
    assert_eq!(scenario.name, "a rejected recommendation comes back with the feedback");
    assert_eq!(scenario.steps.len(), 5);
    let Act::Send(send) = &scenario.steps[0].act else { panic!() };
    assert_eq!(
        (send.sender.id.as_str(), send.sender.roles.as_deref(), send.verdict),
        ("u1", Some(["founder".to_owned()].as_slice()), "accepted")
    );
    let Act::Send(done) = &scenario.steps[1].act else { panic!() };
    assert!(matches!(&done.what, What::Done { actor, .. } if actor == "validateInput"));
    let Act::Refused(_, refusal) = &scenario.steps[3].act else { panic!() };
    assert_eq!(refusal.code, "unhandled");
    assert_eq!(scenario.steps[4].act, Act::Tick(Tick::For(Delay::Ms(72 * 3_600_000))));
}

#[test]
fn scenarios_share_the_top_level_keys() {
    let source = "
name: both
charter: ../door.yaml
principals: {ana: reviewer}
at: 1970-01-01T00:00:01Z
before:
  - send: {type: A}
scenarios:
  - name: one
    steps: [{tick: 2026-01-01T00:00:00Z}]
  - principals: {ben: [author]}
    at: 7
    steps: [{tick: deadline}, {tick: 250}]
";
    let file = read_scenarios(source, "t.yaml").unwrap();
    assert_eq!(file.charter.as_deref(), Some("../door.yaml"));
    let [one, two] = file.scenarios.as_slice() else { panic!() };
    assert_eq!((one.name.as_str(), two.name.as_str()), ("one", "both 2"));
    assert_eq!((one.at, two.at), (1000, 7));
    assert_eq!((one.principals.len(), two.principals.len()), (1, 2));
    assert_eq!((one.steps.len(), two.steps.len()), (2, 3));
    assert_eq!(one.steps[1].act, Act::Tick(Tick::Until(1_767_225_600_000)));
    assert_eq!(two.steps[1].act, Act::Tick(Tick::For(Delay::Name("deadline".into()))));
}

#[test]
fn expressions_have_places() {
    let source =
        "steps: [{send: {type: A, data: {digest: \"= digest(context.x)\"}}}, {expect: {assert: size(context.y) == 1}}]";
    let file = read_scenarios(source, "t.yaml").unwrap();
    let Act::Send(send) = &file.scenarios[0].steps[0].act else { panic!() };
    let What::Event { data: Some(data), .. } = &send.what else { panic!() };
    assert!(matches!(&data.template, Template::Object(_)));
    let span = file.span_within(&format!("{}/object/digest", data.at), (0, 6));
    assert_eq!(source.get(span.start..span.end), Some("digest"));
    let Act::Expect(expect) = &file.scenarios[0].steps[1].act else { panic!() };
    let span = file.span_within(&expect.assert[0].at, (5, 12));
    assert_eq!(source.get(span.start..span.end), Some("context"));
}

#[test]
fn mistakes_have_places() {
    assert_eq!(
        told("steps: [{sned: {type: A}}]"),
        "1:10 steps[0].sned [unknown-key] a step has no key `sned` (did you mean `send`?)"
    );
    assert_eq!(
        told("steps: [{send: {typ: A}}]").lines().next().unwrap(),
        "1:16 steps[0].send [missing-key] a sent event needs the key `type` (Event type.)"
    );
    assert_eq!(
        told("steps: [{refused: {type: A, code: authorty}}]"),
        "1:35 steps[0].refused.code [bad-value] expected one of `too-large`, `charter-mismatch`, `reserved`, `unknown-event`, `finished`, `paused`, `unknown-actor`, `stale`, `authority`, `schema`, `taken`, `unreserved`, `unhandled`, `guard`, `rule`, `permit.missing`, `permit.revoked`, `permit.expired`, `permit.exhausted`, `permit.scope`, `obligation.missing`, `obligation.open`, `execution`, `runaway`, `too-costly`, `interlock`, found `authorty` (did you mean `authority`?)"
    );
    assert_eq!(
        told("steps: [{tick: 5sec}]"),
        "1:16 steps[0].tick [bad-delay] invalid duration `5sec` (write a duration such as `72h` or `1h30m`, a name from `delays`, or a timestamp such as `2026-11-21T10:00:00Z`)"
    );
    assert_eq!(
        told("at: noon\nsteps: []"),
        "1:5 at [bad-value] invalid timestamp `noon` (write RFC 3339, such as `2026-11-21T10:00:00Z`, or milliseconds since 1970)"
    );
    assert_eq!(
        told("name: x"),
        "1:1 name [conflicting-keys] a scenario file needs one of `steps`, `scenarios`, `refused`"
    );
    assert_eq!(
        told("steps: [{send: {type: A}, tick: 1h}]"),
        "1:27 steps[0].tick [conflicting-keys] `send` and `tick` cannot both be set in a step"
    );
}

#[test]
fn a_charter_is_not_a_scenario_file() {
    assert!(is_scenario_file("steps: []", "x.yaml"));
    assert!(is_scenario_file("{\"scenarios\": []}", "x.json"));
    assert!(!is_scenario_file("charter: 1\nid: a\nstates: {a: {}}", "x.yaml"));
    assert!(!is_scenario_file("[", "x.yaml"));
}
