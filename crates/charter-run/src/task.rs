//! Tasks for people: open invocations of actors of kind `human`, in a dry fork those of all actors;
//! and who may answer them.

use charter_kernel::{EffectId, Invocation, Machine, Principal, PrincipalKind, Snapshot, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::handled::Denied;
use crate::values::texts;

/// An open invocation that persons may answer: of an actor of kind `human`, or any one of a dry
/// fork.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The run.
    pub run: String,
    /// The effect, `RUN/SEQ/INDEX`; an answer refers to the task by it.
    pub effect: String,
    /// The actor of the run that waits.
    pub actor: String,
    /// Id of the invocation.
    pub invocation: String,
    /// The entry of `actors`.
    pub src: String,
    /// What the task is about (`title` of the actor).
    pub title: Option<String>,
    /// Roles that may answer (`by` of the actor); empty: anybody.
    pub by: Vec<String>,
    /// Whether agents and services may answer too (`agents` of the actor), not only persons.
    pub agents: bool,
    /// The input of the invocation, for the person to read.
    pub input: Json,
    /// JSON Schema of the answer, if the charter has one.
    pub output: Option<Json>,
    /// Whether the actor is not a person: it is not called, because the run is a dry fork.
    #[serde(default)]
    pub dry: bool,
}

impl Task {
    /// Whether a principal may answer the task.
    #[must_use]
    pub fn is_for(&self, by: &Principal) -> bool {
        has_role(&self.by, by) && (self.agents || by.kind() == PrincipalKind::Person)
    }
}

/// Returns the tasks of a run that can be answered now; `dry` is whether it is a dry fork.
#[must_use]
pub fn tasks(machine: &Machine, snapshot: &Snapshot, dry: bool) -> Vec<Task> {
    match snapshot.status() {
        Status::Active => open_tasks(machine, snapshot, dry),
        _ => Vec::new(),
    }
}

/// Returns the open tasks of a run. Those of a paused run can be answered once it is resumed.
#[must_use]
pub fn open_tasks(machine: &Machine, snapshot: &Snapshot, dry: bool) -> Vec<Task> {
    if snapshot.status().is_finished() {
        return Vec::new();
    }
    let tasks = snapshot.invocations().filter(|(_, i)| is_task(machine, i, dry)).map(|(actor, i)| {
        let decl = machine.definition().actors.get(i.src.as_ref());
        Task {
            run: snapshot.run().to_owned(),
            effect: i.effect.text(snapshot.run()),
            actor: actor.id().to_owned(),
            invocation: i.id.to_string(),
            src: i.src.to_string(),
            title: decl.and_then(|d| d.config.get("title")).and_then(Json::as_str).map(str::to_owned),
            by: roles(machine, &i.src),
            agents: admits_agents(machine, &i.src),
            dry: !is_task(machine, i, false),
            input: (*i.input).clone(),
            output: decl.and_then(|d| d.output.clone()),
        }
    });
    tasks.collect()
}

/// Returns the id of the invocation of a task, if the principal may answer it.
pub(crate) fn invocation<'s>(
    machine: &Machine,
    snapshot: &'s Snapshot,
    dry: bool,
    effect: EffectId,
    by: &Principal,
) -> Result<&'s str, Denied> {
    let task = || effect.text(snapshot.run());
    let found = snapshot.invocations().find(|(_, i)| i.effect == effect && is_task(machine, i, dry));
    let Some((_, i)) = found.filter(|_| !snapshot.status().is_finished()) else {
        return Err(Denied::NoTask { task: task() });
    };
    let roles = roles(machine, &i.src);
    if !has_role(&roles, by) {
        return Err(Denied::NotYours { task: task(), roles, by: by.id.clone() });
    }
    if by.kind() != PrincipalKind::Person && !admits_agents(machine, &i.src) {
        return Err(Denied::PersonsOnly { task: task(), by: by.id.clone(), kind: by.kind() });
    }
    Ok(&i.id)
}

fn is_task(machine: &Machine, i: &Invocation, dry: bool) -> bool {
    !i.is_machine() && (dry || is_person(machine, &i.src))
}

fn is_person(machine: &Machine, src: &str) -> bool {
    machine.definition().actors.get(src).is_some_and(|decl| decl.kind == "human")
}

/// Roles that may answer a task of an actor; empty: anybody.
fn roles(machine: &Machine, src: &str) -> Vec<String> {
    // Another actor's configuration may use the name differently.
    let decl = machine.definition().actors.get(src).filter(|_| is_person(machine, src));
    let by = decl.and_then(|d| d.config.get("by"));
    by.and_then(|by| texts("by", by).ok()).unwrap_or_default()
}

/// Whether agents and services may answer the tasks of an actor.
fn admits_agents(machine: &Machine, src: &str) -> bool {
    is_person(machine, src)
        && machine.definition().actors.get(src).and_then(|d| d.config.get("agents")) == Some(&Json::Bool(true))
}

fn has_role(roles: &[String], by: &Principal) -> bool {
    roles.is_empty() || roles.iter().any(|r| by.roles.contains(r))
}
