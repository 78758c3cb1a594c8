//! The ids that senders chose for their events: the table `event_ids`, and what the writer
//! remembers of it.
//!
//! A record with an id must be found by it forever, but a row per record in a keyed table would
//! dirty one more page per run in each commit. So the rows are added in bulk, from the records
//! themselves: `event_ids` has the ids of the records up to a position (`event_ids_until`), which
//! is stored in the same transaction. Later records are read when an id is looked up.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

use rusqlite::{Connection, OptionalExtension as _, params};
use rustc_hash::FxHashSet;

use super::writer::harmless;
use crate::error::StoreError;

/// The tables, by name. Both can be rebuilt from the records.
pub(super) const TABLES: [(&str, &str); 2] = [
    (
        "event_ids",
        "CREATE TABLE event_ids(
  run TEXT NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY(run, id)
) STRICT, WITHOUT ROWID",
    ),
    ("event_ids_until", "CREATE TABLE event_ids_until(n INTEGER NOT NULL) STRICT"),
];

/// The index that files had before these tables.
pub(super) const FORMER_INDEX: &str = "records_id";

/// Ids that are added to the table together. More of them make larger pauses and slower look-ups of
/// ids that are not in the table yet; fewer make more writes per id.
const AT_ONCE: u64 = 4_096;

/// How many records may be stored after the position for each id that may be.
const RECORDS_PER_ID: u64 = 4;

/// The number of records after the position at which they are added when the file is closed.
const AT_CLOSE: u64 = 256;

/// Maximum number of ids whose hashes are kept.
const MAX_SEEN: usize = 400_000;

/// Maximum number of ids that are read until `MAX_SEEN` have been seen: at most one is read for
/// each that is added, on average.
const MAX_LOADED: i64 = 200_000;

/// Maximum number of ids that are read to know all ids of a run.
const MAX_OF_RUN: i64 = 4_096;

/// Maximum number of records that are read to know the ids after the position.
const MAX_TAIL: i64 = 65_536;

/// What the writer remembers of the ids, so that most new ids are recognized as new without reading
/// the file. It may hold ids of records that were rolled back or deleted: these cost a look-up.
pub(super) struct Ids {
    at_once: u64,
    keys: RandomState,
    /// Hashes of runs with their ids: all ids of the runs in `complete`, and, with `tail_seen`, all
    /// ids after the position.
    seen: FxHashSet<u64>,
    tail_seen: bool,
    complete: FxHashSet<String>,
    /// Ids that were read from the file since `seen` was last cleared.
    loaded: i64,
    /// Records and ids after the position, at most.
    records: u64,
    ids: u64,
}

impl Ids {
    /// Prepares a file for writing: creates and fills the tables if it has none yet. `at_once` is
    /// the number of ids that are added together; 0 means the default.
    pub(super) fn open(connection: &Connection, at_once: u64) -> rusqlite::Result<Ids> {
        if !exist(connection)? {
            in_transaction(connection, || create_in_journal(connection))?;
        }
        let end = end(connection)?;
        let position = match position(connection)? {
            // Records were deleted from the end: later ones must not be taken for those.
            position if position > end => {
                in_transaction(connection, || set_position(connection, end))?;
                end
            }
            position => position,
        };
        let behind = end.saturating_sub(position).unsigned_abs();
        let mut ids = Ids {
            at_once: if at_once == 0 { AT_ONCE } else { at_once },
            keys: RandomState::new(),
            seen: FxHashSet::default(),
            tail_seen: behind == 0,
            complete: FxHashSet::default(),
            loaded: 0,
            records: behind,
            ids: behind,
        };
        match ids.poll(connection) {
            Err(e) if harmless(&e).is_none() => Err(e),
            _ => Ok(ids),
        }
    }

    /// Returns the record of a run that has an id, or notes the id. `is_new`: the run has no
    /// records yet.
    pub(super) fn note(
        &mut self,
        connection: &Connection,
        run: &str,
        id: &str,
        is_new: bool,
    ) -> rusqlite::Result<Result<Option<u64>, StoreError>> {
        self.ids = self.ids.saturating_add(1);
        let known = is_new || self.complete.contains(run) || self.load(connection, run)?;
        let hash = self.hash(run, id);
        match self.seen.insert(hash) {
            _ if is_new => Ok(Ok(None)),
            true if known => Ok(Ok(None)),
            true if self.tail_seen => in_table(connection, run, id),
            _ => find(connection, run, id),
        }
    }

    /// Counts a record, with or without an id.
    pub(super) fn count(&mut self) {
        self.records = self.records.saturating_add(1);
    }

