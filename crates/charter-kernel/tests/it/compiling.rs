//! What compiling refuses: each problem says where it is and what is wrong.

use crate::common::{check, problems};

#[test]
fn an_initial_state_is_inside_its_state() {
    let found = |chart: &str| problems(&format!("states: {chart}"));
    assert_eq!(found("{a: {initial: '#c', states: {d: {}, c: {id: c}}}, b: {}}"), []);
    let outside = |at: &str| {
        let at = format!("/root/state/states/a/{at}initial/target/0");
        [("bad-target".to_owned(), format!("{at}: `#b` is not inside the state"))]
    };
    assert_eq!(found("{a: {initial: '#b', states: {c: {}}}, b: {id: b}}"), outside(""));
    let history = "{a: {states: {c: {}, h: {type: history, target: '#b'}}}, b: {id: b}}";
    assert_eq!(found(history), outside("states/h/"));
}

#[test]
fn an_event_descriptor_is_a_type_a_prefix_or_a_star() {
    for strict in [true, false] {
        let codes = |text: &str| -> Vec<String> {
            let chart = format!(
                "strict: {strict}\nevents: {{A: {{}}}}\nstates: {{s: {{on: {{\"{text}\": {{actions: []}}}}}}}}"
            );
            problems(&chart).into_iter().map(|(code, _)| code).collect()
        };
        for good in ["A", "A.*", "*", "done.invoke.a*b", "error.*.*"] {
            assert_eq!(codes(good), [""; 0], "{good}");
        }
        for bad in ["A*", "*A", "A*B", "A.*.*", ".*", "A\\u0007"] {
            assert_eq!(codes(bad), ["bad-event-name"], "{bad}");
        }
    }
}

#[test]
fn a_parallel_state_has_no_initial_state() {
    let found = problems("states: {p: {type: parallel, initial: a, states: {a: {}, b: {}}}}");
    assert_eq!(found.iter().map(|(code, _)| code.as_str()).collect::<Vec<_>>(), ["parallel-initial"]);
}

#[test]
fn what_actions_inside_others_raise_and_assign_is_known() {
    for around in ["ACTION", "{each: {in: '= [1]', as: i, do: ACTION}}", "{if: [{when: 'true', do: ACTION}]}"] {
        let actions = |action: &str| around.replace("ACTION", action);
        // A strict chart does not declare what it raises itself.
        let raise = actions("{raise: X}");
        let chart = format!("events: {{E: {{}}}}\nstates: {{s: {{on: {{E: {{actions: {raise}}}, X: t}}}}, t: {{}}}}");
        assert_eq!(problems(&chart), [], "{chart}");
        // An import does not declare what it assigns.
        let assign = actions("{assign: {x: 7}}");
        let chart = format!(
            "states: {{s: {{on: {{E: {{target: t, actions: {assign}}}}}}}, t: {{entry: {{log: '= context.x'}}}}}}"
        );
        check(&chart, &["E"], "7", "t");
    }
}

#[test]
fn guards_that_use_others_twice_do_not_multiply() {
    // Compiled anew for each use, 40 levels never ended.
    let ladder = |levels: usize, first: &str| {
        let more: String = (1..levels).map(|i| format!("  g{i}: {{or: [g{0}, g{0}]}}\n", i - 1)).collect();
        let last = levels - 1;
        format!(
            "guards:\n  g0: {first}\n{more}events: {{E: {{}}}}\nstates: {{s: {{on: {{E: {{guard: g{last}, target: s}}}}}}}}"
        )
    };
    let message = "/guards/g10: the guard has more than 1000 conditions".to_owned();
    for levels in [11, 40] {
        for first in ["'1 > 2'", "{and: []}"] {
            assert_eq!(problems(&ladder(levels, first)), [("guard-size".to_owned(), message.clone())]);
        }
    }
    check(&ladder(10, "'1 < 2'"), &["E"], "", "s");
}

#[test]
fn guards_are_nested_to_a_limit_and_not_in_a_cycle() {
    let chain = |last: usize, on: &str| {
        let more: String = (1..=last).map(|i| format!("  g{i}: {{not: g{}}}\n", i - 1)).collect();
        problems(&format!("guards:\n  g0: '1 > 2'\n{more}events: {{E: {{}}}}\nstates: {{s: {{on: {{E: [{on}]}}}}}}"))
    };
    assert_eq!(chain(40, "{guard: g40, target: s}"), []);
    let codes = |found: Vec<(String, String)>| found.into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(chain(60, "{guard: g60, target: s}")), ["guard-size"]);
    // A guard that was compiled before is as deep as it is.
    assert_eq!(codes(chain(80, "{guard: g40, target: s}, {guard: g80, target: s}")), ["guard-size"]);
    let cycle =
        problems("guards: {a: {not: b}, b: {not: a}}\nevents: {E: {}}\nstates: {s: {on: {E: {guard: a, target: s}}}}");
    assert_eq!(cycle, [("guard-loop".to_owned(), "/guards/b/not: guards refer to each other in a cycle".to_owned())]);
}

#[test]
fn actions_that_use_others_twice_do_not_multiply() {
    let ladder = |levels: usize, first: &str| {
        let more: String = (1..levels).map(|i| format!("  a{i}: [a{0}, a{0}]\n", i - 1)).collect();
        problems(&format!("actions:\n  a0: {first}\n{more}states: {{s: {{entry: a{}}}}}", levels - 1))
    };
    for first in ["{log: 1}", "{if: [{when: 'true', do: {each: {in: '= [1]', as: i, do: {log: 1}}}}]}"] {
        let found: Vec<String> = ladder(40, first).into_iter().map(|(code, _)| code).collect();
        // What uses an action with a problem begins to count again.
        assert!(found.len() >= 3 && found.iter().all(|code| code == "action-size"), "{found:?}");
        assert_eq!(ladder(7, first), []);
    }
    let message = "/actions/a9: the action has more than 1000 actions".to_owned();
    assert_eq!(ladder(10, "{log: 1}"), [("action-size".to_owned(), message)]);
}

/// Each level of named actions is a level of the stack.
#[test]
fn named_actions_are_nested_to_a_limit() {
    let chain = |last: usize, entries: &[usize]| {
        let more: String = (1..=last).map(|i| format!("  a{i}: [a{}]\n", i - 1)).collect();
        let states: String = entries.iter().map(|i| format!("s{i}: {{entry: a{i}}}, ")).collect();
        let found = problems(&format!("actions:\n  a0: {{log: 1}}\n{more}states: {{{states}z: {{}}}}"));
        found.into_iter().map(|(code, at)| format!("{code} {at}")).collect::<Vec<_>>()
    };
    assert_eq!(chain(90, &[90]), [""; 0]);
    // Compiled before, a90 was not counted in the level of a180.
    let deep = "action-size /actions/a100: actions are nested deeper than 100 levels";
    assert_eq!(chain(180, &[90, 180]), [deep]);
}
