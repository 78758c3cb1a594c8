//! The table `host_state`: what a host keeps beside the records. It is part of no proof: neither
//! the head of the journal nor an export contains it.

use rusqlite::{Connection, params};

use crate::host_state::areas;
use crate::places::{AREA, NAME};
use crate::store::{StateChange, StoredCharter};

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

/// Forgets what was kept of a run that is deleted, or of an earlier one with the id of a new run.
pub(super) fn forget(connection: &Connection, run: &str) -> rusqlite::Result<()> {
    let mut delete = connection.prepare_cached("DELETE FROM host_state WHERE area = ?1")?;
    areas(run).iter().try_for_each(|area| delete.execute([area]).map(drop))
}

/// Forgets which attempts wait: in an older copy of a journal, they may have begun since.
pub(super) fn forget_waiting(connection: &Connection) -> rusqlite::Result<()> {
    if exists(connection)? {
        connection.execute("DELETE FROM host_state WHERE area GLOB 'waiting/*'", [])?;
    }
    Ok(())
}

/// Keeps where a charter was read for the runs under way that an earlier version has started,
/// before another place replaces it. A run that was imported has no place before it is given one.
pub(super) fn keep_places(connection: &Connection, charter: &StoredCharter) -> rusqlite::Result<()> {
    let mut keep = connection.prepare_cached(
        "INSERT OR IGNORE INTO host_state(area, name, value) SELECT ?1 || r.run, ?2, c.name
         FROM charters AS c CROSS JOIN runs AS r ON r.charter = c.digest
         WHERE c.digest = ?3 AND c.name <> ?4 AND r.status IN ('active', 'paused')
         AND NOT EXISTS (SELECT 1 FROM interventions AS i WHERE i.run = r.run AND i.kind = 'imported')",
    )?;
    keep.execute(params![AREA, NAME, charter.digest.to_string(), charter.name]).map(drop)
}
