//! The `Store` implementation: reads directly, and sends writes to the writer thread.

use charter_kernel::digest::canonical;
use charter_kernel::{Digest, Status, Timestamp};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{OptionalExtension as _, Row as SqlRow, params};
use serde_json::Value as Json;

use super::SqliteStore;
use super::head;
use super::header;
use super::host_state;
use super::ids;
use super::jobs::Job;
use super::keys;
use super::prepared::integer;
use super::problems;
use super::usage;
use crate::error::StoreError;
use crate::head::{HeadCheck, JournalHead};
use crate::host_state::check_changes;
use crate::record::{Record, timestamp};
use crate::store::{
    Append, LastModel, OpenEffect, PendingTimer, Reply, Row, RunFilter, RunInfo, RunRow, StateChange, Store,
    StoredCharter, StoredSnapshot, UsageFilter, UsageRow, UsageTotals,
};

/// A column value that has a different type in Rust than in SQLite.
struct Text<T>(T);

impl FromSql for Text<Digest> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Digest::parse(value.as_str()?).map(Text).ok_or(FromSqlError::InvalidType)
    }
}

impl FromSql for Text<Timestamp> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        timestamp::read(value.as_str()?).map(Text).ok_or(FromSqlError::InvalidType)
    }
}

/// Unsigned integers, which SQLite stores as signed ones.
impl FromSql for Text<u64> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let signed = value.as_i64()?;
        u64::try_from(signed).map(Text).map_err(|_| FromSqlError::OutOfRange(signed))
    }
}

fn unsigned(row: &SqlRow<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(|Text(n)| n)
}

/// The status of a run; `None`: its start was refused.
impl FromSql for Text<Option<Status>> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match (value.as_str()?, Status::ALL.into_iter().find(|s| Ok(s.word()) == value.as_str())) {
            ("refused", _) => Ok(Text(None)),
            (_, Some(status)) => Ok(Text(Some(status))),
            (_, None) => Err(FromSqlError::InvalidType),
        }
    }
}

impl FromSql for Text<Record> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Record::read(value.as_str()?).map(Text).map_err(FromSqlError::other)
    }
}

const RUN_COLUMNS: &str = "run, charter, status, seq, hash, started, updated";

fn run_info(row: &SqlRow<'_>) -> rusqlite::Result<RunInfo> {
    let (Text(charter), Text(status), Text(hash)) = (row.get(1)?, row.get(2)?, row.get(4)?);
    let (Text(started), Text(updated)) = (row.get(5)?, row.get(6)?);
    Ok(RunInfo { run: row.get(0)?, charter, status, seq: unsigned(row, 3)?, hash, started, updated })
}

fn stored_charter(row: &SqlRow<'_>) -> rusqlite::Result<StoredCharter> {
    let Text(digest) = row.get(0)?;
    Ok(StoredCharter { digest, name: row.get(1)?, core: row.get(2)?, source: row.get(3)? })
}

