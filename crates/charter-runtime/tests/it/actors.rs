//! Actors: scripted answers, tasks for people, events of agents, invalid configurations.

use crate::common::*;
use charter_actors::{BoxFuture, Call, Executor, Fault, Outcome};
use charter_kernel::{Millis, Status};
use charter_runtime::{Options, RuntimeEvent};
use serde_json::{Value as Json, json};
use std::sync::{Arc, Mutex};

/// A charter with one state that calls one actor; the output of the run is the result.
pub(crate) fn one(actor: &str) -> String {
    format!(
        "
charter: 1
id: one
roles: {{user: {{}}}}
input: {{}}
context: {{got: null}}
output: = context.got
events: {{STOP: {{by: user}}}}
actors:
  work: {actor}
states:
  working:
    invoke:
      src: work
      input: = input
      onDone: {{target: done, actions: {{assign: {{got: '= event.output'}}}}}}
      onError: {{target: failed, actions: {{assign: {{got: '= event.error'}}}}}}
    on: {{STOP: stopped}}
  done: {{type: final}}
  failed: {{type: final, tags: [failed]}}
  stopped: {{type: final}}
"
    )
}

pub(crate) async fn result(h: &Host, run: &str) -> (Status, Json) {
    let view = h.runtime.ended(run).await.unwrap();
    (view.snapshot.status(), view.snapshot.output().cloned().unwrap_or_default())
}

#[test]
fn scripted_answers_by_input_in_order_and_delayed() {
    block_on(async {
        let source = one(
            "{kind: scripted, answers: [{when: {kind: a}, output: {is: a, of: '= input.n + 1'}, after: 90s}, {when: '= input.n > 5', output: many}]}",
        );
        let h = host(&source).await;
        h.start("r", json!({"kind": "a", "n": 1})).await;
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!({"is": "a", "of": 2})));
        assert_eq!(h.story("r"), ["0 charter.start accepted working", "90000 done.invoke.work accepted done"]);
        h.start("s", json!({"kind": "b", "n": 6})).await;
        assert_eq!(result(&h, "s").await.1, json!("many"));
        h.start("t", json!({"kind": "b", "n": 5})).await;
        let (status, error) = result(&h, "t").await;
        assert_eq!((status, &error["code"]), (Status::Failed, &json!("script")));
    });
}

#[test]
fn answers_without_a_condition_are_given_in_order() {
    let source = "
charter: 1
id: turns
events: {NEXT: {}}
context: {said: []}
actors: {ask: {kind: scripted, answers: [{output: 1}, {output: 2}, {error: {code: tired, message: no more}}]}}
states:
  asking:
    invoke:
      src: ask
      onDone: {target: pause, actions: {assign: {said: '= context.said + [event.output]'}}}
      onError: {target: pause, actions: {assign: {said: '= context.said + [event.error.code]'}}}
  pause: {on: {NEXT: asking}}
";
    block_on(async {
        let h = host(source).await;
        h.start("r", json!({})).await;
        for _ in 0..3 {
            h.clock.settle().await;
            h.send("r", "NEXT", json!({})).await;
        }
        h.clock.settle().await;
        let view = h.runtime.view("r").await.unwrap();
        assert_eq!(view.snapshot.actor("root").unwrap().context()["said"], json!([1, 2, "tired", "script"]));
        assert!(!view.is_stuck());
    });
}

#[test]
fn a_person_answers_a_task() {
    let source =
        one("{kind: human, title: Is it good?, by: user, output: {type: object, required: [good]}, timeout: 72h}");
    block_on(async {
        let h = host(&source).await;
        let mut news = h.runtime.subscribe(None);
        h.start("r", json!({"what": "soup"})).await;
        h.clock.settle().await;
        let h = h.crash(charter(&source), |o| o).await;
        h.clock.settle().await;
        let mut waits = 0;
        while let Some(event) = news.try_next() {
            waits += u32::from(matches!(event, RuntimeEvent::Waiting(_)));
        }
        assert_eq!(waits, 1);
        assert!(h.runtime.tasks(&who("eve", &["guest"]), 9).await.unwrap().is_empty());
        let tasks = h.runtime.tasks(&who("ana", &["user"]), 9).await.unwrap();
        assert_eq!(
            (tasks.len(), tasks[0].title.as_deref(), &tasks[0].input),
            (1, Some("Is it good?"), &json!({"what": "soup"}))
        );
        let task = tasks[0].effect.clone();
        let e = h.runtime.complete(&task, json!({"good": true}), who("eve", &["guest"])).await.unwrap_err();
        assert_eq!(
            e.to_string(),
            "run `r`: the invocation `r/0/0` requires one of the roles user; `eve` has none of them"
        );
        // An answer that does not match the schema is refused, and the task remains open.
        let bad = h.runtime.complete(&task, json!({"god": true}), who("ana", &["user"])).await.unwrap();
        assert_eq!(bad.refusal().unwrap().code.word(), "schema");
        let good = h.runtime.complete(&task, json!({"good": true}), who("ana", &["user"])).await.unwrap();
        assert_eq!((good.record.by.id.as_str(), good.record.state[0].as_ref()), ("ana", "done"));
        let e = h.runtime.complete(&task, json!({"good": true}), who("ana", &["user"])).await.unwrap_err();
        assert_eq!(e.to_string(), "run `r`: no open invocation `r/0/0`");
        h.start("s", json!({})).await;
        h.runtime.decline("s/0/0", "not my business", who("ana", &["user"])).await.unwrap();
        let error = json!({"code": "declined", "message": "not my business", "retryable": false, "by": "ana"});
        assert_eq!(result(&h, "s").await, (Status::Failed, error));
        h.start("t", json!({})).await;
        h.clock.run(i64::from(u32::MAX)).await;
        assert_eq!(result(&h, "t").await.1["code"], json!("timeout"));
    });
}

