//! A copy of a journal file, made while a process writes to it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::connect::{connect, reader};
use super::head;
use super::host_state;
use super::lock::check_name;
use super::{SqliteStore, failed};
use crate::error::StoreError;
use crate::head::JournalHead;
use crate::private::create_private;

/// What may not exist in the place of a copy, because it would be taken for a part of it.
const PARTS: [&str; 5] = ["", "-head", "-wal", "-shm", "-journal"];

/// Why a copy was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A file of this name exists.
    #[error("`{0}` exists; a backup does not write over it")]
    Exists(String),
    /// The copy cannot be written.
    #[error("cannot write `{path}`: {error}")]
    Write {
        /// The file.
        path: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The journal cannot be read, or SQLite cannot write the copy.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A complete copy that does not have its name yet. Dropping it removes it.
#[derive(Debug)]
pub struct Copied {
    temporary: PathBuf,
    to: PathBuf,
    journal: String,
    head: JournalHead,
}

impl SqliteStore {
    /// Copies the journal as it is after its last commit, also while this or another process writes
    /// to it: writers do not wait. The copy is a journal that was closed, with the same id; it gets
    /// its name, `to`, by [`Copied::keep`].
    ///
    /// # Errors
    /// There is a file named `to`, or one that would belong to it; the journal cannot be read, or
    /// the copy not be written.
    pub fn backup(&self, to: &Path) -> Result<Copied, BackupError> {
        check_name(to)?;
        check_free(to)?;
        let mut temporary = to.as_os_str().to_owned();
        temporary.push(format!(".{}", std::process::id()));
        let mut copied =
            Copied { temporary: temporary.into(), to: to.to_owned(), journal: String::new(), head: JournalHead::EMPTY };
        copied.remove();
        // Private, even if others can read the journal.
        create_private(&copied.temporary).map_err(|error| copied.cannot(error))?;
        let sql = |e: rusqlite::Error| StoreError::Failed { doing: "copying the journal", reason: e.to_string() };
        let (_guest, reach) = self.reach();
        (copied.journal, copied.head) = copy(&reader(&self.path, reach).map_err(sql)?, &copied.temporary)?;
        let finished = File::open(&copied.temporary).and_then(|file| file.sync_all());
        finished.map_err(|error| copied.cannot(error))?;
        Ok(copied)
    }
}

/// Copies all pages within one read transaction, and closes the copy in order.
fn copy(source: &Connection, to: &Path) -> Result<(String, JournalHead), StoreError> {
    let sql = |e: rusqlite::Error| failed("copying the journal", &e);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut target = connect(to, flags).map_err(sql)?;
    // The copy is synced as a whole.
    target.pragma_update(None, "synchronous", "OFF").map_err(sql)?;
    let done = Backup::new(source, &mut target).and_then(|backup| backup.step(-1)).map_err(sql)?;
    if done != StepResult::Done {
        return Err(StoreError::Failed { doing: "copying the journal", reason: "the file is locked".into() });
    }
    drop(target);
    let target = connect(to, flags).map_err(sql)?;
    host_state::forget_waiting(&target).map_err(sql)?;
    head::close_copy(&target).map_err(sql)
}

fn check_free(to: &Path) -> Result<(), BackupError> {
    for part in PARTS {
        let mut name = to.as_os_str().to_owned();
        name.push(part);
        // Also a link that leads nowhere.
        if fs::symlink_metadata(&name).is_ok() {
            return Err(BackupError::Exists(Path::new(&name).display().to_string()));
        }
    }
    Ok(())
}

impl Copied {
    /// The head of the copy.
    #[must_use]
    pub fn head(&self) -> JournalHead {
        self.head
    }

    /// Gives the copy its name, durably, and writes the head beside it.
    ///
    /// # Errors
    /// A file of that name was made meanwhile, or the names cannot be written.
    pub fn keep(self) -> Result<JournalHead, BackupError> {
        check_free(&self.to)?;
        self.rename().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Exists(self.to.display().to_string()),
            _ => self.cannot(error),
        })?;
        // Without it, the copy is complete but cannot show that it is the last version.
        head::write_beside(&self.to, &self.journal, self.head).map_err(|error| self.cannot(error))?;
        Ok(self.head)
    }

    /// Renames the copy, unless its name is in use.
    fn rename(&self) -> io::Result<()> {
        match fs::hard_link(&self.temporary, &self.to) {
            // The other name goes when this is dropped.
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            // File systems without hard links.
            Err(_) => fs::rename(&self.temporary, &self.to),
        }
    }

    fn cannot(&self, error: io::Error) -> BackupError {
        BackupError::Write { path: self.to.display().to_string(), error }
    }

    fn remove(&self) {
        for part in PARTS {
            let mut name = self.temporary.as_os_str().to_owned();
            name.push(part);
            let _ = fs::remove_file(name);
        }
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.remove();
    }
}
