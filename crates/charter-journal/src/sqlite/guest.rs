//! Whose a journal is: only its owner writes to it, and a reader of another user leaves no files
//! beside it, which would keep the owner out.
//!
//! SQLite creates `FILE-wal` and `FILE-shm` for readers, too, and a reader cannot remove them.
//! Where they are missing, nobody has the file open for writing. Then another user reads without
//! them, under a shared lock that keeps writers out for the time of one read.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::connect::Reach;
use super::lock::ON_JOURNAL;
use crate::error::StoreError;

/// How long a writer may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// The user that a journal belongs to and the user of this process, if they are not the same.
#[cfg(unix)]
fn others(path: &Path) -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt as _;
    let owner = std::fs::metadata(path).ok()?.uid();
    let own = rustix::process::geteuid().as_raw();
    (owner != own).then_some((owner, own))
}

#[cfg(not(unix))]
fn others(_: &Path) -> Option<(u32, u32)> {
    None
}

/// Checks, before anything is created, that this user may write to a journal: its owner, who then
/// must be able to write to the files beside it, or root.
///
/// # Errors
/// The file belongs to another user, or so does a file beside it that cannot be written.
pub fn check_owner(path: &Path) -> Result<(), StoreError> {
    match others(path) {
        Some((owner, 1..)) => Err(StoreError::OtherUser { path: path.display().to_string(), owner }),
        Some((_, 0)) => Ok(()),
        None => check_beside(&super::head::without_links(path)),
    }
}

#[cfg(unix)]
fn check_beside(path: &Path) -> Result<(), StoreError> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let foreign = ["-wal", "-shm", "-head"].into_iter().filter_map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let (_, own) = others(Path::new(&name))?;
        let denied = accessat(CWD, &name, Access::READ_OK | Access::WRITE_OK, AtFlags::EACCESS).is_err();
        denied.then(|| (name.display().to_string(), own))
    });
    let (names, users): (Vec<String>, Vec<u32>) = foreign.unzip();
    let Some(own) = users.first() else {
        return Ok(());
    };
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let reason = format!(
        "another user has made {}, and you cannot write to it; give it to the owner of the journal: `sudo chown {own} {}`",
        quoted.join(" and "),
        names.join(" ")
    );
    Err(StoreError::Failed { doing: "opening the journal", reason })
}

#[cfg(not(unix))]
fn check_beside(_: &Path) -> Result<(), StoreError> {
    Ok(())
}

/// Gives a file beside a journal to the owner of the journal.
#[cfg(unix)]
pub(super) fn give_to_owner(file: &File, journal: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    match others(journal) {
        Some((owner, _)) => {
            let group = std::fs::metadata(journal)?.gid();
            std::os::unix::fs::fchown(file, Some(owner), Some(group))
        }
        None => Ok(()),
    }
}

#[cfg(not(unix))]
pub(super) fn give_to_owner(_: &File, _: &Path) -> std::io::Result<()> {
    Ok(())
}

/// A reader that is not the owner of a journal.
#[derive(Debug)]
pub(super) struct Guest {
    file: File,
    reads: Mutex<Reads>,
}

#[derive(Debug, Default)]
struct Reads {
    count: usize,
    /// Whether they keep writers out. If they do not, there is a writer.
    locked: bool,
}

impl Guest {
    /// `None` if the journal belongs to this user.
    pub(super) fn new(path: &Path) -> std::io::Result<Option<Guest>> {
        match others(path) {
            Some(_) if ON_JOURNAL => Ok(Some(Guest { file: File::open(path)?, reads: Mutex::default() })),
            _ => Ok(None),
        }
    }

    /// Begins a read, and says how it reaches the file.
    pub(super) fn read(&self, path: &Path) -> (Read<'_>, Reach) {
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = Instant::now();
        while !reads.locked {
            reads.locked = !matches!(self.file.try_lock_shared(), Err(TryLockError::WouldBlock));
            // A writer that is starting or ending has no log, and will have one or none at all.
            if beside(path) != (None, None) || begin.elapsed() > PATIENCE {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        reads.count = reads.count.saturating_add(1);
        let reach = if reads.locked { at_rest(path) } else { Reach::Shared };
        (Read(self), reach)
    }

    /// The descriptor, which must not be closed before all connections to the file.
    pub(super) fn into_file(self) -> File {
        self.file
    }
}

/// A read of a guest.
pub(super) struct Read<'a>(&'a Guest);

impl Drop for Read<'_> {
    fn drop(&mut self) {
        let mut reads = self.0.reads.lock().unwrap_or_else(PoisonError::into_inner);
        reads.count = reads.count.saturating_sub(1);
        if reads.count == 0 && std::mem::take(&mut reads.locked) {
            let _ = self.0.file.unlock();
        }
    }
}

/// The sizes of the log and of its index, if there are such files.
fn beside(path: &Path) -> (Option<u64>, Option<u64>) {
    (size(path, "-wal"), size(path, "-shm"))
}

fn size(path: &Path, end: &str) -> Option<u64> {
    let mut name = super::head::without_links(path).into_os_string();
    name.push(end);
    std::fs::metadata(name).ok().map(|found| found.len())
}

/// How a file without a writer is reached without creating files.
fn at_rest(path: &Path) -> Reach {
    match beside(path) {
        // What a writer leaves that was killed.
        (Some(_), Some(_)) => Reach::Shared,
        (Some(1..), None) => Reach::AloneWithLog,
        // The log of a file that is being created has another name.
        _ if size(path, "-journal").is_some() => Reach::Shared,
        _ => Reach::Alone,
    }
}
