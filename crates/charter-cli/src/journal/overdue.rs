//! Timers that are due while no process has the journal open, so that nobody fires them.

use std::collections::BTreeMap;

use charter_journal::{Origin, RunInfo, Store};
use charter_kernel::Timestamp;

use super::Db;
use super::access::holder_of;
use super::text::when;
use crate::io::Failure;
use crate::run::follow::now;

/// Upper limit of the timers that are read.
const MAX_TIMERS: usize = 1_000_000;

/// Whether a journal file has no holder. Must be called before the file is opened.
pub(crate) fn has_no_holder(db: &Db) -> bool {
    // If it is not known whether there is a holder, nothing is reported.
    matches!(db.remote(), Ok(None)) && matches!(holder_of(&db.db), Ok(None))
}

/// Returns the time of the first overdue timer of each run.
pub(crate) fn overdue(store: &dyn Store, has_no_holder: bool) -> Result<BTreeMap<String, Timestamp>, Failure> {
    let mut first = BTreeMap::new();
    if has_no_holder {
        for timer in store.pending_timers(now(), MAX_TIMERS)? {
            // The earliest timers come first.
            first.entry(timer.run).or_insert(timer.due);
        }
    }
    let mut still = Vec::new();
    for run in first.keys() {
        if let Some(info) = store.run(run)?
            && stands_still(&info, charter_journal::origin(store, run)?.as_ref())
        {
            still.push(run.clone());
        }
    }
    first.retain(|run, _| !still.contains(run));
    Ok(first)
}

/// Whether a run is a fork without a record of its own: no time has passed for it.
pub(crate) fn stands_still(run: &RunInfo, origin: Option<&Origin<'_>>) -> bool {
    origin.is_some_and(|origin| origin.seq == run.seq)
}

/// Says of a run with an overdue timer that what it accepts now may change before an event arrives.
pub(crate) fn warning(due: Timestamp) -> String {
    format!("overdue since {}: a timer fires before the next event, which may change what is legal", when(due))
}
