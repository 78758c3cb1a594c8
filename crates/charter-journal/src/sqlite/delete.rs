//! Deletes a run that has ended: its records, snapshots, projections, and the blobs that nothing
//! else names. The hashes of its records stay, because the head of the journal includes them; its
//! unique keys stay, because no other run may have them.

use std::collections::BTreeSet;

use charter_kernel::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::head::Intervention;
use super::host_state;
use super::keys;
use super::schema::TABLES;
use super::unnamed::Unnamed;
use super::usage;
use super::write::Unwritten;
use crate::error::StoreError;
use crate::record::timestamp;
use crate::store::Append;

/// Length of `sha256:` and 64 hex digits.
const DIGEST: usize = 71;

/// How many ids are tried to name a free one.
const MAX_TRIED: u32 = 100;

/// The deletion of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The run.
    pub run: String,
    /// The reason, for the journal.
    pub reason: String,
    /// Who deletes it.
    pub by: String,
    /// The time.
    pub at: Timestamp,
}

/// The last deletion of a run.
pub(super) fn last(connection: &Connection, run: &str) -> rusqlite::Result<Option<Deletion>> {
    let select = "SELECT json_extract(json, '$.by'), reason, at FROM interventions \
        WHERE kind = 'deleted' AND run = ?1 ORDER BY n DESC LIMIT 1";
    let row = connection.query_row(select, [run], |row| {
        let (by, reason, at): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let at = timestamp::read(&at).unwrap_or_default();
        Ok(Deletion { run: run.to_owned(), reason, by, at })
    });
    row.optional()
}

