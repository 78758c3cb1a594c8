//! Which attempts of calls have not begun: those that wait for the pause after a failed one, or for
//! somebody who lets the actors of a run work. It is kept beside the records and part of no proof.
//!
//! If a host ends while it makes an attempt, nobody knows whether it took effect. So whether one
//! has begun has to survive the host: the entry of an attempt is removed before it begins.

use std::collections::BTreeMap;

use charter_kernel::EffectId;

use crate::error::StoreError;
use crate::host_state::StateChange;
use crate::store::Store;

/// Begins the area of a run in what a host keeps beside the records; the id of the run follows.
const AREA: &str = "waiting/";

/// Returns the next attempts of a run that have certainly not begun, by effect.
///
/// # Errors
/// The store cannot be read.
pub fn waiting_attempts(store: &dyn Store, run: &str) -> Result<BTreeMap<EffectId, u32>, StoreError> {
    let entries = store.host_state(&waiting_area(run))?;
    Ok(entries.iter().filter_map(|(effect, attempt)| Some((EffectId::parse(effect)?, attempt.parse().ok()?))).collect())
}

/// The area of the waiting attempts of a run ([`Store::host_state`]).
pub(crate) fn waiting_area(run: &str) -> String {
    format!("{AREA}{run}")
}

/// The change that notes that an attempt waits, or with `None`, that it begins.
#[must_use]
pub fn attempt_waits(run: &str, effect: EffectId, attempt: Option<u32>) -> StateChange {
    let name = format!("{}/{}", effect.seq, effect.index);
    StateChange { area: waiting_area(run), name, value: attempt.map(|attempt| attempt.to_string()) }
}
