//! A store in a SQLite file: WAL mode, full sync, one writer thread with group commit, readers on
//! their own connections.

mod changes;
mod checkpoint;
mod connect;
mod delete;
#[cfg(test)]
mod faulty_disk;
mod head;
mod header;
mod ids;
mod imports;
mod jobs;
mod keys;
mod lock;
mod open_files;
mod prepared;
mod problems;
mod read;
mod schema;
mod select;
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
use checkpoint::Checkpoints;
use connect::{Reach, connect, keep_log, other_reach, reader, write_ahead};
pub use delete::Deletion;
pub use head::AcceptHead;
use head::Heads;
use ids::Ids;
use jobs::{Job, Request};
use lock::Lock;
pub use lock::holder;
use open_files::{FileId, OpenFile};
pub use select::{SelectError, SelectLimits, Visit};
use write::Writing;
use writer::{Committing, Health, said};

/// Maximum number of idle reader connections.
const MAX_READERS: usize = 4;

/// A journal in a SQLite file.
///
/// One process can write, and a second one is refused; any number of processes can read, including
/// other programs. The tables are described in `docs/sql.md`.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Option<Writer>,
    readers: Mutex<Vec<Connection>>,
    reach: Reach,
    // Dropped last.
    open: OpenFile,
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer's connection is closed last, so that SQLite moves everything from `FILE-wal`
        // into the file, which then contains all data.
        self.readers.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
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
        match recognize(identity(&connection), path)? {
            Found::Journal { version: schema::VERSION } => {
                connection.execute_batch(imports::TABLE).map_err(|e| failed("opening the journal", &e))?;
            }
            Found::Journal { version: schema::WITHOUT_KEYS } => {
                connection.execute_batch(imports::TABLE).map_err(|e| failed("opening the journal", &e))?;
                keys::upgrade(&connection).map_err(|e| failed("upgrading the journal", &e))?;
            }
            Found::Journal { .. } => {
                head::upgrade(&connection, &[schema::HEAD, imports::TABLE, keys::TABLE].concat(), schema::VERSION)
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
        let heads = Heads::open(&connection, lock.place().path(), options.accept_head.as_ref())?;
        keep_log(&connection, false).map_err(|e| failed("opening the journal", &e))?;
        let ids = Ids::open(&connection, options.ids_at_once).map_err(|e| failed("opening the journal", &e))?;
        let (sender, requests) = channel();
        let health = Arc::new(Health::default());
        let seen = health.clone();
        let checkpoints = Checkpoints::new(path.to_owned());
        let place = lock.place().clone();
        let open = OpenFile::new(place.id().clone());
        let thread = std::thread::Builder::new()
            .name("journal".into())
            .spawn(move || {
                let writing = Writing::new(&connection, heads, ids);
                writer::run(writing, &requests, &place, &seen, commit, checkpoints);
            })
            .map_err(|e| StoreError::Failed { doing: "starting the writer", reason: e.to_string() })?;
        let writer = Writer { sender: Some(sender), thread: Some(thread), health, lock: Mutex::new(lock) };
        let (writer, reach) = (Some(writer), Reach::Shared);
        Ok(SqliteStore { path: path.to_owned(), writer, readers: Mutex::default(), reach, open })
    }

    /// Opens a journal for reading only, even while another process writes to it.
    ///
    /// # Errors
    /// The file has a newer schema version, is not a journal, or cannot be opened.
    pub fn open_read_only(path: &Path) -> Result<SqliteStore, StoreError> {
        let id = FileId::at(path).map_err(|e| cannot_open(&e))?;
        let open = OpenFile::new(id);
        // Checked before any use, so that a file that is not a journal is reported as such.
        let attempt = |reach: Reach| reader(path, reach).and_then(|connection| identity(&connection));
        let first = attempt(Reach::Shared);
        let other = first.as_ref().err().and_then(|e| other_reach(path, e.sqlite_error_code()));
        let (read, reach) = match other.map(|reach| (attempt(reach), reach)) {
            Some((Ok(read), reach)) => (Ok(read), reach),
            _ => (first, Reach::Shared),
        };
        let found = recognize(read, path)?;
        if found == Found::Empty {
            return Err(StoreError::NotAJournal { path: path.display().to_string(), why: "it is empty".into() });
        }
        Ok(SqliteStore { path: path.to_owned(), writer: None, readers: Mutex::default(), reach, open })
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

    /// Calls `read` with a pooled connection.
    fn reading<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => reader(&self.path, self.reach).map_err(|e| failed("opening the journal", &e))?,
        };
        let result = read(&connection).map_err(|e| match e {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::Damaged(e.to_string()),
            e => failed("reading the journal", &e),
        });
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < MAX_READERS {
            readers.push(connection);
        }
        result
    }
}

/// Checks, before anything is created, that the names of the files beside the journal are not too
/// long: SQLite's `-journal` is the longest.
fn check_name(path: &Path) -> Result<(), StoreError> {
    const LONGEST: usize = 255 - "-journal".len();
    match path.file_name().map_or(0, |name| name.len()) {
        0..=LONGEST => Ok(()),
        bytes => {
            let reason =
                format!("its name has {bytes} bytes; choose one of at most {LONGEST}, for the files beside it");
            Err(StoreError::Failed { doing: "opening the journal", reason })
        }
    }
}

/// Checks that nothing in the file interferes with what is written to it.
fn check_schema(connection: &Connection, path: &Path, repair: bool) -> Result<(), StoreError> {
    let sql = |e: rusqlite::Error| failed("opening the journal", &e);
    if repair {
        return schema::drop_foreign(connection).map_err(sql);
    }
    // Unreadable charters are findings of the verification.
    let declared = views::declared(connection).unwrap_or_default();
    let problems = schema::problems(connection, declared).map_err(sql)?;
    match problems.into_iter().find(schema::Problem::prevents_writing) {
        Some(problem) => Err(StoreError::Schema { path: path.display().to_string(), why: problem.to_string() }),
        None => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Empty,
    Journal { version: i64 },
}

/// What identifies a journal: the application, the schema version, the number of tables.
type Identity = (i64, i64, i64);

fn identity(connection: &Connection) -> rusqlite::Result<Identity> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok((
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?,
        number("SELECT count(*) FROM sqlite_schema")?,
    ))
}

/// Checks that a file is empty or a journal with a supported version.
fn recognize(read: rusqlite::Result<Identity>, path: &Path) -> Result<Found, StoreError> {
    let shown = || path.display().to_string();
    match read {
        Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
            Err(StoreError::NotAJournal { path: shown(), why: "it is not a SQLite file".into() })
        }
        Err(e) => Err(failed("opening the journal", &e)),
        Ok((0, 0, 0)) => Ok(Found::Empty),
        Ok((schema::APPLICATION, version, _)) if schema::READABLE.contains(&version) => Ok(Found::Journal { version }),
        Ok((schema::APPLICATION, 1, _)) => Err(StoreError::PreRelease { path: shown() }),
        Ok((schema::APPLICATION, found, _)) if found > schema::VERSION => {
            Err(StoreError::Newer { path: shown(), found, known: schema::VERSION })
        }
        Ok((schema::APPLICATION, found, _)) => {
            Err(StoreError::NotAJournal { path: shown(), why: format!("unknown schema version {found}") })
        }
        Ok(_) => {
            Err(StoreError::NotAJournal { path: shown(), why: "it is a SQLite file of another application".into() })
        }
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