/// Returns why a batch that starts a run is refused: a deleted run had this id. Only that run
/// itself may have it again, by an import that leaves out nothing that could happen a second time.
pub(super) fn reserved(connection: &Connection, batch: &[Append], run: &str) -> rusqlite::Result<Option<StoreError>> {
    let Some(deletion) = last(connection, run)? else {
        return Ok(None);
    };
    let of_run = || batch.iter().filter(|append| append.record.run == run);
    let help = match of_run().all(|append| append.imported) {
        false => match free(connection, run)? {
            Some(free) => format!("choose another one, for example `{free}`"),
            None => "choose another one".to_owned(),
        },
        true => {
            let mut select =
                connection.prepare_cached("SELECT seq, hash FROM deleted WHERE run = ?1 ORDER BY n DESC LIMIT 1")?;
            let deleted: Option<(i64, String)> =
                select.query_row([run], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            let Some((seq, hash)) = deleted else {
                return Ok(None);
            };
            let is_last = |append: &&Append| i64::try_from(append.record.seq) == Ok(seq);
            if of_run().find(is_last).is_some_and(|append| append.record.hash.to_string() == hash) {
                return Ok(None);
            }
            format!(
                "only an export that ends with, or goes on after, its record {seq} with the hash {hash} is imported under this id"
            )
        }
    };
    Ok(Some(StoreError::RunDeleted { run: run.to_owned(), at: timestamp::text(deletion.at), help }))
}

/// An id like this one that no run has or had.
fn free(connection: &Connection, run: &str) -> rusqlite::Result<Option<String>> {
    let mut select = connection.prepare_cached(
        "SELECT 1 WHERE ?1 IN (SELECT run FROM runs) OR EXISTS (SELECT 1 FROM interventions WHERE run = ?1)",
    )?;
    for n in 2..=MAX_TRIED {
        let id = format!("{run}-{n}");
        if !select.exists([&id])? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Deletes a run within a transaction.
pub(super) fn run(connection: &Connection, deletion: &Deletion, unnamed: &Unnamed) -> Result<Intervention, Unwritten> {
    let run = deletion.run.as_str();
    let found: Option<(String, String)> = connection
        .query_row("SELECT status, hash FROM runs WHERE run = ?1", [run], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((status, hash)) = found else {
        return Err(Unwritten::Refused(StoreError::UnknownRun(run.into())));
    };
    if matches!(status.as_str(), "active" | "paused") {
        return Err(Unwritten::Refused(StoreError::NotFinished { run: run.into(), status }));
    }
    // What is deleted is overwritten in the file, not only unlinked.
    connection.pragma_update(None, "secure_delete", true)?;
    let named = named_blobs(connection, run, usage::delete(connection, run)?)?;
    let keys = keys::of_run(connection, run)?;
    let insert = "INSERT INTO deleted(n, run, seq, hash) SELECT n, run, seq, hash FROM records WHERE run = ?1";
    let records = connection.execute(insert, [run])?;
    let projections = TABLES.iter().map(|(table, _)| *table);
    for table in projections.chain(["records", "snapshots", "event_ids", "runs"]) {
        connection.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run])?;
    }
    host_state::forget(connection, run)?;
    let waiting = named.iter().filter(|digest| unnamed.contains(digest)).cloned().collect();
    let kept = kept_blobs(connection, &named, waiting)?;
    for digest in named.difference(&kept) {
        connection.execute("DELETE FROM blobs WHERE digest = ?1", params![digest])?;
    }
    connection.pragma_update(None, "secure_delete", false)?;
    Ok(Intervention::deleted(deletion, i64::try_from(records).unwrap_or(i64::MAX), &hash, keys))
}

/// The blobs that a run names, its exchanges with models among them, and those that these blobs
/// name.
fn named_blobs(connection: &Connection, run: &str, exchanges: Vec<String>) -> rusqlite::Result<BTreeSet<String>> {
    let mut candidates = BTreeSet::from_iter(exchanges);
    let mut select = connection.prepare("SELECT json FROM records WHERE run = ?1")?;
    let mut rows = select.query([run])?;
    while let Some(row) = rows.next()? {
        digests(row.get_ref(0)?.as_bytes()?, &mut candidates);
    }
    let mut blob = connection.prepare("SELECT data FROM blobs WHERE digest = ?1")?;
    let mut named = BTreeSet::new();
    while let Some(digest) = candidates.pop_first() {
        let mut rows = blob.query([&digest])?;
        let Some(row) = rows.next()? else {
            continue;
        };
        let mut inner = BTreeSet::new();
        digests(row.get_ref(0)?.as_bytes()?, &mut inner);
        named.insert(digest);
        candidates.extend(inner.difference(&named).cloned());
    }
    Ok(named)
}

/// Those of these blobs that the remaining records, charters and blobs name, and those in `kept`.
fn kept_blobs(
    connection: &Connection,
    named: &BTreeSet<String>,
    mut kept: BTreeSet<String>,
) -> rusqlite::Result<BTreeSet<String>> {
    if named.is_empty() {
        return Ok(kept);
    }
    let mut found = BTreeSet::new();
    for sql in ["SELECT json FROM records", "SELECT core FROM charters"] {
        let mut select = connection.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            digests(row.get_ref(0)?.as_bytes()?, &mut found);
            kept.extend(found.intersection(named).cloned());
            found.clear();
        }
    }
    // Blobs that stay keep what they name.
    let mut select = connection.prepare("SELECT digest, data FROM blobs")?;
    loop {
        let before = kept.len();
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let digest = row.get_ref(0)?.as_str()?;
            if !named.contains(digest) || kept.contains(digest) {
                digests(row.get_ref(1)?.as_bytes()?, &mut found);
                kept.extend(found.intersection(named).cloned());
                found.clear();
            }
        }
        if kept.len() == before {
            return Ok(kept);
        }
    }
}

/// Collects what looks like a digest.
pub(super) fn digests(text: &[u8], out: &mut BTreeSet<String>) {
    for at in memchr::memmem::find_iter(text, b"sha256:") {
        let digest = text.get(at..at.saturating_add(DIGEST)).and_then(|bytes| std::str::from_utf8(bytes).ok());
        out.extend(digest.filter(|d| charter_kernel::Digest::parse(d).is_some()).map(str::to_owned));
    }
}
