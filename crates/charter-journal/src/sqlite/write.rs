//! Writes the primary data: records, heads of runs, snapshots, charters, blobs.

use charter_kernel::Digest;
use rusqlite::{Connection, OptionalExtension as _, params};
use rustc_hash::{FxHashMap, FxHashSet};

use super::changes::{project_all, put_changes};
use super::checkpoint::move_log;
use super::delete::{self, Deletion};
use super::head::{Heads, Intervention};
use super::host_state;
use super::ids::{self, Ids};
use super::keys;
use super::prepared::{Prepared, integer};
use super::schema::{self, TABLES};
use super::unnamed::Unnamed;
use super::usage;
use super::views;
use crate::error::StoreError;
use crate::imports::Imported;
use crate::record::Record;
use crate::store::{Append, Head, StateChange, StoredCharter, StoredSnapshot, UsageRow, follows};

/// Maximum number of runs in the cache.
const MAX_RUNS: usize = 100_000;

/// Why a job was not written.
pub(crate) enum Unwritten {
    /// It was refused; nothing was written.
    Refused(StoreError),
    /// Writing failed; the transaction must be rolled back.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Unwritten {
    fn from(e: rusqlite::Error) -> Unwritten {
        Unwritten::Failed(e)
    }
}

/// The writer's connection with a cache of the heads of runs. The cache is valid because no other
/// connection writes.
pub(crate) struct Writing<'c> {
    pub(crate) connection: &'c Connection,
    prepared: Prepared<'c>,
    runs: FxHashMap<String, Known>,
    charters: FxHashSet<Digest>,
    heads: Heads,
    ids: Ids,
    unnamed: Unnamed,
}

/// The state of a run in the file.
#[derive(Clone, Copy)]
struct Known {
    head: Head,
    /// `None` if the head was read from the file; the next update then writes the status again.
    status: Option<&'static str>,
    /// Whether a decision waits for a review.
    waiting: bool,
}

/// The state of a run after the records of a batch.
struct Touched<'b> {
    known: Known,
    /// Its first record, if the run is new.
    first: Option<&'b Record>,
    last: &'b Record,
}

