//! Approvals that wait: what they are about, and by which id they are known.

use std::collections::BTreeMap;

use charter_kernel::definition::State;
use charter_kernel::{Auth, Definition, Demands, Digest, Machine, Principal, PrincipalKind, Snapshot, Timestamp};
use serde_json::{Value, json};

/// Nobody's name: no key and no claim can have it.
const SOMEBODY: &str = " somebody else ";
/// Approvals of a run that are told of, at most.
const MAX_OPEN: usize = 100;

/// Whether somebody is asked for consent: an approval, or a vote.
#[must_use]
pub fn is_approval(demands: &Demands) -> bool {
    demands.approves.is_some() || demands.quorum.is_some()
}

/// The place of an approval: the same as long as the same value waits in the same place.
#[must_use]
pub fn place(demands: &Demands) -> String {
    let digest = demands.approves.as_ref().map(|approves| approves.digest.to_string());
    format!("{}/{}", demands.transition, digest.unwrap_or_default())
}

/// Exactly what an approval is about. `None` if the charter has no expression for it, or if its
/// value is not the one of the digest.
#[must_use]
pub fn value(machine: &Machine, snapshot: &Snapshot, actor: &str, demands: &Demands, now: Timestamp) -> Option<Value> {
    let approves = demands.approves.as_ref()?;
    let query = machine.query(&approves.value).ok()?;
    let value = machine.ask(snapshot, actor, &query, now).ok()?;
    (Digest::of_json(&value) == approves.digest).then_some(value)
}

/// A person with these roles who has done nothing yet.
#[must_use]
pub fn somebody(roles: Vec<String>) -> Principal {
    Principal { id: SOMEBODY.to_owned(), roles, kind: Some(PrincipalKind::Person), auth: Some(Auth::Key) }
}

/// Whether a charter asks for approvals or votes at all.
#[must_use]
pub fn has_approvals(definition: &Definition) -> bool {
    fn within(state: &State) -> bool {
        let mut own = state.on.iter().flat_map(|on| &on.transitions);
        own.any(|t| t.approves.is_some() || t.quorum.is_some()) || state.states.values().any(within)
    }
    let charts = definition.machines.values().chain([&definition.root]);
    charts.into_iter().any(|chart| within(&chart.state))
}

/// The approvals for which a run waits, by id; without the values, which not everybody may see.
#[must_use]
pub fn open(machine: &Machine, snapshot: &Snapshot, now: Timestamp) -> BTreeMap<String, Value> {
    let by = somebody(machine.definition().roles.keys().cloned().collect());
    let mut found = BTreeMap::new();
    for event in machine.legal(snapshot, &by, now) {
        let demands = machine.demands(snapshot, &event.to, &event.r#type, &by, now);
        let Some(demands) = demands.filter(is_approval) else { continue };
        let id = format!("{}/{}/{}", snapshot.run(), event.to, place(&demands));
        let digest = demands.approves.as_ref().map(|approves| approves.digest);
        let approval = json!({"approval": id, "event": event.r#type, "to": event.to, "digest": digest});
        found.insert(id, approval);
        if found.len() >= MAX_OPEN {
            break;
        }
    }
    found
}
