//! Why transitions were taken, those that followed inside the step as well.

use charter_kernel::{Envelope, Event, Principal, Taken};
use serde_json::{Value as Json, json};

use crate::common::Run;

const CHAIN: &str = "
roles: {clerk: {}}
input: {type: object}
context: {n: 0, size: '= input.size'}
events: {GO: {by: clerk, data: {type: object}}}
actors: {ask: {kind: scripted}}
machines:
  child:
    initial: a
    context: {seen: 0}
    states:
      a: {on: {PING: {when: event.n > 3, target: b}}}
      b: {type: final}
initial: start
states:
  start:
    always: {when: context.size > 1, target: wait}
  wait:
    on: {GO: {when: event.n > 1, target: busy, actions: [{assign: {n: '= event.n'}}, {raise: {type: inner, data: {k: 7}}}]}}
  busy:
    initial: one
    states:
      one: {on: {inner: {when: event.k == 7 && context.n == 2, target: two}}}
      two: {type: final}
    onDone: {when: context.n < 5, target: asking, actions: {assign: {n: 9}}}
  asking:
    always: {when: context.n == 9 && event.type.startsWith('done.state'), target: called}
  called:
    invoke: {src: ask, onDone: [{when: event.output.fine, target: family}], onError: {target: family}}
  family:
    entry: {spawn: {machine: child, id: c}}
    after: {5s: {when: context.n == 9, actions: {send: {to: c, type: PING, data: {n: 4}}}}}
";

fn names(taken: &[Taken]) -> Vec<(&str, Option<&str>, Option<&str>)> {
    taken.iter().map(|t| (t.transition.as_str(), t.event.as_deref(), t.condition.as_deref())).collect()
}

fn read(taken: &Taken) -> Json {
    Json::Object(taken.read.clone())
}

/// Applies an event and returns why its transitions were taken: all of them, in order.
fn why(run: &mut Run, event: Event, by: Principal, at: i64) -> Vec<Taken> {
    let before = run.snapshot.clone();
    let envelope = Envelope { by, ..Envelope::host(run.seq + 1, event, at) };
    let step = run.machine.step(&before, &envelope).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let taken = run.machine.why_taken(&before, &envelope);
    let name = |t: &Taken| match t.actor.as_str() {
        "root" => t.transition.clone(),
        actor => format!("{actor}:{}", t.transition),
    };
    let named: Vec<String> = taken.iter().map(name).collect();
    assert_eq!(named, run.machine.transition_names(&step, "root").collect::<Vec<_>>());
    run.seq += 1;
    run.snapshot = step.snapshot;
    taken
}

#[test]
fn transitions_that_follow_inside_a_step_have_their_reasons() {
    let mut run = Run::with_input(CHAIN, json!({"size": 2}));
    let start = Envelope::host(0, Event::Start { input: json!({"size": 2}) }, 0);
    let taken = run.machine.why_started("r", &start);
    assert_eq!(names(&taken), [("start/always/0", None, Some("context.size > 1"))]);
    assert_eq!(read(&taken[0]), json!({"context.size": 2}));

    let go = Event::External { r#type: "GO".into(), data: json!({"n": 2}) };
    let taken = why(&mut run, go, Principal::new("ana", &["clerk"]), 0);
    assert_eq!(
        names(&taken),
        [
            ("wait/on/GO/0", Some("GO"), Some("event.n > 1")),
            ("busy.one/on/inner/0", Some("inner"), Some("event.k == 7 && context.n == 2")),
            ("busy/onDone/0", Some("done.state.busy"), Some("context.n < 5")),
            ("asking/always/0", None, Some("context.n == 9 && event.type.startsWith('done.state')")),
        ]
    );
    assert_eq!(taken[0].roles, ["clerk"]);
    assert_eq!(read(&taken[1]), json!({"context.n": 2, "event.k": 7}), "the values of that moment");
    assert!(taken[1].roles.is_empty(), "events of the run have no sender");
    assert_eq!(read(&taken[2]), json!({"context.n": 2}));
    assert_eq!(read(&taken[3]), json!({"context.n": 9, "event.type": "done.state.busy"}));
    assert!(taken[3].roles.is_empty());

    let done = Event::Done {
        invocation: run.snapshot.actor("root").unwrap().invocations().next().unwrap().id.to_string(),
        effect: None,
        output: json!({"fine": true}),
    };
    let taken = why(&mut run, done, Principal::default(), 0);
    assert_eq!(taken[0].condition.as_deref(), Some("event.output.fine"));
    assert_eq!(read(&taken[0]), json!({"event.output.fine": true}));

    let timer = run.snapshot.next_timer().unwrap().clone();
    let due = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
    let taken = why(&mut run, due, Principal::default(), 5000);
    assert_eq!(taken.iter().map(|t| t.actor.as_str()).collect::<Vec<_>>(), ["root", "c"]);
    assert_eq!(read(&taken[1]), json!({"event.n": 4}), "an event between actors");
}

#[test]
fn a_refused_event_took_nothing() {
    let run = Run::with_input(CHAIN, json!({"size": 2}));
    let envelope = Envelope::event(1, "GO", json!({"n": 1}), Principal::new("ana", &["clerk"]), 0);
    assert!(run.machine.why_taken(&run.snapshot, &envelope).is_empty());
}
