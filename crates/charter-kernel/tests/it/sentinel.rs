//! Sentinel's table: all 81 pairs of its nine states, every event in every state by every role,
//! paused and not; compared with a second reading of the document that shares no code with the
//! kernel. And hostile streams: nothing is applied without its approval.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::common::Run;
use charter_kernel::{Digest, EffectKind, Machine, Principal};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

/// The document's table (section 2.1).
const TABLE: [(&str, &[&str]); 9] = [
    ("IDLE", &["CURATING_CONTEXT"]),
    ("CURATING_CONTEXT", &["AWAITING_CONTEXT_APPROVAL", "ERROR"]),
    ("AWAITING_CONTEXT_APPROVAL", &["PLANNING_WITH_CONTEXT", "CURATING_CONTEXT", "IDLE"]),
    ("PLANNING_WITH_CONTEXT", &["GENERATING_PROPOSAL", "ERROR"]),
    ("GENERATING_PROPOSAL", &["AWAITING_PROPOSAL_APPROVAL", "ERROR"]),
    ("AWAITING_PROPOSAL_APPROVAL", &["APPLYING_CHANGESET", "PLANNING_WITH_CONTEXT", "IDLE"]),
    ("APPLYING_CHANGESET", &["REFLECTING", "ERROR"]),
    ("REFLECTING", &["IDLE", "CURATING_CONTEXT"]),
    ("ERROR", &["IDLE"]),
];

const EVENTS: [&str; 9] = [
    "START",
    "APPROVE_CONTEXT",
    "REVISE_CONTEXT",
    "REJECT_CONTEXT",
    "APPROVE_PROPOSAL",
    "EDIT_PROPOSAL",
    "REJECT_PROPOSAL",
    "ABORT",
    "RESET",
];
const ROLES: [&str; 5] = ["operator", "approver", "agent", "system", ""];
const ACTORS: [&str; 7] = ["curate", "plan", "propose", "apply", "rollback", "reflect", "remember"];

/// The target of an event, if it has one.
fn target(state: &str, event: &str) -> Option<&'static str> {
    Some(match (state, event) {
        ("IDLE", "START") => "CURATING_CONTEXT",
        ("AWAITING_CONTEXT_APPROVAL", "APPROVE_CONTEXT") => "PLANNING_WITH_CONTEXT",
        ("AWAITING_CONTEXT_APPROVAL", "REVISE_CONTEXT") => "CURATING_CONTEXT",
        ("AWAITING_CONTEXT_APPROVAL", "REJECT_CONTEXT" | "ABORT") => "IDLE",
        ("AWAITING_PROPOSAL_APPROVAL", "APPROVE_PROPOSAL") => "APPLYING_CHANGESET",
        ("AWAITING_PROPOSAL_APPROVAL", "EDIT_PROPOSAL") => "PLANNING_WITH_CONTEXT",
        ("AWAITING_PROPOSAL_APPROVAL", "REJECT_PROPOSAL" | "ABORT") => "IDLE",
        ("CURATING_CONTEXT" | "PLANNING_WITH_CONTEXT" | "GENERATING_PROPOSAL" | "APPLYING_CHANGESET", "ABORT") => {
            "ERROR"
        }
        ("REFLECTING", "ABORT") | ("ERROR", "RESET") => "IDLE",
        _ => return None,
    })
}

/// Who may send it.
fn may(role: &str, event: &str) -> bool {
    match event {
        "START" | "RESET" => role == "operator",
        "ABORT" => role == "operator" || role == "approver",
        _ => role == "approver",
    }
}

/// Events that end a cycle safely are accepted while paused.
fn ends_safely(event: &str) -> bool {
    event.starts_with("REJECT") || event == "ABORT" || event == "RESET"
}

/// The target after the answer of an actor.
fn answered(state: &str, actor: &str, good: bool) -> Option<&'static str> {
    let (worker, next, else_) = match state {
        "CURATING_CONTEXT" => ("curate", "AWAITING_CONTEXT_APPROVAL", "ERROR"),
        "PLANNING_WITH_CONTEXT" => ("plan", "GENERATING_PROPOSAL", "ERROR"),
        "GENERATING_PROPOSAL" => ("propose", "AWAITING_PROPOSAL_APPROVAL", "ERROR"),
        "APPLYING_CHANGESET" => ("apply", "REFLECTING", "ERROR"),
        "REFLECTING" => ("reflect", "IDLE", "IDLE"),
        _ => return None,
    };
    (worker == actor).then_some(if good { next } else { else_ })
}

