//! One writing process per file: an advisory lock, which the system takes back when the process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::StoreError;

/// How long a lock that another process has is tried again. A process that is killed while it starts a command leaves its open files
/// with the beginning of the command, which closes them a moment later.
const PATIENCE: Duration = Duration::from_millis(500);

/// Held as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    // Closing the file gives the lock back.
    _file: File,
}

impl Lock {
    /// Takes the lock of a journal file, or says who has it.
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
                // Who holds it is only told to help; that it cannot be read does not matter.
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
    fn a_lock_that_is_about_to_be_given_back_is_waited_for() {
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
        // Whoever keeps it, keeps it.
        let refused = Lock::take(&path).unwrap_err();
        assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
        drop(held);
        std::fs::remove_file(name(&path)).unwrap();
    }
}
