//! What an event needs besides a role, and why a transition with `refuse` refuses.

use charter_kernel::{Demands, Digest, Envelope, Principal};
use serde_json::json;

use crate::common::Run;

const BOARD: &str = "
roles: {director: {}}
rules: {R1: too much}
guards: {rich: context.plan.budget > 10}
context: {plan: {budget: 12}, owner: ana, ready: false}
events:
  PLAN: {by: director, data: {type: object, required: [digest], properties: {digest: {}, note: {}}}}
  SPEND: {}
  READY: {}
states:
  s:
    on:
      PLAN: {target: t, when: context.ready, approves: {value: context.plan, not_by: '[context.owner]'}, quorum: {count: 2, of: director}}
      SPEND:
        - {guard: {and: [rich, {not: tiny}]}, refuse: R1}
        - {when: event.n == 1, target: t}
        - {when: 'context.plan.budget < 5', target: t}
        - {guard: tiny, actions: []}
      READY: {actions: {assign: {ready: true}}}
  t: {}
";

fn board() -> Run {
    Run::start(&BOARD.replace("guards: {", "guards: {tiny: event.n < 1, "))
}

fn demands(run: &Run, kind: &str, id: &str) -> Option<Demands> {
    let snapshot = &run.snapshot;
    run.machine.demands(snapshot, "root", kind, &Principal::new(id, &["director"]), 0)
}

