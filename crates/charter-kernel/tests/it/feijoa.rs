//! Every cell of feijoa's three tables: all plan states x events x phases x roles, compared with an
//! independent implementation of the document that shares no code with the kernel.

use std::sync::{Arc, OnceLock};

use crate::common::Run;
use charter_kernel::{Machine, Principal};
use serde_json::{Value as Json, json};

const PHASES: [&str; 5] = ["PLANNING", "DECISION", "SIMULATION", "EXECUTION", "FINISHED"];
const STATES: [&str; 6] = ["PENDING", "SELECTED", "SIMULATED", "EXECUTED", "REJECTED", "FAILED"];
const ROLES: [&str; 6] = ["planner", "judge", "simulator", "executor", "orchestrator", ""];

/// Starts a new run of the charter.
fn start() -> Run {
    static MACHINE: OnceLock<Arc<Machine>> = OnceLock::new();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/feijoa/charter.yaml");
    let machine = MACHINE.get_or_init(|| Arc::new(crate::common::machine(&std::fs::read_to_string(path).unwrap())));
    Run::on(machine.clone(), json!({"goal": "g"})).unwrap()
}

/// The document's tables, implemented naively.
fn allowed_in(phase: &str) -> &'static [&'static str] {
    match phase {
        "PLANNING" => &["PENDING"],
        "DECISION" => &["PENDING", "SELECTED", "REJECTED"],
        "SIMULATION" => &["SELECTED", "SIMULATED", "FAILED"],
        "EXECUTION" => &["SIMULATED", "EXECUTED", "FAILED"],
        _ => &["EXECUTED", "REJECTED", "FAILED"],
    }
}

fn target(state: &str, event: &str) -> Option<&'static str> {
    match (state, event) {
        ("PENDING", "SELECT") => Some("SELECTED"),
        ("PENDING", "REJECT") => Some("REJECTED"),
        ("SELECTED", "SIMULATE") => Some("SIMULATED"),
        ("SIMULATED", "EXECUTE") => Some("EXECUTED"),
        ("PENDING" | "SELECTED" | "SIMULATED", "FAIL") => Some("FAILED"),
        _ => None,
    }
}

fn may(role: &str, event: &str) -> bool {
    match event {
        "SELECT" | "REJECT" => role == "judge",
        "SIMULATE" => role == "simulator",
        "EXECUTE" => role == "executor",
        "FAIL" => ["planner", "judge", "simulator", "executor"].contains(&role),
        "SUBMIT" => role == "planner",
        _ => role == "orchestrator",
    }
}

fn data(event: &str) -> Json {
    match event {
        "REJECT" | "FAIL" => json!({"reason": "because"}),
        _ => json!({}),
    }
}

fn act(run: &mut Run, role: &str, to: &str, event: &str, data: Json) -> Result<(), String> {
    run.by = Principal::new(role, if role.is_empty() { &[] } else { std::slice::from_ref(&role) });
    run.try_send_to(to, event, data).map(|_| ()).map_err(|e| e.code.to_string())
}

/// Creates a run in which plan `p` is in `state` during `phase`, if the document allows that.
fn reach(phase: &str, state: &str) -> Option<Run> {
    let mut run = start();
    act(&mut run, "planner", "root", "SUBMIT", json!({"plan": "p"})).unwrap();
    let wanted: &[&str] = match state {
        "PENDING" => &[],
        "SELECTED" => &["SELECT"],
        "REJECTED" => &["REJECT"],
        "SIMULATED" => &["SELECT", "SIMULATE"],
        "EXECUTED" => &["SELECT", "SIMULATE", "EXECUTE"],
        _ => &["SELECT", "FAIL"],
    };
    let mut wanted = wanted.iter().peekable();
    for (i, at) in PHASES.iter().enumerate() {
        while let Some(event) = wanted.peek() {
            let role = ROLES.iter().find(|r| may(r, event)).unwrap();
            if act(&mut run, role, "p", event, data(event)).is_err() {
                break;
            }
            wanted.next();
        }
        if *at == phase {
            return (wanted.peek().is_none() && run.state_of("p") == state).then_some(run);
        }
        act(&mut run, "orchestrator", "root", "ADVANCE", json!({"to": PHASES[i + 1]})).ok()?;
    }
    None
}

