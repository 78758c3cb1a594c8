//! Parts of SCXML's algorithm that are easy to get wrong, each with a small chart. The log is the
//! order in which content runs.

use std::sync::Arc;

use crate::common::{Run, check, problems};
use charter_kernel::Machine;
use serde_json::json;

#[test]
fn exits_then_content_then_entries_in_lock_step_for_all_regions() {
    let chart = "
type: parallel
states:
  a: {states: {a1: {exit: {log: xa1}, on: {E: {target: a2, actions: {log: ta}}}}, a2: {entry: {log: ea2}}}}
  b: {states: {b1: {exit: {log: xb1}, on: {E: {target: b2, actions: {log: tb}}}}, b2: {entry: {log: eb2}}}}
";
    check(chart, &["E"], "xb1 xa1 ta tb ea2 eb2", "a2 b2".replace("a2", "a.a2").replace("b2", "b.b2").as_str());
}

#[test]
fn an_inner_transition_wins_over_an_outer_one() {
    let chart = "
states:
  p:
    on: {E: {target: out, actions: {log: outer}}}
    states: {c: {on: {E: {target: d, actions: {log: inner}}}}, d: {}}
  out: {}
";
    check(chart, &["E"], "inner", "p.d");
    check(chart, &["E", "E"], "inner outer", "out");
}

#[test]
fn an_inner_region_wins_a_conflict_and_the_first_one_wins_between_equals() {
    let chart = "
states:
  p:
    type: parallel
    on: {E: {target: out, actions: {log: parent}}}
    states:
      a: {states: {a1: {}}}
      b: {states: {b1: {on: {E: {target: b2, actions: {log: b}}}}, b2: {}}}
  out: {}
";
    // `a` selects the parent's transition, and `b` selects its own. The source of the latter is
    // inside the parent, so the parent's transition is removed.
    check(chart, &["E"], "b", "p.a.a1 p.b.b2");
    let chart = "
states:
  p:
    type: parallel
    states:
      a: {states: {a1: {on: {E: {target: '#x', actions: {log: a}}}}}}
      b: {states: {b1: {on: {E: {target: '#y', actions: {log: b}}}}}}
  x: {}
  y: {}
";
    check(chart, &["E"], "a", "x");
}

#[test]
fn targetless_transitions_never_conflict() {
    let chart = "
type: parallel
states:
  a: {states: {a1: {on: {E: {actions: {log: a}}}}}}
  b: {states: {b1: {on: {E: {actions: {log: b}}}}}}
";
    check(chart, &["E"], "a b", "a.a1 b.b1");
}

#[test]
fn entry_is_in_document_order_not_by_depth() {
    let chart = "
states:
  start: {on: {E: p}}
  p:
    type: parallel
    entry: {log: p}
    states:
      a: {entry: {log: a}, states: {a1: {entry: {log: a1}}}}
      b: {entry: {log: b}}
";
    check(chart, &["E"], "p a a1 b", "p.a.a1 p.b");
}

#[test]
fn eventless_transitions_come_before_internal_events() {
    let chart = "
context: {n: 0}
states:
  s:
    on: {E: {actions: [{raise: I}, {assign: {n: 1}}]}, I: {actions: {log: internal}}}
    always: {when: context.n == 1, actions: [{log: eventless}, {assign: {n: 2}}]}
";
    check(chart, &["E"], "eventless internal", "s");
}

#[test]
fn internal_events_come_before_sent_ones() {
    let chart = "
states:
  s:
    on:
      E: {actions: [{send: {type: X}}, {raise: I}]}
      X: {actions: {log: sent}}
      I: {actions: {log: raised}}
";
    check(chart, &["E"], "raised sent", "s");
}

#[test]
fn history_is_recorded_on_each_exit_and_shallow_differs_from_deep() {
    let chart = "
states:
  p:
    initial: a
    on: {OUT: away}
    states:
      a: {on: {N: b}}
      b: {states: {b1: {on: {N: b2}}, b2: {}}}
      h: {type: history, target: a}
      d: {type: history, history: deep, target: a}
  away: {on: {H: p.h, D: p.d}}
";
    check(chart, &["OUT", "H"], "", "p.a");
    check(chart, &["N", "N", "OUT", "H"], "", "p.b.b1");
    check(chart, &["N", "N", "OUT", "D"], "", "p.b.b2");
    check(chart, &["N", "N", "OUT", "D", "OUT", "H"], "", "p.b.b1");
}

#[test]
fn default_history_content_runs_once_after_the_parents_entry_and_only_when_nothing_is_stored() {
    let chart = "
states:
  start: {on: {H: p.h}}
  p:
    entry: {log: p}
    initial: {target: a, actions: {log: initial}}
    on: {OUT: start}
    states:
      a: {entry: {log: a}}
      h: {type: history, target: a, actions: {log: default}}
";
    check(chart, &["H"], "p default a", "p.a");
    check(chart, &["H", "OUT", "H"], "p default a p a", "p.a");
}

