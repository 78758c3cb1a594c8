//! Checks the interventions of a file.

use std::collections::BTreeMap;

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
    let mut said: BTreeMap<String, Vec<i64>> = BTreeMap::new();
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
                said.entry(run.clone()).or_default().push(count);
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
    deleted_problems(connection, &mut said, &mut check.problems)
}

/// Compares the records that are listed as deleted with the numbers of records of the deletions of
/// each run.
fn deleted_problems(
    connection: &Connection,
    said: &mut BTreeMap<String, Vec<i64>>,
    problems: &mut Vec<String>,
) -> rusqlite::Result<()> {
    let mut listed: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let mut select = connection.prepare("SELECT run, seq FROM deleted ORDER BY n")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        listed.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    for run in listed.keys() {
        said.entry(run.clone()).or_default();
    }
    for (run, counts) in said {
        let listed = listed.remove(run).unwrap_or_default();
        let count = counts.iter().fold(0i64, |sum, count| sum.saturating_add(*count));
        let has = i64::try_from(listed.len()).unwrap_or(i64::MAX);
        let problem = match count == has {
            false => format!("{count} records of run `{run}` were deleted, but {has} are listed as deleted"),
            true if listed.into_iter().eq(counts.iter().flat_map(|count| 0..*count)) => continue,
            true => format!("the deleted records of run `{run}` are not listed with the numbers that they had"),
        };
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
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
