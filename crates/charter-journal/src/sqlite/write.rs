//! The statements that write: records, heads, projections.

use charter_kernel::Digest;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};
use rustc_hash::{FxHashMap, FxHashSet};

use super::schema::TABLES;
use super::views;
use crate::error::StoreError;
use crate::project::{Change, project};
use crate::record::{Fields, Record, moment};
use crate::store::{Append, Head, StoredCharter, StoredSnapshot, follows};

/// How many heads are remembered; above, they are looked up again.
const MOST_HEADS: usize = 100_000;

/// Why something was not written.
pub(crate) enum Unwritten {
    /// It does not fit; nothing was written.
    Refused(StoreError),
    /// Writing failed; the transaction is lost.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Unwritten {
    fn from(e: rusqlite::Error) -> Unwritten {
        Unwritten::Failed(e)
    }
}

/// Writes; remembers what it has written, as it is the only one who does.
pub(crate) struct Writing {
    pub(crate) connection: Connection,
    /// With the status that the file has of the run.
    heads: FxHashMap<String, (Head, &'static str)>,
    charters: FxHashSet<Digest>,
}

impl Writing {
    pub(crate) fn new(connection: Connection) -> Writing {
        connection.set_prepared_statement_cache_capacity(64);
        Writing {
            connection,
            heads: FxHashMap::default(),
            charters: FxHashSet::default(),
        }
    }

    /// What was remembered may not be what is in the file: a transaction was undone.
    pub(crate) fn forget(&mut self) {
        self.heads.clear();
        self.charters.clear();
    }