#[test]
fn initial_content_runs_on_default_entry_only() {
    let chart = "
states:
  start: {on: {D: p, X: p.b}}
  p:
    entry: {log: p}
    initial: {target: a, actions: {log: initial}}
    states: {a: {entry: {log: a}}, b: {entry: {log: b}}}
";
    check(chart, &["D"], "p initial a", "p.a");
    check(chart, &["X"], "p b", "p.b");
}

#[test]
fn done_comes_after_entry_and_for_a_parallel_only_when_all_regions_are_final() {
    let chart = "
states:
  p:
    type: parallel
    onDone: {target: end, actions: {log: all}}
    states:
      a: {onDone: {actions: {log: a}}, states: {a1: {on: {A: a2}}, a2: {type: final, entry: {log: entered}}}}
      b: {onDone: {actions: {log: b}}, states: {b1: {on: {B: b2}}, b2: {type: final}}}
  end: {}
";
    check(chart, &["A"], "entered a", "p.a.a2 p.b.b1");
    check(chart, &["A", "B"], "entered a b all", "end");
}

#[test]
fn a_nested_parallel_completes_the_outer_one_whichever_region_is_last() {
    let chart = "
states:
  o:
    type: parallel
    onDone: end
    states:
      i:
        type: parallel
        states:
          x: {states: {x1: {on: {X: x2}}, x2: {type: final}}}
          y: {states: {y1: {on: {Y: y2}}, y2: {type: final}}}
      z: {states: {z1: {on: {Z: z2}}, z2: {type: final}}}
  end: {}
";
    check(chart, &["X", "Y", "Z"], "", "end");
    check(chart, &["Z", "X", "Y"], "", "end");
    check(chart, &["X", "Y"], "", "o.i.x.x2 o.i.y.y2 o.z.z1");
}

#[test]
fn descriptors_match_whole_words() {
    let chart = "
states:
  s: {on: {foo.*: {actions: {log: prefix}}, '*': {actions: {log: any}}}}
";
    check(chart, &["foo", "foo.bar", "foobar"], "prefix prefix any", "s");
    let chart = "
states:
  s: {on: {'*': {actions: {log: any}}, foo: {actions: {log: exact}}}}
";
    check(chart, &["foo"], "any", "s");
}

#[test]
fn a_wildcard_never_matches_platform_events() {
    let chart = "
states:
  s:
    initial: a
    on: {'*': {actions: {log: any}}}
    states: {a: {on: {E: b}}, b: {type: final}}
";
    check(chart, &["E"], "", "s.b");
}

#[test]
fn self_transitions_are_internal_unless_reentered() {
    let chart = "
states:
  p:
    entry: {log: in}
    exit: {log: out}
    on: {I: .b, R: {target: .b, reenter: true}, S: p, T: {actions: {log: t}}}
    states: {a: {}, b: {}}
";
    check(chart, &["I"], "in", "p.b");
    check(chart, &["R"], "in out in", "p.b");
    check(chart, &["T"], "in t", "p.a");
    // If the target is the source itself, it is not a proper descendant: SCXML exits and enters it.
    check(chart, &["S"], "in out in", "p.a");
}

#[test]
fn the_domain_comes_from_all_targets() {
    let chart = "
states:
  p:
    type: parallel
    states:
      a: {exit: {log: xa}, states: {a1: {on: {E: {target: ['#a2', '#b2']}}}, a2: {id: a2}}}
      b: {exit: {log: xb}, states: {b1: {}, b2: {id: b2}}}
";
    check(chart, &["E"], "xb xa", "p.a.a2 p.b.b2");
}

#[test]
fn a_run_ends_in_a_top_level_final_state_with_its_output() {
    let chart = "
context: {x: 7}
output: {x: '= context.x'}
states:
  s: {exit: {log: bye}, on: {E: end, F: bad}}
  end: {type: final, exit: {log: end}}
  bad: {type: final, tags: [failed]}
";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    run.send("E");
    assert_eq!((run.logged().as_str(), run.status().word()), ("bye end", "done"));
    assert_eq!(run.snapshot.output(), Some(&json!({"x": 7})));
    assert_eq!(run.refused("E", json!({})), "finished");
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    run.send("F");
    assert_eq!(run.status().word(), "failed");
}

/// Starts a run of a chart that settles, as imports of XState configs do.
fn settling(chart: &str) -> Result<Run, charter_kernel::Refusal> {
    let mut definition = charter_test_support::try_definition(&format!("strict: false\n{chart}")).unwrap();
    definition.root.settles = true;
    Run::on(Arc::new(Machine::compile(definition).unwrap()), json!({}))
}

