//! The features of charters beyond SCXML: strictness, authority, approvals, quorum, interlocks,
//! run control and explained refusals.

use crate::common::{Run, problems};
use charter_kernel::{Envelope, Event, Principal, RestoreError};
use serde_json::json;

#[test]
fn strict_refuses_what_scxml_ignores() {
    let chart = "
events: {A: {data: {type: object, required: [n], properties: {n: {type: integer}}}}, B: {}, C: {}}
states:
  s: {on: {A: t, C: {actions: {assign: {x: '= 1 / 0'}}}}}
  t: {}
context: {x: 0}
";
    let mut run = Run::start(chart);
    assert_eq!(run.refused("B", json!({})), "unhandled");
    assert_eq!(run.refused("Z", json!({})), "unknown-event");
    assert_eq!(run.refused("A", json!({})), "schema");
    assert_eq!(run.refused("A", json!({"n": "1"})), "schema");
    assert_eq!(run.refused("C", json!({})), "execution");
    for forged in ["done.invoke.x", "error.execution", "after.1s.s", "charter.start", "charter.overdue", "done.state.s"]
    {
        assert_eq!(run.refused(forged, json!({})), "reserved");
    }
    run.send_data("A", json!({"n": 1}));
    assert_eq!(run.state(), "t");
}

#[test]
fn a_lenient_machine_ignores_and_says_so() {
    let mut run = Run::start("strict: false\nstates: {s: {on: {A: t}}, t: {}}");
    run.send("B");
    assert_eq!((run.verdict(), run.state().as_str()), ("ignored", "s"));
}

#[test]
fn a_refusal_tells_what_was_considered_and_what_is_legal() {
    let chart = "
roles: {clerk: {}, boss: {}}
context: {amount: 50, limit: 10}
guards: {small: context.amount <= context.limit}
events: {PAY: {by: [clerk, boss]}, RAISE: {by: boss}, NEVER: {by: clerk}}
states:
  s: {on: {PAY: {guard: small, target: paid}, RAISE: {actions: {assign: {limit: 100}}}}}
  paid: {}
";
    let mut run = Run::start(chart);
    run.by("ana", &["clerk"]);
    let story = run.try_send("PAY", json!({})).map(|_| ()).unwrap_err();
    assert_eq!(story.code.word(), "guard");
    assert_eq!(story.message, "guard `small` does not hold");
    let candidate = &story.candidates[0];
    assert_eq!(
        (candidate.transition.as_str(), candidate.expression.as_deref()),
        ("s/on/PAY/0", Some("context.amount <= context.limit"))
    );
    assert_eq!(json!(candidate.read), json!({"context.amount": 50, "context.limit": 10}));
    assert_eq!(story.legal, Vec::<String>::new());
    let story = run.try_send("RAISE", json!({})).map(|_| ()).unwrap_err();
    assert_eq!(story.message, "`RAISE` may be sent only by `boss`; `ana` has the role `clerk`");
    let story = run.try_send("NEVER", json!({})).map(|_| ()).unwrap_err();
    assert_eq!(
        story.message,
        "no transition for `NEVER` while `root` is in `s`; the sender may not send any event now"
    );
    run.by("bea", &["boss"]);
    assert_eq!(run.try_send("NEVER", json!({})).map(|_| ()).unwrap_err().legal, ["RAISE"]);
    run.send("RAISE");
    run.by("ana", &["clerk"]).send("PAY");
    assert_eq!(run.state(), "paid");
}

#[test]
fn authority_of_the_event_and_of_the_transition_must_both_hold() {
    let chart = "
roles: {a: {}, b: {}}
events: {E: {by: [a, b]}}
states: {s: {on: {E: {by: b, target: t}}}, t: {}}
";
    let mut run = Run::start(chart);
    assert_eq!(run.refused("E", json!({})), "authority");
    assert_eq!(run.by("x", &["a"]).refused("E", json!({})), "authority");
    assert_eq!(run.by("x", &["system"]).refused("E", json!({})), "authority", "nobody can claim to be the system");
    run.by("x", &["b"]).send("E");
    assert_eq!(run.state(), "t");
}

#[test]
fn a_condition_that_fails_does_not_hold_and_neither_does_its_negation() {
    let chart = "
context: {o: {}}
guards: {broken: context.o.missing > 1}
events: {E: {}, N: {}}
states:
  s: {on: {E: {guard: broken, target: t}, N: {guard: {not: broken}, target: t}}}
  t: {}
";
    let mut run = Run::start(chart);
    let story = run.try_send("E", json!({})).map(|_| ()).unwrap_err();
    assert!(story.message.contains("could not be evaluated"), "{}", story.message);
    assert_eq!(run.refused("N", json!({})), "guard");
}

