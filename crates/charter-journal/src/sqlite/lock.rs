//! One writing process per file: an advisory lock, which the system takes back when the process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    // Closing the file gives the lock back.
    _file: File,
}

impl Lock {
    /// Takes the lock of a journal file, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Lock, StoreError> {
        let failed = |e: std::io::Error| StoreError::Failed {
            doing: "locking the journal",
            reason: e.to_string(),
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(name(path))
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Who holds it is only told to help; that it cannot be read does not matter.
                let _ = file.read_to_string(&mut holder);
                let holder = holder
                    .trim()
                    .parse::<u32>()
                    .map(|pid| format!(" (process {pid})"))
                    .unwrap_or_default();
                return Err(StoreError::InUse {
                    path: path.display().to_string(),
                    holder,
                });
            }
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "{}", std::process::id()).map_err(failed)?;
        Ok(Lock { _file: file })
    }
}

/// `FILE-lock`, beside SQLite's `FILE-wal` and `FILE-shm`.
fn name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    name.into()
}