#[test]
fn a_chart_that_settles_takes_an_eventless_transition_that_changes_nothing_once_per_event() {
    let chart = "
states:
  s: {always: {actions: {log: a}}, on: {E: {actions: [{log: e}, {raise: {type: F}}]}, X: t}}
  t: {}
";
    let mut run = settling(chart).unwrap();
    assert_eq!(run.logged(), "a");
    // Once after the event from outside, and once after the one that it raises.
    run.send("E");
    assert_eq!(run.logged(), "a e a a");
    // Also if no transition takes the event.
    run.send("NOTHING");
    assert_eq!((run.logged().as_str(), run.state().as_str()), ("a e a a a", "s"));
    run.send("X");
    assert_eq!(run.state(), "t");
    let refused = Run::try_start(&format!("strict: false\n{chart}"), json!({})).map(|_| ()).unwrap_err();
    assert_eq!(refused.code.word(), "runaway");
}

#[test]
fn a_chart_that_settles_goes_on_as_long_as_something_changes() {
    for always in
        ["{actions: {assign: {x: 1}}}", "{target: s, reenter: true}", "{actions: {raise: {type: F}}, target: t}"]
    {
        let chart = format!(
            "context: {{x: 0}}\nstates:\n  s: {{exit: {{assign: {{x: 2}}}}, always: {always}}}\n  t: {{always: s}}"
        );
        assert_eq!(settling(&chart).map(|_| ()).unwrap_err().code.word(), "runaway", "{always}");
    }
    let chart = "
states:
  s: {states: {h: {type: history, target: a}, a: {}}, always: {target: s, reenter: true}}
";
    assert_eq!(settling(chart).map(|_| ()).unwrap_err().code.word(), "runaway", "its history is recorded");
    let run = settling("states: {s: {exit: {log: x}, entry: {log: e}, always: {target: s, reenter: true}}}").unwrap();
    assert_eq!(run.logged(), "e x e");
}

#[test]
fn the_default_of_a_history_state_leads_to_a_state() {
    let chart = |targets: &str| format!("states:\n  p: {{states: {{a: {{}}, {targets}}}}}");
    let message = "the default of history state `h` leads to no state that can be active".to_owned();
    let refused =
        |at: &str| vec![("history-target".to_owned(), format!("/root/state/states/p/states/{at}: {message}"))];
    assert_eq!(problems(&chart("h: {type: history, target: h}")), refused("h"));
    assert_eq!(problems(&chart("h: {type: history, target: k}, k: {type: history, target: h}")), refused("h"));
    let fine = chart("h: {type: history, target: k}, k: {type: history, target: a}");
    assert_eq!(problems(&fine), []);
    let long: String = (0..200).map(|n| format!("h{n}: {{type: history, target: h{}}}, ", n + 1)).collect();
    assert_eq!(problems(&chart(&format!("{long} h200: {{type: history, target: a}}"))).len(), 1);
}

#[test]
fn states_with_the_same_path_have_different_names() {
    let chart = "states:\n  a.b: {on: {E: a}}\n  a: {states: {b: {on: {E: c}}, c: {}}}";
    let mut run = Run::start(&format!("strict: false\n{chart}"));
    assert_eq!(run.state(), r"a\.b");
    let copy = run.machine.restore(&run.machine.snapshot_json(&run.snapshot)).unwrap();
    assert_eq!(copy, run.snapshot);
    run.send("E");
    assert_eq!(run.state(), "a.b");
    let copy = run.machine.restore(&run.machine.snapshot_json(&run.snapshot)).unwrap();
    assert_eq!(copy, run.snapshot);
    run.send("E");
    assert_eq!(run.state(), "a.c");
}

#[test]
fn done_data_is_null_in_imports_if_all_of_its_parameters_fail() {
    for (output, data) in
        [("{}", "{}"), ("{a: '= 1 / 0'}", "null"), ("{a: '= 1 / 0', b: 1}", "{\"b\":1}"), ("'= 1 / 0'", "null")]
    {
        let chart = format!(
            "
states:
  p:
    states: {{f: {{type: final, output: {output}}}}}
    on: {{done.state.p: {{target: q, actions: {{log: '= event.output'}}}}}}
  q: {{}}
"
        );
        check(&chart, &[], data, "q");
    }
}

#[test]
fn a_failed_action_leaves_a_note() {
    let chart = "
context: {sum: 0, n: 0}
events: {ADD: {}, GUARD: {}}
states:
  s:
    on:
      ADD: {actions: {assign: {sum: '= context.sum / context.n'}}}
      GUARD: {when: event.a.b == 1, target: s}
HANDLER
";
    let notes = |chart: &str, kind: &str| -> Vec<String> {
        let mut run = Run::start(chart);
        let step = run.try_send(kind, json!({"a": 1})).unwrap();
        step.notes.iter().map(|note| note.message()).collect()
    };
    let lenient = format!("strict: false\n{}", chart.replace("HANDLER", ""));
    let failed = ["`error.execution` was raised: `context.sum / context.n`: division by zero"];
    assert_eq!(notes(&lenient, "ADD"), failed);
    // One note, not one more for the event that reports it.
    assert_eq!(notes(&lenient, "GUARD").len(), 1);
    let handled = chart.replace("HANDLER", "      error.execution: t\n  t: {}");
    assert_eq!(notes(&handled, "ADD"), failed);
}