/// The target when no answer arrives in time, and the timeout in seconds.
fn expired(state: &str) -> Option<(&'static str, i64)> {
    Some(match state {
        "AWAITING_CONTEXT_APPROVAL" => ("IDLE", 300),
        "AWAITING_PROPOSAL_APPROVAL" => ("IDLE", 600),
        "CURATING_CONTEXT" | "PLANNING_WITH_CONTEXT" | "GENERATING_PROPOSAL" | "APPLYING_CHANGESET" => ("ERROR", 3_600),
        "REFLECTING" => ("IDLE", 3_600),
        _ => return None,
    })
}

fn machine() -> Arc<Machine> {
    static MACHINE: OnceLock<Arc<Machine>> = OnceLock::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/sentinel/charter.yaml");
    MACHINE.get_or_init(|| Arc::new(crate::common::machine(&std::fs::read_to_string(path).unwrap()))).clone()
}

fn start() -> Run {
    Run::on(machine(), json!({"workspace": "w"})).unwrap()
}

fn hash(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).hex()
}

fn changeset(content: &str) -> Json {
    json!({"summary": "s", "changes": [
        {"operation": "MODIFY", "file_path": "a", "old_sha256": hash("a"), "new_sha256": hash(content), "size": 1},
        {"operation": "CREATE", "file_path": "b", "new_sha256": hash(content), "size": 1},
    ]})
}

fn output(actor: &str) -> Json {
    match actor {
        "curate" => {
            json!({"files": [{"path": "a", "size": 1, "sha256": hash("a"), "kind": "text"}], "curator": "agent"})
        }
        "plan" => json!({"plan": "change a"}),
        "propose" => json!({"changeset": changeset("x"), "proposer": "agent"}),
        "reflect" => json!({"outcome": "success", "insights": []}),
        _ => json!({}),
    }
}

fn error() -> Json {
    json!({"code": "failed", "message": "no"})
}

fn act(run: &mut Run, id: &str, role: &str, event: &str, data: Json) -> Result<(), String> {
    let roles = if role.is_empty() { &[] } else { std::slice::from_ref(&role) };
    run.by = Principal::new(id, roles);
    run.try_send(event, data).map(|_| ()).map_err(|e| e.code.to_string())
}

/// Valid data, with the digest of the shown value.
fn data(run: &Run, event: &str) -> Json {
    match event {
        "START" => json!({"goal": "g"}),
        "APPROVE_CONTEXT" => json!({"digest": Digest::of_json(&run.var("bundle")).hex()}),
        "APPROVE_PROPOSAL" => json!({"digest": Digest::of_json(&run.var("proposal")).hex()}),
        "REVISE_CONTEXT" | "EDIT_PROPOSAL" => json!({"feedback": "other"}),
        "RESET" => json!({}),
        _ => json!({"reason": "because"}),
    }
}

fn must(run: &mut Run, role: &str, event: &str) {
    let data = data(run, event);
    act(run, role, role, event, data).unwrap();
}

/// A run in a state, reached by the shortest path.
fn reach(state: &str) -> Run {
    let mut run = start();
    for (at, how) in [
        ("IDLE", "START"),
        ("CURATING_CONTEXT", "curate"),
        ("AWAITING_CONTEXT_APPROVAL", "APPROVE_CONTEXT"),
        ("PLANNING_WITH_CONTEXT", "plan"),
        ("GENERATING_PROPOSAL", "propose"),
        ("AWAITING_PROPOSAL_APPROVAL", "APPROVE_PROPOSAL"),
        ("APPLYING_CHANGESET", "apply"),
    ] {
        if at == state {
            break;
        }
        if state == "ERROR" && at == "PLANNING_WITH_CONTEXT" {
            run.failed("plan", error());
            break;
        }
        match how {
            "START" => must(&mut run, "operator", how),
            event if EVENTS.contains(&event) => must(&mut run, "approver", event),
            actor => {
                run.done(actor, output(actor));
            }
        }
    }
    assert_eq!(run.state(), state);
    run
}

