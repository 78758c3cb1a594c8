//! One writing process per file: an advisory lock, which the operating system releases when the
//! process ends.
//!
//! On Linux it is `flock` on the journal file itself, so it does not matter by which name the file
//! is opened, or what happens to the files beside it. Elsewhere `flock` would also lock out the
//! readers of SQLite, and the lock is on `FILE-lock`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::guest::give_to_owner;
use super::open_files::{FileId, OpenFile, is_locked};
use crate::error::StoreError;
use crate::holder::Holder;
use crate::private::{create_private, private, share_like};

/// How long to retry while another process holds the lock. If a process is killed while it spawns a
/// command, the forked child inherits its open files and closes them a moment later; and
/// [`holder`] holds a shared lock for a moment.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum size of `FILE-lock` that is read, in bytes.
const MAX_HOLDER_BYTES: u64 = 8_192;

/// Whether the lock is on the journal file itself.
pub(super) const ON_JOURNAL: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// A held lock; dropping it releases the lock. It must be dropped after all connections to the
/// file.
#[derive(Debug)]
pub(super) struct Lock {
    /// `None` only while the lock is being dropped.
    file: Option<File>,
    open: OpenFile,
    place: Place,
}

/// Where a journal file is, to find out whether it still is there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    path: PathBuf,
    id: FileId,
}

/// A journal file and its log, to find out whether both still are there.
#[derive(Debug)]
pub(super) struct Watched {
    place: Place,
    /// The log that SQLite has open; `None` before it has one.
    log: Option<FileId>,
}

impl Place {
    pub(super) fn id(&self) -> &FileId {
        &self.id
    }

    /// The path, without links.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the path still leads to the file that was opened.
    fn check(&self) -> Result<(), String> {
        check_id(&self.path, &self.id)
    }
}

impl Watched {
    pub(super) fn new(place: Place) -> Watched {
        let mut watched = Watched { place, log: None };
        watched.note_log();
        watched
    }

    /// Notes which log SQLite has open, once there is one.
    pub(super) fn note_log(&mut self) {
        if self.log.is_none() {
            self.log = FileId::at(&log_of(&self.place.path)).ok();
        }
    }

    /// Checks that the path still leads to the file that was opened, and that of its log to the log
    /// that SQLite writes: nobody would find again what is written to another one.
    pub(super) fn check(&self) -> Result<(), String> {
        self.place.check()?;
        self.log.as_ref().map_or(Ok(()), |log| check_id(&log_of(&self.place.path), log))
    }
}

/// The name of the write-ahead log.
fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn check_id(path: &Path, id: &FileId) -> Result<(), String> {
    let shown = path.display();
    match FileId::at(path) {
        Ok(found) if found == *id => Ok(()),
        Ok(_) => Err(format!("`{shown}` was replaced by another file while this process had it open")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(format!("`{shown}` was removed or renamed while this process had it open"))
        }
        Err(e) => Err(format!("`{shown}` cannot be found any more: {e}")),
    }
}

