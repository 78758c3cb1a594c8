//! Each lint with one charter that it reports and one that it does not.

use charter_check::{Options, check};
use charter_kernel::Machine;

use crate::support::{all, document, found, lint, reports};

#[test]
fn a_tidy_charter_has_no_findings() {
    let report = lint(
        "
roles: {person: {}}
events:
  GO: {by: person, data: {type: object}}
context: {n: 0}
states:
  a: {on: {GO: {target: b, when: context.n < 3, actions: {assign: {n: '= context.n + 1'}}}}}
  b: {on: {GO: a}}
",
    );
    assert_eq!(all(&report), Vec::<String>::new());
}

#[test]
fn unreachable_state() {
    reports(
        "unreachable-state",
        "states: {a: {on: {X: b}}, b: {on: {X: a}}, c: {on: {X: a}}}",
        "states.c",
        "no transition leads to `c`",
        "states: {a: {on: {X: c}}, c: {on: {X: a}}}",
    );
    // States that are reached through `initial`, regions and histories.
    let good = "
states:
  a: {on: {X: p}}
  p:
    type: parallel
    on: {OUT: a, BACK: p.h}
    states:
      r: {initial: r1, states: {r1: {}, r2: {}, h: {type: history, target: r2}}}
      s: {states: {s1: {on: {X: s2}}, s2: {type: final}}}
";
    let good = good.replace("BACK: p.h", "BACK: .r.h");
    assert_eq!(found(&good, "unreachable-state"), Vec::<String>::new());
}

#[test]
fn dead_end() {
    reports(
        "dead-end",
        "states: {a: {on: {X: b}}, b: {}}",
        "states.b",
        "no transition leads out of `b`",
        "states: {a: {on: {X: b}}, b: {type: final}}",
    );
    assert!(
        found("states: {a: {initial: b, states: {b: {}}, on: {X: c}}, c: {on: {X: a}}}", "dead-end").is_empty(),
        "an outer state has a transition"
    );
}

#[test]
fn shadowed_transition() {
    reports(
        "shadowed-transition",
        "states: {a: {on: {X: [b, {target: a, when: 'context.n > 1'}]}}, b: {on: {X: a}}}\ncontext: {n: 1}",
        "states.a.on.X",
        "`a/on/X/0` is tried first and has no condition",
        "states: {a: {on: {X: [{target: a, when: 'context.n > 1'}, b]}}, b: {on: {X: a}}}\ncontext: {n: 1}",
    );
    let same = "guards: {g: 'context.n > 1'}\ncontext: {n: 1}\nstates: {a: {on: {X: [{guard: g, target: b}, {guard: g, target: a}]}}, b: {on: {X: a}}}";
    assert_eq!(found(same, "shadowed-transition").len(), 1);
    assert!(
        found("states: {a: {on: {'*': b, X: a}}, b: {on: {X: a}}}\nevents: {X: {}}", "shadowed-transition")[0]
            .contains("`a/on/*/0`")
    );
    let prefix = "states: {a: {on: {'X.*': b, X.Y.Z: a}}, b: {on: {X: a}}}\nevents: {X: {}, X.Y.Z: {}}";
    assert!(found(prefix, "shadowed-transition")[0].contains("`a/on/X.*/0`"));
    // The condition of the earlier one is a part of that of the later one.
    let part = "guards: {g: 'context.n > 1'}\ncontext: {n: 1}\nstates: {a: {on: {X: [{guard: g, target: b}, {guard: g, when: 'context.n > 2', target: a}]}}, b: {on: {X: a}}}";
    assert_eq!(found(part, "shadowed-transition").len(), 1);
    // Different roles take different transitions.
    let roles =
        "roles: {p: {}, q: {}}\nstates: {a: {on: {X: [{by: p, target: b}, {by: q, target: a}]}}, b: {on: {X: a}}}";
    assert!(found(roles, "shadowed-transition").is_empty());
}

