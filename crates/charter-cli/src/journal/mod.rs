//! Commands on a journal: which file it is, how a run is named, and what they all need.

pub mod fork;
pub(crate) mod lines;
pub mod log;
pub mod replay;
pub mod runs;
pub mod show;
pub mod sql;
pub mod story;
pub(crate) mod table;
pub mod transfer;
pub mod verify;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use charter_journal::{ReplayError, RunFilter, RunInfo, SqliteStore, Store, StoreError, StoredCharter, TransferError};
use charter_kernel::{Digest, Machine, Snapshot};

use crate::io::Failure;
use crate::load::plain;

/// The journal that is used unless another one is named: in the current folder, where everybody sees it.
pub const DEFAULT: &str = "charter.db";

/// Which journal.
#[derive(Debug, Clone, clap::Args)]
pub struct Db {
    /// The journal
    #[arg(long, value_name = "FILE", default_value = DEFAULT)]
    pub db: PathBuf,
}

impl Db {
    /// Opens it for reading; somebody else may be writing it.
    ///
    /// # Errors
    /// There is no such journal.
    pub fn read(&self) -> Result<SqliteStore, Failure> {
        open(&self.db)
    }

    /// Opens it for writing.
    ///
    /// # Errors
    /// There is no such journal, or another process writes it.
    pub fn write(&self) -> Result<SqliteStore, Failure> {
        exists(&self.db)?;
        Ok(SqliteStore::open(&self.db)?)
    }

    /// Opens it for writing; makes it if it is not there.
    ///
    /// # Errors
    /// Another process writes it, or it cannot be made.
    pub fn make(&self) -> Result<SqliteStore, Failure> {
        if let Some(folder) = self.db.parent().filter(|f| !f.as_os_str().is_empty())
            && !folder.is_dir()
        {
            return Err(Failure::new(format!("there is no folder `{}` to keep the journal in", folder.display())));
        }
        if self.db.is_dir() {
            return Err(is_folder(&self.db));
        }
        if std::fs::metadata(&self.db).is_ok_and(|found| found.len() > 0) {
            other_file(&self.db)?;
        }
        Ok(SqliteStore::open(&self.db)?)
    }
}

/// Opens a journal for reading.
///
/// # Errors
/// There is no such journal.
pub fn open(path: &Path) -> Result<SqliteStore, Failure> {
    exists(path)?;
    Ok(SqliteStore::open_read_only(path)?)
}

fn exists(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(is_folder(path)),
        // For SQLite it is a database, into which a journal could be made.
        Ok(found) if found.is_file() && found.len() == 0 => {
            Err(Failure::new(format!("`{shown}` is not a journal: it is empty")))
        }
        Ok(_) => other_file(path),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Failure::with_help(
            format!("there is no journal `{shown}`"),
            "`charter run CHARTER` makes one, `charter import FILE` too; `--db FILE` names another",
        )),
        Err(e) => Err(Failure::new(format!("cannot read `{shown}`: {}", plain(&e)))),
    }
}

/// A file of another kind is told before anything is made beside it.
fn other_file(path: &Path) -> Result<(), Failure> {
    if path.is_file() && begins_as_sqlite(path) == Some(false) {
        let shown = path.display();
        let why = format!("`{shown}` is not a journal: it is not a SQLite file");
        return Err(Failure::new(why));
    }
    Ok(())
}

/// Whether a file begins as those of SQLite do; none: it cannot be read.
fn begins_as_sqlite(path: &Path) -> Option<bool> {
    const BEGIN: &[u8] = b"SQLite format 3\0";
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(16).read_to_end(&mut bytes).ok()?;
    Some(bytes == BEGIN)
}

/// A file to write results into must be no journal: what is in it would be gone.
///
/// # Errors
/// It is one.
pub(crate) fn spare(path: &Path) -> Result<(), Failure> {
    if path.is_file() && begins_as_sqlite(path) == Some(true) {
        let shown = path.display();
        return Err(Failure::with_help(
            format!("`{shown}` is a journal (or another SQLite file), and is not written over"),
            "name another file",
        ));
    }
    Ok(())
}

/// Whether a word on the command line means a journal rather than anything else.
pub(crate) fn is_journal(word: &str) -> bool {
    let path = Path::new(word);
    let extension = path.extension().and_then(|e| e.to_str());
    matches!(extension, Some("db" | "sqlite" | "sqlite3")) || path.is_file()
}

fn is_folder(path: &Path) -> Failure {
    Failure::new(format!("`{}` is a folder, not a journal", path.display()))
}

/// A run by its id, or by a beginning of it that no other run has.
///
/// # Errors
/// There is none, or there are several.
pub fn find(store: &dyn Store, name: &str) -> Result<RunInfo, Failure> {
    if let Some(run) = store.run(name)? {
        return Ok(run);
    }
    let all = store.runs(&RunFilter::default())?;
    let mut found = all.iter().filter(|r| r.run.starts_with(name));
    match (found.next(), found.next()) {
        (Some(one), None) if !name.is_empty() => Ok(one.clone()),
        (Some(one), Some(two)) => {
            let more = found.count();
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Err(Failure::with_help(
                format!("several runs begin with `{name}`"),
                format!("`{}`, `{}`{more}", one.run, two.run),
            ))
        }
        _ => {
            let near = charter_expr::nearest(name, all.iter().map(|r| r.run.as_str()));
            let help = match near {
                _ if is_journal(name) => {
                    format!("a journal is given with `--db`: `charter runs --db {name}` lists its runs")
                }
                Some(near) => format!("did you mean `{near}`?"),
                None if all.is_empty() => "it has no runs yet".to_owned(),
                None => "`charter runs` lists them".to_owned(),
            };
            let message = format!("there is no run `{name}` in this journal");
            Err(Failure::with_help(message, help))
        }
    }
}

/// The charter of a run, as it is kept.
///
/// # Errors
/// It is not there.
pub fn charter_of(store: &dyn Store, digest: Digest) -> Result<StoredCharter, Failure> {
    let stored = store.charter(digest)?;
    stored.ok_or_else(|| {
        Failure::with_help(format!("the charter {digest} is not in this journal"), "`charter verify` tells more")
    })
}

/// A run at a record: its machine and its snapshot.
///
/// # Errors
/// The records do not lead there, or its start was refused.
pub fn at(store: &dyn Store, run: &RunInfo, seq: Option<u64>) -> Result<(Machine, Snapshot), Failure> {
    let machine = charter_journal::machine(store, run.charter)?;
    let snapshot = charter_journal::replay(store, &machine, &run.run, seq)?;
    match snapshot {
        Some(snapshot) => Ok((machine, snapshot)),
        None => Err(Failure::with_help(
            format!("run `{}` never started: its start was refused", run.run),
            format!("`charter explain {} 0` says why", run.run),
        )),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::InUse { path, holder } => Failure::with_help(
                format!("`{path}` is in use by another process{holder}"),
                "one process writes a journal at a time; stop it or wait for it. Reading is possible meanwhile: `runs`, `show`, `log`, `verify`, `sql`",
            ),
            other => Failure::new(other.to_string()),
        }
    }
}

impl From<ReplayError> for Failure {
    fn from(error: ReplayError) -> Failure {
        match error {
            ReplayError::Store(error) => error.into(),
            other => Failure::new(other.to_string()),
        }
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Failure {
        match error {
            TransferError::Store(error) => error.into(),
            TransferError::Replay(error) => error.into(),
            other => Failure::new(other.to_string()),
        }
    }
}
