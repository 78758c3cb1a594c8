//! Checks the interventions of a file.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value as Json;

use super::compare::MAX_PROBLEMS;
use super::entries::{self, Row, changed};
use crate::head::HeadCheck;
use crate::imports::KIND;
use crate::sqlite::schema::WITH_IMPORTS;

/// Maximum number of imported runs that a remark names.
const MAX_NAMED: usize = 5;

/// Returns what is wrong with the interventions since a head was accepted for the last time: one is
/// missing, was changed, or is not one that the head includes. Reads only them and the heads beside
/// them.
pub(super) fn problem(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version <= WITH_IMPORTS {
        return Ok(None);
    }
    let accepted = "SELECT n FROM interventions WHERE kind = 'accepted-head' ORDER BY n DESC LIMIT 1";
    let from: i64 = connection.query_row(accepted, [], |row| row.get(0)).optional()?.unwrap_or(0);
    let Some(begin) = entries::stored_at(connection, from)? else {
        return Ok(Some(format!("the head after the intervention at position {from} is missing")));
    };
    let mut counted = 0u64;
    let mut select =
        connection.prepare("SELECT n, at, kind, run, reason, hash, json FROM interventions WHERE n > ?1 ORDER BY n")?;
    let mut rows = select.query([from])?;
    while let Some(row) = rows.next()? {
        let row = Row::read(row)?;
        counted = counted.saturating_add(1);
        if let Err(why) = row.proven(connection)? {
            return Ok(Some(why));
        }
    }
    let end = entries::position(connection)?.head;
    let expected = end.entries.saturating_sub(end.records).saturating_sub(begin.entries.saturating_sub(begin.records));
    Ok((counted != expected).then(|| {
        format!("the head includes {expected} interventions (deletions, imports), but the file has {counted}")
    }))
}

/// Checks the interventions, and reports them.
pub(super) fn check(connection: &Connection, check: &mut HeadCheck) -> rusqlite::Result<()> {
    if !entries::has_tables(connection)? {
        return Ok(());
    }
    let mut said: BTreeMap<String, i64> = BTreeMap::new();
    let mut imported: Vec<String> = Vec::new();
    let mut select = connection.prepare("SELECT n, at, kind, run, reason, hash, json FROM interventions ORDER BY n")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let row = Row::read(row)?;
        let content = match row.content() {
            Ok(content) => content,
            Err(n) => {
                check.problems.push(changed(n));
                continue;
            }
        };
        let Row { at, kind, run, reason, .. } = row;
        match (kind.as_str(), run) {
            ("deleted", Some(run)) => {
                let count = content.get("records").and_then(Json::as_i64).unwrap_or_default();
                let total = said.entry(run.clone()).or_insert(0i64);
                *total = total.saturating_add(count);
                check.remarks.push(format!("run `{run}` was deleted at {at}: {reason}"));
            }
            (KIND, Some(run)) => {
                check.problems.extend(differs(connection, &run, row.n, &content)?);
                imported.push(run);
            }
            ("accepted-head", _) => {
                check.remarks.push(format!("at {at}, a head that did not match was accepted: {reason}"));
            }
            (other, _) => check.remarks.push(format!("`{other}` at {at}: {reason}")),
        }
    }
    check.remarks.extend(came(&imported));
    let mut select = connection.prepare("SELECT run, count(*) FROM deleted GROUP BY run ORDER BY run")?;
    let deleted = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let deleted: BTreeMap<String, i64> = deleted.collect::<rusqlite::Result<_>>()?;
    for run in said.keys().chain(deleted.keys()).collect::<BTreeSet<_>>() {
        let [said, has] = [&said, &deleted].map(|all| all.get(run).copied().unwrap_or_default());
        if said != has && check.problems.len() < MAX_PROBLEMS {
            check.problems.push(format!("{said} records of run `{run}` were deleted, but {has} are listed as deleted"));
        }
    }
    Ok(())
}

/// Compares an intervention about an import with the records.
fn differs(connection: &Connection, run: &str, n: i64, content: &Json) -> rusqlite::Result<Option<String>> {
    let last = content.get("records").and_then(Json::as_i64).unwrap_or_default().saturating_sub(1);
    let hash = content.get("hash").and_then(Json::as_str).unwrap_or_default();
    // The run may have been deleted since, and imported again.
    let sql = "SELECT 1 FROM records WHERE run = ?1 AND seq = ?2 AND hash = ?3
        UNION ALL SELECT 1 FROM deleted WHERE run = ?1 AND seq = ?2 AND hash = ?3";
    let same = connection.prepare_cached(sql)?.exists((run, last, hash))?;
    Ok((!same).then(|| {
        format!("according to the intervention at position {n}, run `{run}` came with record {last} and the hash {hash}, but it has no such record")
    }))
}

/// Says which runs came from another journal.
fn came(runs: &[String]) -> Option<String> {
    let named: Vec<String> = runs.iter().take(MAX_NAMED).map(|run| format!("`{run}`")).collect();
    let more = match runs.len().saturating_sub(named.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let s = if runs.len() == 1 { "run" } else { "runs" };
    (!runs.is_empty()).then(|| format!("from another journal came the {s} {}{more}", named.join(", ")))
}