#[test]
fn turned_away() {
    let charter = |first: &str, second: &str| {
        format!(
            "roles: {{d: {{}}, e: {{}}}}\ncontext: {{o: x, n: 1}}\nevents: {{V: {{}}}}\nstates: {{a: {{on: {{V: [{{{first}, target: b}}, {{{second}target: c}}]}}}}, b: {{}}, c: {{}}}}"
        )
    };
    let quorum = "when: event.go, quorum: {count: 2, of: d}";
    reports(
        "turned-away",
        &charter(quorum, ""),
        "states.a.on.V",
        "takes what `a/on/V/0` turns away: a second vote of the same person",
        &charter(quorum, "when: '!event.go', "),
    );
    let count = |first: &str, second: &str| found(&charter(first, second), "turned-away").len();
    assert_eq!(count("approves: {value: context.n, not_by: context.o}", ""), 1);
    assert_eq!(count("approves: context.n", ""), 1);
    assert_eq!(count("quorum: {count: 2, of: d}", "by: d, "), 1);
    assert_eq!(count("quorum: {count: 2, of: d}", "by: e, "), 0, "other people");
    assert_eq!(count("quorum: {count: 1, of: d}", ""), 0, "no second vote");
    assert_eq!(count("when: event.go", ""), 0);
}

#[test]
fn guard_before_assign() {
    let charter = |guard: &str, value: &str| {
        format!(
            "
guards: {{good: {guard}}}
context: {{decision: {{confidence: 0.5}}, n: 0}}
actors: {{decide: {{kind: model, timeout: 1s, output: {{type: object, required: [confidence], properties: {{confidence: {{type: number}}}}}}}}}}
states:
  d:
    invoke:
      src: decide
      onDone: [{{guard: good, target: e, actions: {{assign: {{{value}}}}}}}]
      onError: {{target: e, actions: {{log: '= event.error'}}}}
  e: {{type: final}}
"
        )
    };
    reports(
        "guard-before-assign",
        &charter("context.decision.confidence >= 0.85", "decision: '= event.output'"),
        "states.d.invoke.onDone",
        "guard `good` reads `context.decision`, which this transition assigns afterwards",
        &charter("event.output.confidence >= 0.85", "decision: '= event.output'"),
    );
    // A counter is read and assigned by the same transition on purpose: it bounds a loop.
    assert!(found(&charter("context.n < 3", "n: '= context.n + 1'"), "guard-before-assign").is_empty());
}

#[test]
fn constant_condition() {
    let charter = |when: &str| {
        format!("context: {{n: 0}}\nstates: {{a: {{on: {{X: {{target: b, when: '{when}'}}}}}}, b: {{on: {{X: a}}}}}}")
    };
    reports(
        "constant-condition",
        &charter("1 + 1 == 3"),
        "states.a.on.X.when",
        "always false",
        &charter("context.n == 3"),
    );
    // A guard that an import needs, and that nobody has written yet.
    let named = |guard: &str| {
        format!(
            "guards: {{big: '{guard}'}}\ncontext: {{n: 0}}\nstates: {{a: {{on: {{X: {{target: b, guard: big}}}}}}, b: {{}}}}"
        )
    };
    reports("constant-condition", &named("false"), "guards.big", "always false", &named("context.n == 3"));
}

#[test]
fn always_loop() {
    reports(
        "always-loop",
        "states: {a: {always: b}, b: {always: a}}",
        "states.a",
        "this cycle never ends",
        "context: {n: 0}\nstates: {a: {always: {target: b, when: 'context.n > 1'}}, b: {always: a}}",
    );
}

#[test]
fn an_eventless_transition_that_changes_nothing_ends_where_the_chart_settles() {
    let loops = |chart: &str, settles: bool| {
        let mut document = document(chart);
        document.definition.root.settles = settles;
        let machine = Machine::compile(document.definition.clone()).unwrap();
        let report = check(&document, &machine, &Options { explore: false, ..Options::default() });
        report.findings.iter().filter(|f| f.code == "always-loop").count()
    };
    let logs = "states: {a: {always: {actions: {log: a}}}}";
    assert_eq!((loops(logs, false), loops(logs, true)), (1, 0));
    let assigns =
        "context: {n: 0}\nactions: {count: {assign: {n: '= context.n + 1'}}}\nstates: {a: {always: {actions: count}}}";
    assert_eq!((loops(assigns, false), loops(assigns, true)), (1, 1));
    let moves = "states: {a: {always: b}, b: {always: a}}";
    assert_eq!((loops(moves, false), loops(moves, true)), (1, 1));
}

