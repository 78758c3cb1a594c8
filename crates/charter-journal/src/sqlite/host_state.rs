//! The table `host_state`: what a host keeps beside the records. It is part of no proof: neither
//! the head of the journal nor an export contains it.

use rusqlite::{Connection, params};

use crate::store::StateChange;

/// The table. A file without it gets it when it is opened for writing.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS host_state(
  area TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY(area, name)
) STRICT, WITHOUT ROWID;
";

/// Whether the table exists. A file that was not opened for writing since has none.
fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'host_state'";
    connection.prepare_cached(table)?.exists([])
}

/// Returns the entries of an area, ordered by name.
pub(super) fn read(connection: &Connection, area: &str) -> rusqlite::Result<Vec<(String, String)>> {
    if !exists(connection)? {
        return Ok(Vec::new());
    }
    let mut select = connection.prepare_cached("SELECT name, value FROM host_state WHERE area = ?1 ORDER BY name")?;
    select.query_map([area], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Writes entries, and removes those without a value.
pub(super) fn write(connection: &Connection, changes: &[StateChange]) -> rusqlite::Result<()> {
    let mut put =
        connection.prepare_cached("INSERT OR REPLACE INTO host_state(area, name, value) VALUES (?1, ?2, ?3)")?;
    let mut delete = connection.prepare_cached("DELETE FROM host_state WHERE area = ?1 AND name = ?2")?;
    for StateChange { area, name, value } in changes {
        match value {
            Some(value) => put.execute(params![area, name, value])?,
            None => delete.execute([area, name])?,
        };
    }
    Ok(())
}