#[test]
fn an_approval_is_bound_to_what_was_shown() {
    let chart = "
roles: {approver: {}}
context: {change: {a: 1}}
events: {APPROVE: {by: approver}, EDIT: {}}
states:
  s:
    on:
      APPROVE: {target: t, approves: context.change}
      EDIT: {actions: {assign: {change.a: 2}}}
  t: {}
";
    let mut run = Run::start(chart);
    let shown = charter_kernel::Digest::of_json(&json!({"a": 1})).hex();
    run.by("x", &["approver"]);
    assert_eq!(run.refused("APPROVE", json!({})), "stale");
    run.send("EDIT");
    assert_eq!(run.refused("APPROVE", json!({"digest": shown})), "stale");
    let now = charter_kernel::Digest::of_json(&json!({"a": 2})).hex();
    run.send_data("APPROVE", json!({"digest": now}));
    assert_eq!(run.state(), "t");
}

#[test]
fn a_quorum_counts_different_principals_for_the_same_content() {
    let chart = "
roles: {r: {}}
events: {OK: {by: r}, BACK: {}, AWAY: {}}
states:
  s: {on: {OK: {target: t, quorum: {count: 2, of: r}}, AWAY: u}}
  t: {}
  u: {on: {BACK: s}}
";
    let mut run = Run::start(chart);
    run.by("ana", &["r"]).send_data("OK", json!({"v": 1}));
    assert_eq!((run.verdict(), run.state().as_str()), ("vote", "s"));
    assert_eq!(run.refused("OK", json!({"v": 1})), "authority");
    run.by("bob", &["r"]).send_data("OK", json!({"v": 2}));
    assert_eq!(run.verdict(), "vote", "other content is another vote");
    run.send("AWAY").send("BACK");
    run.by("bob", &["r"]).send_data("OK", json!({"v": 1}));
    assert_eq!(run.verdict(), "vote", "votes end with the visit of the state");
    run.by("ana", &["r"]).send_data("OK", json!({"v": 1}));
    assert_eq!((run.verdict(), run.state().as_str()), ("accepted", "t"));
}

#[test]
fn a_quorum_of_three_is_reached_by_the_third_vote_for_the_same_content() {
    let chart = "
roles: {r: {}}
events: {OK: {by: r}}
states: {s: {on: {OK: {target: t, quorum: {count: 3, of: r}}}}, t: {}}
";
    let mut run = Run::start(chart);
    for (by, v, verdict) in [("ana", 1, "vote"), ("bob", 1, "vote"), ("cai", 2, "vote"), ("dan", 1, "accepted")] {
        run.by(by, &["r"]).send_data("OK", json!({"v": v}));
        assert_eq!(run.verdict(), verdict, "{by}");
    }
    assert_eq!(run.state(), "t");
}

#[test]
fn an_interlock_refuses_the_whole_event() {
    let chart = "
context: {spent: 0, budget: 10}
events: {SPEND: {}}
interlocks: [{id: budget, assert: 'actors.root.context.spent <= actors.root.context.budget'}]
states: {s: {on: {SPEND: {actions: {assign: {spent: '= context.spent + event.n'}}}}}}
";
    let mut run = Run::start(chart);
    run.send_data("SPEND", json!({"n": 10}));
    let story = run.try_send("SPEND", json!({"n": 1})).map(|_| ()).unwrap_err();
    assert_eq!((story.code.word(), story.interlock.as_deref()), ("interlock", Some("budget")));
    assert_eq!(run.var("spent"), json!(10));
}

const PAUSE: &str = "
events: {E: {}, STOP: {whilePaused: true}}
actors: {work: {kind: exec}}
context: {got: null}
states:
  s: {invoke: {src: work, onDone: {target: t, actions: {assign: {got: '= event.output'}}}}, after: {10s: late}, on: {E: t, STOP: t}}
  t: {}
  late: {}
";

#[test]
fn while_paused_timers_stand_still_and_answers_wait() {
    let mut run = Run::start(PAUSE);
    assert_eq!(run.refused("charter.pause", json!({})), "authority");
    run.by("op", &["operator"]);
    run.wait(4_000).send("charter.pause");
    assert_eq!(run.refused("E", json!({})), "paused");
    run.wait(60_000);
    assert_eq!(run.state(), "s", "no timer fires");
    run.send("charter.resume");
    assert_eq!(run.snapshot.next_timer().unwrap().due.0, 70_000, "what was left is left");
    run.send("charter.pause").done("work", json!(1));
    assert_eq!((run.state().as_str(), run.snapshot.held()), ("s", 1));
    run.done("work", json!(2));
    assert_eq!(run.verdict(), "late", "one answer is enough");
    run.send("charter.resume");
    assert_eq!((run.state().as_str(), run.var("got")), ("t", json!(1)));
    let mut run = Run::start(PAUSE);
    run.by("op", &["operator"]).send("charter.pause").send("STOP");
    assert_eq!((run.state().as_str(), run.status().word()), ("t", "paused"), "an event may be accepted while paused");
}