const WORK: &str = "
actors: {work: {kind: tool, timeout: 1s, output: {type: object}}}
context: {n: 0, error: null}
";

#[test]
fn loop_without_bound() {
    let charter = |guard: &str, actions: &str| {
        format!(
            "{WORK}
states:
  work: {{invoke: {{src: work, onDone: look, onError: {{target: failed, actions: {{assign: {{error: '= event.error'}}}}}}}}}}
  look:
    always:
      - {{target: done, when: '{guard}'}}
      - {{target: work, actions: {{assign: {{{actions}}}}}}}
  failed: {{type: final}}
  done: {{type: final}}
"
        )
    };
    reports(
        "loop-without-bound",
        &charter("context.error == null", "n: 1"),
        "states",
        "unbounded loop: `work/invoke/work/onDone/0`, then `look/always/1`",
        &charter("context.n > 3", "n: '= context.n + 1'"),
    );
    // The cycle needs an event from a person.
    let person = "states: {a: {always: b}, b: {on: {X: a}}}";
    assert!(found(person, "loop-without-bound").is_empty());
    // With a timer in the cycle it is only an info.
    let slow = lint("states: {a: {after: {1h: b}}, b: {after: {1h: a}}}");
    assert_eq!(all(&slow).iter().filter(|f| f.starts_with("info loop-without-bound")).count(), 1, "{:#?}", all(&slow));
}

