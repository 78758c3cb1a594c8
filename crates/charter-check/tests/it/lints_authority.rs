//! Lints for roles, quorums and approvals.

use crate::support::{found, reports};

#[test]
fn owners() {
    let charter = |event: &str, a: &str, b: &str| {
        format!(
            "roles: {{p: {{}}}}\nevents: {{X: {{{event}}}, Y: {{by: p}}}}\nstates: {{a: {{on: {{X: {{target: b, {a}}}, Y: a}}}}, b: {{on: {{X: {{target: a, {b}}}}}}}}}"
        )
    };
    let good = charter("by: p", "reenter: true", "reenter: true");
    reports(
        "event-without-owner",
        &charter("", "reenter: true", "reenter: true"),
        "events.X",
        "any principal may send `X`",
        &good,
    );
    reports(
        "transition-without-by",
        &charter("", "by: p", "reenter: true"),
        "states.b.on.X",
        "any principal may take this transition",
        &good,
    );
    assert!(found(&charter("", "by: p", "by: p"), "event-without-owner").is_empty());
    assert!(
        found("events: {X: {}}\nstates: {a: {on: {X: a}}}", "event-without-owner").is_empty(),
        "without roles there are no owners"
    );
}

#[test]
fn by_without_system() {
    let charter = |by: &str| {
        format!(
            "roles: {{p: {{}}}}\nevents: {{X: {{by: p}}}}\nstates: {{a: {{after: {{1h: {{target: b, by: {by}}}}}}}, b: {{on: {{X: a}}}}}}"
        )
    };
    reports(
        "by-without-system",
        &charter("p"),
        "states.a.after.1h",
        "a timer, which does not have the role p",
        &charter("[p, system]"),
    );
}

#[test]
fn nobody_can_leave() {
    let charter = |by: &str| {
        format!("roles: {{p: {{}}}}\nevents: {{X: {{by: {by}}}}}\nstates: {{a: {{on: {{X: b}}}}, b: {{type: final}}}}")
    };
    reports(
        "nobody-can-leave",
        &charter("system"),
        "states.a",
        "no principal can lead the run out of `a`",
        &charter("[system, p]"),
    );
}

#[test]
fn quorum_of_anybody() {
    let charter = |of: &str| {
        format!(
            "roles: {{p: {{}}}}\nevents: {{X: {{}}}}\nstates: {{a: {{on: {{X: {{target: b, quorum: {{count: 2{of}}}}}}}}}, b: {{type: final}}}}"
        )
    };
    reports("quorum-of-anybody", &charter(""), "states.a.on.X.quorum", "any 2 principals", &charter(", of: p"));
}

fn approval(after: &str, entry: &str) -> String {
    format!(
        "
roles: {{p: {{}}}}
events: {{YES: {{by: p, data: {{type: object, required: [digest]}}}}}}
actors: {{apply: {{kind: tool, timeout: 1s}}}}
context: {{change: {{}}, other: 0}}
states:
  ask: {{{after}on: {{YES: {{target: apply, approves: context.change}}}}}}
  apply: {{{entry}invoke: {{src: apply, input: '= context.change', onDone: done, onError: done}}}}
  done: {{type: final, entry: {{assign: {{change: {{}}}}}}}}
"
    )
}

#[test]
fn approvals() {
    let good = approval("after: {1h: done}, ", "entry: {assign: {other: 1}}, ");
    reports(
        "approval-without-expiry",
        &approval("", ""),
        "states.ask",
        "waits for an approval without a time limit",
        &good,
    );
    reports(
        "approval-overwritten",
        &approval("after: {1h: done}, ", "entry: {assign: {'change.files': []}}, "),
        "states.apply.entry",
        "`context.change` is assigned after `ask/on/YES/0` approved it",
        &good,
    );
}

#[test]
fn a_loop_that_leads_to_a_new_approval_overwrites_nothing() {
    let charter = |from_work: &str, work: &str| {
        format!(
            "
roles: {{p: {{}}}}
events:
  TEST: {{by: p}}
  YES: {{by: p, data: {{type: object, required: [digest]}}}}
actors: {{apply: {{kind: tool, timeout: 1s}}}}
context: {{change: {{}}}}
states:
  test: {{on: {{TEST: {{target: ask, actions: {{assign: {{change: {{at: '= now'}}}}}}}}}}}}
  ask: {{on: {{YES: {{target: work, approves: context.change}}}}, after: {{1h: work}}}}
  work: {{{work}on: {{TEST: {from_work}, GO: apply}}}}
  apply: {{invoke: {{src: apply, input: '= context.change', onDone: test, onError: test}}}}
"
        )
        .replace("TEST: {by", "GO: {by: p}\n  TEST: {by")
    };
    let tests_again = charter("test", "");
    let straight = charter("{target: ask, actions: {assign: {change: {}}}}", "");
    for good in [&tests_again, &straight] {
        assert!(found(good, "approval-overwritten").is_empty(), "{:#?}", found(good, "approval-overwritten"));
    }
    for bad in ["{actions: {assign: {change: {}}}}", "{target: work, actions: {assign: {change: {}}}}"] {
        reports("approval-overwritten", &charter(bad, ""), "states.work.on.TEST", "`context.change`", &straight);
    }
    // What a condition reads is a use as well.
    let back =
        charter("{target: test, actions: {assign: {change: {}}}}", "always: {when: context.change.ok, target: ask}, ");
    let read = charter(
        "{target: work, actions: {assign: {change: {}}}}",
        "always: {when: context.change.ok, target: apply}, ",
    );
    reports("approval-overwritten", &read, "states.work.on.TEST", "`context.change`", &back);
}

