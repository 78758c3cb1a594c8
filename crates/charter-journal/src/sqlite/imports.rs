//! The table `imports`: runs that came from another journal.

use charter_kernel::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use crate::record::timestamp;

/// The table. Files that pre-releases made after the journal had a head, and before it knew of
/// imports, get it when they are opened for writing.
pub(crate) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS imports(
  run TEXT NOT NULL PRIMARY KEY,
  records INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// The tables that files of the current version may be without, because they came later. They are
/// created when such a file is opened for writing.
pub(super) fn added() -> String {
    [TABLE, super::host_state::TABLE].concat()
}

/// Number of records among which the newest one that was made here is looked for.
const RECENT: i64 = 256;

/// Whether the table exists. A file of an earlier version that was not opened for writing since has
/// none.
fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'imports'";
    connection.prepare_cached(table)?.exists([])
}

/// Returns the time of the newest record that was not imported; `None` if there is none among the
/// last ones.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let own = match exists(connection)? {
        true => "NOT EXISTS (SELECT 1 FROM imports AS i WHERE i.run = r.run AND r.seq < i.records)",
        false => "1",
    };
    let last = "SELECT n, run, seq, at FROM records ORDER BY n DESC LIMIT ?1";
    let mut select =
        connection.prepare_cached(&format!("SELECT at FROM ({last}) AS r WHERE {own} ORDER BY n DESC LIMIT 1"))?;
    let at: Option<String> = select.query_row([RECENT], |row| row.get(0)).optional()?;
    // Verification reports a column that does not match its record.
    Ok(at.and_then(|at| timestamp::read(&at)))
}

/// Returns the number of imported records of a run.
pub(crate) fn imported(connection: &Connection, run: &str) -> rusqlite::Result<u64> {
    if !exists(connection)? {
        return Ok(0);
    }
    let mut select = connection.prepare_cached("SELECT records FROM imports WHERE run = ?1")?;
    let records: Option<i64> = select.query_row([run], |row| row.get(0)).optional()?;
    Ok(records.map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX)))
}