/// A charter whose agents send events under the role that it gives them.
const AGENTS: &str = "
charter: 1
id: agents
roles: {planner: {}, judge: {}, clerk: {}}
events:
  SUBMIT: {by: planner, data: {type: object, required: [plan]}}
  CLOSE: {by: clerk}
  JUDGE: {by: judge}
context: {plans: [], judged: []}
output: = context.judged
actors:
  planner: {kind: scripted, as: planner, answers: [{events: [{type: SUBMIT, each: '= input.names', data: {plan: '= item'}, after: 1m}], output: {}}]}
  clerk: {kind: scripted, as: clerk, id: carl, answers: [{events: [{type: CLOSE, refused: wait}]}]}
  judge: {kind: scripted, as: judge, answers: [{events: [{type: JUDGE, each: '= input.plans', when: '= item.startsWith(\"g\")', data: {plan: '= item'}}], output: {}}]}
  thief: {kind: scripted, as: clerk, answers: [{events: [{type: JUDGE}]}]}
states:
  planning:
    invoke:
      - {src: planner, input: {names: [good, bad, great]}}
      - {src: clerk}
    on:
      SUBMIT: {actions: {assign: {plans: '= context.plans + [event.plan]'}}}
      CLOSE: {target: judging, when: size(context.plans) == 3}
  judging:
    invoke:
      - {src: judge, input: {plans: '= context.plans'}, onDone: stealing}
    on:
      JUDGE: {actions: {assign: {judged: '= context.judged + [event.plan]'}}}
  stealing:
    invoke: {src: thief, onError: {target: over, actions: {assign: {judged: '= context.judged + [event.error.refusal]'}}}}
  over: {type: final}
";

