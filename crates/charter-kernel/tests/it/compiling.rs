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