/// A limit as a SQLite integer.
fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Store for SqliteStore {
    fn submit(&self, batch: Vec<Append>, reply: Reply) {
        self.send(Job::Append(batch), reply);
    }

    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError> {
        self.wait(Job::Charter(Box::new(charter.clone())))
    }

    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError> {
        self.reading(|c| {
            let mut select = c.prepare_cached("SELECT digest, name, core, source FROM charters WHERE digest = ?1")?;
            select.query_row([digest.to_string()], stored_charter).optional()
        })
    }

    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError> {
        self.reading(|c| {
            c.prepare_cached("SELECT digest, name, core, source FROM charters ORDER BY digest")?
                .query_map([], stored_charter)?
                .collect()
        })
    }

    fn imported(&self, run: &str) -> Result<u64, StoreError> {
        self.reading(|c| super::imports::imported(c, run))?
    }

    fn newest(&self) -> Result<Option<Timestamp>, StoreError> {
        self.reading(super::imports::newest)
    }

    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_bytes(data);
        self.wait(Job::Blob(digest, data.to_vec())).map(|()| digest)
    }

    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.reading(|c| {
            c.prepare_cached("SELECT data FROM blobs WHERE digest = ?1")?
                .query_row([digest.to_string()], |row| row.get(0))
                .optional()
        })
    }

    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        self.reading(|c| {
            let mut select = c.prepare("SELECT digest, data FROM blobs ORDER BY digest")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                visit(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_bytes()?);
            }
            Ok(())
        })
    }

    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError> {
        self.reading(|c| {
            c.prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM runs WHERE run = ?1"))?
                .query_row([run], run_info)
                .optional()
        })
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
        let limit = if filter.limit == 0 { -1 } else { sql_limit(filter.limit) };
        let (charter, status) = (filter.charter.map(|d| d.to_string()), filter.status.map(Status::word));
        self.reading(|c| {
            // With a status, SQLite uses the index `runs_status`, which is also ordered by run.
            let by_status = if status.is_some() { "status = ?2" } else { "?2 IS NULL" };
            let sql = format!("SELECT {RUN_COLUMNS} FROM runs WHERE {by_status} AND run > ?3 AND (?1 IS NULL OR charter = ?1) ORDER BY run LIMIT ?4");
            let mut select = c.prepare_cached(&sql)?;
            select.query_map(params![charter, status, filter.after.as_deref().unwrap_or(""), limit], run_info)?.collect()
        })
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.reading(|c| {
            let mut select =
                c.prepare_cached("SELECT json FROM records WHERE run = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3")?;
            select
                .query_map(params![run, integer(from), sql_limit(limit)], |row| row.get(0).map(|Text(record)| record))?
                .collect()
        })
    }

    fn records_after(&self, position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError> {
        self.reading(|c| {
            let mut select = c.prepare_cached("SELECT n, json FROM records WHERE n > ?1 ORDER BY n LIMIT ?2")?;
            let row = |row: &SqlRow<'_>| Ok((unsigned(row, 0)?, row.get(1).map(|Text(record)| record)?));
            select.query_map(params![integer(position), sql_limit(limit)], row)?.collect()
        })
    }

    fn last_position(&self) -> Result<u64, StoreError> {
        self.reading(|c| Ok(u64::try_from(head::last_position(c)?).unwrap_or_default()))
    }

    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.reading(|c| {
            let c = &*c.unchecked_transaction()?;
            let seq = match ids::find(c, run, id)? {
                Ok(Some(seq)) => seq,
                Ok(None) => return Ok(Ok(None)),
                Err(e) => return Ok(Err(e)),
            };
            let mut select = c.prepare_cached("SELECT json FROM records WHERE run = ?1 AND seq = ?2")?;
            let record = select.query_row(params![run, integer(seq)], |row| row.get(0).map(|Text(record)| record));
            record.map(|record| Ok(Some(record)))
        })?
    }

    fn keeps_keys(&self) -> bool {
        true
    }

    fn key_holder(&self, event: &str, key: &Json) -> Result<Option<String>, StoreError> {
        self.reading(|c| keys::holder(c, event, &canonical(key)))
    }

    fn put_host_state(&self, changes: Vec<StateChange>) -> Result<(), StoreError> {
        check_changes(&changes)?;
        self.wait(Job::HostState(changes))
    }

    fn host_state(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        self.reading(|c| host_state::read(c, area))
    }

    fn put_usage(&self, rows: Vec<UsageRow>) -> Result<(), StoreError> {
        self.wait(Job::Usage(rows))
    }

    fn usage(&self, filter: &UsageFilter) -> Result<UsageTotals, StoreError> {
        self.reading(|c| usage::totals(c, filter))
    }

    fn last_models(&self, run: &str) -> Result<Vec<LastModel>, StoreError> {
        self.reading(|c| usage::last_models(c, run))
    }

    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError> {
        self.reading(|c| {
            let mut select = c.prepare_cached(
                "SELECT seq, json FROM snapshots WHERE run = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1",
            )?;
            select
                .query_row(params![run, integer(at_most)], |row| {
                    Ok(StoredSnapshot { seq: unsigned(row, 0)?, text: row.get(1)? })
                })
                .optional()
        })
    }

    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        self.wait(Job::Snapshot(run.into(), snapshot.clone()))
    }

    fn forget_snapshots(&self) -> Result<(), StoreError> {
        self.wait(Job::ForgetSnapshots)
    }

    fn pending_timers(&self, until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError> {
        self.reading(|c| {
            let mut select = c.prepare_cached(
                "SELECT t.due, t.run, t.timer, t.generation FROM timers t CROSS JOIN runs r ON r.run = t.run AND r.status = 'active'
                 WHERE t.due <= ?1 ORDER BY t.due, t.run, t.timer, t.generation LIMIT ?2",
            )?;
            let timer = |row: &SqlRow<'_>| Ok(PendingTimer { due: Timestamp(row.get(0)?), run: row.get(1)?, timer: row.get(2)?, generation: unsigned(row, 3)? });
            select.query_map(params![until.0, sql_limit(limit)], timer)?.collect()
        })
    }

    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError> {
        let (run, after_seq, index) =
            after.map_or(("", -1, -1), |e| (e.run.as_str(), integer(e.seq), i64::from(e.index)));
        self.reading(|c| {
            let mut select = c.prepare_cached(
                "SELECT e.run, e.seq, e.idx FROM effects e CROSS JOIN runs r ON r.run = e.run AND r.status IN ('active', 'paused')
                 WHERE e.status = 'open' AND (e.run, e.seq, e.idx) > (?1, ?2, ?3) ORDER BY e.run, e.seq, e.idx LIMIT ?4",
            )?;
            select.query_map(params![run, after_seq, index, sql_limit(limit)], |row| Ok(OpenEffect { run: row.get(0)?, seq: unsigned(row, 1)?, index: row.get(2)? }))?.collect()
        })
    }

    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        self.reading(|c| {
            let mut select = c.prepare_cached(
                // Effects are stored in the order of their records.
                "SELECT run, seq, data FROM effects WHERE kind = 'emit' AND src = ?1 ORDER BY rowid DESC",
            )?;
            let mut rows = select.query(params![r#type])?;
            while let Some(row) = rows.next()? {
                let data: Option<String> = row.get(2)?;
                let run: String = row.get(0)?;
                if !visit(&run, unsigned(row, 1)?, data.as_deref().unwrap_or("null")) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError> {
        let columns = "n, run, seq, id, at, type, verdict, hash, json";
        let sql = match run {
            Some(_) => {
                format!("SELECT {columns} FROM records WHERE run = ?1 AND seq >= ?2 ORDER BY seq")
            }
            None => format!("SELECT {columns} FROM records WHERE ?1 IS NULL AND seq >= ?2 ORDER BY run, seq"),
        };
        self.reading(|c| {
            let mut select = c.prepare_cached(&sql)?;
            let mut rows = select.query(params![run, integer(from)])?;
            while let Some(row) = rows.next()? {
                // A value that is not TEXT is replaced by a character that no valid column
                // contains.
                let text = |i: usize| row.get_ref(i).map(|v| v.as_str().unwrap_or("\u{fffd}"));
                let found = Row {
                    place: row.get(0)?,
                    run: text(1)?,
                    seq: row.get(2)?,
                    id: text(3)?,
                    at: text(4)?,
                    r#type: text(5)?,
                    verdict: text(6)?,
                    hash: text(7)?,
                    text: row.get_ref(8)?.as_bytes()?,
                };
                if !visit(&found) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError> {
        let condition = if run.is_some() { "run = ?1" } else { "?1 IS NULL" };
        self.reading(|c| {
            let mut select =
                c.prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM runs WHERE {condition} ORDER BY run"))?;
            let mut rows = select.query([run])?;
            while let Some(row) = rows.next()? {
                let text = |i: usize| row.get_ref(i).map(|v| v.as_str().unwrap_or("\u{fffd}"));
                let found = RunRow {
                    run: text(0)?,
                    charter: text(1)?,
                    status: text(2)?,
                    seq: row.get(3)?,
                    hash: text(4)?,
                    started: text(5)?,
                    updated: text(6)?,
                };
                visit(&found);
            }
            Ok(())
        })
    }

    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError> {
        self.reading(|c| {
            let mut select = c.prepare_cached(
                "SELECT run, seq, json FROM snapshots WHERE ?1 IS NULL OR run = ?1 ORDER BY run, seq",
            )?;
            let mut rows = select.query([run])?;
            while let Some(row) = rows.next()? {
                visit(row.get_ref(0)?.as_str()?, unsigned(row, 1)?, row.get_ref(2)?.as_bytes()?);
            }
            Ok(())
        })
    }

    fn head(&self) -> Result<Option<JournalHead>, StoreError> {
        self.reading(head::journal_head).map(Some)
    }

    fn check_head(&self, anchors: &[(u64, Digest)], full: bool) -> Result<HeadCheck, StoreError> {
        let path = head::without_links(&self.path);
        self.reading(|c| head::check(c, &path, anchors, full))
    }

    fn container_problems(&self) -> Result<Vec<String>, StoreError> {
        let is_new = self.reading(head::journal_head).is_ok_and(|head| head.entries == 0);
        let mut problems = header::problems(&self.path, &self.open, is_new);
        self.reading(|c| {
            problems.extend(header::integrity(c));
            Ok(())
        })?;
        let schema = self.reading(problems::of_schema)?;
        problems.extend(schema);
        if problems.is_empty() {
            problems = self.reading(problems::of_content)?;
        }
        Ok(problems)
    }
}