fn paused(mut run: Run) -> Run {
    act(&mut run, "operator", "operator", "charter.pause", json!({})).unwrap();
    run
}

/// The `fsm:transition`s of the last step.
fn told(run: &Run) -> Vec<(String, String)> {
    let effects = &run.last.as_ref().unwrap().effects;
    let transition = |kind: &EffectKind| match kind {
        EffectKind::Emit { r#type, data } if &**r#type == "fsm:transition" => {
            Some((data["from"].as_str().unwrap().to_owned(), data["to"].as_str().unwrap().to_owned()))
        }
        _ => None,
    };
    effects.iter().filter_map(|e| transition(&e.kind)).collect()
}

/// Records a move, and checks that it was emitted.
fn note(moves: &mut BTreeSet<(String, String)>, from: &str, run: &Run) {
    let to = run.state();
    if from == to {
        return;
    }
    assert_eq!(told(run), [(from.to_owned(), to.clone())]);
    moves.insert((from.to_owned(), to));
}

#[test]
fn all_81_pairs_every_event_every_role_paused_and_not() {
    let (mut moves, mut cases) = (BTreeSet::new(), 0);
    for (state, _) in TABLE {
        for pause in [false, true] {
            let fresh = || {
                if pause { paused(reach(state)) } else { reach(state) }
            };
            for event in EVENTS {
                for role in ROLES {
                    let mut run = fresh();
                    let data = data(&run, event);
                    let result = act(&mut run, role, role, event, data);
                    let to = target(state, event);
                    let expected = if pause && !ends_safely(event) {
                        Err("paused")
                    } else if !may(role, event) {
                        Err("authority")
                    } else {
                        to.ok_or("unhandled")
                    };
                    match (&result, expected) {
                        (Ok(()), Ok(to)) => assert_eq!(run.state(), to, "{state} x {event}"),
                        (Err(code), Err(expected)) => {
                            assert_eq!(code, expected, "{state} x {event} x {role}, paused: {pause}");
                            assert_eq!(run.state(), state);
                        }
                        _ => panic!("{state} x {event} x {role}, paused: {pause}: {result:?}"),
                    }
                    if result.is_ok() {
                        note(&mut moves, state, &run);
                    }
                    cases += 1;
                }
            }
            for actor in ACTORS {
                for good in [true, false] {
                    let mut run = fresh();
                    let envelope = |run: &Run| charter_kernel::Envelope {
                        seq: run.seq + 1,
                        to: None,
                        event: if good {
                            charter_kernel::Event::Done {
                                invocation: actor.into(),
                                effect: None,
                                output: output(actor),
                            }
                        } else {
                            charter_kernel::Event::Failed { invocation: actor.into(), effect: None, error: error() }
                        },
                        by: Principal::default(),
                        at: run.at.into(),
                        expected_seq: None,
                    };
                    let envelope = envelope(&run);
                    let _ = run.apply(&envelope);
                    let expected = answered(state, actor, good).unwrap_or(state);
                    if pause {
                        assert_eq!(run.state(), state, "answers wait: {actor}");
                        act(&mut run, "operator", "operator", "charter.resume", json!({})).unwrap();
                    }
                    assert_eq!(run.state(), expected, "{state} x {actor} ({good})");
                    if expected != state {
                        note(&mut moves, state, &run);
                    }
                    cases += 1;
                }
            }
            // Time: a deadline passes, or does not run while paused.
            let mut run = fresh();
            if let Some((to, seconds)) = expired(state) {
                if seconds < 3_600 {
                    run.wait(seconds * 1_000 - 1);
                    assert_eq!(run.state(), state, "not a moment earlier");
                }
                if !pause {
                    while run.state() == state {
                        let due = run.snapshot.next_timer().unwrap().due;
                        run.wait(due.0 - run.at);
                    }
                    note(&mut moves, state, &run);
                    assert_eq!(run.state(), to);
                }
            } else {
                run.wait(365 * 86_400_000);
                assert_eq!(run.state(), state, "waits as long as it takes");
            }
        }
    }
    // A goal that was not reached is refined, and the cycle continues.
    let mut run = reach("REFLECTING");
    run.done("reflect", json!({"outcome": "partial", "insights": [], "refinedGoal": "the rest"}));
    note(&mut moves, "REFLECTING", &run);
    assert_eq!((run.var("goal"), run.var("cycle")), (json!("the rest"), json!(2)));

    let mut tried = 0;
    for (from, legal) in TABLE {
        for (to, _) in TABLE {
            let seen = moves.contains(&(from.to_owned(), to.to_owned()));
            assert_eq!(seen, legal.contains(&to), "{from} -> {to}");
            tried += 1;
        }
    }
    assert_eq!((tried, moves.len()), (81, 18));
    assert!(cases > 1_000, "{cases} cases");
}