impl<'c> Writing<'c> {
    pub(crate) fn new(connection: &'c Connection, heads: Heads, ids: Ids) -> Writing<'c> {
        Writing {
            heads,
            connection,
            prepared: Prepared::new(connection),
            runs: FxHashMap::default(),
            charters: FxHashSet::default(),
            ids,
            unnamed: Unnamed::default(),
        }
    }

    /// Goes back to the last commit after a rollback.
    pub(crate) fn roll_back(&mut self) {
        self.forget();
        self.unnamed.rolled_back();
        self.heads.roll_back();
    }

    /// Clears the cache.
    fn forget(&mut self) {
        self.runs.clear();
        self.charters.clear();
    }

    pub(crate) fn begin(&mut self) -> rusqlite::Result<()> {
        self.prepared.execute("BEGIN IMMEDIATE", []).map(drop)
    }

    /// Commits, and writes the head of the journal beside the file.
    pub(crate) fn commit(&mut self) -> rusqlite::Result<()> {
        self.heads.before_commit(&mut self.prepared)?;
        self.prepared.execute("COMMIT", [])?;
        self.heads.after_commit()?;
        // A blob that cannot be read is a finding of the verification.
        let _ = self.unnamed.committed(self.connection);
        Ok(())
    }

    /// Before the first commit, notes in the file itself, not only in its log, that a process
    /// writes to it: then a log that is missing after a crash is missed. This also moves into the
    /// file what an earlier process has left in the log.
    pub(crate) fn mark_open(&mut self) -> rusqlite::Result<()> {
        if self.heads.is_unmarked() {
            self.prepared.execute("UPDATE journal SET open = 1", [])?;
            // If not all was moved, the next commit tries again.
            if move_log(&mut self.prepared)? {
                self.heads.marked();
            }
        }
        Ok(())
    }

    /// Notes that the file is complete, before it is closed.
    pub(crate) fn close(&mut self) -> rusqlite::Result<()> {
        self.heads.close(&mut self.prepared)
    }

    /// A descriptor to sync the head of the journal on another thread.
    pub(super) fn head_handle(&self) -> Option<std::fs::File> {
        self.heads.handle()
    }

    /// Adds the ids of the latest records to their table if there are many; `closing`: if there are
    /// some. Must be called between transactions.
    pub(super) fn add_ids(&mut self, closing: bool) -> rusqlite::Result<()> {
        match closing {
            true => self.ids.close(self.connection),
            false => self.ids.poll(self.connection),
        }
    }

    /// Number of pages in the write-ahead log.
    pub(super) fn log_pages(&mut self) -> rusqlite::Result<i64> {
        let pages = self.prepared.get("PRAGMA wal_checkpoint(NOOP)")?;
        pages.query_row([], |row| row.get(1))
    }

    /// Moves the pages of the write-ahead log into the file.
    pub(super) fn checkpoint(&mut self) -> rusqlite::Result<()> {
        move_log(&mut self.prepared).map(drop)
    }

    fn known(&mut self, run: &str) -> Result<Option<Known>, Unwritten> {
        if let Some(known) = self.runs.get(run) {
            return Ok(Some(*known));
        }
        let select = self.prepared.get(
            "SELECT seq, hash, EXISTS(SELECT 1 FROM decisions WHERE run = ?1 AND waiting = 1) FROM runs WHERE run = ?1",
        )?;
        let row: Option<(i64, String, bool)> =
            select.query_row([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?;
        let Some((seq, hash, waiting)) = row else {
            return Ok(None);
        };
        match (u64::try_from(seq), Digest::parse(&hash)) {
            (Ok(seq), Some(hash)) => Ok(Some(Known { head: Head { seq, hash }, status: None, waiting })),
            _ => Err(Unwritten::Refused(StoreError::Damaged(format!(
                "run `{run}` has an invalid head (`{seq}`, `{hash}`)"
            )))),
        }
    }

    fn knows_charter(&mut self, digest: Digest) -> Result<bool, Unwritten> {
        if self.charters.contains(&digest) {
            return Ok(true);
        }
        let select = self.prepared.get("SELECT 1 FROM charters WHERE digest = ?1")?;
        let known = select.exists([digest.to_string()])?;
        if known {
            self.charters.insert(digest);
        }
        Ok(known)
    }

    /// Writes a batch, or nothing if a record does not continue its run.
    pub(crate) fn append(&mut self, batch: &[Append]) -> Result<(), Unwritten> {
        // Check everything first, so that a refused batch leaves nothing behind in a transaction
        // shared with others.
        let mut touched: FxHashMap<&str, Touched<'_>> = FxHashMap::default();
        let mut ids: FxHashMap<(&str, &str), u64> = FxHashMap::default();
        for Append { record, .. } in batch {
            let run = record.run.as_ref();
            let before = touched.remove(run);
            let known = match &before {
                Some(touched) => Some(touched.known),
                None => self.known(run)?,
            };
            if known.is_none() && !self.knows_charter(record.charter)? {
                return Err(Unwritten::Refused(StoreError::UnknownCharter { digest: record.charter }));
            }
            let head = follows(known.map(|k| k.head), record).map_err(Unwritten::Refused)?;
            if known.is_none()
                && let Some(refused) = delete::reserved(self.connection, batch, run)?
            {
                return Err(Unwritten::Refused(refused));
            }
            if record.has_given_id() {
                let is_new = known.is_none();
                let stored = self.ids.note(self.connection, run, &record.id, is_new)?.map_err(Unwritten::Refused)?;
                if let Some(seq) = stored.or_else(|| ids.insert((run, record.id.as_ref()), record.seq)) {
                    let (run, id) = (run.to_owned(), record.id.to_string());
                    return Err(Unwritten::Refused(StoreError::IdTaken { run, id, seq }));
                }
            }
            let now = Touched {
                known: Known { head, status: known.and_then(|k| k.status), waiting: known.is_some_and(|k| k.waiting) },
                first: match (before, known) {
                    (Some(before), _) => before.first,
                    (None, Some(_)) => None,
                    (None, None) => Some(record),
                },
                last: record,
            };
            touched.insert(run, now);
        }
        let reserved = keys::check(self.connection, batch)?.map_err(Unwritten::Refused)?;
        let mut imported = Imported::of_batch(batch);
        for Append { record, snapshot, state, .. } in batch {
            if let Some(imported) = imported.remove(record.run.as_ref()) {
                self.heads.intervention(self.connection, &Intervention::imported(&imported))?;
            }
            if let Some(touched) = touched.get_mut(record.run.as_ref()) {
                self.record(record, &mut touched.known.waiting)?;
            }
            if let Some(text) = snapshot {
                self.snapshot(&record.run, record.seq, text)?;
            }
            if record.seq == 0 {
                host_state::forget(self.connection, &record.run)?;
            }
            if !state.is_empty() {
                host_state::write(self.connection, state)?;
            }
        }
        keys::put(self.connection, &reserved)?;
        for (run, mut touched) in touched {
            self.move_head(&touched)?;
            touched.known.status = Some(touched.last.status_word());
            self.heads.touch(run, touched.known.head.seq);
            if let Some(known) = self.runs.get_mut(run) {
                *known = touched.known;
                continue;
            }
            if self.runs.len() >= MAX_RUNS {
                self.runs.clear();
            }
            self.runs.insert(run.to_owned(), touched.known);
        }
        Ok(())
    }

    fn record(&mut self, r: &Record, waiting: &mut bool) -> rusqlite::Result<()> {
        let n = self.heads.record(r.seq, r.hash);
        self.ids.count();
        self.unnamed.record(r.text());
        self.prepared.execute(
            "INSERT INTO records(n, run, seq, id, at, type, verdict, hash, json) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                n,
                r.run,
                integer(r.seq),
                r.id,
                r.at_text(),
                r.event.r#type,
                r.verdict.word(),
                r.hash.to_string(),
                r.text()
            ],
        )?;
        put_changes(&mut self.prepared, r, waiting)
    }

    fn move_head(&mut self, Touched { known, first, last }: &Touched<'_>) -> rusqlite::Result<()> {
        let (status, seq, hash, updated) =
            (last.status_word(), integer(last.seq), last.hash.to_string(), last.at_text());
        let changed = match first {
            Some(first) => self.prepared.execute(
                "INSERT INTO runs(run, charter, status, seq, hash, started, updated) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![last.run, last.charter.to_string(), status, seq, hash, first.at_text(), updated],
            ),
            // An unchanged status is not written, because that would also write to an index.
            None if known.status == Some(status) => self.prepared.execute(
                "UPDATE runs SET seq = ?2, hash = ?3, updated = ?4 WHERE run = ?1",
                params![last.run, seq, hash, updated],
            ),
            None => self.prepared.execute(
                "UPDATE runs SET status = ?2, seq = ?3, hash = ?4, updated = ?5 WHERE run = ?1",
                params![last.run, status, seq, hash, updated],
            ),
        };
        changed.map(drop)
    }

    fn snapshot(&mut self, run: &str, seq: u64, text: &str) -> rusqlite::Result<()> {
        let insert = "INSERT OR REPLACE INTO snapshots(run, seq, json) VALUES (?1, ?2, ?3)";
        let row = params![run, integer(seq), text];
        self.prepared.execute(insert, row).map(drop)
    }

    pub(crate) fn put_snapshot(&mut self, run: &str, snapshot: &StoredSnapshot) -> Result<(), Unwritten> {
        if self.known(run)?.is_none() {
            return Err(Unwritten::Refused(StoreError::UnknownRun(run.into())));
        }
        Ok(self.snapshot(run, snapshot.seq, &snapshot.text)?)
    }

    pub(crate) fn forget_snapshots(&self) -> Result<(), Unwritten> {
        Ok(self.connection.execute("DELETE FROM snapshots", []).map(drop)?)
    }

    pub(crate) fn charter(&mut self, c: &StoredCharter) -> Result<(), Unwritten> {
        let definition = c.definition().map_err(Unwritten::Refused)?;
        let check = charter_check(&definition.id, &definition.version, &c.name, &c.source);
        if self.knows_charter(c.digest)? {
            if c.has_place() {
                host_state::keep_places(self.connection, c)?;
                let update = "UPDATE charters SET name = ?2, source = ?3, check_digest = ?4 WHERE digest = ?1 AND check_digest <> ?4";
                self.prepared.execute(update, params![c.digest.to_string(), c.name, c.source, check])?;
            }
            return Ok(());
        }
        let insert = self.prepared.get(
            "INSERT INTO charters(digest, id, version, name, core, source, check_digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
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
            views::recreate(self.connection)?;
        }
        Ok(())
    }

    pub(crate) fn blob(&mut self, digest: Digest, data: &[u8]) -> Result<(), Unwritten> {
        let insert = "INSERT OR IGNORE INTO blobs(digest, data) VALUES (?1, ?2)";
        let digest = digest.to_string();
        self.prepared.execute(insert, params![digest, data])?;
        self.unnamed.stored(digest);
        Ok(())
    }

    pub(crate) fn host_state(&self, changes: &[StateChange]) -> Result<(), Unwritten> {
        Ok(host_state::write(self.connection, changes)?)
    }

    pub(crate) fn usage(&mut self, rows: &[UsageRow]) -> Result<(), Unwritten> {
        rows.iter().filter_map(|row| row.exchange).for_each(|digest| self.unnamed.record(&digest.to_string()));
        Ok(usage::write(self.connection, rows)?)
    }

    /// Deletes a run that has ended, and notes that in the head of the journal.
    pub(crate) fn delete(&mut self, deletion: &Deletion) -> Result<(), Unwritten> {
        let deleted = delete::run(self.connection, deletion, &self.unnamed)?;
        self.runs.remove(&deletion.run);
        self.ids.forget();
        Ok(self.heads.intervention(self.connection, &deleted)?)
    }

    /// Rebuilds the projections from the records, and the indexes and views that differ from those
    /// of a new file.
    pub(crate) fn rebuild(&mut self) -> Result<(), Unwritten> {
        self.forget();
        self.ids.forget();
        schema::repair(self.connection)?.map_err(Unwritten::Refused)?;
        ids::rebuild(self.connection)?;
        keys::rebuild(self.connection)?;
        for (table, _) in TABLES {
            self.connection.execute(&format!("DELETE FROM {table}"), [])?;
        }
        views::recreate(self.connection)?;
        project_all(self.connection, self.connection)?.map_err(Unwritten::Refused)
    }
}

/// Computes the digest of the metadata and source of a charter. The definition has a digest of its
/// own.
pub(crate) fn charter_check(id: &str, version: &str, name: &str, source: &str) -> String {
    Digest::of_json(&serde_json::json!([id, version, name, source])).to_string()
}
