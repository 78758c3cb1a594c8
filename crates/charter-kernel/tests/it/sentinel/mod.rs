//! The bundled charter `sentinel`, compared with an independent implementation of its document that
//! shares no code with the kernel.

mod approvals;
mod streams;
mod table;

use std::sync::{Arc, OnceLock};

use crate::common::Run;
use charter_kernel::{Digest, Machine, Principal};
use serde_json::{Value as Json, json};

const EVENTS: [&str; 10] = [
    "START",
    "APPROVE_CONTEXT",
    "REVISE_CONTEXT",
    "REJECT_CONTEXT",
    "APPROVE_PROPOSAL",
    "EDIT_PROPOSAL",
    "REJECT_PROPOSAL",
    "ABORT",
    "UNDO",
    "RESET",
];
const ROLES: [&str; 5] = ["operator", "approver", "agent", "system", ""];
const ACTORS: [&str; 7] = ["curate", "plan", "propose", "apply", "rollback", "reflect", "remember"];

/// Returns the target state after the answer of an actor.
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
        "rollback" => json!({"restored": []}),
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

/// Returns valid data for an event, with the digest of the value that is shown.
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

/// Brings a run into a state by the shortest path.
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