#[test]
fn the_approvals_are_of_what_was_shown() {
    let mut run = reach("AWAITING_PROPOSAL_APPROVAL");
    let approve = |run: &mut Run, id: &str, data: Json| act(run, id, "approver", "APPROVE_PROPOSAL", data);
    let whole = run.var("proposal");
    let part = |paths: &[usize]| json!({"summary": "s", "changes": paths.iter().map(|i| whole["changes"][*i].clone()).collect::<Vec<_>>()});
    let digest = |value: &Json| Digest::of_json(value).hex();
    let refused = [
        (json!({"digest": digest(&changeset("y"))}), "stale"),
        (json!({"digest": digest(&part(&[0]))}), "stale"),
        (json!({"digest": digest(&whole), "accepted": ["a"]}), "stale"),
        (json!({"digest": digest(&part(&[0])), "accepted": ["b"]}), "stale"),
        (json!({"digest": digest(&whole), "accepted": ["a", "b", "c"]}), "guard"),
        (json!({"digest": digest(&whole), "accepted": []}), "schema"),
        (json!({"digest": digest(&whole), "accepted": ["a", "a"]}), "schema"),
        (json!({}), "schema"),
    ];
    for (data, code) in refused {
        assert_eq!(approve(&mut run, "ana", data.clone()), Err(code.into()), "{data}");
    }
    // The proposer cannot approve, whatever the role.
    assert_eq!(approve(&mut run, "agent", json!({"digest": digest(&whole)})), Err("guard".into()));
    approve(&mut run, "ana", json!({"digest": digest(&part(&[1])), "accepted": ["b"]})).unwrap();
    assert_eq!(run.var("changeset"), part(&[1]));
    assert_eq!(run.var("approval")["by"], "ana");

    // The context likewise.
    let mut run = reach("AWAITING_CONTEXT_APPROVAL");
    let approve = |run: &mut Run, id: &str, digest: String| {
        act(run, id, "approver", "APPROVE_CONTEXT", json!({"digest": digest}))
    };
    assert_eq!(approve(&mut run, "ana", hash("other")), Err("stale".into()));
    let right = digest(&run.var("bundle"));
    assert_eq!(approve(&mut run, "agent", right.clone()), Err("guard".into()));
    // Another bundle: the approval of the first is not valid for it.
    must(&mut run, "approver", "REVISE_CONTEXT");
    run.done("curate", json!({"files": []}));
    assert_eq!(approve(&mut run, "ana", right), Err("stale".into()));
}

#[test]
fn what_was_changed_is_put_back_before_error_opens() {
    let failed = || {
        let mut run = reach("APPLYING_CHANGESET");
        run.failed("apply", error());
        run
    };
    let reset = |run: &mut Run, role: &str| act(run, role, role, "RESET", json!({}));
    let mut run = failed();
    assert_eq!(reset(&mut run, "operator"), Err("guard".into()));
    run.done("rollback", json!({}));
    reset(&mut run, "operator").unwrap();
    assert_eq!(run.state(), "IDLE");
    // It cannot be rolled back: a person has to confirm, and the next cycle records who did.
    let mut run = failed();
    run.failed("rollback", json!({"code": "dirty", "message": "`a` cannot be put back"}));
    assert_eq!(run.var("dirty"), "`a` cannot be put back");
    reset(&mut run, "operator").unwrap();
    assert_eq!((run.var("dirty"), &run.var("cleared")["by"]), (Json::Null, &json!("operator")));
    // Nothing was changed: it opens at once.
    let mut run = reach("ERROR");
    reset(&mut run, "operator").unwrap();
}

