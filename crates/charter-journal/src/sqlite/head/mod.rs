//! The head of a journal file: kept up with every commit, and compared at opening and by
//! verification with what `FILE-head` says.

mod compare;
mod entries;
mod file;
mod interventions;

use std::path::{Path, PathBuf};

use charter_kernel::{Digest, Timestamp};
use rusqlite::{Connection, params};

use super::prepared::{Prepared, integer};
use super::{failed, host_state, imports};
use crate::error::StoreError;
use crate::head::JournalHead;
use crate::record::timestamp;
use file::{Found, HeadFile, MAX_LATEST, Slot};

pub(super) use compare::{check, last_position};
pub(super) use entries::{Intervention, Position, has_entry, journal_head};

/// How many entries a commit may add before it also stores the head in the table `heads`. Opening a
/// file computes the head from the newest row.
const ROW_EVERY: u64 = 256;

/// Why a file whose entries do not match its head is opened all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptHead {
    /// The reason, for the journal.
    pub reason: String,
    /// Who accepts it.
    pub by: String,
    /// The time.
    pub at: Timestamp,
}

/// The head of a journal file that is open for writing.
#[derive(Debug)]
pub(crate) struct Heads {
    /// Including the transaction that is being written.
    current: Position,
    /// As of the last commit.
    committed: Position,
    /// The entries of the newest row in `heads`.
    stored: u64,
    /// The runs of the transaction, and those written last, latest first.
    touched: Vec<(String, u64)>,
    slot: Slot,
    file: HeadFile,
    /// Whether the file beside the journal is behind what was read when the journal was opened.
    behind: bool,
    /// Whether the journal file says that a process writes to it.
    open: bool,
    /// Whether it says so durably, and has everything that was in the log when it was opened.
    marked: bool,
}

/// Refuses to create a journal in the place of one that has disappeared.
pub(super) fn check_absent(path: &Path) -> Result<(), StoreError> {
    match file::read(path) {
        Found::Newest(slot) if slot.head.entries > 0 => Err(refused(
            path,
            format!(
                "the file is absent or empty, but `{}` says that it had {}; if you have deleted the journal deliberately, delete that file, too",
                file::name(path).display(),
                slot.head
            ),
        )),
        _ => Ok(()),
    }
}

fn refused(path: &Path, why: String) -> StoreError {
    StoreError::Head { path: path.display().to_string(), why }
}

impl Heads {
    /// Compares a file that was just opened with the head beside it. `path` has no links.
    pub(super) fn open(connection: &Connection, path: &Path, accept: Option<&AcceptHead>) -> Result<Heads, StoreError> {
        let sql = |e: rusqlite::Error| failed("opening the journal", &e);
        let io = |e: std::io::Error| StoreError::Failed {
            doing: "opening the journal",
            reason: format!("`{}`: {e}", file::name(path).display()),
        };
        let found = file::read(path);
        let (journal, open) = entries::journal(connection).map_err(sql)?;
        let problem = compare::problem(connection, path, &found, &journal, open).map_err(sql)?;
        let mut position = entries::position(connection).map_err(sql)?;
        let mut stored = entries::stored(connection).map_err(sql)?;
        let mut trusted = matches!(found, Found::Newest(_));
        if let Some(why) = problem {
            let Some(accept) = accept else {
                return Err(refused(path, why));
            };
            let intervention = Intervention::accepted(accept, &why, &position.head);
            let accepted = (|| {
                connection.execute_batch("BEGIN IMMEDIATE")?;
                add_intervention(connection, &mut position, &intervention)?;
                host_state::forget_waiting(connection)?;
                connection.execute_batch("COMMIT")
            })();
            accepted.map_err(sql)?;
            stored = position.head.entries;
            trusted = false;
        }
        let slot = Slot { journal, head: position.head, latest: Vec::new() };
        // What the last process has left in its log is moved into the file.
        let log: i64 = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1)).map_err(sql)?;
        let mut behind = false;
        let file = match trusted.then(|| HeadFile::open(path)).transpose().map_err(io)?.flatten() {
            Some(mut file) => {
                // After a crash between a commit and this write, the slot is behind. It stays so
                // until the log is safe: after a power cut it must not name more than there is.
                behind = matches!(&found, Found::Newest(newest) if newest.head != slot.head);
                if behind && log <= 0 {
                    file.write(&slot).map_err(io)?;
                    behind = false;
                }
                file
            }
            None => HeadFile::create(path, &slot).map_err(io)?,
        };
        let marked = open && log <= 0;
        let touched = Vec::new();
        Ok(Heads { current: position, committed: position, stored, touched, slot, file, behind, open, marked })
    }

    /// Adds a record; returns its position in the file.
    pub(super) fn record(&mut self, seq: u64, hash: Digest) -> i64 {
        self.current.head.add_record(seq, hash);
        self.current.n = self.current.n.saturating_add(1);
        self.current.n
    }

    /// Adds an intervention.
    pub(super) fn intervention(&mut self, connection: &Connection, added: &Intervention) -> rusqlite::Result<()> {
        add_intervention(connection, &mut self.current, added)?;
        self.stored = self.current.head.entries;
        Ok(())
    }

    /// Makes entries of the rows of a table `imports`, which the head of earlier versions did not
    /// cover, and removes that table.
    pub(super) fn add_imports(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(left) = imports::left(connection)? else {
            return Ok(());
        };
        let transaction = connection.unchecked_transaction()?;
        for imported in &left {
            self.intervention(&transaction, &Intervention::imported(imported))?;
        }
        transaction.execute_batch("DROP TABLE imports")?;
        transaction.commit()?;
        self.after_commit()
    }

    /// Notes the last record of a run in this transaction.
    pub(super) fn touch(&mut self, run: &str, seq: u64) {
        if self.touched.len() >= MAX_LATEST {
            self.touched.remove(0);
        }
        self.touched.push((run.to_owned(), seq));
    }

    /// Goes back to the last commit after a rollback.
    pub(super) fn roll_back(&mut self) {
        self.current = self.committed;
        if self.stored > self.committed.head.entries {
            // That row was rolled back, too.
            self.stored = 0;
        }
        self.touched.clear();
    }

    /// What a transaction writes before its commit.
    pub(super) fn before_commit(&mut self, prepared: &mut Prepared<'_>) -> rusqlite::Result<()> {
        if self.current.head.entries.saturating_sub(self.stored) >= ROW_EVERY {
            self.store(prepared)?;
        }
        Ok(())
    }

    fn store(&mut self, prepared: &mut Prepared<'_>) -> rusqlite::Result<()> {
        let Position { head, n } = self.current;
        let row = params![n, integer(head.runs), integer(head.records), integer(head.entries), head.hash.to_string()];
        prepared.execute(entries::INSERT, row)?;
        self.stored = head.entries;
        Ok(())
    }

    /// Whether the transaction has added entries.
    pub(super) fn has_changed(&self) -> bool {
        self.current.head.entries != self.committed.head.entries
    }

    /// Writes the head beside the file, after a commit and before its records are acknowledged.
    pub(super) fn after_commit(&mut self) -> rusqlite::Result<()> {
        if !self.has_changed() {
            return Ok(());
        }
        self.committed = self.current;
        self.slot.head = self.committed.head;
        for (run, seq) in self.touched.drain(..) {
            let latest = &mut self.slot.latest;
            latest.retain(|(known, _)| *known != run);
            latest.insert(0, (run, seq));
        }
        self.slot.latest.truncate(MAX_LATEST);
        self.behind = false;
        self.file.write(&self.slot).map_err(|e| write_error(&e))
    }

    /// Whether the file still has to say that a process writes to it.
    pub(super) fn is_unmarked(&self) -> bool {
        !self.marked
    }

    /// Notes that the file durably says so.
    pub(super) fn marked(&mut self) {
        (self.open, self.marked) = (true, true);
    }

    /// Writes that the file is complete without its log, before it is closed.
    pub(super) fn close(&mut self, prepared: &mut Prepared<'_>) -> rusqlite::Result<()> {
        if self.open {
            prepared.execute("BEGIN IMMEDIATE", [])?;
            if self.stored != self.current.head.entries {
                self.store(prepared)?;
            }
            prepared.execute("UPDATE journal SET open = 0", [])?;
            prepared.execute("COMMIT", [])?;
            if self.behind {
                self.file.write(&self.slot).map_err(|e| write_error(&e))?;
                self.behind = false;
            }
            self.file.sync().map_err(|e| write_error(&e))?;
        }
        Ok(())
    }

    /// A descriptor to sync the head on another thread.
    pub(super) fn handle(&self) -> Option<std::fs::File> {
        self.file.handle().ok()
    }
}

