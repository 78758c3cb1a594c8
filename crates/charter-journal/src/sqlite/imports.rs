//! Which records came from another journal, according to the interventions.

use charter_kernel::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::head::{Intervention, has_entry};
use super::schema::WITH_IMPORTS;
use crate::error::StoreError;
use crate::imports::{Imported, KIND};
use crate::record::{GENESIS, timestamp};

/// Number of records among which the newest one that was made here is looked for.
const RECENT: i64 = 256;

/// Whether the file has the table `imports` of an earlier version.
fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'imports'";
    connection.prepare_cached(table)?.exists([])
}

/// Whether the file was not opened for writing since imports are entries of the head.
fn is_former(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(version <= WITH_IMPORTS)
}

/// Returns the time of the newest record that was not imported; `None` if there is none among the
/// last ones.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let own = match (is_former(connection)?, has_table(connection)?) {
        (true, false) => "1",
        (true, true) => "NOT EXISTS (SELECT 1 FROM imports AS i WHERE i.run = r.run AND r.seq < i.records)",
        _ => {
            "NOT EXISTS (SELECT 1 FROM interventions AS i WHERE i.run = r.run AND i.kind = 'imported'
             AND r.seq < CASE json_valid(i.json) WHEN 1 THEN json_extract(i.json, '$.records') END)"
        }
    };
    let last = "SELECT n, run, seq, at FROM records ORDER BY n DESC LIMIT ?1";
    let mut select =
        connection.prepare_cached(&format!("SELECT at FROM ({last}) AS r WHERE {own} ORDER BY n DESC LIMIT 1"))?;
    let at: Option<String> = select.query_row([RECENT], |row| row.get(0)).optional()?;
    // Verification reports a column that does not match its record.
    Ok(at.and_then(|at| timestamp::read(&at)))
}

/// Returns the number of imported records of a run, or why that cannot be told. That there is no
/// entry about an import counts only if the entry before the run is there.
pub(crate) fn imported(connection: &Connection, run: &str) -> rusqlite::Result<Result<u64, StoreError>> {
    if is_former(connection)? {
        return former(connection, run).map(Ok);
    }
    let mut select = connection.prepare_cached("SELECT n FROM records WHERE run = ?1 AND seq = 0")?;
    let Some(first) = select.query_row([run], |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(Ok(0));
    };
    let before = first.saturating_sub(1);
    let unknown = |why: String| {
        StoreError::Damaged(format!("{why}, so whether run `{run}` came from another journal cannot be told"))
    };
    let said = Intervention::newest(connection, KIND, run, before)?;
    if let Some(Err(why)) = Intervention::at(connection, before)?.map(|row| row.proven(connection)).transpose()? {
        return Ok(Err(unknown(why)));
    }
    Ok(match said.map(|row| row.proven(connection)).transpose()? {
        Some(Ok(json)) => Ok(json.get("records").and_then(serde_json::Value::as_u64).unwrap_or(u64::MAX)),
        Some(Err(why)) => Err(unknown(why)),
        None if before == 0 || has_entry(connection, before)? => Ok(0),
        None => Err(unknown("the entry before its first record is missing".to_owned())),
    })
}

/// The same in a file of an earlier version.
fn former(connection: &Connection, run: &str) -> rusqlite::Result<u64> {
    if !has_table(connection)? {
        return Ok(0);
    }
    let mut select = connection.prepare_cached("SELECT records FROM imports WHERE run = ?1")?;
    let records: Option<i64> = select.query_row([run], |row| row.get(0)).optional()?;
    Ok(records.map_or(0, |n| u64::try_from(n).unwrap_or(u64::MAX)))
}

/// What the table `imports` of an earlier version says that no intervention says; `None` if there
/// is no such table.
pub(super) fn left(connection: &Connection) -> rusqlite::Result<Option<Vec<Imported>>> {
    if !has_table(connection)? {
        return Ok(None);
    }
    let mut select = connection.prepare(
        "SELECT run, records FROM imports AS i WHERE records > 0 AND run IN (SELECT run FROM runs)
         AND NOT EXISTS (SELECT 1 FROM interventions AS v WHERE v.run = i.run AND v.kind = ?1) ORDER BY run",
    )?;
    let rows = select.query_map([KIND], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut all = Vec::new();
    for row in rows {
        let (run, records): (String, i64) = row?;
        let last = "SELECT hash, at FROM records WHERE run = ?1 AND seq = ?2";
        let found = connection.query_row(last, params![run, records.saturating_sub(1)], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        });
        let (hash, at) = found.optional()?.unwrap_or_default();
        let hash = charter_kernel::Digest::parse(&hash).unwrap_or(GENESIS);
        all.push(Imported { run, records: u64::try_from(records).unwrap_or(u64::MAX), hash, at });
    }
    Ok(Some(all))
}