#[test]
fn rounds_are_bounded_and_cycles_counted() {
    let mut run = reach("REFLECTING");
    let again = json!({"outcome": "failed", "insights": [], "refinedGoal": "again"});
    for round in 1..=10 {
        run.done("reflect", again.clone());
        assert_eq!(run.state(), "CURATING_CONTEXT", "round {round}");
        for how in ["curate", "APPROVE_CONTEXT", "plan", "propose", "APPROVE_PROPOSAL", "apply"] {
            if EVENTS.contains(&how) {
                must(&mut run, "approver", how);
            } else {
                run.done(how, output(how));
            }
        }
    }
    run.done("reflect", again);
    assert_eq!((run.state().as_str(), run.var("cycle")), ("IDLE", json!(11)));
    must(&mut run, "operator", "START");
    assert_eq!((run.var("cycle"), run.var("round")), (json!(12), json!(0)));
}

#[test]
fn insights_reach_the_next_planning() {
    let mut run = reach("APPLYING_CHANGESET");
    run.failed("apply", json!({"code": "verify", "message": "the tests fail"}));
    let insight = run.var("insights")[0].clone();
    assert_eq!((&insight["outcome"], &insight["category"]), (&json!("failed"), &json!("verify")));
    run.done("rollback", json!({}));
    must(&mut run, "operator", "RESET");
    must(&mut run, "operator", "START");
    run.done("curate", output("curate"));
    must(&mut run, "approver", "APPROVE_CONTEXT");
    let effects = &run.last.as_ref().unwrap().effects;
    let plan = effects.iter().find_map(|e| match &e.kind {
        EffectKind::Invoke { src, input, .. } if &**src == "plan" => Some(input.clone()),
        _ => None,
    });
    assert_eq!(plan.unwrap()["insights"][0], insight);
}

/// The attempts of a hostile stream.
#[derive(Debug, Clone)]
enum Try {
    Event { event: usize, id: usize, role: usize, digest: usize, accepted: Option<usize> },
    Answer { actor: usize, good: bool, proposal: usize, proposer: usize },
    Wait(i64),
    Pause(bool),
}

const PEOPLE: [&str; 4] = ["ana", "bo", "agent", "curate"];

fn tries() -> impl Strategy<Value = Try> {
    prop_oneof![
        4 => (0..EVENTS.len(), 0..PEOPLE.len(), 0..ROLES.len(), 0..5usize, prop::option::of(0..4usize))
            .prop_map(|(event, id, role, digest, accepted)| Try::Event { event, id, role, digest, accepted }),
        // A step of the shortest path, so that streams get far.
        6 => (0..PEOPLE.len(), 0..4usize, 0..PEOPLE.len()).prop_map(|(id, proposal, proposer)| Try::Event {
            event: 100 + proposal, id, role: proposer, digest: 0, accepted: None
        }),
        3 => (0..ACTORS.len(), any::<bool>(), 0..3usize, 0..PEOPLE.len())
            .prop_map(|(actor, good, proposal, proposer)| Try::Answer { actor, good, proposal, proposer }),
        1 => (0..400_000i64).prop_map(Try::Wait),
        1 => any::<bool>().prop_map(Try::Pause),
    ]
}

