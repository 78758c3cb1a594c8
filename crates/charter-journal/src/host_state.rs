//! What a host keeps in a store beside the records.

use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::places::place_area;
use crate::waiting::waiting_area;

/// Maximum size in bytes of a value that a host keeps beside the records.
pub const MAX_STATE_BYTES: usize = 64 << 10;

/// A change of what a host keeps beside the records ([`crate::Store::put_host_state`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateChange {
    /// What it belongs to.
    pub area: String,
    /// Its name in the area.
    pub name: String,
    /// The new value; `None` removes it.
    pub value: Option<String>,
}

/// The areas of what is kept of a run.
pub(crate) fn areas(run: &str) -> [String; 2] {
    [place_area(run), waiting_area(run)]
}

/// Checks the sizes of changes.
pub(crate) fn check_changes(changes: &[StateChange]) -> Result<(), StoreError> {
    let size = |c: &StateChange| c.value.as_ref().map_or(0, String::len).max(c.area.len()).max(c.name.len());
    match changes.iter().find(|change| size(change) > MAX_STATE_BYTES) {
        Some(StateChange { area, .. }) => {
            let area: String = area.chars().take(100).collect();
            let reason = format!("a value of `{area}` has more than {MAX_STATE_BYTES} bytes");
            Err(StoreError::NotWritten { reason })
        }
        None => Ok(()),
    }
}