#[test]
fn events_of_agents_follow_the_rules_of_all_events() {
    block_on(async {
        let h = host(AGENTS).await;
        h.start("r", json!({})).await;
        h.clock.run(3_600_000).await;
        let (_, output) = result(&h, "r").await;
        assert_eq!(output, json!(["good", "great", "authority"]), "{:#?}", h.story("r"));
        let records = h.store.records("r", 0, 99).unwrap();
        let close: Vec<_> = records
            .iter()
            .filter(|r| r.event.r#type == "CLOSE")
            .map(|r| (r.by.id.as_str(), r.verdict.word(), r.id.as_ref()))
            .collect();
        assert_eq!(
            close,
            [
                ("carl", "refused", "r/0/1/event/1"),
                ("carl", "refused", "r/0/1/event/1/1"),
                ("carl", "refused", "r/0/1/event/1/2"),
                ("carl", "accepted", "r/0/1/event/1/3"),
            ]
        );
    });
}

#[test]
fn events_of_an_agent_are_not_repeated_after_a_crash() {
    block_on(async {
        let h = host(AGENTS).await;
        h.start("r", json!({})).await;
        h.clock.advance(130_000).await;
        let h = h.crash(charter(AGENTS), |o| o).await;
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await.1, json!(["good", "great", "authority"]));
        let records = h.store.records("r", 0, 99).unwrap();
        assert_eq!(records.iter().filter(|r| r.event.r#type == "SUBMIT").count(), 3);
    });
}

#[test]
fn invalid_configurations_are_rejected_before_a_run_starts() {
    let cases = [
        ("{kind: humn}", "actor `work`: this host has no executor for the kind `humn`; it has "),
        (
            "{kind: human, by: [user, 7]}",
            "actor `work`: invalid `by`: expected a string or a list of strings, found `[\"user\",7]`",
        ),
        ("{kind: human, titel: x}", "actor `work`: unknown key `titel`; did you mean `title`?"),
        ("{kind: scripted}", "actor `work`: missing key `answers`: a list of answers, or the name of a file with one"),
        (
            "{kind: scripted, answers: a.yaml}",
            "actor `work`: cannot read `a.yaml`: this host has no files beside the charter",
        ),
        (
            "{kind: scripted, answers: [{outputs: 1}]}",
            "actor `work`: `answers`: answer 1: unknown key `outputs`; did you mean `output`?",
        ),
        ("{kind: scripted, answers: [{output: '= input.'}]}", "actor `work`: `answers`: answer 1: `= input.`: "),
        (
            "{kind: scripted, as: operator, answers: [{}]}",
            "actor `work`: `as`: the charter does not declare the role `operator`",
        ),
        (
            "{kind: exec, command: ls -l}",
            "actor `work`: invalid `command`: expected a list of strings, the program first (no shell interprets it), found ",
        ),
        ("{kind: exec, command: [ls]}", "actor `work`: the charter has no folder in the file system of this host"),
        (
            "{kind: human, title: '= input.name'}",
            "actor `work`: `title`: `= input.name` is not evaluated: a title is a text; give what the task is about as `input`, which is shown with it",
        ),
        (
            "{kind: http, url: 'ftp://x/y'}",
            "actor `work`: `url`: `ftp://x/y`: the scheme must be `https`, or `http` to this machine",
        ),
        (
            "{kind: http, url: 'http://example.org/'}",
            "actor `work`: `url`: `http://example.org/`: `http` is not encrypted and is allowed only to this machine; use `https`",
        ),
        (
            "{kind: http, url: 'http://localhost/', headers: {authorization: {secret: TOKEN}}}",
            "actor `work`: `headers`: this host has no secret `TOKEN` for the header `authorization`",
        ),
    ];
    block_on(async {
        let h = host(&one("{kind: human}")).await;
        for (actor, expected) in cases {
            let e = match try_charter(&one(actor)) {
                Ok(charter) => h.runtime.add(charter).await.unwrap_err(),
                Err(e) => e,
            };
            let said = e.to_string();
            let said = said.strip_prefix("cannot run the charter `one` on this host: ").unwrap_or(&said);
            assert!(said.starts_with(expected), "{actor}\n{said}");
        }
    });
}

#[test]
fn a_panic_of_an_executor_is_a_failure_of_the_actor() {
    struct Bug;
    impl Executor for Bug {
        fn call(&self, _: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
            Box::pin(async { panic!("a bug (this message belongs to the test)") })
        }
    }
    block_on(async {
        let h = host_with(&one("{kind: bug}"), |o| o.executor("bug", Bug)).await;
        h.start("r", json!({})).await;
        assert_eq!(result(&h, "r").await.1["code"], json!("panic"));
    });
}

#[test]
fn an_answer_that_the_run_refuses_becomes_a_failure() {
    // The action on the answer fails and nothing handles the failure: the answer is refused, and an
    // accepted failure is recorded.
    let source =
        one("{kind: scripted, answers: [{output: {n: 0}}]}").replace("'= event.output'", "'= 1 / event.output.n'");
    block_on(async {
        let h = host(&source).await;
        h.start("r", json!({})).await;
        let (status, error) = result(&h, "r").await;
        assert_eq!((status, &error["code"]), (Status::Failed, &json!("refused")));
        assert_eq!(h.story("r")[1], "0 done.invoke.work refused execution working");
    });
}

#[test]
fn concurrent_calls_are_limited() {
    struct Counts(Arc<Mutex<(u32, u32)>>);
    impl Executor for Counts {
        fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
            let counts = self.0.clone();
            Box::pin(async move {
                {
                    let mut c = counts.lock().unwrap();
                    c.0 += 1;
                    c.1 = c.1.max(c.0);
                }
                call.clock().sleep_until(call.clock().now().saturating_add(Millis(1_000))).await;
                counts.lock().unwrap().0 -= 1;
                Ok(Outcome::Done(json!(1)))
            })
        }
    }
    block_on(async {
        let counts = Arc::new(Mutex::new((0, 0)));
        let h = host_with(&one("{kind: counts}"), |o| {
            let limits = charter_runtime::Limits { calls_at_once: 3, events_per_second: 0, ..Default::default() };
            Options { limits, ..o.executor("counts", Counts(counts.clone())) }
        })
        .await;
        for i in 0..10 {
            h.start(&format!("r{i}"), json!({})).await;
        }
        h.clock.run(60_000).await;
        for i in 0..10 {
            assert_eq!(result(&h, &format!("r{i}")).await.0, Status::Done);
        }
        assert_eq!(*counts.lock().unwrap(), (0, 3));
    });
}
