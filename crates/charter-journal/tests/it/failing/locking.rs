//! Tests that a journal file has one writer by whatever name it is opened, and that a writer
//! notices when its file is removed or replaced.

use std::path::Path;

use charter_journal::{Append, SqliteStore, Store, StoreError, holder};

use super::processes::{listen, start_child};
use super::{put_charters, workload};
use crate::common::*;

/// What a process says that opens the file for writing.
fn second(file: &Path) -> String {
    let (_, words) = listen(&mut start_child(file, None));
    words.join("\n")
}

fn is_refused(file: &Path) -> bool {
    second(file).contains(&format!("is in use by another process (process {})", std::process::id()))
}

fn first_append() -> Vec<Append> {
    workload().into_iter().take(1).collect()
}

#[cfg(unix)]
#[test]
fn links_lead_to_the_same_lock() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    std::os::unix::fs::symlink(&file, folder.file("symlink.db")).unwrap();
    std::fs::hard_link(&file, folder.file("hardlink.db")).unwrap();
    assert!(is_refused(&folder.file("symlink.db")));
    assert!(second(&folder.file("hardlink.db")).contains("is in use by another process;"));
    assert_eq!(holder(&folder.file("symlink.db")).unwrap().unwrap().pid, std::process::id());
    for name in ["symlink.db", "hardlink.db"] {
        assert!(matches!(SqliteStore::open(&folder.file(name)), Err(StoreError::InUse { .. })), "{name}");
    }
    drop(store);
    // Without a writer: the log of SQLite has the name by which the file is opened.
    for name in ["journal.db", "hardlink.db"] {
        let said = SqliteStore::open(&folder.file(name)).unwrap_err().to_string();
        assert!(said.contains("the file has 2 names (hard links)"), "{said}");
    }
    std::fs::remove_file(folder.file("hardlink.db")).unwrap();
    drop(SqliteStore::open(&folder.file("symlink.db")).unwrap());
    assert!(!folder.file("symlink.db-lock").exists());
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn the_file_beside_the_journal_is_not_the_lock() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    let beside = folder.file("journal.db-lock");
    assert!(is_refused(&file));
    std::fs::remove_file(&beside).unwrap();
    assert!(second(&file).contains("is in use by another process;"));
    std::fs::write(&beside, "not JSON").unwrap();
    assert!(second(&file).contains("is in use by another process;"));
    assert_eq!(holder(&file).unwrap().unwrap().pid, std::process::id());
    put_charters(&store);
    store.append(first_append()).unwrap();
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[test]
fn a_renamed_journal_keeps_its_lock_and_its_writer_stops() {
    let folder = Folder::new();
    let (file, moved) = (folder.file("journal.db"), folder.file("moved.db"));
    let store = SqliteStore::open(&file).unwrap();
    put_charters(&store);
    std::fs::rename(&file, &moved).unwrap();
    assert!(second(&moved).contains("is in use by another process;"));
    let said = store.append(first_append()).unwrap_err().to_string();
    assert!(said.contains("was removed or renamed while this process had it open"), "{said}");
    assert!(store.stopped().is_some());
    // Nothing was written, so the file is complete once it has its name again.
    std::fs::rename(&moved, &file).unwrap();
    assert!(matches!(store.append(first_append()), Err(StoreError::Stopped { .. })));
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.run("a").unwrap(), None);
    store.append(first_append()).unwrap();
}

#[cfg(unix)]
#[test]
fn a_writer_whose_file_is_replaced_stops() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    put_charters(&store);
    std::fs::remove_file(&file).unwrap();
    let said = store.append(first_append()).unwrap_err().to_string();
    assert!(said.contains("was removed or renamed while this process had it open"), "{said}");
    // The name is free for another journal, which is not touched by the first writer.
    let other = SqliteStore::open(&file).unwrap();
    put_charters(&other);
    let said = store.put_blob(b"x").unwrap_err().to_string();
    assert!(said.contains("stopped accepting records"), "{said}");
    other.append(first_append()).unwrap();
    drop(store);
    assert_eq!(holder(&file).unwrap().unwrap().pid, std::process::id());
    assert!(folder.file("journal.db-lock").exists());
    other.append(workload().into_iter().skip(1).collect()).unwrap();
}

/// What is written to a log that has no name any more is lost with the process.
#[cfg(unix)]
#[test]
fn a_writer_whose_log_is_removed_or_replaced_stops() {
    for is_replaced in [false, true] {
        let folder = Folder::new();
        let (file, log, aside) = (folder.file("journal.db"), folder.file("journal.db-wal"), folder.file("aside"));
        let store = SqliteStore::open(&file).unwrap();
        put_charters(&store);
        store.append(first_append()).unwrap();
        std::fs::rename(&log, &aside).unwrap();
        if is_replaced {
            std::fs::copy(&aside, &log).unwrap();
        }
        let said = store.put_blob(b"x").unwrap_err().to_string();
        let how = if is_replaced { "replaced by another file" } else { "removed or renamed" };
        assert!(said.contains(&format!("journal.db-wal` was {how} while this process had it open")), "{said}");
        assert!(store.stopped().is_some());
        drop(store);
        // Once the log has its name again, everything is there that was acknowledged.
        std::fs::rename(&aside, &log).unwrap();
        let store = SqliteStore::open(&file).unwrap();
        assert!(store.run("a").unwrap().is_some());
    }
}

/// SQLite's locks of this process on a file, from `/proc/locks`.
#[cfg(target_os = "linux")]
fn posix_locks(file: &Path) -> Vec<String> {
    use std::os::unix::fs::MetadataExt as _;
    let (process, inode) =
        (format!(" {} ", std::process::id()), format!(":{} ", std::fs::metadata(file).unwrap().ino()));
    let all = std::fs::read_to_string("/proc/locks").unwrap();
    let own = all.lines().filter(|l| l.contains("POSIX") && l.contains(&process) && l.contains(&inode));
    own.map(|l| l.split_once(": ").unwrap().1.to_owned()).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn a_refused_writer_leaves_the_locks_of_sqlite() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    put_charters(&store);
    let before = posix_locks(&file);
    assert!(!before.is_empty());
    std::fs::hard_link(&file, folder.file("link.db")).unwrap();
    for name in ["journal.db", "link.db"] {
        assert!(SqliteStore::open(&folder.file(name)).is_err());
        assert!(holder(&folder.file(name)).unwrap().is_some());
    }
    assert_eq!(posix_locks(&file), before);
    // The lock is released before a reader of the same process is closed; its locks stay.
    let reader = SqliteStore::open_read_only(&file).unwrap();
    reader.run("a").unwrap();
    drop(store);
    assert_eq!(holder(&file).unwrap(), None);
    assert!(!posix_locks(&file).is_empty());
    drop(reader);
    assert!(posix_locks(&file).is_empty());
}