#[test]
fn plan_events_in_every_phase_state_and_role() {
    let mut cases = 0;
    for phase in PHASES {
        for state in STATES {
            // The combination may be unreachable only if the phase does not allow the state, or if
            // the state is final and the phase is not the last one.
            let Some(_) = reach(phase, state) else {
                let settled = ["EXECUTED", "REJECTED", "FAILED"].contains(&state);
                assert!(
                    !allowed_in(phase).contains(&state) || (settled && phase != "FINISHED"),
                    "{phase} x {state} should be reachable"
                );
                continue;
            };
            for event in ["SELECT", "REJECT", "SIMULATE", "EXECUTE", "FAIL"] {
                for role in ROLES {
                    let mut run = reach(phase, state).unwrap();
                    let before = run.machine.snapshot_digest(&run.snapshot);
                    let result = act(&mut run, role, "p", event, data(event));
                    let to = target(state, event);
                    let legal =
                        phase != "FINISHED" && may(role, event) && to.is_some_and(|t| allowed_in(phase).contains(&t));
                    assert_eq!(result.is_ok(), legal, "{phase} x {state} x {event} x {role}: {result:?}");
                    match result {
                        Ok(()) => assert_eq!(run.state_of("p"), to.unwrap()),
                        Err(code) => {
                            assert_eq!(before, run.machine.snapshot_digest(&run.snapshot), "refused is unchanged");
                            let ended = phase == "FINISHED" || ["EXECUTED", "REJECTED", "FAILED"].contains(&state);
                            let expected = if ended {
                                "finished"
                            } else if !may(role, event) {
                                "authority"
                            } else if to.is_none() {
                                "unhandled"
                            } else {
                                "interlock"
                            };
                            assert_eq!(code, expected, "{phase} x {state} x {event} x {role}");
                        }
                    }
                    cases += 1;
                }
            }
        }
    }
    assert!(cases >= 400, "{cases} cases");
}

#[test]
fn phases_move_on_one_by_one_and_only_over_compatible_plans() {
    for phase in PHASES {
        for state in STATES.iter().chain(&["none"]) {
            for next in PHASES {
                for role in ROLES {
                    let run = if *state == "none" {
                        let mut run = start();
                        for to in PHASES.iter().skip(1).take(PHASES.iter().position(|p| *p == phase).unwrap()) {
                            act(&mut run, "orchestrator", "root", "ADVANCE", json!({"to": to})).unwrap();
                        }
                        Some(run)
                    } else {
                        reach(phase, state)
                    };
                    let Some(mut run) = run else { continue };
                    let result = act(&mut run, role, "root", "ADVANCE", json!({"to": next}));
                    let follows = PHASES.iter().position(|p| *p == next)
                        == PHASES.iter().position(|p| *p == phase).map(|i| i + 1);
                    let settled = ["EXECUTED", "REJECTED", "FAILED", "none"].contains(state);
                    let fits = settled || allowed_in(next).contains(state);
                    assert_eq!(
                        result.is_ok(),
                        follows && fits && role == "orchestrator",
                        "{phase} -> {next} with {state} by {role}: {result:?}"
                    );
                    if follows && !fits && role == "orchestrator" {
                        assert_eq!(result, Err("interlock".into()));
                    }
                }
            }
        }
    }
}

#[test]
fn plans_are_submitted_by_a_planner_in_planning_only() {
    for (i, phase) in PHASES.iter().enumerate() {
        for role in ROLES {
            let mut run = start();
            for to in PHASES.iter().skip(1).take(i) {
                act(&mut run, "orchestrator", "root", "ADVANCE", json!({"to": to})).unwrap();
            }
            let result = act(&mut run, role, "root", "SUBMIT", json!({"plan": "p"}));
            assert_eq!(result.is_ok(), role == "planner" && *phase == "PLANNING", "{phase} by {role}: {result:?}");
        }
    }
}

#[test]
fn reasons_and_ids_are_checked() {
    let mut run = start();
    act(&mut run, "planner", "root", "SUBMIT", json!({"plan": "p"})).unwrap();
    assert_eq!(
        act(&mut run, "planner", "root", "SUBMIT", json!({"plan": "p"})),
        Err("execution".into()),
        "an id is used once"
    );
    assert_eq!(act(&mut run, "planner", "root", "SUBMIT", json!({"plan": "root"})), Err("execution".into()));
    assert_eq!(act(&mut run, "planner", "root", "SUBMIT", json!({})), Err("schema".into()));
    for reason in [json!({}), json!({"reason": ""}), json!({"reason": "  "}), json!({"reason": 1})] {
        assert_eq!(act(&mut run, "judge", "p", "FAIL", reason), Err("schema".into()));
    }
    assert_eq!(act(&mut run, "judge", "nobody", "SELECT", json!({})), Err("unknown-actor".into()));
}
