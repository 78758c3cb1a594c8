//! One budget for an event with everything that it sets off: fuel, bytes, and the snapshot.

use charter_kernel::{Cause, Code, Envelope, Event, Work};
use serde_json::{Value as Json, json};

use crate::common::Run;

/// Sends `E` with data and returns why it is refused.
fn refused(run: &Run, data: Json) -> (Code, Cause) {
    let details = run.refusal_details("E", data);
    (details.code, details.cause.expect("a cause"))
}

fn bytes(work: Work) -> (Code, Cause) {
    (Code::TooLarge, Cause::Bytes { limit: 16 << 20, work })
}

#[test]
fn effects_of_a_step_have_a_limit() {
    // 2,000 times 1 MB: 3.9 GB before there was a limit.
    let run = Run::start(
        "
events: {E: {}}
states:
  s:
    on:
      E: {actions: {each: {in: '= event.list', as: item, do: {emit: {type: OUT, data: '= event.text'}}}}}
",
    );
    let data = json!({"list": vec![0; 2_000], "text": "x".repeat(1_000_000)});
    assert_eq!(refused(&run, data), bytes(Work::Effects));
    let data = json!({"list": [0, 0, 0], "text": "x".repeat(1_000_000)});
    let mut run = run;
    run.send_data("E", data);
    assert_eq!(run.last.unwrap().effects.len(), 3);
}

#[test]
fn a_literal_that_is_repeated_is_charged_each_time() {
    let big = "x".repeat(100_000);
    for action in [
        format!("emit: {{type: OUT, data: {big}}}"),
        format!("log: {big}"),
        format!("raise: {{type: NEXT, data: {big}}}"),
        format!("spawn: {{machine: child, id: \"= 'c' + string(i)\", input: {big}}}"),
        format!("assign: {{list: \"= context.list + ['{}']\"}}", "y".repeat(3_000)),
        format!("send: {{to: self, type: NEXT, delay: 1h, data: {big}}}"),
        format!("grant: {{kind: permit, key: \"= string(i)\", data: {big}}}"),
        format!("open: {{kind: duty, key: \"= string(i)\", data: {big}}}"),
    ] {
        let run = Run::start(&format!(
            "
events: {{E: {{}}, NEXT: {{}}}}
limits: {{bytes: 2000000}}
ledger: {{permit: {{}}, duty: {{}}}}
context: {{list: []}}
machines: {{child: {{states: {{a: {{}}}}}}}}
states:
  s:
    on:
      NEXT: {{}}
      E: {{actions: {{each: {{in: '= event.list', as: _, index: i, do: {{{action}}}}}}}}}
"
        ));
        let (code, cause) = refused(&run, json!({"list": vec![0; 300]}));
        assert_eq!(code, Code::TooLarge, "{action:.30}: {cause:?}");
    }
}

/// A chain of 55 lists, each with the one before twice: a few hundred bytes, 2^55 items.
fn shared(body: &str) -> String {
    let mut text = format!("cel.bind(v55, [v54, v54], {body})");
    for i in (1..55).rev() {
        text = format!("cel.bind(v{i}, [v{0}, v{0}], {text})", i - 1);
    }
    format!("cel.bind(v0, [1], {text})")
}

