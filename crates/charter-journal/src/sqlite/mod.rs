//! A store in a SQLite file: WAL mode, full sync, one writer thread with group commit, readers on
//! their own connections.

mod backup;
mod changes;
mod checkpoint;
mod clock;
mod connect;
mod delete;
#[cfg(test)]
mod faulty_disk;
mod guest;
mod head;
mod header;
mod host_state;
mod ids;
mod imports;
mod jobs;
mod keys;
mod left_log;
mod lock;
mod objects;
mod open_files;
mod prepared;
mod problems;
mod read;
mod readers;
mod recognize;
mod schema;
mod select;
mod unnamed;
mod usage;
mod views;
mod write;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;
use crate::store::Reply;
pub use backup::{BackupError, Copied};
use checkpoint::Checkpoints;
pub use clock::QueryClock;
use connect::{Reach, connect, keep_log, other_reach, reader, write_ahead};
pub use delete::Deletion;
use guest::Guest;
pub use guest::check_owner;
pub use head::AcceptHead;
use head::Heads;
use ids::Ids;
use jobs::{Job, Request};
pub use lock::holder;
use lock::{Lock, Watched, check_name};
use open_files::{FileId, OpenFile};
use readers::Readers;
use recognize::{Found, identity, recognize};
pub use select::{SelectError, SelectLimits, Visit};
use write::Writing;
use writer::{Committing, Health, said};

/// A journal in a SQLite file.
///
/// One process can write, and a second one is refused; any number of processes can read, including
/// other programs. The tables are described in `docs/sql.md`.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Option<Writer>,
    readers: Readers,
    reach: Reach,
    /// `None` if the journal belongs to the user of this process, or this process writes to it.
    guest: Option<Box<Guest>>,
    // Dropped last.
    open: OpenFile,
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer's connection is closed last, so that SQLite moves everything from `FILE-wal`
        // into the file, which then contains all data.
        self.readers.close();
        if let Some(guest) = self.guest.take() {
            self.open.close_later(guest.into_file());
        }
    }
}

#[derive(Debug)]
struct Writer {
    /// `None` only while the writer is being dropped.
    sender: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    health: Arc<Health>,
    lock: Mutex<Lock>,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The thread writes all requests that were sent and ends once the channel is closed.
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// How to open a file.
#[derive(Debug, Clone, Default)]
pub struct SqliteOptions {
    /// Maximum size of the file in bytes; 0 means no limit. A write that exceeds it fails as on a
    /// full disk.
    pub max_bytes: u64,
    /// Opens the file even if records are missing that were acknowledged, and notes that. Without
    /// it, such a file is not opened for writing ([`StoreError::Head`]).
    pub accept_head: Option<AcceptHead>,
    /// Number of event ids that are added to the table `event_ids` together; 0 means the default,
    /// which is good for many and for few runs.
    pub ids_at_once: u64,
    /// Opens the file to [rebuild](SqliteStore::rebuild) it: removes triggers and views that do not
    /// belong to it, and opens it even if its tables, indexes and views are not those of a new
    /// file. Without it, such a file is not opened for writing ([`StoreError::Schema`]).
    pub repair: bool,
}

impl SqliteStore {
    /// Opens a journal for reading and writing; creates it if the file does not exist.
    ///
    /// # Errors
    /// Another process has the file open for writing, or the file has a newer schema version, is
    /// not a journal, or cannot be opened.
    pub fn open(path: &Path) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(path, &SqliteOptions::default())
    }