/// For all events from all senders: a step requests `apply` only if that step is a person's
/// approval, with the role, of exactly the changeset that is applied, which is the last proposal or
/// a part of it, and not by its proposer.
#[test]
fn nothing_is_applied_without_its_approval() {
    let applied = std::cell::Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases: 300, ..ProptestConfig::default() });
    let result = runner.run(&prop::collection::vec(tries(), 1..60), |stream| {
        let mut run = start();
        let mut shown: Option<(Json, String)> = None;
        for attempt in stream {
            let before = run.seq;
            let mut sent = None;
            match attempt {
                Try::Event { event, id, role: proposer, .. } if event >= 100 => {
                    // One step of the shortest path, with its own proposal and proposer.
                    match run.state().as_str() {
                        "IDLE" => drop(act(&mut run, "ana", "operator", "START", json!({"goal": "g"}))),
                        "AWAITING_CONTEXT_APPROVAL" => {
                            let data = data(&run, "APPROVE_CONTEXT");
                            drop(act(&mut run, PEOPLE[id], "approver", "APPROVE_CONTEXT", data));
                        }
                        "AWAITING_PROPOSAL_APPROVAL" => {
                            let data = data(&run, "APPROVE_PROPOSAL");
                            sent = Some((PEOPLE[id], "approver", data.clone()));
                            drop(act(&mut run, PEOPLE[id], "approver", "APPROVE_PROPOSAL", data));
                        }
                        "ERROR" => drop(act(&mut run, "ana", "operator", "RESET", json!({}))),
                        state => {
                            let Some(actor) = ACTORS.iter().find(|a| answered(state, a, true).is_some()) else {
                                continue;
                            };
                            let proposal = changeset(["x", "y", "z", "x"][event - 100]);
                            let out = if *actor == "propose" {
                                json!({"changeset": proposal, "proposer": PEOPLE[proposer]})
                            } else {
                                output(actor)
                            };
                            answer(&mut run, actor, Ok(out));
                        }
                    }
                }
                Try::Event { event, id, role, digest, accepted } => {
                    let mut data = data(&run, EVENTS[event]);
                    if EVENTS[event].starts_with("APPROVE") {
                        let values = [
                            run.var("proposal"),
                            changeset("x"),
                            changeset("y"),
                            run.var("bundle"),
                            json!({"summary": "s", "changes": [changeset("x")["changes"][0]]}),
                        ];
                        data["digest"] = json!(Digest::of_json(&values[digest]).hex());
                        if let (Some(n), "APPROVE_PROPOSAL") = (accepted, EVENTS[event]) {
                            data["accepted"] = [json!(["a"]), json!(["b"]), json!(["a", "b"]), json!(["c"])][n].clone();
                        }
                    }
                    if EVENTS[event] == "APPROVE_PROPOSAL" {
                        sent = Some((PEOPLE[id], ROLES[role], data.clone()));
                    }
                    drop(act(&mut run, PEOPLE[id], ROLES[role], EVENTS[event], data));
                }
                Try::Answer { actor, good, proposal, proposer } => {
                    let out = if ACTORS[actor] == "propose" {
                        json!({"changeset": changeset(["x", "y", "z"][proposal]), "proposer": PEOPLE[proposer]})
                    } else {
                        output(ACTORS[actor])
                    };
                    answer(&mut run, ACTORS[actor], if good { Ok(out) } else { Err(error()) });
                }
                Try::Wait(ms) => drop(run.wait(ms)),
                Try::Pause(on) => drop(act(
                    &mut run,
                    "ana",
                    "operator",
                    if on { "charter.pause" } else { "charter.resume" },
                    json!({}),
                )),
            }
            if run.seq == before {
                continue;
            }
            let last = run.last.as_ref().unwrap();
            for effect in &last.effects {
                let EffectKind::Invoke { src, input, .. } = &effect.kind else { continue };
                if &**src != "apply" || effect.id.seq != run.seq {
                    continue;
                }
                applied.set(applied.get() + 1);
                let (id, role, data) = sent.clone().expect("only an approval asks for it");
                let (proposal, proposer) = shown.clone().expect("of what was shown");
                prop_assert_eq!(role, "approver");
                prop_assert_ne!(id, proposer);
                let applied = &input["changeset"];
                prop_assert_eq!(&data["digest"], &json!(Digest::of_json(applied).hex()));
                for change in applied["changes"].as_array().unwrap() {
                    prop_assert!(proposal["changes"].as_array().unwrap().contains(change));
                }
                prop_assert_eq!(&applied["summary"], &proposal["summary"]);
                prop_assert_eq!(&input["approval"]["by"], &json!(id));
            }
            shown = match run.var("proposal") {
                Json::Null => None,
                proposal => Some((proposal, run.var("proposer").as_str().unwrap_or_default().to_owned())),
            };
        }
        Ok(())
    });
    result.unwrap();
    assert!(applied.get() > 30, "the streams got far enough {} times", applied.get());
}

/// An answer, requested or not.
fn answer(run: &mut Run, actor: &str, with: Result<Json, Json>) {
    let event = match with {
        Ok(output) => charter_kernel::Event::Done { invocation: actor.into(), effect: None, output },
        Err(error) => charter_kernel::Event::Failed { invocation: actor.into(), effect: None, error },
    };
    let envelope = charter_kernel::Envelope {
        seq: run.seq + 1,
        to: None,
        event,
        by: Principal::default(),
        at: run.at.into(),
        expected_seq: None,
    };
    let _ = run.apply(&envelope);
}
