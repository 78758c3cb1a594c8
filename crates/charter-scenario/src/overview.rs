//! A snapshot as JSON for people and programs: states, data, invocations and timers.

use charter_kernel::{Millis, Snapshot, Timer};
use serde_json::{Map, Value as Json, json};

use crate::timestamp;

/// Returns what was left of a timer when its run was paused; `None` if the run is not paused.
#[must_use]
pub fn left(snapshot: &Snapshot, timer: &Timer) -> Option<Millis> {
    snapshot.paused_at().map(|since| timer.due.since(since).max(Millis(0)))
}

/// Describes a snapshot: `status`, `state` (of the root), `actors`, `invocations` (those that the
/// host performs), `timers` and `output`.
///
/// A timer has its `due` time, or, in a paused run, `left_ms`, the milliseconds that it has left.
#[must_use]
pub fn json(snapshot: &Snapshot) -> Map<String, Json> {
    let actors = snapshot.actors().map(|actor| {
        json!({
            "id": actor.id(), "machine": actor.machine(), "status": actor.status().word(),
            "state": actor.state().collect::<Vec<_>>(), "context": actor.context(),
        })
    });
    let open = snapshot.invocations().filter(|(_, i)| !i.is_machine());
    let invocations = open.map(|(actor, i)| {
        json!({"actor": actor.id(), "invocation": &*i.id, "src": &*i.src, "effect": i.effect.text(snapshot.run()), "input": &*i.input})
    });
    let timers = snapshot.timers().iter().map(|t| {
        let left = left(snapshot, t);
        let due = left.is_none().then(|| timestamp::text(t.due));
        json!({"id": &*t.id, "actor": &*t.actor, "generation": t.generation, "due": due, "left_ms": left.map(|l| l.0)})
    });
    let state: Vec<&str> = snapshot.actor("root").iter().flat_map(|a| a.state()).collect();
    Map::from_iter([
        ("status".to_owned(), snapshot.status().word().into()),
        ("state".to_owned(), state.into()),
        ("actors".to_owned(), actors.collect()),
        ("invocations".to_owned(), invocations.collect()),
        ("timers".to_owned(), timers.collect()),
        ("output".to_owned(), json!(snapshot.output())),
    ])
}