    /// Forgets what was read from the tables, because they are about to change.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
        self.complete.clear();
        (self.tail_seen, self.loaded) = (false, 0);
    }

    /// Adds the ids of the latest records to the table if there are many. Must be called between
    /// transactions. If it fails, the file is as before, and a later call tries again.
    pub(super) fn poll(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.seen.len() >= MAX_SEEN {
            self.forget();
        }
        let most = self.at_once.saturating_mul(RECORDS_PER_ID);
        if self.ids < self.at_once && self.records < most {
            return Ok(());
        }
        self.add(connection)
    }

    /// Adds the ids of the latest records to the table, so that the next opening finds them there.
    pub(super) fn close(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        match self.records < AT_CLOSE.min(self.at_once) {
            true => Ok(()),
            false => self.add(connection),
        }
    }

    fn add(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let has_ids = self.ids > 0;
        // Also after a failure: the next attempt is due after as many records again.
        (self.records, self.ids) = (0, 0);
        let added = in_transaction(connection, || match has_ids {
            true => fill(connection),
            false => set_position(connection, end(connection)?),
        });
        match added {
            Ok(()) => self.tail_seen = true,
            // There may be records with ids after the position.
            Err(_) => self.ids = 1,
        }
        added
    }

    /// Reads the ids of a run if they are not too many. Returns whether all are in `seen`.
    fn load(&mut self, connection: &Connection, run: &str) -> rusqlite::Result<bool> {
        if self.loaded >= MAX_LOADED {
            return Ok(false);
        }
        if !self.tail_seen {
            self.load_tail(connection)?;
            if !self.tail_seen {
                return Ok(false);
            }
        }
        let mut select = connection.prepare_cached("SELECT id FROM event_ids WHERE run = ?1 LIMIT ?2")?;
        let mut rows = select.query(params![run, MAX_OF_RUN.saturating_add(1)])?;
        let mut count = 0i64;
        while let Some(row) = rows.next()? {
            self.seen.insert(self.hash(run, row.get_ref(0)?.as_str()?));
            count = count.saturating_add(1);
        }
        self.loaded = self.loaded.saturating_add(count).saturating_add(1);
        let all = count <= MAX_OF_RUN;
        if all {
            self.complete.insert(run.to_owned());
        }
        Ok(all)
    }

    fn load_tail(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut select = connection.prepare_cached("SELECT run, id FROM records WHERE n > ?1 ORDER BY n LIMIT ?2")?;
        let mut rows = select.query([position(connection)?, MAX_TAIL])?;
        let mut count = 0i64;
        while let Some(row) = rows.next()? {
            self.seen.insert(self.hash(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?));
            count = count.saturating_add(1);
        }
        self.loaded = self.loaded.saturating_add(count);
        self.tail_seen = count < MAX_TAIL;
        Ok(())
    }

    fn hash(&self, run: &str, id: &str) -> u64 {
        self.keys.hash_one((run, id))
    }
}

/// Returns the number of the first record of a run that has an id. Must be called within a
/// transaction.
pub(super) fn find(connection: &Connection, run: &str, id: &str) -> rusqlite::Result<Result<Option<u64>, StoreError>> {
    let position = if exist(connection)? {
        match in_table(connection, run, id)? {
            Ok(None) => position(connection)?,
            found => return Ok(found),
        }
    } else {
        i64::MIN
    };
    let mut select = connection.prepare_cached("SELECT n, seq, id FROM records WHERE run = ?1 ORDER BY seq DESC")?;
    let mut rows = select.query([run])?;
    let mut first = None;
    while let Some(row) = rows.next()? {
        if row.get::<_, i64>(0)? <= position {
            break;
        }
        let seq: i64 = row.get(1)?;
        if row.get_ref(2)?.as_str()? == id && !is_own(run, id, seq) {
            first = u64::try_from(seq).ok();
        }
    }
    Ok(Ok(first))
}

/// Whether an id is not one that a sender chose.
fn is_own(run: &str, id: &str, seq: i64) -> bool {
    id.strip_prefix(run).and_then(|rest| rest.strip_prefix('/')).is_some_and(|rest| rest == seq.to_string())
}