#[test]
fn shared_parts_of_a_value_are_charged_by_their_full_size() {
    for condition in [shared("digest(v55) == ''"), shared("v55 == [v54, v54]"), shared("'%s'.format([v55]) == ''")] {
        let run = Run::start(&format!(
            "
events: {{E: {{}}}}
states:
  s: {{on: {{E: {{when: \"{condition}\"}}}}}}
"
        ));
        let started = std::time::Instant::now();
        let details = run.refusal_details("E", json!({}));
        // Comparing and formatting have the limit of their expression, which fails.
        assert!(matches!(details.code, Code::TooLarge | Code::Guard), "{:?}", details.code);
        assert!(started.elapsed().as_secs() < 10, "{condition:.20}");
    }
}

#[test]
fn a_condition_cannot_be_costly_again_and_again() {
    let condition = shared("digest(v55) == ''");
    let run = Run::start(&format!(
        "
events: {{E: {{}}}}
states:
  s: {{on: {{E: {{actions: {{each: {{in: '= event.list', as: i, do: {{if: [{{when: \"{condition}\", do: []}}]}}}}}}}}}}}}
"
    ));
    assert_eq!(refused(&run, json!({"list": vec![0; 3_000]})), bytes(Work::Values));
}

#[test]
fn expressions_share_the_fuel_of_the_event() {
    let yaml = "
events: {E: {}}
limits: {fuel: 5000}
states:
  s: {on: {E: {actions: {each: {in: '= event.list', as: i, do: {log: '= [1, 2, 3, 4, 5].all(x, x > 0)'}}}}}}
";
    let mut run = Run::start(yaml);
    run.send_data("E", json!({"list": [0]}));
    let fuel = (Code::TooCostly, Cause::Fuel { limit: 5_000, work: Work::Expressions });
    assert_eq!(refused(&run, json!({"list": vec![0; 1_000]})), fuel);
    // Whatever is done about an error of an expression, the event is refused.
    let mut run = Run::start(&yaml.replace("s: {on: {", "s: {on: {error.execution: {}, "));
    assert_eq!(refused(&run, json!({"list": vec![0; 1_000]})), fuel);
    assert_eq!(run.try_send("E", json!({"list": vec![0; 1_000]})).unwrap_err().code, Code::TooCostly);
}

#[test]
fn a_condition_that_is_evaluated_again_for_a_complex_transition_is_charged_once() {
    let refused = |fuel: u32, transition: &str| {
        let run = Run::start(&format!(
            "
events: {{E: {{}}}}
limits: {{fuel: {fuel}}}
states: {{s: {{on: {{E: {{when: 'event.list.all(x, x == 0)', target: t{transition}}}}}}}, t: {{}}}}
"
        ));
        run.clone().try_send("E", json!({"list": vec![0; 500]})).is_err()
    };
    // The least fuel that is enough for the transition, and half of it in addition.
    let enough =
        (1..14).rev().fold(0, |fuel, bit| if refused(fuel + (1 << bit), "") { fuel + (1 << bit) } else { fuel });
    assert!((500..15_000).contains(&enough), "{enough}");
    assert!(!refused(enough + enough / 2, ", actions: {log: 1}"));
}

#[test]
fn the_limit_of_one_expression_is_still_an_error_of_that_expression() {
    let run = Run::start(
        "
events: {E: {}}
limits: {expression: 100}
states:
  s: {on: {E: {when: 'event.list.all(x, x == 0)'}}}
",
    );
    let details = run.refusal_details("E", json!({"list": vec![0; 1_000]}));
    assert_eq!(details.code, Code::Guard);
    assert_eq!(details.candidates[0].error.as_ref().unwrap().error, "out-of-fuel");
}

#[test]
fn a_timer_and_an_answer_have_the_same_budget() {
    let mut run = Run::start(
        "
events: {E: {}}
limits: {fuel: 500}
context: {list: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}
actors: {work: {kind: script}}
actions:
  costly: {each: {in: '= context.list', as: i, do: {each: {in: '= context.list', as: j, do: {log: '= i + j'}}}}}
states:
  s:
    invoke: {src: work, onDone: {actions: costly}}
    after: {1h: {actions: costly}}
",
    );
    let timer = run.snapshot.timers()[0].clone();
    run.at = timer.due.0;
    let fire = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
    let (_, invocation) = run.snapshot.invocations().next().unwrap();
    let answer = Event::Done { invocation: "work".into(), effect: Some(invocation.effect), output: json!(1) };
    for event in [fire, answer] {
        let envelope = charter_kernel::Envelope::host(run.seq + 1, event, run.at);
        let refusal = run.machine.step(&run.snapshot, &envelope).map(drop).unwrap_err();
        assert_eq!(refusal.code, Code::TooCostly);
    }
}

#[test]
fn a_snapshot_has_a_limit() {
    let mut run = Run::start(
        "
events: {E: {}, SHRINK: {}}
limits: {bytes: 20000}
context: {list: []}
states:
  s: {on: {E: {actions: {assign: {list: '= context.list + [event.text]'}}}, SHRINK: {actions: {assign: {list: []}}}}}
",
    );
    let text = "x".repeat(1_000);
    for _ in 0..9 {
        run.send_data("E", json!({"text": text}));
    }
    assert_eq!(
        refused(&run, json!({"text": text})),
        (Code::TooLarge, Cause::Bytes { limit: 10_000, work: Work::Snapshot })
    );
    // The same after the run was loaded, when the length of its snapshot is not known.
    run.snapshot = run.machine.restore(&run.machine.snapshot_json(&run.snapshot)).unwrap();
    assert_eq!(refused(&run, json!({"text": text})).0, Code::TooLarge);
    assert_eq!(run.machine.snapshot_text(&run.snapshot).len() / 1_000, 9);
    run.send_data("SHRINK", json!({}));
    run.send_data("E", json!({"text": text}));
}

#[test]
fn regions_that_share_an_event_take_linear_time() {
    let chart = |regions: usize| {
        let regions: String = (0..regions)
            .map(|i| {
                format!(
                    "  r{i}: {{initial: a, states: {{a: {{on: {{E: b}}}}, b: {{on: {{E: c}}}}, c: {{type: final}}}}}}\n"
                )
            })
            .collect();
        Run::start(&format!("events: {{E: {{}}}}\ntype: parallel\nstates:\n{regions}"))
    };
    // 12 s a step before, in a release build.
    let mut run = chart(2_000);
    let started = std::time::Instant::now();
    run.send_data("E", json!({}));
    run.send_data("E", json!({}));
    assert_eq!(run.snapshot.status(), charter_kernel::Status::Done);
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn messages_name_the_limit_and_what_to_do() {
    let mut run = Run::start(
        "
events: {E: {}}
limits: {fuel: 100}
states:
  s: {on: {E: {actions: {each: {in: '= event.list', as: i, do: {log: '= i'}}}}}}
",
    );
    let why = run.try_send("E", json!({"list": vec![0; 100]})).unwrap_err();
    assert_eq!(why.code, Code::TooCostly);
    assert_eq!(
        why.message,
        "the event costs more than 100 units of fuel (`limits.fuel`), exceeded by the values that it builds; let it do less, or raise the limit"
    );
}

/// The data is not checked again, so what checking it costs is not charged.
#[test]
fn an_event_whose_data_was_checked_has_half_of_the_budget() {
    let lists = |n: usize| json!({"list": vec![0; n], "text": "x"});
    let texts = |n: usize| json!({"list": vec![0; 20], "text": "x".repeat(n)});
    let cases =
        [("fuel: 5000", Code::TooCostly, &lists as &dyn Fn(usize) -> Json), ("bytes: 65536", Code::TooLarge, &texts)];
    for (limits, code, data) in cases {
        let run = Run::start(&format!(
            "
events: {{E: {{}}}}
limits: {{{limits}}}
states: {{s: {{on: {{E: {{actions: {{each: {{in: '= event.list', as: i, do: {{emit: {{type: OUT, data: '= event.text'}}}}}}}}}}}}}}}}
"
        ));
        let refused = |n: usize| {
            let event = Event::External { r#type: "E".into(), data: data(n) };
            let envelope = Envelope { by: run.by.clone(), ..Envelope::host(run.seq + 1, event, run.at) };
            let checked = run.machine.step_checked(&run.snapshot, &envelope);
            [checked, run.machine.step(&run.snapshot, &envelope)].map(|step| step.err().map(|refused| refused.code))
        };
        // The most that `step` accepts is too much, and a third of it is not.
        let accepts = |n: usize| refused(n)[1].is_none();
        let most = (0..18).rev().fold(1, |most, bit| if accepts(most + (1 << bit)) { most + (1 << bit) } else { most });
        assert_eq!((refused(most), refused(most / 3)), ([Some(code), None], [None, None]), "{limits}");
    }
}
