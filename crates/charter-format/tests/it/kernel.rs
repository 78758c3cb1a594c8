//! Problems that the kernel finds are shown in the source of the charter, with the relevant word
//! underlined.

use charter_format::{ReadOptions, read};
use charter_kernel::Machine;

/// Returns the line, the column and the underlined text of each problem.
fn found(body: &str) -> Vec<String> {
    let document = read(&format!("charter: 1\nid: t\n{body}"), "t.yaml", &ReadOptions::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    let problems = match Machine::compile(document.definition.clone()) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    };
    let shown = problems.iter().map(|problem| {
        let shown = document.diagnose(problem);
        format!(
            "{}:{} {} `{}`",
            shown.line,
            shown.column,
            shown.path,
            &document.source[shown.span.start..shown.span.end]
        )
    });
    shown.collect()
}

#[test]
fn the_caret_is_on_the_word() {
    assert_eq!(found("states: {a: {on: {GO: nowhere}}}"), ["3:23 states.a.on.GO `nowhere`"]);
    assert_eq!(found("states: {a: {on: {GO: [a, {target: [b.c]}]}}}"), ["3:37 states.a.on.GO[1].target[0] `b.c`"]);
    assert_eq!(found("initial: x\nstates: {a: }"), ["3:10 initial `x`"]);
    assert_eq!(
        found("context: {x: 1}\nstates:\n  a: {always: {when: 'context.x == ''its'' && contxt.y'}}"),
        ["5:47 states.a.always.when `contxt`"]
    );
}

#[test]
fn a_charter_without_errors_compiles() {
    assert_eq!(
        found("roles: {r: }\nevents: {GO: {by: r}}\nstates: {a: {on: {GO: b}, after: {1h: b}}, b: {type: final}}"),
        [""; 0]
    );
}