#[test]
fn a_not_by_that_excludes_nobody() {
    let charter = |context: &str, not_by: &str| {
        format!(
            "
roles: {{p: {{}}}}
events:
  PUT: {{by: p}}
  YES: {{by: p, data: {{type: object, required: [digest]}}}}
context: {{change: {{}}, {context}}}
states:
  ask:
    on:
      PUT: {{actions: {{assign: {{author: '= by.id'}}}}}}
      YES: {{target: done, approves: {{value: context.change, not_by: {not_by}}}}}
    after: {{1h: done}}
  done: {{type: final}}
"
        )
    };
    let good = charter("author: null", "context.author");
    let code = "not-by-nobody";
    let at = "states.ask.on.YES.approves.not_by";
    reports(code, &charter("author: null", "'null'"), at, "`not_by` excludes nobody: `null` is always empty", &good);
    reports(code, &charter("author: null", "'[]'"), at, "always empty", &charter("author: null", "\"['eve']\""));
    reports(code, &charter("author: null, x: null", "context.x"), at, "`context.x`", &good);
    reports(code, &charter("author: null, x: []", "context.x"), at, "`context.x`", &good);
    assert!(found(&charter("author: null, x: eve", "context.x"), code).is_empty());
}

#[test]
fn unknown_role() {
    let charter = |role: &str| {
        format!(
            "roles: {{p: {{}}, auditor: {{}}}}\nevents: {{X: {{by: p}}}}\nstates: {{a: {{on: {{X: {{target: a, when: \"by.id != 'p' && !('{role}' in by.roles)\"}}}}}}}}"
        )
    };
    reports("unknown-role", &charter("auditer"), "states.a.on.X.when", "no role named `auditer`", &charter("auditor"));
    assert!(found(&charter("operator"), "unknown-role").is_empty());
    let elsewhere = "roles: {p: {}}\nevents: {X: {by: p}}\nstates: {a: {on: {X: {target: a, when: \"'x' in ['x']\"}}}}";
    assert!(found(elsewhere, "unknown-role").is_empty());
}

#[test]
fn a_role_that_only_a_task_names_is_used() {
    let charter = |by: &str| {
        format!("roles: {{boss: {{}}}}\nactors: {{ask: {{kind: human{by}}}}}\nstates: {{a: {{invoke: {{src: ask}}}}}}")
    };
    reports("unused-role", &charter(""), "roles.boss", "role `boss` is never used", &charter(", by: boss"));
    assert!(found(&charter(", by: [operator, boss]"), "unused-role").is_empty());
}

#[test]
fn tools_that_are_not_allowed() {
    let charter = |by: &str, event: &str, on: &str, tools: &str| {
        format!(
            "roles: {{clerk: {{}}, boss: {{}}}}\nactors: {{m: {{kind: model, tools: {tools}, as: {by}, offline: {{}}, timeout: 1m}}}}\nevents: {{X: {{{event}}}}}\nstates: {{a: {{invoke: {{src: m, onDone: b, onError: b}}, on: {{X: {{target: b, {on}}}}}}}, b: {{}}}}"
        )
    };
    let code = "tool-not-allowed";
    let good = charter("[clerk]", "by: [boss, clerk]", "by: clerk", "[X]");
    let words = "the model of `m` can never send `X`: it requires the role boss, and the actor has only the role clerk";
    reports(code, &charter("clerk", "by: boss", "reenter: true", "[X]"), "actors.m.tools[0]", words, &good);
    reports(code, &charter("clerk", "", "by: boss", "{X: null}"), "actors.m.tools.X", words, &good);
    reports(code, &charter("[]", "", "quorum: {count: 2, of: boss}", "[X]"), "actors.m.tools", "has no role", &good);
    let persons = "the model of `m` can never send `X`: only persons approve and vote";
    reports(code, &charter("boss", "", "quorum: {count: 2, of: boss}", "[X]"), "actors.m.tools", persons, &good);
    for on in ["reenter: true", "quorum: {count: 2, of: clerk}, agents: true"] {
        assert!(found(&charter("clerk", "", on, "[X, UNKNOWN]"), code).is_empty(), "{on}");
    }
}
