//! One writing process per file: an advisory lock, which the operating system releases when the
//! process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::StoreError;

/// How long to retry while another process holds the lock. If a process is killed while it spawns a
/// command, the forked child inherits its open files and closes them a moment later.
const PATIENCE: Duration = Duration::from_millis(500);

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct Lock {
    // Closing the file releases the lock.
    _file: File,
}

impl Lock {
    /// Acquires the lock of a journal file, or reports its holder.
    pub(crate) fn take(path: &Path) -> Result<Lock, StoreError> {
        let failed = |e: std::io::Error| StoreError::Failed { doing: "locking the journal", reason: e.to_string() };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(name(path)).map_err(failed)?;
        let begin = Instant::now();
        let locked = loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                locked => break locked,
            }
        };
        match locked {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // The holder is only a hint in the message; ignore read errors.
                let _ = file.read_to_string(&mut holder);
                let holder = holder.trim().parse::<u32>().map(|pid| format!(" (process {pid})")).unwrap_or_default();
                return Err(StoreError::InUse { path: path.display().to_string(), holder });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_about_to_be_released_is_waited_for() {
        let path = std::env::temp_dir().join(format!("charter-lock-{}", std::process::id()));
        let held = Lock::take(&path).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let other = std::thread::spawn({
            let path = path.clone();
            move || {
                sender.send(()).unwrap();
                Lock::take(&path)
            }
        });
        receiver.recv().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        drop(held);
        let held = other.join().unwrap().unwrap();
        // A lock that stays held is reported.
        let refused = Lock::take(&path).unwrap_err();
        assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
        drop(held);
        std::fs::remove_file(name(&path)).unwrap();
    }
}
