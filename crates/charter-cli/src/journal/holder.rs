//! Says how to see the run that has the unique key of a refused event, or that it was deleted.

use charter_journal::Record;
use charter_kernel::Cause;

use super::Db;
use super::text::clean;

/// What to do about a key that another run has; `None` if the event was refused for another reason.
/// `exists` tells whether the journal has a run.
pub(crate) fn of_key(record: &Record, db: &Db, exists: impl FnOnce(&str) -> bool) -> Option<String> {
    let Some(Cause::Taken { run, .. }) = &record.refusal.as_ref()?.cause else {
        return None;
    };
    Some(match exists(run) {
        true => format!("`charter show {run}{}` shows that run", db.option()),
        false => {
            let deleted = db.deleted(run).unwrap_or_else(|| format!("run `{}` was deleted", clean(run)));
            format!("{deleted}; its keys stay taken")
        }
    })
}
