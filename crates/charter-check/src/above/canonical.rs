//! The form of an abstract state in which equal ones are found again.

use charter_kernel::{Place, Snapshot, Unknowns as _};
use serde_json::Value as Json;

use super::domain;
use super::search::Search;
use super::slice::Depth;
use super::store::{ANYTHING, Store};

impl Search<'_, '_> {
    /// Gives a name to each unknown value that has none.
    pub(super) fn with_unknowns(&self, snapshot: &Snapshot) -> Snapshot {
        let mut snapshot = snapshot.clone();
        snapshot.replace_values(&mut |_, value| (value.as_str() == Some(ANYTHING)).then(|| self.oracle.anything()));
        snapshot
    }

    /// The state with its values in a form in which equal ones are found again.
    pub(super) fn canonical(&self, mut snapshot: Snapshot) -> Option<(Snapshot, Store)> {
        let oracle = &self.oracle;
        let followed = |place: Place| match place {
            Place::Variable(chart, slot) => {
                self.level.variables.get(chart).and_then(|v| v.get(slot)).copied().unwrap_or(Depth::Not)
            }
            Place::Input if self.level.inputs => Depth::All,
            Place::Event | Place::Voter => Depth::All,
            Place::Input | Place::Unread => Depth::Not,
        };
        let mut values = Vec::new();
        snapshot.replace_values(&mut |place, value| {
            values.push(match (followed(place), place) {
                (Depth::Not, Place::Unread) => Json::Null,
                (Depth::Not, _) => Json::from(ANYTHING),
                (depth, _) => {
                    let value = oracle.store.borrow().resolve(value);
                    let value = if depth == Depth::Shape { oracle.shape(value) } else { value };
                    self.constants.blur(oracle, &value, 0)
                }
            });
            None
        });
        let mut store = oracle.store.borrow().compact(&mut values)?;
        store.widen(&|values: &mut domain::Values| self.constants.widen(values));
        let mut values = values.into_iter();
        snapshot.replace_values(&mut |_, _| values.next());
        Some((snapshot, store))
    }
}
