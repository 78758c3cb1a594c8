//! Where the charter of a run was read, if its charter was read elsewhere since. Part of no proof:
//! it only says where a host looks for programs, which it compares with the manifest.

use crate::error::StoreError;
use crate::host_state::StateChange;
use crate::store::Store;

/// Begins the area of a run in what a host keeps beside the records; the id of the run follows.
pub(crate) const AREA: &str = "place/";
/// The name of the entry.
pub(crate) const NAME: &str = "charter";

/// Whether a name of a charter says where it is: a path, or a bundled charter.
pub(crate) fn is_place(name: &str) -> bool {
    name.contains(['/', '\\'])
}

/// Returns the name that the charter of a run had when the run started, if the store has another
/// one for the charter since: the same charter was read elsewhere.
///
/// # Errors
/// The store cannot be read.
pub fn place(store: &dyn Store, run: &str) -> Result<Option<String>, StoreError> {
    Ok(store.host_state(&format!("{AREA}{run}"))?.pop().map(|(_, name)| name))
}

/// Gives a fork the place of its origin.
pub(crate) fn share(store: &dyn Store, origin: &str, fork: &str) -> Result<(), StoreError> {
    match place(store, origin)? {
        Some(name) => {
            let area = format!("{AREA}{fork}");
            store.put_host_state(vec![StateChange { area, name: NAME.into(), value: Some(name) }])
        }
        None => Ok(()),
    }
}