#[test]
fn unused_names() {
    let bad = "
roles: {nobody: {}}
events: {NEVER: {data: {}}, GO: {data: {}}}
types: {spare: {type: string}}
guards: {g: 'true'}
actions: {act: {log: x}}
delays: {d: 1h}
actors: {w: {kind: tool}}
ledger: {token: {}}
machines: {m: {states: {x: {type: final}}}}
states: {a: {on: {GO: b}}, b: {on: {GO: a}}}
";
    for (code, at) in [
        ("unused-event", "events.NEVER"),
        ("unused-type", "types.spare"),
        ("unused-guard", "guards.g"),
        ("unused-action", "actions.act"),
        ("unused-delay", "delays.d"),
        ("unused-actor", "actors.w"),
        ("unused-ledger-kind", "ledger.token"),
        ("unused-machine", "machines.m"),
        ("unused-role", "roles.nobody"),
    ] {
        let list = found(bad, code);
        assert!(list.len() == 1 && list[0].starts_with(at), "{code}: {list:#?}");
    }
    let good = "
roles: {somebody: {}, auditor: {}, helper: {}, planner: {}, judge: {}}
events: {GO: {by: somebody, data: {$ref: '#/types/spare'}}}
types: {spare: {$ref: '#/types/deep'}, deep: {type: object}}
guards: {g: \"'auditor' in by.roles\"}
actions: {act: {log: x}, outer: [act]}
delays: {d: 1h}
actors: {w: {kind: tool, as: [planner, judge], by: helper}}
ledger: {token: {}}
machines: {m: {states: {x: {type: final}}}}
states:
  a: {on: {GO: {target: b, guard: {not: g}, requires: {use: {kind: token, key: k}}, actions: outer}}, invoke: {src: w}}
  b: {after: {d: a}, entry: [{spawn: {machine: m, id: m1}}, {grant: {kind: token, key: k}}]}
";
    let list: Vec<String> = all(&lint(good)).into_iter().filter(|f| f.contains(" unused-")).collect();
    assert_eq!(list, Vec::<String>::new());
}

#[test]
fn unhandled_event() {
    reports(
        "unhandled-event",
        "states: {a: {on: {X: {target: b, actions: {raise: LOST}}}}, b: {on: {X: a}}}",
        "states.a.on.X",
        "`LOST` is raised here, but no state handles it",
        "states: {a: {on: {X: {target: b, actions: {raise: KEPT}}}}, b: {on: {KEPT: a}}}",
    );
}

#[test]
fn never_assigned() {
    reports(
        "never-assigned",
        "context: {scores: null}\nstates: {a: {on: {X: a}}}",
        "context.scores",
        "`context.scores` is always null",
        "context: {scores: null}\nstates: {a: {on: {X: {actions: {assign: {'scores.a': 1}}}}}}",
    );
}

#[test]
fn event_without_schema() {
    reports(
        "event-without-schema",
        "events: {X: {}}\nstates: {a: {on: {X: a}}}",
        "events.X",
        "any data is accepted",
        "events: {X: {data: {type: object}}}\nstates: {a: {on: {X: a}}}",
    );
}

#[test]
fn invocations() {
    let charter = |actor: &str, rest: &str| {
        format!(
            "context: {{error: null}}\nactors: {{w: {{kind: tool{actor}}}}}\nstates: {{a: {{invoke: {{src: w, onDone: b{rest}}}}}, b: {{type: final}}}}"
        )
    };
    let good = charter(", timeout: 1s", ", onError: {target: b, actions: {assign: {error: '= event.error'}}}");
    reports("invoke-without-timeout", &charter("", ", onError: b"), "states.a.invoke", "`w` has no timeout", &good);
    reports("invoke-without-on-error", &charter("", ""), "states.a.invoke", "the failure of `w` is not handled", &good);
    reports("error-dropped", &charter("", ", onError: b"), "states.a.invoke", "the error is discarded", &good);
    let entry = "context: {error: null}\nactors: {w: {kind: tool}}\nstates: {a: {invoke: {src: w, onDone: b, onError: b}}, b: {entry: {assign: {error: '= event.error'}}, on: {X: a}}}";
    assert!(found(entry, "error-dropped").is_empty(), "the target state keeps it");
    let above = "actors: {w: {kind: tool}}\nstates: {a: {on: {'error.*': b}, after: {1h: b}, states: {i: {invoke: {src: w}}}}, b: {type: final}}";
    assert!(found(above, "invoke-without-on-error").is_empty());
    assert!(found(above, "invoke-without-timeout").is_empty());
}

#[test]
fn ledger() {
    let charter = |actions: &str, requires: &str| {
        format!(
            "ledger: {{k: {{}}}}\nstates: {{a: {{on: {{X: {{target: b, actions: [{actions}]}}}}}}, b: {{on: {{X: {{target: a, requires: [{requires}]}}}}}}}}"
        )
    };
    let permit = charter("{grant: {kind: k, key: x}}", "{use: {kind: k, key: x}}");
    let duty = charter("{open: {kind: k, key: x}}, {close: {kind: k, key: x}}", "{none: {kind: k}}");
    reports(
        "permit-never-used",
        &charter("{grant: {kind: k, key: x}}", ""),
        "ledger.k",
        "no transition requires them",
        &permit,
    );
    reports("permit-never-granted", &charter("", "{use: {kind: k, key: x}}"), "ledger.k", "never granted", &permit);
    reports("obligation-never-closed", &charter("{open: {kind: k, key: x}}", ""), "ledger.k", "never closed", &duty);
    reports("obligation-never-opened", &charter("", "{none: {kind: k}}"), "ledger.k", "never opened", &duty);
}

#[test]
fn interlock_without_row() {
    let charter = |rows: &str| {
        format!(
            "
machines: {{m: {{states: {{x: {{on: {{X: x}}}}}}}}}}
interlocks: [{{id: t, given: root, machine: m, allow: {{{rows}}}}}]
states: {{a: {{on: {{X: b}}, entry: {{spawn: {{machine: m, id: m1}}}}}}, b: {{states: {{c: {{on: {{X: '#a'}}}}}}}}}}
"
        )
    };
    reports(
        "interlock-without-row",
        &charter("a: [x]"),
        "interlocks",
        "has no row for `b.c`",
        &charter("a: [x], b: []"),
    );
}
