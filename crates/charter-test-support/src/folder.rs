//! Temporary folders.

use std::path::{Path, PathBuf};

/// A temporary folder, removed when it is dropped.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates a folder.
    ///
    /// # Panics
    /// It cannot be created.
    #[must_use]
    #[allow(clippy::new_without_default)] // a default value would not suggest a folder on the disk
    pub fn new() -> Folder {
        Folder(tempfile::Builder::new().prefix("charter-test-").tempdir().unwrap())
    }

    /// Creates a folder in memory, if the system has a place for that: for tests that write much,
    /// and sync it.
    ///
    /// # Panics
    /// It cannot be created.
    #[must_use]
    pub fn in_memory() -> Folder {
        let memory = tempfile::Builder::new().prefix("charter-test-").tempdir_in("/dev/shm");
        memory.map_or_else(|_| Folder::new(), Folder)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it, which does not have to exist.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Writes a file in it and returns its path.
    ///
    /// # Panics
    /// It cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.file(name);
        std::fs::write(&file, content).unwrap();
        file
    }
}
