//! The table `imports`: runs that came from another journal.

use rusqlite::{Connection, OptionalExtension as _};

/// Returns the number of imported records of a run.
pub(crate) fn imported(connection: &Connection, run: &str) -> rusqlite::Result<u64> {
    // A file of an earlier version that was not opened for writing since has no such table.
    let exists = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'imports'";
    if !connection.prepare_cached(exists)?.exists([])? {
        return Ok(0);
    }
    let mut select = connection.prepare_cached("SELECT records FROM imports WHERE run = ?1")?;
    let records: Option<i64> = select.query_row([run], |row| row.get(0)).optional()?;
    Ok(records.map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX)))
}
