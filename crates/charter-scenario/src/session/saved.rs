//! A session that is kept to go on later, without a reference to its machine.

use charter_kernel::{Machine, Snapshot, TakenKeys, Timestamp};
use charter_run::Position;
use serde_json::Value as Json;

use super::Session;

/// A session without its machine.
#[derive(Debug, Clone)]
pub(crate) struct Saved {
    run: String,
    position: Position,
    snapshot: Snapshot,
    at: Timestamp,
    keys: TakenKeys,
}

impl Saved {
    /// Returns the session; `machine` is the one that it had.
    pub(crate) fn session<'m>(&self, machine: &'m Machine) -> Session<'m> {
        let Saved { run, position, snapshot, at, keys } = self.clone();
        Session { machine, run, position, snapshot, at, keys }
    }

    /// Whether the run has a unique key.
    pub(crate) fn has_key(&self, event: &str, key: &Json) -> bool {
        self.keys.run(event, key).is_some()
    }
}

impl Session<'_> {
    /// Keeps the session.
    pub(crate) fn saved(&self) -> Saved {
        let Session { run, position, snapshot, at, keys, .. } = self.clone();
        Saved { run, position, snapshot, at, keys }
    }
}