#[test]
fn cancel_ends_a_run_and_everything_in_it() {
    let mut run = Run::start(PAUSE);
    run.by("op", &["operator"]).send("charter.cancel");
    assert_eq!((run.status().word(), run.snapshot.timers().len()), ("cancelled", 0));
    assert_eq!(run.effects(), ["cancel"]);
    assert_eq!(run.refused("E", json!({})), "finished");
    run.done("work", json!(1));
    assert_eq!(run.verdict(), "late");
}

#[test]
fn stale_senders_are_refused() {
    let mut run = Run::start("events: {E: {}, F: {}}\nstates: {s: {on: {E: {}}}}");
    let envelope = |seq, seen| Envelope {
        expected_seq: Some(seen),
        ..Envelope::event(seq, "E", json!({}), Principal::default(), 0)
    };
    run.apply(&envelope(1, 0)).unwrap();
    assert_eq!(run.apply(&envelope(2, 0)).map(|_| ()).unwrap_err().code.word(), "stale");
    // A refused event changes nothing, so it does not make other events stale.
    assert_eq!(run.apply(&envelope(3, 1)).map(|s| s.verdict.word()).unwrap(), "accepted");
    assert_eq!(run.apply(&envelope(4, 9)).map(|_| ()).unwrap_err().code.word(), "stale");
}

#[test]
fn numbers_mean_the_same_after_a_trip_through_json() {
    let chart = "
context: {n: null, half: null}
events: {SET: {}, HALF: {}}
states: {s: {on: {SET: {actions: {assign: {n: '= event.n'}}}, HALF: {actions: {assign: {half: '= context.n / 2'}}}}}}
";
    let mut run = Run::start(chart);
    run.send_data("SET", json!({"n": 3.0})).send("HALF");
    assert_eq!((run.var("n"), run.var("half")), (json!(3), json!(1)));
    run.send_data("SET", json!({"n": -0.0}));
    assert_eq!(run.var("n").to_string(), "0");
    assert_eq!(run.refused("SET", json!({"n": 9_007_199_254_740_993i64})), "schema");
    run.send_data("SET", json!({"n": 1e20}));
    assert_eq!(run.var("n").as_f64(), Some(1e20));
}

#[test]
fn hostile_sizes_are_refused() {
    let mut run = Run::start("events: {E: {}}\nstates: {s: {on: {E: {}}}}");
    assert_eq!(run.refused("E", json!({"x": "y".repeat(2 << 20)})), "too-large");
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert_eq!(run.refused("E", deep), "too-large");
}

#[test]
fn a_start_that_does_not_fit_is_refused() {
    let chart = "input: {type: object, required: [user]}\ncontext: {u: '= input.user'}\nstates: {s: {}}";
    assert_eq!(Run::try_start(chart, json!({})).map(|_| ()).unwrap_err().code.word(), "schema");
    let run = Run::with_input(chart, json!({"user": "u1"}));
    assert_eq!(run.var("u"), json!("u1"));
    let machine = crate::common::machine(chart);
    let envelope = Envelope::host(0, Event::Start { input: json!({}) }, 0);
    let refusal = machine.start("r", &envelope).unwrap_err();
    let story = machine.explain(None, &envelope, &refusal);
    assert!(story.message.starts_with("the input does not match"), "{}", story.message);
    assert_eq!(
        Run::try_start("context: {a: '= 1 / 0'}\nstates: {s: {}}", json!({})).map(|_| ()).unwrap_err().code.word(),
        "execution"
    );
}

#[test]
fn another_charters_snapshot_is_refused() {
    let one = Run::start("states: {s: {}}");
    let two = crate::common::machine("states: {t: {}}");
    let envelope = Envelope::event(1, "E", json!({}), Principal::default(), 0);
    assert_eq!(two.step(&one.snapshot, &envelope).unwrap_err().code.word(), "charter-mismatch");
    let error = two.restore(&one.machine.snapshot_json(&one.snapshot)).unwrap_err();
    assert_eq!(error, RestoreError::OtherCharter { snapshot: one.machine.digest(), charter: two.digest() });
}

#[test]
fn the_digest_of_a_charter_covers_its_order() {
    let a = crate::common::machine(
        "events: {E: {}}\nstates: {s: {on: {E: [{when: 'true', target: t}, {target: u}]}}, t: {}, u: {}}",
    );
    let b = crate::common::machine(
        "events: {E: {}}\nstates: {s: {on: {E: [{when: 'true', target: t}, {target: u}]}}, u: {}, t: {}}",
    );
    assert_ne!(a.digest(), b.digest());
}