    fn head(&self, run: &str) -> Result<Option<Head>, Unwritten> {
        if let Some((head, _)) = self.heads.get(run) {
            return Ok(Some(*head));
        }
        let mut statement = self
            .connection
            .prepare_cached("SELECT seq, hash FROM runs WHERE run = ?1")?;
        let row: Option<(i64, String)> = statement
            .query_row([run], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((seq, hash)) = row else {
            return Ok(None);
        };
        match (u64::try_from(seq), Digest::parse(&hash)) {
            (Ok(seq), Some(hash)) => Ok(Some(Head { seq, hash })),
            _ => Err(Unwritten::Refused(StoreError::Damaged(format!(
                "the head of run `{run}` is `{seq}`, `{hash}`"
            )))),
        }
    }

    fn knows_charter(&mut self, digest: Digest) -> Result<bool, Unwritten> {
        if self.charters.contains(&digest) {
            return Ok(true);
        }
        let mut statement = self
            .connection
            .prepare_cached("SELECT 1 FROM charters WHERE digest = ?1")?;
        let known = statement.exists([digest.to_string()])?;
        if known {
            self.charters.insert(digest);
        }
        Ok(known)
    }

    /// Writes a batch: all of it, or nothing if it does not fit.
    pub(crate) fn append(&mut self, batch: &[Append]) -> Result<(), Unwritten> {
        // First everything is looked at, so that what does not fit leaves nothing behind in a transaction shared with others.
        let mut heads: FxHashMap<&str, (Head, bool, usize)> = FxHashMap::default();
        for (i, Append { record, .. }) in batch.iter().enumerate() {
            let run = record.run.as_ref();
            let (head, new) = match heads.get(run) {
                Some((head, new, _)) => (Some(*head), *new),
                None => {
                    let head = self.head(run)?;
                    if head.is_none() && !self.knows_charter(record.charter)? {
                        return Err(Unwritten::Refused(StoreError::UnknownCharter {
                            digest: record.charter,
                        }));
                    }
                    (head, head.is_none())
                }
            };
            heads.insert(
                run,
                (follows(head, record).map_err(Unwritten::Refused)?, new, i),
            );
        }
        for append in batch {
            self.record(&append.record)?;
            if let Some(text) = &append.snapshot {
                self.snapshot(&append.record.run, append.record.seq, text)?;
            }
        }
        for (run, (head, new, last)) in heads {
            let Some(Append { record, .. }) = batch.get(last) else {
                continue;
            };
            let first = batch
                .iter()
                .map(|a| &a.record)
                .find(|r| r.run == run)
                .filter(|_| new);
            self.move_head(record, first)?;
            let now = (head, record.status_word());
            if let Some(known) = self.heads.get_mut(run) {
                *known = now;
                continue;
            }
            if self.heads.len() >= MOST_HEADS {
                self.heads.clear();
            }
            self.heads.insert(run.to_owned(), now);
        }
        Ok(())
    }

    fn record(&self, r: &Record) -> Result<(), Unwritten> {
        let mut insert = self.connection.prepare_cached("INSERT INTO records(run, seq, id, at, type, verdict, hash, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
        insert.execute(params![
            r.run,
            integer(r.seq),
            r.id,
            moment::text(r.at),
            r.event.r#type,
            r.verdict.word(),
            r.hash.to_string(),
            r.text()
        ])?;
        put_changes(&self.connection, r)?;
        Ok(())
    }

    fn move_head(&self, last: &Record, first: Option<&Record>) -> Result<(), Unwritten> {
        let (status, seq, hash, updated) = (
            last.status_word(),
            integer(last.seq),
            last.hash.to_string(),
            moment::text(last.at),
        );
        match first {
            Some(first) => {
                let mut insert = self.connection.prepare_cached("INSERT INTO runs(run, charter, status, seq, hash, started, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
                insert.execute(params![
                    last.run,
                    last.charter.to_string(),
                    status,
                    seq,
                    hash,
                    moment::text(first.at),
                    updated
                ])?;
            }
            // A status that stays is left alone: it is part of an index.
            None if self
                .heads
                .get(last.run.as_ref())
                .is_some_and(|(_, s)| *s == status) =>
            {
                let mut update = self.connection.prepare_cached(
                    "UPDATE runs SET seq = ?2, hash = ?3, updated = ?4 WHERE run = ?1",
                )?;
                update.execute(params![last.run, seq, hash, updated])?;
            }
            None => {
                let mut update = self.connection.prepare_cached(
                    "UPDATE runs SET status = ?2, seq = ?3, hash = ?4, updated = ?5 WHERE run = ?1",
                )?;
                update.execute(params![last.run, status, seq, hash, updated])?;
            }
        }
        Ok(())
    }

    fn snapshot(&self, run: &str, seq: u64, text: &str) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare_cached(
            "INSERT OR REPLACE INTO snapshots(run, seq, json) VALUES (?1, ?2, ?3)",
        )?;
        insert.execute(params![run, integer(seq), text]).map(drop)
    }

    pub(crate) fn put_snapshot(
        &self,
        run: &str,
        snapshot: &StoredSnapshot,
    ) -> Result<(), Unwritten> {
        if self.head(run)?.is_none() {
            return Err(Unwritten::Refused(StoreError::UnknownRun(run.into())));
        }
        Ok(self.snapshot(run, snapshot.seq, &snapshot.text)?)
    }

    pub(crate) fn forget_snapshots(&self) -> Result<(), Unwritten> {
        Ok(self
            .connection
            .execute("DELETE FROM snapshots", [])
            .map(drop)?)
    }

    pub(crate) fn charter(&mut self, c: &StoredCharter) -> Result<(), Unwritten> {
        let definition = c.definition().map_err(Unwritten::Refused)?;
        if self.knows_charter(c.digest)? {
            return Ok(());
        }
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO charters(digest, id, version, name, core, source, check_digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let check = charter_check(&definition.id, &definition.version, &c.name, &c.source);
        insert.execute(params![
            c.digest.to_string(),
            definition.id,
            definition.version,
            c.name,
            c.core,
            c.source,
            check
        ])?;
        if !definition.projections.is_empty() {
            views::renew(&self.connection)?;
        }
        Ok(())
    }

    pub(crate) fn blob(&self, digest: Digest, data: &[u8]) -> Result<(), Unwritten> {
        let mut insert = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO blobs(digest, data) VALUES (?1, ?2)")?;
        Ok(insert
            .execute(params![digest.to_string(), data])
            .map(drop)?)
    }

    /// Makes the projections again, from the records and nothing else.
    pub(crate) fn rebuild(&self) -> Result<(), Unwritten> {
        for (table, _) in TABLES {
            self.connection
                .execute(&format!("DELETE FROM {table}"), [])?;
        }
        views::renew(&self.connection)?;
        project_all(&self.connection, &self.connection)?.map_err(Unwritten::Refused)
    }
}

/// The digest over what is kept of a charter beside its definition (which has its own).
pub(crate) fn charter_check(id: &str, version: &str, name: &str, source: &str) -> String {
    Digest::of_json(&serde_json::json!([id, version, name, source])).to_string()
}

/// Projects every record of one database into the tables of another (or the same).
pub(crate) fn project_all(
    from: &Connection,
    to: &Connection,
) -> rusqlite::Result<Result<(), StoreError>> {
    let mut select = from.prepare("SELECT run, seq, json FROM records ORDER BY n")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let damaged = |why: String| -> rusqlite::Result<Result<(), StoreError>> {
            let (run, seq): (String, i64) = (row.get(0)?, row.get(1)?);
            Ok(Err(StoreError::Damaged(format!(
                "run `{run}`, record {seq}: {why}"
            ))))
        };
        match Fields::read(row.get_ref(2)?.as_str()?) {
            Ok(fields) => match put_changes(to, &fields) {
                Ok(()) => {}
                // Each record has a place of its own in every table.
                Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                    return damaged(format!(
                        "what it says has its place already (it says that it is record {} of run `{}`)",
                        fields.seq, fields.run
                    ));
                }
                Err(e) => return Err(e),
            },
            Err(e) => return damaged(e.to_string()),
        }
    }
    Ok(Ok(()))
}

/// Writes what a record changes in the projections.
fn put_changes(to: &Connection, r: &Fields<'_>) -> rusqlite::Result<()> {
    let (run, seq) = (r.run.as_ref(), integer(r.seq));
    let at = || moment::text(r.at);
    let number = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
    project(r, |change| {
        match change {
            Change::Transition { index, name } => {
                let mut s = to.prepare_cached("INSERT INTO transitions(run, seq, idx, transition) VALUES (?1, ?2, ?3, ?4)")?;
                s.execute(params![run, seq, number(index), name])
            }
            Change::Refusal { code, message } => {
                let mut s = to.prepare_cached("INSERT INTO refusals(run, seq, at, type, by, code, message) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
                s.execute(params![run, seq, at(), r.event.r#type, r.by.id, code, message])
            }
            Change::Effect { index, kind, actor, invocation, src, data, open } => {
                let mut s = to.prepare_cached("INSERT INTO effects(run, seq, idx, kind, actor, invocation, src, data, status) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
                s.execute(params![run, seq, number(index), kind, actor, invocation, src, data, if open { "open" } else { "told" }])
            }
            Change::EffectOver { effect, how } => {
                let mut s = to.prepare_cached("UPDATE effects SET status = ?4, ended_seq = ?5 WHERE run = ?1 AND seq = ?2 AND idx = ?3 AND status = 'open'")?;
                s.execute(params![run, integer(effect.seq), effect.index, how, seq])
            }
            Change::TimerSet { timer, generation, due } => {
                let mut s = to.prepare_cached(
                    "INSERT INTO timers(run, timer, generation, due, set_seq) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT(run, timer, generation) DO UPDATE SET due = excluded.due, set_seq = excluded.set_seq",
                )?;
                s.execute(params![run, timer, integer(generation), due, seq])
            }
            Change::TimerOver { timer, generation } => {
                let mut s = to.prepare_cached("DELETE FROM timers WHERE run = ?1 AND timer = ?2 AND generation = ?3")?;
                s.execute(params![run, timer, integer(generation)])
            }
            Change::Approval { index, actor, transition, approves, digest, reason, vote } => {
                let mut s = to.prepare_cached(
                    "INSERT INTO approvals(run, seq, idx, at, kind, by, roles, actor, transition, approves, digest, reason) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                )?;
                let kind = if vote { "vote" } else { "approval" };
                s.execute(params![run, seq, number(index), at(), kind, r.by.id, r.by.roles.join(" "), actor, transition, approves, digest, reason])
            }
            Change::Ledger { kind, key, status, uses, expires, due, data, how } => {
                let mut s = to.prepare_cached(
                    "INSERT INTO ledger(run, kind, key, status, uses, expires, due, data, how, first_seq, seq) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10)
                     ON CONFLICT(run, kind, key) DO UPDATE SET status = excluded.status, uses = excluded.uses, expires = excluded.expires, due = excluded.due,
                       data = excluded.data, how = excluded.how, seq = excluded.seq",
                )?;
                s.execute(params![run, kind, key, status, uses, expires, due, data, how, seq])
            }
            Change::Decision { kind, subject, outcome, confidence, data } => {
                let mut s = to.prepare_cached(
                    "INSERT INTO decisions(run, seq, at, kind, subject, outcome, confidence, data, by, waiting) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                )?;
                s.execute(params![run, seq, at(), kind, subject, outcome, confidence, data, r.by.id, i64::from(kind == "answer")])
            }
            Change::Review => {
                let mut s = to.prepare_cached("UPDATE decisions SET waiting = 0, review_seq = ?2, review = ?3, reviewer = ?4 WHERE run = ?1 AND waiting = 1")?;
                s.execute(params![run, seq, r.event.r#type, r.by.id])
            }
            Change::Unreviewed => {
                let mut s = to.prepare_cached("UPDATE decisions SET waiting = 0 WHERE run = ?1 AND waiting = 1")?;
                s.execute([run])
            }
        }
        .map(drop)
    })
}

/// SQLite's integers are signed; what does not fit was refused before (sequence numbers are dense).
fn integer(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
