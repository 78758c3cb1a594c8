//! All 81 pairs of the nine states; every event in every state by every role, paused and not.

use std::collections::BTreeSet;

use crate::common::Run;
use charter_kernel::{EffectKind, Principal};
use serde_json::json;

use super::{ACTORS, EVENTS, ROLES, act, answered, data, error, output, reach};

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

/// Whether a role may send an event.
fn may(role: &str, event: &str) -> bool {
    match event {
        "START" | "RESET" => role == "operator",
        "ABORT" | "UNDO" => role == "operator" || role == "approver",
        _ => role == "approver",
    }
}

/// Whether an event ends a cycle safely, so that it is accepted while paused.
fn ends_safely(event: &str) -> bool {
    event.starts_with("REJECT") || event == "ABORT" || event == "RESET"
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

fn paused(mut run: Run) -> Run {
    act(&mut run, "operator", "operator", "charter.pause", json!({})).unwrap();
    run
}

/// Returns the `fsm:transition` events that the last step emitted.
fn emitted(run: &Run) -> Vec<(String, String)> {
    let effects = &run.last.as_ref().unwrap().effects;
    let transition = |kind: &EffectKind| match kind {
        EffectKind::Emit { r#type, data } if &**r#type == "fsm:transition" => {
            Some((data["from"].as_str().unwrap().to_owned(), data["to"].as_str().unwrap().to_owned()))
        }
        _ => None,
    };
    effects.iter().filter_map(|e| transition(&e.kind)).collect()
}

/// Records a change of state, and checks that it was emitted.
fn note(moves: &mut BTreeSet<(String, String)>, from: &str, run: &Run) {
    let to = run.state();
    if from == to {
        return;
    }
    assert_eq!(emitted(run), [(from.to_owned(), to.clone())]);
    moves.insert((from.to_owned(), to));
}

#[test]
fn all_81_pairs_every_event_every_role_paused_and_not() {
    let (mut moves, mut cases) = (BTreeSet::new(), 0);
    for (state, _) in TABLE {
        for pause in [false, true] {
            let begin = if pause { paused(reach(state)) } else { reach(state) };
            let fresh = || begin.clone();
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
                        // Nothing has been changed yet.
                        to.ok_or(if (state, event) == ("IDLE", "UNDO") { "guard" } else { "unhandled" })
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
                        unique: None,
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
            // The deadline passes, unless the run is paused.
            let mut run = fresh();
            if let Some((to, seconds)) = expired(state) {
                if seconds < 3_600 {
                    run.wait(seconds * 1_000 - 1);
                    assert_eq!(run.state(), state, "the deadline has not passed");
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
                assert_eq!(run.state(), state, "has no deadline");
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
