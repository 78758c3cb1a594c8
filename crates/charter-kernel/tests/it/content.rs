//! Executable content: assignments, arguments, branches, loops, and what happens when it fails.

use crate::common::{Run, check};
use serde_json::json;

#[test]
fn an_error_ends_its_own_block_only() {
    let chart = "
states:
  s: {on: {E: t}}
  t:
    entry: [[{log: one}, {assign: {x: '= 1 / 0'}}, {log: never}], [{log: two}]]
    on: {error.execution: {actions: {log: error}}}
";
    check(chart, &["E"], "one two error", "t");
}

#[test]
fn a_failing_condition_is_false_and_an_error() {
    let chart = "
context: {x: 1}
states:
  s:
    on: {E: [{when: context.nothing > 1, target: t}, {target: u}]}
  t: {}
  u: {on: {error.execution: {actions: {log: error}}}}
";
    check(chart, &["E"], "error", "u");
}

#[test]
fn an_event_stays_bound_on_exit_entry_and_the_eventless_steps_after_it() {
    let chart = "
states:
  s: {exit: {log: '= event.v'}, on: {E: t}}
  t: {entry: {log: '= event.v'}, always: {target: u, actions: {log: '= event.type'}}}
  u: {}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    run.send_data("E", json!({"v": "x"}));
    assert_eq!(run.logged(), "x x E");
}

#[test]
fn arguments_are_evaluated_when_the_action_runs() {
    let chart = "
context: {n: 1}
states:
  s:
    on:
      E: {actions: [{raise: {type: I, data: {n: '= context.n'}}}, {assign: {n: 2}}]}
      I: {actions: {log: '= string(event.n)'}}
      D: {actions: [{send: {type: X, delay: 1s, data: {n: '= context.n'}}}, {assign: {n: 3}}]}
      X: {actions: {log: '= string(event.n)'}}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    run.send("E").send("D").wait(1_000);
    assert_eq!(run.logged(), "1 2");
}

#[test]
fn an_assignment_computes_all_its_values_first() {
    let chart = "
context: {a: 1, b: 2}
states:
  s: {on: {SWAP: {actions: {assign: {a: '= context.b', b: '= context.a'}}}}}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    run.send("SWAP");
    assert_eq!((run.var("a"), run.var("b")), (json!(2), json!(1)));
}

#[test]
fn assignments_reach_into_lists_and_objects() {
    let chart = "
context: {o: {list: [1, 2]}, k: x}
states:
  s:
    on:
      E: {actions: {assign: {'o.list[1]': 5, 'o[context.k]': new, 'o.deep.er': 1}}}
      APPEND: {actions: {assign: {'o.list[size(context.o.list)]': 9}}}
      BAD: {actions: {assign: {'o.list[7]': 9}}}
      error.execution: {actions: {log: '= [event.error.message, event.error.reason, event.error.name, string(event.error.key), string(event.error.length)].join()'}}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    run.send("E").send("APPEND").send("BAD");
    assert_eq!(run.var("o"), json!({"list": [1, 5, 9], "x": "new", "deep": {"er": 1}}));
    assert_eq!(run.logged(), "an action failedassigno73");
}

#[test]
fn branches_and_loops() {
    let chart = "
context: {list: [1, 2, 3]}
states:
  s:
    on:
      E:
        actions:
          - each: {in: context.list, as: x, index: i, do: [{if: [{when: 'x == 2', do: {log: two}}, {when: 'i == 0', do: {log: first}}, {do: {log: '= string(x)'}}]}]}
";
    check(chart, &["E"], "first two 3", "s");
}

#[test]
fn a_loop_of_microsteps_is_refused_and_nothing_has_changed() {
    let chart = "
context: {n: 0}
states:
  s: {on: {E: a}}
  a: {always: {target: b, actions: {assign: {n: '= context.n + 1'}}}}
  b: {always: a}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    assert_eq!(run.refused("E", json!({})), "runaway");
    assert_eq!((run.state().as_str(), run.var("n")), ("s", json!(0)));
}

#[test]
fn late_binding_binds_on_first_entry_once() {
    let chart = "
states:
  s: {on: {E: t}}
  t: {data: {v: '= 1'}, entry: {log: '= string(context.v)'}, on: {SET: {actions: {assign: {v: 2}}}, BACK: s}}
";
    check(chart, &["E", "SET", "BACK", "E"], "1 2", "t");
}

#[test]
fn a_condition_that_fails_again_and_again_is_a_runaway() {
    let chart = "
context: {n: 0}
states:
  s: {on: {E: t}}
  t: {always: {when: context.n < 'x', target: s}}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    assert_eq!(run.refused("E", json!({})), "runaway");
    assert_eq!(run.state(), "s");
}
