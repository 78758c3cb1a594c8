//! Data to try for an event of a run: what an exploration would try in its state.

use std::sync::Arc;

use charter_kernel::definition::Require;
use charter_kernel::{EntryStatus, Machine, Snapshot, Timestamp};
use serde_json::Value as Json;

use super::cone::cone_of_influence;
use super::data::set;
use super::moves::Moves;
use crate::model::{Model, Trigger, matches};
use crate::{Options, tree};

/// Upper limit of the keys of the ledger that are tried, and of the data with each of them.
const MAX_KEYS: usize = 8;

/// Returns data for an event to an actor of a run, as an exploration tries it: what the conditions
/// of the charter can distinguish, with values and keys of the run. The kernel may refuse it.
#[must_use]
pub fn event_data(machine: &Machine, snapshot: &Snapshot, to: &str, event: &str, now: Timestamp) -> Vec<Json> {
    let model = Model::new(machine.definition(), machine);
    let cone = cone_of_influence(&model);
    let options = Options::default();
    let all = Moves::new(&model, &cone, &options).data_for(event, snapshot, to, now.0);
    let mut all: Vec<Json> = all.into_iter().map(Arc::unwrap_or_clone).collect();
    for (path, key) in keys(&model, snapshot, event) {
        let mut with_key: Vec<Json> = all.iter().take(MAX_KEYS).cloned().collect();
        with_key.iter_mut().for_each(|data| set(data, &path, Some(key.clone())));
        all.extend(with_key);
    }
    all
}

/// The keys of the ledger that the event may name where a transition requires an entry, with the
/// path of the field.
fn keys(model: &Model<'_>, snapshot: &Snapshot, event: &str) -> Vec<(Vec<String>, Json)> {
    let named = |t: &&crate::model::Transition<'_>| match t.trigger {
        Trigger::On(descriptors) => descriptors.iter().any(|descriptor| matches(descriptor, event)),
        _ => false,
    };
    let mut found = Vec::new();
    for t in model.charts.iter().flat_map(|chart| &chart.transitions).filter(named) {
        for require in &t.def.requires {
            let (kind, key, is_usable): (_, _, fn(EntryStatus) -> bool) = match require {
                Require::Use { kind, key, .. } => (kind, key, |status| status == EntryStatus::Granted),
                Require::Open { kind, key, .. } => {
                    (kind, key, |status| matches!(status, EntryStatus::Open | EntryStatus::Overdue))
                }
                Require::None { .. } => continue,
            };
            let path = |cel: &str| tree::path_of(charter_expr::parse(cel).ok()?.root());
            let paths = Model::cels(key).into_iter().filter_map(path).filter(|(root, _)| root == "event");
            let entries = snapshot.ledger().into_iter().flat_map(|ledger| ledger.entries());
            let usable = entries.filter(|(of, _, entry)| *of == kind.as_str() && is_usable(entry.status));
            let usable: Vec<Json> = usable.take(MAX_KEYS).map(|(_, key, _)| Json::from(key)).collect();
            found.extend(paths.flat_map(|(_, path)| usable.iter().map(move |key| (path.clone(), key.clone()))));
        }
    }
    found
}
