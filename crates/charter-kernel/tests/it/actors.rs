//! Several machines and services in one run: invocations, spawned actors, the events between them,
//! timers and late answers.

use crate::common::Run;
use charter_kernel::{EffectId, Envelope, Event, Timer};
use serde_json::json;

#[test]
fn a_service_is_started_at_the_end_of_the_macrostep_if_its_state_is_still_active() {
    let chart = "
actors: {w: {kind: exec}}
events: {GO: {}, ON: {}}
states:
  s: {on: {GO: a, ON: b}}
  a: {invoke: {src: w}, always: s}
  b: {invoke: {src: w, input: {x: 1}, onDone: {target: s}, onError: {target: s}}}
";
    let mut run = Run::start(chart);
    run.send("GO");
    assert_eq!(run.effects(), Vec::<String>::new());
    run.send("ON");
    assert_eq!(run.effects(), ["invoke"]);
    assert_eq!(
        run.last.as_ref().unwrap().effects[0].json("r"),
        json!({"id": "r/2/0", "kind": "invoke", "invocation": "w", "src": "w", "input": {"x": 1}})
    );
    run.done("w", json!({"y": 2}));
    assert_eq!(run.state(), "s");
    run.done("w", json!({}));
    assert_eq!(run.verdict(), "late");
    run.send("ON").failed("w", json!({"code": "x"}));
    assert_eq!(run.state(), "s");
}

