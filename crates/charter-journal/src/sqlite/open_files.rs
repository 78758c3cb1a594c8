//! The journal files that this process has open.
//!
//! Closing any descriptor of a file releases the POSIX locks that the process has on it, and SQLite
//! relies on such locks (<https://www.sqlite.org/howtocorrupt.html>, 2.2). So a descriptor that is
//! not SQLite's own stays open until the last store of the file in this process is closed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What identifies a file, regardless of its names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(#[cfg(unix)] (u64, u64), #[cfg(not(unix))] std::path::PathBuf);

impl FileId {
    /// The file that has this name.
    pub(super) fn at(path: &Path) -> io::Result<FileId> {
        #[cfg(unix)]
        return Ok(FileId::of_metadata(&std::fs::metadata(path)?));
        #[cfg(not(unix))]
        return path.canonicalize().map(FileId);
    }

    /// The open file; `path` is the name under which it was opened.
    pub(super) fn of(file: &File, path: &Path) -> io::Result<FileId> {
        #[cfg(unix)]
        return file.metadata().map(|m| FileId::of_metadata(&m)).map_err(|e| named(&e, path));
        #[cfg(not(unix))]
        return file.metadata().and_then(|_| FileId::at(path));
    }

    #[cfg(unix)]
    fn of_metadata(metadata: &std::fs::Metadata) -> FileId {
        use std::os::unix::fs::MetadataExt as _;
        FileId((metadata.dev(), metadata.ino()))
    }
}

#[cfg(unix)]
fn named(e: &io::Error, path: &Path) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", path.display()))
}

/// What this process has open of a file.
#[derive(Debug, Default)]
struct Open {
    stores: usize,
    /// Whether a store of this process holds the lock.
    locked: bool,
    /// Descriptors to be closed after the last store.
    files: Vec<File>,
}

static OPEN: Mutex<BTreeMap<FileId, Open>> = Mutex::new(BTreeMap::new());

fn open() -> MutexGuard<'static, BTreeMap<FileId, Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a store of this process holds the lock of a file.
pub(super) fn is_locked(id: &FileId) -> bool {
    open().get(id).is_some_and(|o| o.locked)
}

/// Counts a file as open. It must be dropped after all connections to the file.
#[derive(Debug)]
pub(super) struct OpenFile(FileId);

impl OpenFile {
    pub(super) fn new(id: FileId) -> OpenFile {
        let mut all = open();
        let entry = all.entry(id.clone()).or_default();
        entry.stores = entry.stores.saturating_add(1);
        OpenFile(id)
    }

    pub(super) fn id(&self) -> &FileId {
        &self.0
    }

    /// Notes whether a store of this process holds the lock.
    pub(super) fn set_locked(&self, locked: bool) {
        if let Some(entry) = open().get_mut(&self.0) {
            entry.locked = locked;
        }
    }

    /// Closes a descriptor of the file as soon as no store of this process has it open.
    pub(super) fn close_later(&self, file: File) {
        if let Some(entry) = open().get_mut(&self.0) {
            entry.files.push(file);
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut all = open();
        let Some(entry) = all.get_mut(&self.0) else {
            return;
        };
        entry.stores = entry.stores.saturating_sub(1);
        if entry.stores == 0 {
            drop(all.remove(&self.0));
        }
    }
}
