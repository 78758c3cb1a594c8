//! Copies of a journal that are made while it is written to.

use std::fs;

use charter_journal::{BackupError, SqliteStore, Store, attempt_waits, verify, waiting_attempts};
use charter_kernel::{EffectId, Principal};
use serde_json::json;

use crate::common::*;
use crate::heads::beside;

fn first(machine: &charter_kernel::Machine, run: &str) -> charter_journal::Append {
    Driver::start(machine, run).1
}

#[test]
fn a_copy_of_a_journal_in_use_is_a_closed_journal_with_its_head() {
    let folder = Folder::new();
    let (file, to, late) = (folder.file("journal.db"), folder.file("copy.db"), folder.file("late.db"));
    let store = SqliteStore::open(&file).unwrap();
    store.put_charter(&stored(LOOSE)).unwrap();
    let blob = store.put_blob(b"a file").unwrap();
    let waits = attempt_waits("a", EffectId { seq: 0, index: 0 }, Some(2));
    store.put_host_state(vec![waits]).unwrap();
    let machine = machine(LOOSE);
    for run in ["a", "b"] {
        store.append(vec![first(&machine, run)]).unwrap();
    }
    // As another process makes it, which has the file open for reading only.
    let reader = SqliteStore::open_read_only(&file).unwrap();
    let copied = reader.backup(&to).unwrap();
    assert!(!to.exists(), "a copy has its name when it is complete");
    store.append(vec![first(&machine, "c")]).unwrap();
    let head = copied.keep().unwrap();
    assert_eq!((head.runs, head.entries), (2, 2));
    let left = |end: &str| beside(&to, end).exists();
    assert!(left("") && left("-head") && !left("-wal") && !left("-shm"));
    assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().filter(is_temporary).count(), 0);
    // The store that writes can make one, too.
    assert_eq!(store.backup(&late).unwrap().keep().unwrap().entries, 3);
    for (copy, runs) in [(&to, 2), (&late, 3)] {
        let opened = SqliteStore::open_read_only(copy).unwrap();
        // It may have begun since.
        assert_eq!(waiting_attempts(&opened, "a").unwrap().len(), 0);
        let report = verify(&opened, None).unwrap();
        assert_eq!((report.findings, report.remarks, report.runs.len()), (vec![], vec![], runs));
        assert_eq!(opened.blob(blob).unwrap().unwrap(), b"a file");
        assert_eq!(opened.head().unwrap().map(|h| h.runs), Some(runs as u64));
        drop(opened);
        // It is written to like any other, without its head file, too.
        let _ = fs::remove_file(beside(copy, "-head"));
        SqliteStore::open(copy).unwrap().append(vec![first(&machine, "d")]).unwrap();
    }
    // An older copy in the place of the journal is noticed.
    drop((reader, store));
    fs::copy(&to, &file).unwrap();
    assert!(SqliteStore::open(&file).unwrap_err().to_string().contains("journal.db-head"));
}

fn is_temporary(entry: &std::io::Result<fs::DirEntry>) -> bool {
    entry.as_ref().unwrap().file_name().to_string_lossy().contains(&format!(".{}", std::process::id()))
}

#[test]
fn a_copy_overwrites_nothing_and_an_unfinished_one_leaves_nothing() {
    let folder = Folder::new();
    let (file, to) = (folder.file("journal.db"), folder.file("copy.db"));
    let store = SqliteStore::open(&file).unwrap();
    for part in ["", "-head", "-wal", "-shm", "-journal"] {
        fs::write(beside(&to, part), "mine").unwrap();
        let refused = store.backup(&to).unwrap_err();
        assert!(
            matches!(&refused, BackupError::Exists(name) if name.ends_with(&format!("copy.db{part}"))),
            "{refused}"
        );
        assert_eq!(fs::read(beside(&to, part)).unwrap(), b"mine");
        fs::remove_file(beside(&to, part)).unwrap();
    }
    drop(store.backup(&to).unwrap());
    // Made between the copy and its name.
    let copied = store.backup(&to).unwrap();
    fs::write(&to, "mine").unwrap();
    assert!(matches!(copied.keep(), Err(BackupError::Exists(_))));
    assert_eq!(fs::read(&to).unwrap(), b"mine");
    assert!(store.backup(&folder.file("none/copy.db")).unwrap_err().to_string().contains("copy.db"));
    assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().filter(is_temporary).count(), 0);
    let unlikely = "n".repeat(250);
    assert!(store.backup(&folder.file(&unlikely)).unwrap_err().to_string().contains("choose one of at most"));
}

#[cfg(unix)]
#[test]
fn a_copy_is_private_even_if_others_can_read_the_journal() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let (file, to) = (folder.file("journal.db"), folder.file("copy.db"));
    let store = SqliteStore::open(&file).unwrap();
    store.put_charter(&stored(LOOSE)).unwrap();
    let by = Principal::new("ana", &[]);
    let machine = machine(LOOSE);
    let (mut driver, first) = Driver::start(&machine, "a");
    let mut all = vec![first];
    all.extend((0..300).map(|n| driver.send("SET", json!({"n": n}), &by)));
    store.append(all).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    // More entries than the newest stored head has.
    let head = store.backup(&to).unwrap().keep().unwrap();
    assert_eq!(head.entries, 301);
    for copy in [to.clone(), folder.file("copy.db-head")] {
        assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600, "{copy:?}");
    }
    assert_eq!(store.head().unwrap(), Some(head));
}