#[test]
fn leaving_the_state_cancels_and_an_answer_to_an_earlier_effect_is_late() {
    let chart = "
actors: {w: {kind: exec}}
events: {OUT: {}, IN: {}}
states:
  s: {invoke: {src: w, onDone: done}, on: {OUT: t}}
  t: {on: {IN: s}}
  done: {}
";
    let mut run = Run::start(chart);
    run.send("OUT");
    assert_eq!(run.effects(), ["cancel"]);
    run.send("IN");
    let envelope = Envelope::host(
        3,
        Event::Done { invocation: "w".into(), effect: Some(EffectId { seq: 0, index: 0 }), output: json!(1) },
        0,
    );
    run.apply(&envelope).unwrap();
    assert_eq!((run.verdict(), run.state().as_str()), ("late", "s"));
    let envelope = Envelope::host(
        4,
        Event::Done { invocation: "w".into(), effect: EffectId::parse("r/2/0"), output: json!(1) },
        0,
    );
    run.apply(&envelope).unwrap();
    assert_eq!((run.verdict(), run.state().as_str()), ("accepted", "done"));
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_refused_and_the_service_still_owes_one() {
    let chart = "
actors: {w: {kind: model, output: {type: object, required: [ok], properties: {ok: {type: boolean}}}}}
states: {s: {invoke: {src: w, onDone: t}}, t: {}}
";
    let mut run = Run::start(chart);
    let envelope =
        Envelope::host(1, Event::Done { invocation: "w".into(), effect: None, output: json!({"ok": "yes"}) }, 0);
    let story = run.apply(&envelope).map(|_| ()).unwrap_err();
    assert_eq!(story.code.word(), "schema");
    assert!(story.message.starts_with("the output of `w` does not match its schema: at `/ok`"), "{}", story.message);
    run.done("w", json!({"ok": true}));
    assert_eq!(run.state(), "t");
}

#[test]
fn a_service_that_does_not_answer_times_out() {
    let chart = "
actors: {w: {kind: exec, timeout: 60s}}
context: {code: null}
states: {s: {invoke: {src: w, onError: {target: t, actions: {assign: {code: '= event.error.code'}}}}}, t: {}}
";
    let mut run = Run::start(chart);
    run.wait(59_999);
    assert_eq!(run.state(), "s");
    run.wait(1);
    assert_eq!((run.state().as_str(), run.var("code")), ("t", json!("timeout")));
    assert_eq!(run.effects(), ["cancel"]);
}

const CHILD: &str = "
events: {GO: {}, OUT: {}, PING: {}, END: {}}
context: {got: null}
states:
  s:
    on: {GO: work, PING: {actions: {send: {to: child, type: PING}}}}
  work:
    invoke: {src: kid, id: child, input: {n: 3}, onDone: {target: s, actions: {assign: {got: '= event.output'}}}}
    on: {OUT: s, PING: {actions: {send: {to: child, type: PING}}}, HELLO: {actions: {log: '= event.n'}}, BYE: {actions: {log: never}}}
machines:
  kid:
    context: {n: '= input.n'}
    output: {twice: '= context.n * 2'}
    states:
      a:
        entry: {send: {to: parent, type: HELLO, data: {n: '= string(context.n)'}}}
        exit: [{log: exit}, {send: {to: parent, type: BYE}}]
        on: {PING: b}
      b: {type: final}
";

#[test]
fn an_invoked_machine_talks_to_its_parent_and_gives_its_output() {
    let mut run = Run::start(CHILD);
    run.send("GO");
    assert_eq!((run.logged().as_str(), run.state_of("child").as_str()), ("3", "a"));
    run.send("PING");
    assert_eq!((run.state().as_str(), run.var("got")), ("s", json!({"twice": 6})));
    assert_eq!(run.state_of("child"), "none", "an invocation leaves nothing behind");
}

#[test]
fn a_cancelled_machine_runs_its_exits_and_is_not_heard_any_more() {
    let mut run = Run::start(CHILD);
    run.send("GO").send("OUT");
    assert_eq!((run.logged().as_str(), run.state_of("child").as_str()), ("3 exit", "none"));
    run.send("GO");
    assert_eq!(run.state_of("child"), "a", "and can be invoked again");
}

#[test]
fn an_event_for_an_actor_that_is_not_there_is_an_error() {
    let mut run = Run::start(CHILD);
    assert_eq!(run.refused("PING", json!({})), "execution", "error.communication that nothing handles");
}

#[test]
fn spawned_actors_outlive_states_and_are_addressed_by_id() {
    let chart = "
events: {NEW: {}, TICK: {}, STOP: {}, MOVE: {}}
states:
  s: {on: {NEW: {actions: {spawn: {machine: kid, id: '= event.id'}}}, STOP: {actions: {stop: '= event.id'}}, MOVE: t}}
  t: {}
machines:
  kid: {context: {n: 0}, states: {a: {on: {TICK: [{when: 'context.n < 1', actions: {assign: {n: '= context.n + 1'}}}, {target: b}]}}, b: {type: final}}}
";
    let mut run = Run::start(chart);
    run.send_data("NEW", json!({"id": "one"}))
        .send_data("NEW", json!({"id": "two"}))
        .send_data("NEW", json!({"id": "three"}));
    run.try_send_to("one", "TICK", json!({})).unwrap();
    run.try_send_to("one", "TICK", json!({})).unwrap();
    assert_eq!(
        (run.state_of("one").as_str(), run.state_of("two").as_str()),
        ("b", "a"),
        "a finished actor stays to be seen"
    );
    assert_eq!(run.try_send_to("one", "TICK", json!({})).map(|_| ()).unwrap_err().code.word(), "finished");
    run.send_data("STOP", json!({"id": "two"}));
    assert_eq!(run.state_of("two"), "none");
    run.send("MOVE");
    run.try_send_to("three", "TICK", json!({})).unwrap();
    assert_eq!(run.refused("TICK", json!({})), "unhandled", "the root does not take it");
}

#[test]
fn timers_carry_a_generation_and_a_stale_one_is_ignored() {
    let chart = "
events: {AGAIN: {}}
states:
  s: {after: {10s: t}, on: {AGAIN: {target: s, reenter: true}}}
  t: {}
";
    let mut run = Run::start(chart);
    let old = run.snapshot.next_timer().unwrap().clone();
    run.wait(5_000).send("AGAIN");
    let envelope = Envelope::host(9, Event::Timer { timer: old.id.to_string(), generation: old.generation }, 10_000);
    run.apply(&envelope).unwrap();
    assert_eq!((run.verdict(), run.state().as_str()), ("ignored", "s"));
    run.wait(9_999);
    assert_eq!(run.state(), "s");
    run.wait(1);
    assert_eq!(run.state(), "t");
}

#[test]
fn delayed_events_are_sent_in_order_and_can_be_taken_back() {
    let chart = "
events: {GO: {}, UNDO: {}, A: {}, B: {}}
states:
  s:
    on:
      GO: {actions: [{send: {type: B, delay: 2s, id: b}}, {send: {type: A, delay: 1s}}]}
      UNDO: {actions: {cancel: b}}
      A: {actions: {log: a}}
      B: {actions: {log: b}}
";
    let mut run = Run::start(chart);
    run.send("GO").wait(5_000);
    assert_eq!(run.logged(), "a b");
    let mut run = Run::start(chart);
    run.send("GO").send("UNDO").wait(5_000);
    assert_eq!(run.logged(), "a");
}

#[test]
fn machines_that_start_themselves_for_ever_are_stopped() {
    let chart = "
events: {GO: {}}
states: {s: {on: {GO: {actions: {spawn: {machine: k, id: k0}}}}}}
machines: {k: {states: {a: {invoke: {src: k, id: '#id'}}}}}
"
    .replace("'#id'", "inner");
    let mut run = Run::start(&chart);
    // The invoked machine would invoke another one with its own id: an error that nothing handles.
    assert_eq!(run.refused("GO", json!({})), "execution");
}

#[test]
fn the_same_envelopes_give_the_same_steps() {
    let trace = |at: i64| {
        let mut run = Run::start(CHILD);
        run.at = at;
        run.send("GO").send("PING").send("GO").send("OUT");
        run.machine.snapshot_digest(&run.snapshot)
    };
    assert_eq!(trace(1_000), trace(1_000));
}

#[test]
fn a_snapshot_says_whose_child_every_actor_is() {
    let chart = "
events: {GO: {}}
machines:
  kid: {states: {k: {}}}
states:
  s: {on: {GO: {actions: {spawn: {machine: kid, id: one}}}}}
";
    let mut run = Run::start(chart);
    run.send("GO");
    let good = run.machine.snapshot_json(&run.snapshot);
    assert_eq!(good["actors"][1]["parent"], "root");
    run.machine.restore(&good).unwrap();
    for (actor, parent, id) in [(1, json!(null), "one"), (0, json!("one"), "root")] {
        let mut bad = good.clone();
        bad["actors"][actor]["parent"] = parent;
        let why = run.machine.restore(&bad).unwrap_err().to_string();
        let expected = format!("`{id}`: every actor except the root has a `parent`");
        assert!(why.contains(&expected), "{why}");
    }
}

#[test]
fn a_run_that_ends_before_a_spawned_actor_has_started_is_restored() {
    let chart = "
events: {GO: {}}
machines:
  kid: {states: {k: {exit: {spawn: {machine: kid, id: second}}}}}
states:
  s: {exit: {spawn: {machine: kid, id: first}}, on: {GO: t}}
  t: {type: final}
";
    let mut done = Run::start(chart);
    done.send("GO");
    let mut cancelled = Run::start(chart);
    cancelled.by("op", &["operator"]).send("charter.cancel");
    for run in [done, cancelled] {
        assert!(run.status().is_finished());
        let json = run.machine.snapshot_json(&run.snapshot);
        assert_eq!(run.machine.restore(&json).unwrap(), run.snapshot);
        // In a run that goes on, each actor has states.
        let mut running = json;
        running["status"] = json!("active");
        assert!(run.machine.restore(&running).is_err());
    }
}

#[test]
fn the_event_of_a_timer_has_the_type_of_what_is_due_if_it_is_of_that_generation() {
    let chart = "
actors: {w: {kind: exec, timeout: 1m}}
events: {GO: {}, PING: {}}
states:
  s: {invoke: {src: w}, after: {1h: t}, on: {GO: {actions: {send: {type: PING, id: p, delay: 5s}}}, PING: t}}
  t: {}
";
    let mut run = Run::start(chart);
    run.send("GO");
    let types = |later: u64| -> Vec<String> {
        let event = |t: &Timer| Event::Timer { timer: t.id.to_string(), generation: t.generation + later };
        run.snapshot.timers().iter().map(|t| event(t).type_name(Some(&run.snapshot)).into_owned()).collect()
    };
    assert_eq!(types(0), ["PING", "error.invoke.w", "after.1h.s"]);
    assert_eq!(types(1), ["root/send/3", "root/timeout/w", "after.1h.s"]);
    let timers: Vec<_> = run.snapshot.timers().iter().map(|t| (t.id.to_string(), t.generation)).collect();
    for (timer, generation) in timers {
        let later = Event::Timer { timer, generation: generation + 1 };
        run.apply(&Envelope::host(run.seq + 1, later, 7_200_000)).unwrap();
        assert_eq!((run.verdict(), run.state().as_str(), run.snapshot.timers().len()), ("ignored", "s", 3));
    }
}

#[test]
fn a_machine_that_takes_too_long_is_stopped_and_the_others_go_on() {
    let chart = "
events: {PING: {}}
states:
  s:
    invoke:
      - {src: kid, id: slow, timeout: 10s, onError: {actions: {log: '= event.error.code'}}}
      - {src: kid, id: other, onDone: {target: t}}
    on: {PING: {actions: {send: {to: other, type: PING}}}}
  t: {}
machines:
  kid: {states: {a: {on: {PING: b}}, b: {type: final}}}
";
    let mut run = Run::start(chart);
    run.wait(10_000);
    assert_eq!((run.logged().as_str(), run.state().as_str()), ("timeout", "s"));
    assert_eq!((run.state_of("slow").as_str(), run.state_of("other").as_str()), ("none", "a"));
    let open: Vec<_> = run.snapshot.invocations().map(|(_, invocation)| invocation.id.to_string()).collect();
    assert_eq!(open, ["other"]);
    run.send("PING");
    assert_eq!(run.state(), "t");
}

#[test]
fn a_machine_that_has_ended_is_not_invoked_any_more() {
    let chart = "
events: {PING: {}}
actors: {w: {kind: exec}}
states:
  s:
    invoke: [{src: kid, id: ends, onDone: {actions: {log: ended}}}, {src: kid, id: stays}, {src: w}]
    on: {PING: {actions: {send: {to: ends, type: PING}}}}
machines:
  kid: {states: {a: {on: {PING: b}}, b: {type: final}}}
";
    let mut run = Run::start(chart);
    run.send("PING");
    assert_eq!((run.logged().as_str(), run.state().as_str()), ("ended", "s"));
    let open: Vec<_> = run.snapshot.invocations().map(|(_, invocation)| invocation.id.to_string()).collect();
    assert_eq!(open, ["stays", "w"]);
}

#[test]
fn conditions_see_all_actors_by_their_ids() {
    let chart = "
events: {NEW: {}}
context: {ids: null}
states: {s: {on: {NEW: {actions: [{assign: {ids: '= actors.map(id, id)'}}, {spawn: {machine: kid, id: ann}}]}}}}
machines: {kid: {states: {k: {}}}}
";
    let mut run = Run::start(chart);
    run.send("NEW");
    assert_eq!(run.var("ids"), json!(["root"]));
    run.snapshot.actor("ann").unwrap();
    let again = run.try_send("NEW", json!({}));
    assert!(again.is_err(), "the id is taken");
}

#[test]
fn a_run_that_ends_when_it_invokes_again_can_be_restored() {
    let chart = "
context: {n: 0}
states:
  s:
    invoke: {machine: m, id: c}
    on:
      done.invoke.c:
        - {target: pass, when: context.n == 2}
        - {target: s, reenter: true, actions: {assign: {n: '= context.n + 1'}}}
  pass: {type: final}
machines:
  m: {initial: f, states: {f: {type: final}}}
";
    let run = Run::start(chart);
    assert_eq!(run.state(), "pass");
    let json = run.machine.snapshot_json(&run.snapshot);
    assert_eq!(run.machine.restore(&json).unwrap(), run.snapshot);
}
