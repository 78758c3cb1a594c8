//! What each event of a counterexample does, so that a person can follow it.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::{Machine, Snapshot, Status, TakenKeys};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::explore::{Move, MoveKind, start};

/// Upper limit of the events whose effect is shown.
const MAX_EVENTS: usize = 200;

/// A run after an event of a counterexample.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct After {
    /// The active states of each actor that has any, by its id.
    pub states: BTreeMap<String, Vec<String>>,
    /// The context variables that the event has changed, with their new values; those of an actor
    /// other than the root have its id and a dot in front.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub changed: Map<String, Json>,
}

/// Replays moves, of which the first starts the run. The result has an item for each, up to the
/// first one that the kernel refuses.
pub(crate) fn after(machine: &Machine, moves: &[Arc<Move>]) -> Vec<After> {
    let mut out = Vec::new();
    let mut at: Option<Snapshot> = None;
    let mut keys = TakenKeys::default();
    for how in moves.iter().take(MAX_EVENTS.saturating_add(1)) {
        let next = match (&how.kind, &at) {
            (MoveKind::Start { input, by }, None) => start(machine, input, by.as_deref(), how.at),
            (_, Some(snapshot)) => how.follow(machine, snapshot, &mut keys),
            (_, None) => break,
        };
        let Ok(next) = next else { break };
        // What a start sets is in the charter.
        let changed = at.as_ref().map(|before| changed(before, &next.snapshot)).unwrap_or_default();
        out.push(After { states: states(&next.snapshot), changed });
        at = Some(next.snapshot);
    }
    out
}

fn states(snapshot: &Snapshot) -> BTreeMap<String, Vec<String>> {
    let active = snapshot.actors().filter(|a| a.id() == "root" || a.status() == Status::Active);
    active.map(|a| (a.id().to_owned(), a.state().map(str::to_owned).collect())).collect()
}

/// The variables by the names that [`After::changed`] has.
fn variables(snapshot: &Snapshot) -> BTreeMap<String, &Json> {
    let named = |actor: &str, name: &str| match actor {
        "root" => name.to_owned(),
        actor => format!("{actor}.{name}"),
    };
    snapshot.actors().flat_map(|a| a.variables().map(move |(name, value)| (named(a.id(), name), value))).collect()
}

fn changed(before: &Snapshot, after: &Snapshot) -> Map<String, Json> {
    let known = variables(before);
    let new = variables(after).into_iter().filter(|(name, value)| known.get(name) != Some(value));
    new.map(|(name, value)| (name, value.clone())).collect()
}