/// Checks, before anything is created, that the names of the files beside the journal are not too
/// long: SQLite's `-journal` is the longest.
pub(super) fn check_name(path: &Path) -> Result<(), StoreError> {
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

impl Lock {
    /// Acquires the lock of a journal file, or reports its holder. Creates the file.
    pub(super) fn take(path: &Path) -> Result<Lock, StoreError> {
        let begin = Instant::now();
        loop {
            // A second descriptor would be in the way of the store that this process has.
            if FileId::at(path).is_ok_and(|id| is_locked(&id)) {
                let holder = Some(Holder { pid: std::process::id(), address: None, starting: false });
                return Err(in_use(path, holder));
            }
            let journal = create(path).map_err(|e| cannot("opening the journal", &e))?;
            let id = FileId::of(&journal, path).map_err(|e| cannot("opening the journal", &e))?;
            let open = OpenFile::new(id.clone());
            // Links are resolved, as SQLite does it for the names of its own files.
            let place = path.canonicalize().map(|path| Place { path, id });
            let file = match (&place, ON_JOURNAL) {
                (Ok(place), false) => {
                    open.close_later(journal);
                    create(&beside(&place.path)).map_err(|e| cannot("locking the journal", &e))?
                }
                _ => journal,
            };
            let locked = try_lock(&file, begin);
            let (Ok(()), Ok(place)) = (&locked, place) else {
                open.close_later(file);
                match locked {
                    Err(TryLockError::WouldBlock) => return Err(in_use(path, read_holder(path))),
                    Err(TryLockError::Error(e)) => return Err(unsupported(path, &e)),
                    // The file was removed or renamed meanwhile.
                    Ok(()) if begin.elapsed() < PATIENCE => continue,
                    Ok(()) => return Err(cannot("opening the journal", &std::io::ErrorKind::NotFound.into())),
                }
            };
            let mut lock = Lock { file: Some(file), open, place };
            // The name may lead to another file by now, which another process may have locked.
            if lock.place.check().is_err() {
                if begin.elapsed() < PATIENCE {
                    continue;
                }
                return Err(cannot("locking the journal", &std::io::Error::other("the file is being replaced")));
            }
            lock.open.set_locked(true);
            one_name(path)?;
            lock.announce(None, false)?;
            return Ok(lock);
        }
    }

    /// The path of the file, without links.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Writes down in `FILE-lock` where this process accepts requests of others.
    pub(super) fn announce(&mut self, address: Option<&Path>, starting: bool) -> Result<(), StoreError> {
        let failed = |e: std::io::Error| cannot("locking the journal", &e);
        let holder = Holder { pid: std::process::id(), address: address.map(Path::to_owned), starting };
        let text = serde_json::to_string(&holder).map_err(|e| failed(e.into()))?;
        let name = beside(&self.place.path);
        if name.is_dir() {
            let why = format!(
                "`{}` is a folder, and the process that writes to the journal needs a file of this name; move the folder away",
                name.display()
            );
            return Err(failed(std::io::Error::other(why)));
        }
        match &mut self.file {
            // The file must stay the same, because it is locked.
            Some(file) if !ON_JOURNAL => {
                file.set_len(0).map_err(failed)?;
                file.rewind().map_err(failed)?;
                writeln!(file, "{text}").map_err(failed)
            }
            _ => {
                let mut new = name.clone().into_os_string();
                new.push(format!(".{}", std::process::id()));
                let new = PathBuf::from(new);
                let _ = std::fs::remove_file(&new);
                let journal = &self.place.path;
                let written = create_private(&new).and_then(|mut file| {
                    // Who may not give files away is named less exactly to others.
                    let _ = give_to_owner(&file, journal);
                    share_like(&file, journal)?;
                    writeln!(file, "{text}")
                });
                written.and_then(|()| std::fs::rename(&new, &name)).map_err(|e| {
                    let _ = std::fs::remove_file(&new);
                    failed(e)
                })
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // If the journal has been replaced, the file beside it may belong to another process.
        if self.open.id() == &self.place.id && ON_JOURNAL && self.place.check().is_ok() {
            let _ = std::fs::remove_file(beside(&self.place.path));
        }
        self.open.set_locked(false);
        if let Some(file) = self.file.take() {
            let _ = file.unlock();
            self.open.close_later(file);
        }
    }
}

/// Returns the process that has a journal file open for writing, without disturbing it; `None` if
/// there is none. Must be called before this process opens the file.
///
/// # Errors
/// The file cannot be opened or locked.
pub fn holder(path: &Path) -> Result<Option<Holder>, StoreError> {
    let failed = |e: std::io::Error| cannot("opening the journal", &e);
    // A pipe would be waited for until somebody writes to it.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a file")));
    }
    let id = FileId::at(path).map_err(failed)?;
    let open = OpenFile::new(id.clone());
    if is_locked(&id) {
        return Ok(Some(Holder { pid: std::process::id(), address: None, starting: false }));
    }
    let name = if ON_JOURNAL { path.to_owned() } else { beside(path) };
    let file = match File::open(&name) {
        Ok(file) => file,
        Err(e) if !ON_JOURNAL && e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(e)),
    };
    let locked = file.try_lock_shared();
    let _ = file.unlock();
    open.close_later(file);
    match locked {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            Ok(Some(read_holder(path).unwrap_or(Holder { pid: 0, address: None, starting: false })))
        }
        Err(TryLockError::Error(e)) => Err(unsupported(path, &e)),
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create(true).truncate(false)).open(path)
}

fn try_lock(file: &File, begin: Instant) -> Result<(), TryLockError> {
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            locked => return locked,
        }
    }
}

/// Reads what the holder has written down; `None` if it cannot be read.
fn read_holder(path: &Path) -> Option<Holder> {
    let name = beside(&path.canonicalize().ok()?);
    let mut text = String::new();
    File::open(name).ok()?.take(MAX_HOLDER_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// `FILE-lock`, beside SQLite's `FILE-wal` and `FILE-shm`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    name.into()
}

/// Checks that a file has no second name: SQLite looks for its log under the name by which the file
/// is opened, so under another name it would not find what was committed last.
fn one_name(path: &Path) -> Result<(), StoreError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let names = std::fs::metadata(path).map_err(|e| cannot("opening the journal", &e))?.nlink();
        if names > 1 {
            let why = format!(
                "the file has {names} names (hard links), and what was written under one of them can be lost under another; remove the others, or make a copy"
            );
            return Err(cannot("opening the journal", &std::io::Error::other(why)));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn in_use(path: &Path, holder: Option<Holder>) -> StoreError {
    StoreError::InUse { path: path.display().to_string(), holder: holder.map(Box::new) }
}

fn unsupported(path: &Path, e: &std::io::Error) -> StoreError {
    let why = format!(
        "`{}` cannot be locked ({e}): the file system does not support `flock`; keep the journal on a local one",
        path.display()
    );
    cannot("locking the journal", &std::io::Error::other(why))
}

fn cannot(doing: &'static str, e: &std::io::Error) -> StoreError {
    StoreError::Failed { doing, reason: e.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_about_to_be_released_is_waited_for() {
        let path = std::env::temp_dir().join(format!("charter-lock-{}", std::process::id()));
        // A process of its own would be waited for; this one is known to hold the lock.
        let held = create(&path).unwrap();
        held.try_lock().unwrap();
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
        assert_eq!(read_holder(&path).unwrap().pid, std::process::id());
        // A lock that stays held is reported.
        let refused = Lock::take(&path).unwrap_err();
        assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
        assert_eq!(holder(&path).unwrap().unwrap().pid, std::process::id());
        drop(held);
        assert!(!beside(&path).exists());
        assert_eq!(holder(&path).unwrap(), None);
        std::fs::remove_file(path).unwrap();
    }
}