#[test]
fn a_problem_of_a_definition_has_a_code() {
    let all = |yaml: &str| problems(yaml).into_iter().map(|(code, _)| code).collect::<Vec<_>>().join(" ");
    assert_eq!(all("states: {s: {always: nowhere}}"), "missing-target");
    assert_eq!(all("states: {s: {always: {when: '1 +', target: s}}}"), "bad-expression");
    assert_eq!(all("states: {s: {always: {when: 'contxt.x', target: s}}}"), "bad-expression");
    assert_eq!(all("events: {done.x: {}}\nstates: {s: {}}"), "reserved-event");
    assert_eq!(all("actors: {w: {kind: exec}}\nstates: {s: {invoke: [{src: w}, {src: w}]}}"), "duplicate-invocation");
    assert_eq!(all("states: {s: {type: final, always: s}}"), "final-state");
    assert_eq!(
        all("states: {p: {type: parallel, states: {a: {}, b: {}}}, q: {always: {target: [p, q]}}}"),
        "bad-target"
    );
    assert_eq!(all("events: {E: {}}\nstates: {s: {on: {EE: s}}}"), "undeclared-event");
    // A name with a blank is one error, not one for each word of the key that uses it.
    assert_eq!(all("events: {B C: {}}\nstates: {s: {on: {B C: s}}}"), "bad-event-name");
}

/// A long expression does not hide why it failed, nor does an error that the charter raises itself.
#[test]
fn a_refusal_says_why_whatever_the_length_of_the_error() {
    let why = |action: &str| {
        let chart = format!(
            "context: {{o: {{}}}}\nevents: {{E: {{}}}}\nstates: {{s: {{on: {{E: {{actions: [{action}]}}}}}}}}\n"
        );
        Run::start(&chart).try_send("E", json!({})).map(|_| ()).unwrap_err().message
    };
    for length in [1, 10, 20, 60] {
        let message = why(&format!("{{log: '= {}'}}", vec!["string(context.o.nope)"; length].join(" + ")));
        assert!(message.contains("no such field `nope`") && message.len() < 2_000, "{length}: {message}");
    }
    let raised = "`error.execution` was raised and no transition handles it: ";
    assert_eq!(why("{raise: {type: error.execution, data: {message: hi}}}"), format!("{raised}hi"));
    assert_eq!(why("{raise: error.execution}"), format!("{raised}it has no data"));
    let long = why(&format!("{{raise: {{type: error.execution, data: {{x: {}}}}}}}", "y".repeat(5_000)));
    assert!(long.starts_with(raised) && long.len() < 1_000, "{long}");
}

/// A record contains why an action failed; the message is rendered when it is shown.
#[test]
fn a_refusal_says_which_action_failed() {
    for (action, expected) in [
        ("{assign: {'o.list[7]': 9}}", "cannot assign inside `o`: index 7 is out of range for a list of length 1"),
        ("{assign: {'o.text.deep': 9}}", "cannot assign inside `o`: no key deep in a value of type string"),
        ("{assign: {n: '= context.o.nope + 1'}}", "`context.o.nope + 1`: no such field `nope` (at `.nope`)"),
        ("{assign: {n: '= 1 / context.n'}}", "`1 / context.n`: division by zero"),
        ("{stop: nobody}", "there is no spawned actor `nobody` to stop"),
        ("{send: {to: nobody, type: X}}", "there is no actor `nobody` in this run"),
        ("{revoke: {kind: token, key: k}}", "there is no permit `token` `k` to revoke"),
        ("{close: {kind: duty, key: k}}", "the obligation `duty` `k` is not open"),
        ("{grant: {kind: token, key: k, uses: 0}}", "`uses` must be a whole number of at least 1"),
        ("{spawn: {machine: m, id: self, input: {}}}", "invalid actor id `self`"),
        (
            "{spawn: {machine: m, id: a, input: 5}}",
            "the input of `m` does not match its schema: 5 is not of type \"object\"",
        ),
    ] {
        let chart = format!(
            "
context: {{o: {{list: [1], text: x}}, n: 0}}
ledger: {{token: {{}}, duty: {{}}}}
machines: {{m: {{input: {{type: object}}, initial: s, states: {{s: {{}}}}}}}}
events: {{E: {{}}, X: {{}}}}
states: {{s: {{on: {{E: {{actions: [{action}]}}}}}}}}
"
        );
        let mut run = Run::start(&chart);
        let story = run.try_send("E", json!({})).map(|_| ()).unwrap_err();
        let event = if expected.contains("no actor") { "error.communication" } else { "error.execution" };
        assert_eq!(story.message, format!("`{event}` was raised and no transition handles it: {expected}"));
    }
}
