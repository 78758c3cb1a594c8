//! More charters in which a property is false for a reason that is easily overlooked: people,
//! permits, actors, time and run control.

use crate::hostile::hostile;

const BAD: &str = "properties: [{id: p, never: \"in('bad')\"}]\n";

#[test]
fn people_who_are_not_who_they_seem() {
    let votes = format!(
        "
roles: {{r: {{}}}}
events: {{VOTE: {{by: r, data: {{type: object, properties: {{x: {{type: integer}}}}}}}}, CLAIM: {{by: r}}}}
context: {{author: null}}
states:
  a: {{on: {{VOTE: {{target: bad, ???}}, CLAIM: {{actions: [{{assign: {{author: '= by.id'}}}}]}}}}}}
  bad: {{type: final}}
{BAD}"
    );
    let votes = |is, not, run: &[&str]| hostile(&votes, (is, not), run);
    votes("quorum: {count: 2}", "quorum: {count: 2}, when: \"by.id == 'p'\"", &["VOTE", "VOTE@q"]);
    // The author is excluded from what follows, not from the vote that was given before.
    let not_by = "quorum: {count: 2, not_by: context.author}";
    votes(not_by, "quorum: {count: 2, not_by: by.id}", &["VOTE@q", "CLAIM@q", "VOTE"]);
    votes("quorum: {count: 1, not_by: context.author}", "quorum: {count: 1, not_by: by.id}", &["VOTE"]);
    votes("quorum: {count: 2}, agents: true", "quorum: {count: 2}, when: by.kind == 'agent'", &["VOTE", "VOTE@!agent"]);
    votes("by: r, when: by.kind != 'person'", "quorum: {count: 2}, when: by.kind != 'person'", &["VOTE@!agent"]);
    votes("when: by.auth == 'none'", "quorum: {count: 2}, when: by.auth == 'none'", &["VOTE@!nobody"]);
    votes("when: by.id != context.author", "when: by.id != by.id", &["VOTE"]);
    votes("when: by.id == context.author", "when: by.id == 7", &["CLAIM", "VOTE"]);
    votes(
        "quorum: {count: 2}, when: event.x > 3",
        "quorum: {count: 2}, when: event.x > 3 && event.x < 4",
        &[r#"VOTE {"x": 9}"#, r#"VOTE@q {"x": 9}"#],
    );
    let kept = format!(
        "
events: {{VOTE: {{}}, END: {{}}}}
context: {{votes: {{}}, list: []}}
states:
  a:
    on:
      VOTE: {{???, actions: [{{assign: {{'votes[by.id]': true, list: '= context.list + [by.id]'}}}}]}}
      END: {{target: bad, when: \"size(context.votes) >= 2 && context.list[0] != context.list[1]\"}}
  bad: {{type: final}}
{BAD}"
    );
    let run = ["VOTE", "VOTE@q", "END"];
    hostile(&kept, ("when: \"!(by.id in context.list)\"", "when: by.id == 'p'"), &run);
}

#[test]
fn an_approval_of_what_changes() {
    let source = "
roles: {r: {}}
events: {OK: {by: r, data: {type: object, required: [digest], properties: {digest: {type: string}}}}, EDIT: {data: {type: object, required: [x], properties: {x: {type: integer}}}}, GO: {}}
context: {plan: {x: 0}, approved: null}
states:
  asked: {on: {OK: {target: granted, approves: context.plan, actions: [{assign: {approved: '= digest(context.plan)'}}]}}}
  granted: {on: {EDIT: ???, GO: done}}
  done: {}
properties: [{id: p, never: \"in('done') && context.approved != digest(context.plan)\"}]
";
    let run = [r#"OK {"digest": "PLAN"}"#, r#"EDIT {"x": 5}"#, "GO"];
    let edit = "actions: [{assign: {plan.x: '= event.x'}}]";
    hostile(source, (&format!("{{{edit}}}"), &format!("{{target: asked, {edit}}}")), &run);
}

#[test]
fn permits_end() {
    let source = format!(
        "
roles: {{r: {{}}}}
ledger: {{token: {{}}, duty: {{}}}}
events: {{GO: {{}}, USE: {{}}, STOP: {{}}}}
states:
  a: {{on: {{GO: {{target: b, actions: [{{grant: {{kind: token, key: k GRANT}}}}]}}}}}}
  b:
    on:
      STOP: {{actions: [{{revoke: {{kind: token, key: k}}}}]}}
      USE: [{{requires: [{{use: {{kind: token, key: k}}}}], actions: [{{log: used}}]}}, {{target: ???}}]
  ok: {{}}
  bad: {{}}
{BAD}"
    );
    for (grant, run) in [
        (", expires: 5s", &["GO", "wait 6000", "USE"][..]),
        (", uses: 1", &["GO", "USE", "USE"]),
        ("", &["GO", "STOP", "USE"]),
    ] {
        hostile(&source.replace("GRANT", grant), ("bad", "ok"), run);
    }
    let due = format!(
        "
ledger: {{duty: {{}}}}
events: {{GO: {{}}, CLOSE: {{}}}}
states:
  a: {{on: {{GO: {{target: b, actions: [{{open: {{kind: duty, key: k, due: 1s}}}}]}}}}}}
  b: {{on: {{CLOSE: {{target: c, actions: [{{close: {{kind: duty, ???}}}}]}}}}}}
  c: {{on: {{charter.overdue: bad, error.execution: c}}}}
  bad: {{}}
{BAD}"
    );
    let open_too = "key: k}}, {open: {kind: duty, key: l, due: 2s";
    hostile(&due, (open_too, "all: true"), &["GO", "CLOSE", "timer"]);
    let unique = "
events: {ORDER: {data: {type: object, required: [id], properties: {id: {type: string}}}, unique: {key: = event.id}}}
context: {n: 0}
states:
  a: {on: {ORDER: {???, actions: [{assign: {n: '= context.n + 1'}}]}}}
properties: [{id: p, never: context.n > 1}]
";
    let run = [r#"ORDER {"id": "x"}"#, r#"ORDER {"id": "y"}"#];
    hostile(unique, ("when: event.id != ''", "when: event.id != '' && context.n == 0"), &run);
}

#[test]
fn actors_that_fail_or_answer_late() {
    let work = format!(
        "
actors: {{w: {{kind: tool, retry: {{attempts: 2}}, output: {{type: object, required: [v], properties: {{v: {{type: integer}}}}}}}}}}
events: {{STOP: {{}}}}
context: {{n: 0}}
states:
  a: {{invoke: {{src: w, ???}}, on: {{STOP: b}}}}
  b: {{on: {{done.invoke.w: bad}}}}
  ok: {{}}
  bad: {{}}
{BAD}"
    );
    let work = |is, not, run: &[&str]| hostile(&work, (is, not), run);
    work("onDone: ok, onError: bad", "onDone: ok, onError: ok", &["failed timeout"]);
    let code = "onDone: ok, onError: [{target: bad, when: event.error.code == 'x7'}, {target: ok}]";
    work(code, "onDone: ok", &["failed x7"]);
    let computed = "onDone: [{target: ok, when: 10 / event.output.v < 11}, {target: bad}]";
    work(computed, "onDone: ok, onError: ok", &[r#"done {"v": 0}"#]);
    let late = "
actors: {w: {kind: tool}}
events: {STOP: {}}
states:
  p:
    ???
    states:
      x: {invoke: {src: w, id: early}, on: {STOP: y}}
      y: {on: {done.invoke.early: bad, done.invoke.w: bad}}
      bad: {}
properties: [{id: p, never: \"in('p.bad')\"}]
";
    // The answer to an actor of a state that was left is dropped.
    hostile(late, ("invoke: {src: w}", "tags: [none]"), &["STOP", "done 1"]);
    let output = format!(
        "
events: {{GO: {{data: {{type: object, properties: {{x: {{type: integer}}}}}}}}}}
context: {{n: 0}}
states:
  a:
    states:
      x: {{on: {{GO: {{target: end, actions: [{{assign: {{n: ???}}}}]}}}}}}
      end: {{type: final, output: '= 6 / (context.n - 4)'}}
    on: {{error.execution: bad}}
    onDone: [{{target: bad, when: event.output == 2}}, {{target: ok}}]
  ok: {{}}
  bad: {{}}
{BAD}"
    );
    hostile(&output, ("= event.x", "5"), &[r#"GO {"x": 7}"#]);
    hostile(&output, ("4", "3"), &["GO"]);
}

#[test]
fn machines_that_are_started_by_others() {
    let source = format!(
        "
events: {{GO: {{data: {{type: object, required: [x, id], properties: {{x: {{type: integer}}, id: {{enum: [one, two]}}}}}}}}, NEXT: {{}}}}
limits: {{actors: 2}}
on: {{error.execution: bad}}
states:
  a: {{on: {{GO: {{???}}, NEXT: b}}}}
  b: {{invoke: {{src: child, input: 3, onDone: [{{target: bad, when: event.output > 3}}, {{target: ok}}]}}}}
  ok: {{}}
  bad: {{}}
machines:
  child: {{context: {{v: '= input'}}, initial: s, states: {{s: {{on: {{NEXT: end}}}}, end: {{type: final}}}}, output: '= context.v'}}
{BAD}"
    );
    let spawn = |id: &str| format!("actions: [{{spawn: {{machine: child, id: {id}, input: 1}}}}]");
    // The id is taken; and there is one actor too many.
    let go = r#"GO {"x": 1, "id": "one"}"#;
    let twice = format!("target: a, reenter: true, {}", spawn("one"));
    hostile(&source, (&twice, &format!("target: ok, {}", spawn("one"))), &[go, go]);
    let two =
        format!("{}, target: ok", spawn("one")).replace("}}]", "}}, {spawn: {machine: child, id: two, input: 1}}]");
    hostile(&source, (&two, &format!("target: ok, {}", spawn("two"))), &[go]);
    let computed = format!("target: a, reenter: true, {}", spawn("= event.id"));
    hostile(&source, (&computed, "target: ok"), &[go, go]);
    let input = source.replace("input: 3", "input: ???").replace("GO: {???}", "GO: ok");
    hostile(&input, ("4", "3"), &["NEXT", "NEXT>child"]);
}

#[test]
fn delays_that_cannot_be_computed() {
    let source = format!(
        "
events: {{GO: {{data: {{type: object, required: [x], properties: {{x: {{type: integer}}}}}}}}}}
context: {{ms: 1}}
states:
  a: {{on: {{GO: {{target: b, actions: [{{assign: {{ms: ???}}}}]}}}}}}
  b: {{after: {{'= 6000 / context.ms': ok}}, on: {{error.execution: bad}}}}
  ok: {{}}
  bad: {{}}
{BAD}"
    );
    hostile(&source, ("= event.x", "2"), &[r#"GO {"x": 0}"#]);
    hostile(&source, ("= event.x - event.x", "= 3"), &[r#"GO {"x": 4}"#]);
}

#[test]
fn time_does_not_only_pass() {
    let source = format!(
        "
events: {{GO: {{}}, NEXT: {{}}}}
context: {{at: null}}
states:
  a: {{on: {{GO: {{target: b, actions: [{{assign: {{at: '= string(now)'}}}}]}}}}}}
  b: {{on: {{NEXT: [{{target: ok, when: \"???\"}}, {{target: bad}}]}}}}
  ok: {{}}
  bad: {{}}
{BAD}"
    );
    // Two events may have the same time.
    hostile(&source, ("now > timestamp(context.at)", "now >= timestamp(context.at)"), &["GO", "NEXT"]);
    let late = "now < timestamp(context.at) + duration('1h')";
    hostile(&source, (late, "context.at != null"), &["GO", "wait 3600000", "NEXT"]);
}

#[test]
fn runs_that_are_paused_or_cancelled() {
    let source = "
events: {GO: {}}
context: {n: 0}
states:
  a: {on: {GO: b}, exit: [{assign: {n: 1}}]}
  b: {}
properties: [{id: p, ???}]
";
    let cancelled = ["charter.cancel"];
    hostile(
        source,
        ("always: \"actors.root.status == 'active'\"", "always: \"in('a') || context.n == 1\""),
        &cancelled,
    );
    hostile(source, ("never: context.n == 1 && !in('b')", "never: context.n == 2"), &cancelled);
    hostile(source, ("never: \"actors.root.exists(k, v, v == 'cancelled')\"", "never: context.n > 1"), &cancelled);
    let plain = source.replace(", exit: [{assign: {n: 1}}]", "");
    hostile(&plain, ("never: \"actors.root.exists(k, v, v == 'cancelled')\"", "never: context.n > 1"), &cancelled);
    // Answers that a paused run holds arrive in one event: an interlock sees what they lead to.
    let held = "
actors: {v: {kind: tool}, w: {kind: tool}}
context: {v: 0, w: 0}
states:
  p:
    type: parallel
    states:
      v: {initial: x, states: {x: {invoke: {src: v, onDone: {target: y, actions: [{assign: {v: 1}}]}}}, y: {}}}
      w: {initial: x, states: {x: {invoke: {src: w, onDone: {target: y, actions: [{assign: {w: 1}}]}}}, y: {}}}
interlocks: [{id: both, assert: actors.root.context.v == actors.root.context.w}]
properties: [{id: p, never: ???}]
";
    let run = ["charter.pause", "done 1", "last", "charter.resume"];
    hostile(held, ("context.v == 1 && context.w == 1", "context.v != context.w"), &run);
}
