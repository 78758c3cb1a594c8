//! What is told about votes: who has voted, for what else one may vote, and who may not.

use charter_kernel::{Demands, Principal};
use serde_json::json;

use crate::common::Run;

fn demands(run: &Run, kind: &str, id: &str) -> Option<Demands> {
    run.machine.demands(&run.snapshot, "root", kind, &Principal::new(id, &["director"]), 0)
}

fn legal(run: &Run, id: &str) -> Vec<String> {
    let all = run.machine.legal(&run.snapshot, &Principal::new(id, &["director"]), 0);
    all.into_iter().map(|event| event.r#type).collect()
}

const TWO_QUORUMS: &str = "
roles: {director: {}}
events: {SIGN: {by: director}, PAY: {by: director}}
states:
  all:
    type: parallel
    states:
      money:
        initial: open
        states: {open: {on: {SIGN: {target: ok, quorum: {count: 2, of: director}}}}, ok: {}}
      law:
        initial: open
        states: {open: {on: {SIGN: {target: ok, quorum: {count: 3, of: director}}}}, ok: {}}
    on:
      PAY:
        - {when: event.n > 10, quorum: {count: 3, of: director}, actions: []}
        - {quorum: {count: 2, of: director}, actions: []}
";

#[test]
fn every_quorum_that_an_event_may_be_a_vote_for_is_named() {
    let mut run = Run::start(TWO_QUORUMS);
    let also = |run: &Run, kind, id| {
        let all = demands(run, kind, id).unwrap().also.into_iter();
        let all = all.map(|o| json!([o.transition, o.condition, o.quorum.count, o.quorum.votes]));
        all.collect::<Vec<_>>()
    };
    let law = "all.law.open/on/SIGN/0";
    assert_eq!(also(&run, "SIGN", "ana"), [json!([law, null, 3, []])]);
    run.by("ana", &["director"]).send("SIGN");
    assert_eq!(demands(&run, "SIGN", "ana"), None, "has voted for both");
    assert_eq!(also(&run, "SIGN", "bea"), [json!([law, null, 3, [["ana"]]])]);
    run.by("bea", &["director"]).send("SIGN");
    // The first quorum is complete, the second lacks a vote.
    let left = demands(&run, "SIGN", "rob").unwrap();
    assert_eq!((left.transition.as_str(), left.quorum.unwrap().votes.concat().len()), ("all.law.open/on/SIGN/0", 2));
    let pay = demands(&run, "PAY", "ana").unwrap();
    assert_eq!((pay.transition.as_str(), pay.conditions.is_empty()), ("all/on/PAY/0", true));
    assert_eq!(also(&run, "PAY", "ana"), [json!(["all/on/PAY/1", null, 2, []])]);
}

#[test]
fn with_other_data_that_a_condition_needs_somebody_may_vote_again() {
    let mut run = Run::start(
        "
roles: {director: {}}
events: {PAY: {by: director}}
states:
  s: {on: {PAY: {when: event.n > 10, target: t, quorum: {count: 2, of: director}}}}
  t: {}
",
    );
    run.by("ana", &["director"]).send_data("PAY", json!({"n": 12}));
    assert_eq!((legal(&run, "ana"), legal(&run, "bea")), (vec!["PAY".to_owned()], vec!["PAY".to_owned()]));
    let refused = run.try_send("PAY", json!({"n": 12})).map(|_| ()).unwrap_err();
    assert_eq!(refused.message, "`ana` has voted already; the quorum needs 2 different principals");
    run.send_data("PAY", json!({"n": 13}));
    assert_eq!(run.state(), "s", "another vote");
}

const GRADES: &str = "
roles: {lead: {}, reviewer: {}}
context: {author: ann}
events:
  OK: {data: {type: object, maxProperties: 0}}
  VOTE: {data: {type: object, required: [grade], properties: {grade: {enum: [a, b]}}, additionalProperties: false}}
states:
  s:
    on:
      OK:
        - {by: lead, target: t, quorum: 2}
        - {by: reviewer, target: t, quorum: {count: 3, of: reviewer, not_by: context.author}}
      VOTE: {target: t, quorum: {count: 3, of: reviewer}}
  t: {}
";

#[test]
fn somebody_who_has_voted_may_vote_with_other_data_while_there_is_some() {
    let mut run = Run::start(GRADES);
    run.by("rob", &["reviewer"]);
    let may = |run: &Run| {
        let all = run.machine.legal(&run.snapshot, &Principal::new("rob", &["reviewer"]), 0);
        all.iter().any(|event| event.r#type == "VOTE")
    };
    run.send_data("VOTE", json!({"grade": "a"}));
    assert!(may(&run));
    run.send_data("VOTE", json!({"grade": "b"}));
    assert!(!may(&run), "has voted with all data");
}

#[test]
fn the_transition_that_a_sender_came_nearest_to_is_the_reason() {
    let mut run = Run::start(GRADES);
    let not = |run: &Run, id| {
        let all = run.machine.not_legal(&run.snapshot, &Principal::new(id, &["reviewer"]), 0);
        all.into_iter().find(|not| not.r#type == "OK").map(|not| not.reason.message).unwrap_or_default()
    };
    assert!(not(&run, "ann").contains("`not_by` (`context.author`) names them"), "{}", not(&run, "ann"));
    run.by("rob", &["reviewer"]).send("OK");
    assert!(not(&run, "rob").contains("`rob` has voted already"), "{}", not(&run, "rob"));
    let refused = run.try_send("OK", json!({})).map(|_| ()).unwrap_err();
    assert!(refused.message.contains("`rob` has voted already; the quorum needs 3"), "{}", refused.message);
}
