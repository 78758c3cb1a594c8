//! Where the charter of each run was read: the folder in which its actors work. It is kept beside
//! the records and part of no proof: the manifest decides which programs run there.

use crate::error::StoreError;
use crate::host_state::StateChange;
use crate::store::Store;

/// Begins the area of a run in what a host keeps beside the records; the id of the run follows.
pub(crate) const AREA: &str = "place/";
/// The name of the entry.
pub(crate) const NAME: &str = "charter";

/// Returns the name that the charter of a run had where the run was started, or where somebody has
/// moved it ([`StoredCharter::name`](crate::StoredCharter::name)). `None` if the run has no place
/// of its own: it came from another journal and nobody has allowed it, or it is from an earlier
/// version. Then the name with which the charter was last stored counts.
///
/// # Errors
/// The store cannot be read.
pub fn place(store: &dyn Store, run: &str) -> Result<Option<String>, StoreError> {
    Ok(store.host_state(&place_area(run))?.pop().map(|(_, name)| name))
}

/// The area of the place of a run ([`Store::host_state`]).
#[must_use]
pub fn place_area(run: &str) -> String {
    format!("{AREA}{run}")
}

/// The change that moves a run ([`Store::put_host_state`]) to where its charter has this name.
#[must_use]
pub fn move_run(run: &str, name: &str) -> StateChange {
    StateChange { area: place_area(run), name: NAME.into(), value: Some(name.into()) }
}

/// The run that a change moves, if it moves one.
#[must_use]
pub fn moved_run(change: &StateChange) -> Option<&str> {
    change.area.strip_prefix(AREA)
}