/// Looks for an id in the table.
fn in_table(connection: &Connection, run: &str, id: &str) -> rusqlite::Result<Result<Option<u64>, StoreError>> {
    let mut select = connection.prepare_cached(
        "SELECT i.seq, r.id IS i.id FROM event_ids i LEFT JOIN records r ON r.run = i.run AND r.seq = i.seq WHERE i.run = ?1 AND i.id = ?2",
    )?;
    let row: Option<(i64, bool)> = select.query_row([run, id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let damaged = || {
        let why = format!(
            "the table `event_ids` names a record of run `{run}` for the event id `{id}` that does not have it"
        );
        StoreError::Damaged(why)
    };
    Ok(match row {
        None => Ok(None),
        Some((seq, true)) => u64::try_from(seq).map(Some).map_err(|_| damaged()),
        Some(_) => Err(damaged()),
    })
}

/// Empties the table and adds the ids of all records.
pub(super) fn rebuild(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("DELETE FROM event_ids; DELETE FROM event_ids_until")?;
    fill(connection)
}

/// Compares the table with the records up to the position. Returns whether they match.
pub(super) fn matches(connection: &Connection) -> rusqlite::Result<bool> {
    if !exist(connection)? {
        return Ok(true);
    }
    let position = position(connection)?;
    // With a record of its own for each row, and a row for each record, none is missing or
    // additional.
    let (wrong, right): (i64, i64) = connection.query_row(
        "SELECT count(*) FILTER (WHERE i.seq IS NULL OR i.seq > r.seq), count(*) FILTER (WHERE i.seq = r.seq)
         FROM records r LEFT JOIN event_ids i ON i.run = r.run AND i.id = r.id WHERE r.n <= ?1 AND r.id <> r.run || '/' || r.seq",
        [position],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let rows: i64 = connection.query_row("SELECT count(*) FROM event_ids", [], |row| row.get(0))?;
    Ok(wrong == 0 && right == rows)
}

/// Whether a file has the tables. One that does not, or has others with their names, gets them when
/// it is opened for writing: files that were written before they existed have an index instead.
pub(super) fn exist(connection: &Connection) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql = ?2")?;
    for table in TABLES {
        if !select.exists(table)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a file was written before the tables existed.
pub(super) fn are_former(connection: &Connection) -> rusqlite::Result<bool> {
    let mut select = connection.prepare_cached("SELECT 1 FROM sqlite_schema WHERE name = ?1")?;
    Ok(select.exists([FORMER_INDEX])? && !exist(connection)?)
}

/// Creates the tables in an empty file.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    TABLES.iter().try_for_each(|(_, sql)| connection.execute(sql, []).map(drop))?;
    set_position(connection, 0)
}

/// Creates and fills the tables in a journal.
fn create_in_journal(connection: &Connection) -> rusqlite::Result<()> {
    let mut select = connection.prepare("SELECT type FROM sqlite_schema WHERE name = ?1")?;
    for (name, sql) in TABLES {
        let other: Option<String> = select.query_row([name], |row| row.get(0)).optional()?;
        if let Some(kind) = other {
            connection.execute_batch(&format!("DROP {kind} {name}"))?;
        }
        connection.execute(sql, [])?;
    }
    connection.execute_batch(&format!("DROP INDEX IF EXISTS {FORMER_INDEX}"))?;
    fill(connection)
}

/// Adds the ids of the records after the position, and moves it to the last record.
fn fill(connection: &Connection) -> rusqlite::Result<()> {
    // An id that several records have, which only a forged file contains, is that of the first.
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO event_ids(run, id, seq) SELECT run, id, seq FROM records WHERE n > ?1 AND id <> run || '/' || seq ORDER BY run, id, seq",
    )?;
    insert.execute([position(connection)?])?;
    set_position(connection, end(connection)?)
}

/// The record up to which the table has the ids.
fn position(connection: &Connection) -> rusqlite::Result<i64> {
    let mut select = connection.prepare_cached("SELECT min(n) FROM event_ids_until")?;
    select.query_row([], |row| row.get(0)).map(|n: Option<i64>| n.unwrap_or(i64::MIN))
}

fn set_position(connection: &Connection, n: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM event_ids_until")?.execute([])?;
    connection.prepare_cached("INSERT INTO event_ids_until(n) VALUES (?1)")?.execute([n]).map(drop)
}

/// The last record of the file.
fn end(connection: &Connection) -> rusqlite::Result<i64> {
    let mut select = connection.prepare_cached("SELECT max(n) FROM records")?;
    select.query_row([], |row| row.get(0)).map(|n: Option<i64>| n.unwrap_or_default())
}

fn in_transaction(connection: &Connection, write: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let written = write().and_then(|()| connection.execute_batch("COMMIT"));
    if written.is_err() && !connection.is_autocommit() {
        // The first error is the one to report.
        let _ = connection.execute_batch("ROLLBACK");
    }
    written
}