/// Writes into a copy of a journal that it is complete without a log; returns its id and its head.
pub(super) fn close_copy(connection: &Connection) -> rusqlite::Result<(String, JournalHead)> {
    let position = entries::position(connection)?;
    if entries::has_tables(connection)? {
        let transaction = connection.unchecked_transaction()?;
        if entries::stored(connection)? != position.head.entries {
            entries::store(connection, &position)?;
        }
        transaction.execute("UPDATE journal SET open = 0", [])?;
        transaction.commit()?;
    }
    Ok((entries::journal(connection)?.0, position.head))
}

/// Writes the head beside a journal file that no process has open. `path` has no links.
pub(super) fn write_beside(path: &Path, journal: &str, head: JournalHead) -> std::io::Result<()> {
    HeadFile::create(path, &Slot { journal: journal.to_owned(), head, latest: Vec::new() }).map(drop)
}

/// An error of the file beside the journal, after which the writer stops.
fn write_error(e: &std::io::Error) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_WRITE);
    rusqlite::Error::SqliteFailure(code, Some(format!("the head of the journal cannot be written: {e}")))
}

/// Adds an intervention, and stores the heads before and after it: they prove it to an opening,
/// which does not read all entries.
fn add_intervention(connection: &Connection, at: &mut Position, added: &Intervention) -> rusqlite::Result<()> {
    if at.n > 0 {
        entries::store(connection, at)?;
    }
    at.n = at.n.saturating_add(1);
    at.head.add_intervention(added.insert(connection, at.n)?);
    entries::store(connection, at)
}

/// Gives a file of an earlier version what `tables` creates, the head of its records, and the heads
/// around its interventions.
pub(super) fn upgrade(connection: &Connection, tables: &str, version: i64) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let upgraded = (|| {
        connection.execute_batch(tables)?;
        // The tables of the head exist by now, whatever the version says.
        connection.pragma_update(None, "user_version", version)?;
        entries::store_around(connection)?;
        let position = entries::position(connection)?;
        entries::store(connection, &position)?;
        connection.execute_batch("COMMIT")
    })();
    if upgraded.is_err() {
        let _ = connection.execute_batch("ROLLBACK");
    }
    upgraded
}

/// The time as the columns have it.
pub(super) fn at_text(at: Timestamp) -> String {
    timestamp::text(at)
}

/// The path of a file without links, as SQLite uses it for the names of its own files.
pub(super) fn without_links(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