    /// Like [`SqliteStore::open`], but with options.
    ///
    /// # Errors
    /// See [`SqliteStore::open`].
    pub fn open_with(path: &Path, options: &SqliteOptions) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_committing(path, options, writer::commit)
    }

    fn open_committing(
        path: &Path,
        options: &SqliteOptions,
        commit: impl Committing + Send + 'static,
    ) -> Result<SqliteStore, StoreError> {
        check_name(path)?;
        guest::check_owner(path)?;
        let is_absent = |path: &Path| std::fs::metadata(path).map_or(true, |found| found.len() == 0);
        if options.accept_head.is_none() && is_absent(path) {
            head::check_absent(&head::without_links(path))?;
        }
        let lock = Lock::take(path)?;
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
            .map_err(|e| failed("opening the journal", &e))?;
        // A log with records that are not readable any more is evidence: keep it unless the file is
        // opened.
        keep_log(&connection, true).map_err(|e| failed("opening the journal", &e))?;
        let found = recognize(identity(&connection), path)?;
        if let Found::Journal { .. } = found {
            let written = left_log::write_again(&connection, path).map_err(|e| failed("opening the journal", &e))?;
            let said = |e: std::io::Error| StoreError::Failed {
                doing: "writing the log of an earlier process (`FILE-wal`) again",
                reason: e.to_string(),
            };
            written.map_err(said)?;
        }
        match found {
            Found::Journal { version: schema::VERSION } => {
                let tables = [host_state::TABLE, usage::TABLE].concat();
                connection.execute_batch(&tables).map_err(|e| failed("opening the journal", &e))?;
            }
            Found::Journal { version } => {
                let head = if version == schema::WITHOUT_HEAD { schema::HEAD } else { "" };
                let keys = if version < schema::WITH_IMPORTS { keys::TABLE } else { "" };
                head::upgrade(
                    &connection,
                    &[head, keys, schema::BY_RUN, host_state::TABLE, usage::TABLE].concat(),
                    schema::VERSION,
                )
                .map_err(|e| failed("upgrading the journal", &e))?;
            }
            Found::Empty => {
                if options.accept_head.is_none() {
                    head::check_absent(lock.place().path())?;
                }
                // Not in WAL mode: a file that has lost its log must not look empty.
                schema::create(&connection).map_err(|e| failed("creating the journal", &e))?;
            }
        }
        let set = |name: &str, value: i64| {
            connection.pragma_update(None, name, value).map_err(|e| failed("opening the journal", &e))
        };
        write_ahead(&connection).map_err(|e| failed("opening the journal", &e))?;
        // FULL: an event that was answered survives a power cut, not just a crash of the process.
        connection.pragma_update(None, "synchronous", "FULL").map_err(|e| failed("opening the journal", &e))?;
        set("wal_autocheckpoint", 0)?; // see `checkpoint`
        set("cache_size", -32_768)?;
        set("busy_timeout", 10_000)?;
        if options.max_bytes > 0 {
            let page: i64 = connection
                .pragma_query_value(None, "page_size", |row| row.get(0))
                .map_err(|e| failed("opening the journal", &e))?;
            let pages = options.max_bytes.checked_div(u64::try_from(page).unwrap_or(4_096)).unwrap_or(0).max(1);
            set("max_page_count", i64::try_from(pages).unwrap_or(i64::MAX))?;
        }
        check_schema(&connection, path, options.repair)?;
        let mut heads = Heads::open(&connection, lock.place().path(), options.accept_head.as_ref())?;
        heads.add_imports(&connection).map_err(|e| failed("upgrading the journal", &e))?;
        keep_log(&connection, false).map_err(|e| failed("opening the journal", &e))?;
        let ids = Ids::open(&connection, options.ids_at_once).map_err(|e| failed("opening the journal", &e))?;
        let (sender, requests) = channel();
        let health = Arc::new(Health::default());
        let seen = health.clone();
        let checkpoints = Checkpoints::new(path.to_owned());
        let place = Watched::new(lock.place().clone());
        let open = OpenFile::new(lock.place().id().clone());
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || {
                let writing = Writing::new(&connection, heads, ids);
                writer::run(writing, &requests, place, &seen, commit, checkpoints);
            })
            .map_err(|e| StoreError::Failed { doing: "starting the writer", reason: e.to_string() })?;
        let writer = Writer { sender: Some(sender), thread: Some(thread), health, lock: Mutex::new(lock) };
        let (writer, reach) = (Some(writer), Reach::Shared);
        Ok(SqliteStore { path: path.to_owned(), writer, readers: Readers::default(), reach, guest: None, open })
    }

    /// Opens a journal for reading only, even while another process writes to it.
    ///
    /// # Errors
    /// The file has a newer schema version, is not a journal, or cannot be opened.
    pub fn open_read_only(path: &Path) -> Result<SqliteStore, StoreError> {
        let id = FileId::at(path).map_err(|e| cannot_open(&e))?;
        let open = OpenFile::new(id);
        let guest = Guest::new(path).map_err(|e| cannot_open(&e))?;
        // Checked before any use, so that a file that is not a journal is reported as such.
        let attempt = |reach: Reach| reader(path, reach).and_then(|connection| identity(&connection));
        let first = match guest.as_ref().map(|guest| guest.read(path)) {
            Some((_read, reach)) => attempt(reach),
            None => attempt(Reach::Shared),
        };
        let other = first.as_ref().err().and_then(|e| other_reach(path, e.sqlite_error_code()));
        let (read, reach) = match other.map(|reach| (attempt(reach), reach)) {
            Some((Ok(read), reach)) => (Ok(read), reach),
            _ => (first, Reach::Shared),
        };
        let found = recognize(read, path)?;
        if found == Found::Empty {
            return Err(StoreError::NotAJournal { path: path.display().to_string(), why: "it is empty".into() });
        }
        Ok(SqliteStore {
            path: path.to_owned(),
            writer: None,
            readers: Readers::default(),
            reach,
            guest: guest.map(Box::new),
            open,
        })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down beside the file, for [`holder`], on which socket this process accepts requests
    /// of other processes; `starting`: it will do so soon.
    ///
    /// # Errors
    /// The file `FILE-lock` cannot be written, or the journal was opened for reading only.
    pub fn announce(&self, address: Option<&Path>, starting: bool) -> Result<(), StoreError> {
        let writer = self.writer.as_ref().ok_or_else(read_only)?;
        writer.lock.lock().unwrap_or_else(PoisonError::into_inner).announce(address, starting)
    }

    /// Rebuilds the projections from the records.
    ///
    /// # Errors
    /// A record is unreadable (nothing is changed), or writing failed.
    pub fn rebuild(&self) -> Result<(), StoreError> {
        self.wait(Job::Rebuild)
    }

    /// Deletes a run that has ended, and notes the deletion in the head of the journal.
    ///
    /// # Errors
    /// The run does not exist, has not ended, or writing failed.
    pub fn delete(&self, deletion: Deletion) -> Result<(), StoreError> {
        self.wait(Job::Delete(Box::new(deletion)))
    }

    /// Returns the last deletion of a run; `None` if no run of this id was deleted.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn deletion(&self, run: &str) -> Result<Option<Deletion>, StoreError> {
        self.reading(|c| delete::last(c, run))
    }

    /// Runs a query against the tables that `docs/sql.md` documents, on a read-only connection.
    ///
    /// # Errors
    /// The query failed.
    pub fn query<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        self.reading(query)
    }

    /// The reason why the writer has stopped after a failure; `None` if it has not stopped.
    #[must_use]
    pub fn stopped(&self) -> Option<&str> {
        self.writer.as_ref()?.health.stopped()
    }

    /// Since when every write has failed because the disk is full; `None` if the last one has not.
    #[must_use]
    pub fn full_for(&self) -> Option<std::time::Duration> {
        self.writer.as_ref()?.health.full_for()
    }

    fn send(&self, job: Job, reply: Reply) {
        let Some(sender) = self.writer.as_ref().and_then(|w| w.sender.as_ref()) else {
            return reply(Err(read_only()));
        };
        if let Err(unsent) = sender.send(Request { job, reply }) {
            (unsent.0.reply)(Err(StoreError::Stopped { reason: "the writer thread has ended".into() }));
        }
    }

    fn wait(&self, job: Job) -> Result<(), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.send(job, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or_else(|_| Err(StoreError::Stopped { reason: "the writer thread has ended".into() }))
    }

    /// Begins a read of a guest, and says how a new connection reaches the file.
    fn reach(&self) -> (Option<guest::Read<'_>>, Reach) {
        match (&self.guest, self.reach) {
            (Some(guest), Reach::Shared) => {
                let (read, reach) = guest.read(&self.path);
                (Some(read), reach)
            }
            (_, reach) => (None, reach),
        }
    }

    /// Calls `read` with a pooled connection; for a guest, with a new one.
    fn reading<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let (guest, reach) = self.reach();
        let open = || reader(&self.path, reach).map_err(|e| failed("opening the journal", &e));
        let connection = self.readers.take(open)?;
        let result = read(&connection).map_err(|e| match e {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::Damaged(e.to_string()),
            e => failed("reading the journal", &e),
        });
        // That of a guest is closed here, before its lock is released.
        self.readers.release(guest.is_none().then_some(connection));
        result
    }
}

/// Checks that nothing in the file interferes with what is written to it.
fn check_schema(connection: &Connection, path: &Path, repair: bool) -> Result<(), StoreError> {
    let sql = |e: rusqlite::Error| failed("opening the journal", &e);
    if repair {
        return objects::drop_foreign(connection).map_err(sql);
    }
    // Unreadable charters are findings of the verification.
    let declared = views::declared(connection).unwrap_or_default();
    let problems = objects::problems(connection, declared).map_err(sql)?;
    match problems.into_iter().find(objects::Problem::prevents_writing) {
        Some(problem) => Err(StoreError::Schema { path: path.display().to_string(), why: problem.to_string() }),
        None => Ok(()),
    }
}

fn read_only() -> StoreError {
    StoreError::Failed { doing: "writing the journal", reason: "the journal was opened for reading only".into() }
}

fn cannot_open(e: &std::io::Error) -> StoreError {
    StoreError::Failed { doing: "opening the journal", reason: e.to_string() }
}

fn failed(doing: &'static str, e: &rusqlite::Error) -> StoreError {
    StoreError::Failed { doing, reason: said(e) }
}