fn legal(run: &Run, id: &str) -> Vec<String> {
    let all = run.machine.legal(&run.snapshot, &Principal::new(id, &["director"]), 0);
    all.into_iter().map(|event| event.r#type).collect()
}

#[test]
fn an_approval_demands_a_digest_votes_and_somebody_else() {
    let mut run = board();
    assert_eq!(demands(&run, "PLAN", "bea"), None, "a condition that does not read the data does not hold");
    run.send("READY");
    assert_eq!(demands(&run, "PLAN", "ana"), None, "excluded");
    assert_eq!(run.machine.demands(&run.snapshot, "root", "PLAN", &Principal::new("bea", &[]), 0), None);
    let needed = demands(&run, "PLAN", "bea").unwrap();
    let digest = Digest::of_json(&json!({"budget": 12}));
    assert_eq!(
        serde_json::to_value(&needed).unwrap(),
        json!({
            "transition": "s/on/PLAN/0", "approves": {"value": "context.plan", "digest": digest},
            "quorum": {"count": 2, "of": ["director"], "votes": [], "data": []}, "not_by": ["ana"], "persons_only": true,
        })
    );
    let data = json!({"digest": digest.to_string()});
    run.by("bea", &["director"]).send_data("PLAN", data.clone());
    assert_eq!(demands(&run, "PLAN", "bea"), None, "has voted");
    assert!(!legal(&run, "bea").contains(&"PLAN".to_owned()), "has voted");
    assert!(legal(&run, "rob").contains(&"PLAN".to_owned()));
    let needed = demands(&run, "PLAN", "rob").unwrap();
    assert_eq!(needed.quorum.unwrap().votes, [["bea"]]);
    run.by("rob", &["director"]).send_data("PLAN", data);
    assert_eq!(run.state(), "t");
}

const GATES: &str = "
roles: {agent: {}}
rules: {gate: the gate is shut, work: nothing is done now}
events: {CALL: {by: agent, data: {type: object}}}
states:
  active:
    type: parallel
    states:
      gate: {on: {CALL: [{when: event.n == 1, refuse: gate}, {when: event.n > 1}, {refuse: gate}]}}
      work: {on: {CALL: [{when: event.n == 2, refuse: work}, {when: event.n > 1}, {refuse: work}]}}
";

#[test]
fn in_regions_the_rule_of_the_one_that_refuses_is_named() {
    let run = Run::start(GATES);
    for (n, rule) in [(1, Some("gate")), (2, Some("work")), (3, None)] {
        let by = Principal::new("bot", &["agent"]);
        let envelope = Envelope::event(run.snapshot.seq() + 1, "CALL", json!({"n": n}), by, 0);
        let refusal = run.machine.step(&run.snapshot, &envelope).err();
        let said = refusal.map(|refusal| run.machine.explain(Some(&run.snapshot), &envelope, &refusal));
        assert_eq!(said.and_then(|said| said.rule).as_deref(), rule, "{n}");
        let named = run.machine.refusing(&run.snapshot, &envelope).map(|found| found.condition);
        assert_eq!(named.as_deref(), (n < 3).then(|| format!("event.n == {n}")).as_deref(), "{n}");
    }
}

#[test]
fn conditions_on_the_data_are_named_and_others_are_decided() {
    let run = board();
    let refused = "!((context.plan.budget > 10) && (!(event.n < 1)))";
    let conditions = ["event.n == 1", "event.n < 1"].map(|condition| format!("{condition} && {refused}"));
    assert_eq!(demands(&run, "SPEND", "x").unwrap().conditions, conditions);
    assert_eq!(demands(&run, "NONE", "x"), None);
}

#[test]
fn a_refusing_transition_gives_its_condition_and_values() {
    let mut run = board();
    let snapshot = run.snapshot.clone();
    let spend = |n: i64| Envelope::event(1, "SPEND", json!({"n": n}), Principal::new("x", &[]), 0);
    let found = run.machine.refusing(&snapshot, &spend(3)).unwrap();
    assert_eq!(found.transition, "s/on/SPEND/0");
    assert_eq!(found.condition, "(context.plan.budget > 10) && (!(event.n < 1))");
    assert_eq!(json!(found.read), json!({"context.plan.budget": 12, "event.n": 3}));
    assert_eq!(run.machine.refusing(&snapshot, &spend(0)), None);
    assert_eq!(run.refused("SPEND", json!({"n": 3})), "rule");
}

#[test]
fn what_no_sender_can_send_is_not_legal() {
    let run = Run::start(
        "
context: {v: {a: 1}}
events: {YES: {by: director}, NEVER: {by: director, data: false}}
roles: {director: {}}
states:
  s:
    on:
      YES: {target: t, approves: context.v.b}
      NEVER: {target: t}
  t: {}
",
    );
    assert_eq!(legal(&run, "ana"), Vec::<String>::new());
    assert_eq!(demands(&run, "YES", "ana"), None);
}

const WAYS: &str = "
roles: {director: {}}
context: {owner: ana}
events:
  VOTE: {data: {type: object, required: [go], properties: {go: {type: boolean}}, additionalProperties: false}}
  DECIDE: {}
  PAY: {}
states:
  s:
    on:
      VOTE: [{when: event.go, target: t, quorum: {count: 2, of: director}}, {target: t}]
      DECIDE: [{when: event.go, target: t, approves: {value: context.owner, not_by: context.owner}}, {target: t}]
      PAY: {target: t, approves: event.amount}
  t: {}
";

#[test]
fn ways_that_others_may_take_are_withheld() {
    let mut run = Run::start(WAYS);
    assert!(demands(&run, "VOTE", "ana").unwrap().withheld.is_empty());
    run.by("ana", &["director"]).send_data("VOTE", json!({"go": true}));
    let told = |kind, id| {
        let found = demands(&run, kind, id).unwrap();
        (found.transition, serde_json::to_value(found.withheld).unwrap())
    };
    let withheld = |transition, why| json!([{"transition": transition, "why": why}]);
    assert_eq!(told("VOTE", "ana"), ("s/on/VOTE/1".into(), withheld("s/on/VOTE/0", "voted")));
    assert_eq!(told("VOTE", "bea"), ("s/on/VOTE/0".into(), json!([])));
    assert_eq!(told("DECIDE", "ana"), ("s/on/DECIDE/1".into(), withheld("s/on/DECIDE/0", "not-by")));
    let votes = demands(&run, "VOTE", "bea").unwrap().quorum.unwrap();
    assert_eq!(votes.data, [Digest::of_json(&json!({"go": true}))]);
}

#[test]
fn an_approval_of_a_part_of_the_event_is_legal() {
    let run = Run::start(WAYS);
    assert!(legal(&run, "bea").contains(&"PAY".to_owned()));
    let needed = demands(&run, "PAY", "bea").unwrap();
    assert_eq!((needed.approves, needed.conditions.len()), (None, 1));
    assert_eq!(needed.conditions[0], "event.digest is the digest of event.amount");
}

#[test]
fn a_sender_who_alone_stands_in_the_way_is_named_before_the_conditions_of_other_ways() {
    let chart = "
roles: {boss: {}, clerk: {}}
context: {pay: 5, owner: ana}
events: {DECIDE: {}, VOTE: {}, ACT: {}}
states:
  s:
    on:
      DECIDE:
        - {when: event.ok, target: t, approves: {value: context.pay, not_by: context.owner}}
        - {when: '!event.ok', target: s}
      VOTE:
        - {when: event.ok, target: t, quorum: {count: 2, of: boss}}
        - {when: '!event.ok', target: s}
      ACT:
        - {when: event.ok, by: boss, target: t}
        - {when: '!event.ok', target: s}
  t: {}
";
    let mut run = Run::start(chart);
    run.by("ana", &["boss"]);
    let refused = run.try_send("DECIDE", json!({"ok": true, "digest": "sha256:00"})).map(|_| ()).unwrap_err();
    assert_eq!((refused.code.word(), refused.rule.as_deref()), ("authority", Some("not-by")));
    run.by("bea", &["boss"]);
    assert_eq!(run.refused("DECIDE", json!({"ok": true, "digest": "sha256:00"})), "stale");
    run.send_data("VOTE", json!({"ok": true}));
    assert_eq!(run.refused("VOTE", json!({"ok": true})), "authority", "has voted");
    run.by("rob", &["clerk"]);
    assert_eq!(run.refused("ACT", json!({"ok": true})), "authority");
}

#[test]
fn only_a_condition_on_the_event_depends_on_its_data() {
    let run = Run::start(
        "
context: {n: 0}
events: {PLAIN: {}, CLOSED: {}, DATA: {}}
states:
  s:
    on:
      PLAIN: {target: s, when: context.n == 0}
      CLOSED: {target: s, when: context.n == 1}
      DATA: {target: s, when: event.n == 1}
",
    );
    let legal = run.machine.legal(&run.snapshot, &Principal::default(), 0);
    let found: Vec<(&str, bool)> = legal.iter().map(|l| (l.r#type.as_str(), l.depends_on_data)).collect();
    assert_eq!(found, [("PLAIN", false), ("DATA", true)]);
}

#[test]
fn a_run_is_stuck_where_it_awaits_nothing_and_no_event_has_a_transition() {
    let mut run = Run::start(
        "
events: {GO: {}, BACK: {by: nobody}}
roles: {nobody: {}}
actors: {work: {kind: work}}
states:
  timed: {on: {GO: busy}, after: {1h: busy}}
  busy: {on: {GO: open}, invoke: {src: work}}
  open: {on: {GO: end, BACK: timed}}
  end: {}
",
    );
    for state in ["timed", "busy", "open"] {
        assert!(!run.machine.is_stuck(&run.snapshot), "{state}");
        run.send_data("GO", json!({}));
    }
    assert!(run.machine.is_stuck(&run.snapshot));
    let ended = Run::start("states: {s: {type: final}}");
    assert!(!ended.machine.is_stuck(&ended.snapshot));
}

#[test]
fn what_the_data_cannot_change_is_decided_without_it() {
    let run = Run::start(
        "
ledger: {token: {}}
context: {ready: false}
guards: {ready: context.ready}
events: {A: {}, B: {}}
states:
  s:
    on:
      A: {guard: ready, when: event.n > 1, target: t}
      B: {when: event.n > 1, requires: {use: {kind: token, key: k}}, target: t}
  t: {}
",
    );
    assert_eq!(legal(&run, "ana"), Vec::<String>::new());
}

#[test]
fn every_event_that_is_not_legal_has_a_reason() {
    let mut run = Run::start(
        "
roles: {director: {}, clerk: {}}
context: {owner: ana, ready: false}
events: {SEND: {by: clerk}, SIGN: {by: director}, OWN: {}, WAIT: {}, LATER: {}, ELSE: {}, FREE: {}}
interlocks: [{id: ready, assert: \"context.ready || !in('t')\"}]
states:
  s:
    on:
      SEND: {target: t}
      SIGN: {when: event.n > 1, actions: [], quorum: {count: 2, of: director}}
      OWN: {approves: {value: context.owner, not_by: context.owner}, actions: []}
      WAIT: {when: context.ready, target: t}
      LATER: {target: t}
      FREE: {actions: []}
  t: {on: {ELSE: {target: s}}}
",
    );
    run.by("ana", &["director"]).send_data("SIGN", json!({"n": 2}));
    let ana = Principal::new("ana", &["director"]);
    let not = run.machine.not_legal(&run.snapshot, &ana, 0);
    let told: Vec<(&str, &str, &str)> =
        not.iter().map(|n| (n.r#type.as_str(), n.reason.code.word(), n.reason.message.as_str())).collect();
    assert_eq!(
        told,
        [
            ("SEND", "authority", "`SEND` may be sent only by `clerk`; `ana` has the role `director`"),
            (
                "OWN",
                "authority",
                "`ana` may not take this transition, because `not_by` (`context.owner`) names them; somebody else has to"
            ),
            ("WAIT", "guard", "`context.ready` does not hold"),
            ("LATER", "interlock", "interlock `ready`: `context.ready || !in('t')` would be false"),
        ]
    );
    assert_eq!(legal(&run, "ana"), ["SIGN", "FREE"], "other data is another vote");
}

#[test]
fn one_digest_is_one_vote_however_it_is_spelled() {
    let mut run = board();
    run.send("READY");
    let digest = Digest::of_json(&json!({"budget": 12}));
    let spelled = [digest.to_string(), digest.hex(), digest.hex().to_uppercase()];
    for first in &spelled {
        for second in &spelled {
            let mut run = run.clone();
            run.by("bea", &["director"]).send_data("PLAN", json!({"digest": first}));
            assert_eq!(demands(&run, "PLAN", "bea"), None, "has voted");
            run.by("cal", &["director"]).send_data("PLAN", json!({"digest": second}));
            assert_eq!(run.state(), "t", "{first} and {second}");
        }
    }
}

#[test]
fn the_conditions_on_the_data_exclude_what_a_rule_refuses() {
    let run = Run::start(
        "
rules: {r: too much}
events: {N: {}, M: {}, K: {}}
states:
  s:
    on:
      N: [{when: event.n > 100, refuse: r}, {when: event.n > 10, target: t}]
      M: [{when: event.n > 100, refuse: r}, {target: t}]
      K: [{when: event.n > 10, target: t}, {when: event.n < 0, refuse: r}, {target: t}]
  t: {}
",
    );
    let told = |kind| demands(&run, kind, "ana").unwrap().conditions;
    assert_eq!(told("N"), ["event.n > 10 && !(event.n > 100)"]);
    assert_eq!(told("M"), ["!(event.n > 100)"]);
    assert_eq!(told("K"), ["event.n > 10", "!(event.n < 0)"]);
}

#[test]
fn an_event_for_another_actor_is_not_told_to_be_legal_for_this_one() {
    let mut run = Run::start(
        "
events: {SP: {}, HIT: {}}
machines: {k: {states: {s: {on: {HIT: {actions: []}}}}}}
states: {s: {on: {SP: {actions: {spawn: {machine: k, id: k1}}}}}}
",
    );
    run.send("SP");
    let refused = run.try_send("HIT", json!({})).map(|_| ()).unwrap_err();
    assert_eq!(refused.message, "no transition for `HIT` while `root` is in `s`; another actor takes it");
}
