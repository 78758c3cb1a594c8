//! The smallest forms of what the schedules have found.

use charter_test_disk::{Disk, Ended, Fault, Image, Op, Plan};
use charter_test_support::{Folder, cases};
use rusqlite::{Connection, ffi};

use super::model::{Counts, WORK, batch, reopen, stored};
use crate::error::StoreError;
use crate::sqlite::SqliteStore;
use crate::sqlite::objects::drop_foreign;
use crate::store::Store;
use crate::verify::verify;

/// If the file cannot be changed into one with a log, SQLite says so only after it has said that it
/// was changed, and goes on with a journal that it deletes without syncing the folder.
#[test]
fn a_file_that_cannot_have_a_log_is_not_opened() {
    let mut refused = 0;
    for n in 0..8 {
        let folder = Folder::in_memory();
        let file = folder.file("journal.db");
        let _disk = Disk::new(folder.path(), &[], Plan::nth(n, Op::Sync, n, Fault::SyncFails));
        match SqliteStore::open(&file) {
            Ok(store) => {
                // A commit is in the log, or fails.
                let written = store.put_charter(&WORK.0);
                let log = std::fs::metadata(folder.file("journal.db-wal")).map_or(0, |found| found.len());
                assert!(written.is_err() || log > 0, "sync {n}: written without a log");
            }
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 3, "{refused}");
}

/// After a sync that failed, no later one writes what it should have: the log of a process that
/// ended then can be read, but its end is not on the disk, and what is appended to it would be lost
/// with it. It is written again.
#[test]
fn a_log_whose_sync_failed_is_not_continued() {
    let mut failed = 0;
    for n in 4..14 {
        let folder = Folder::in_memory();
        let disk = Disk::new(folder.path(), &["journal.db-head"], Plan::nth(n, Op::Sync, n, Fault::SyncFails));
        let open = |folder: &Folder| SqliteStore::open(&folder.file("journal.db"));
        // The sync of one of these commits fails, or one before.
        if let Ok(store) = open(&folder) {
            let written = store
                .put_charter(&WORK.0)
                .and_then(|()| (0..3).try_for_each(|run| store.append(batch(Counts::default(), &[run]).0)));
            failed += u32::from(written.is_err());
        }
        disk.restart(Plan::faultless(n));
        let store = open(&folder).unwrap();
        store.put_charter(&WORK.0).unwrap();
        let before = stored(&store).unwrap();
        let (next, _) = batch(before, &[2]);
        store.append(next).unwrap();
        let mut expected = before;
        expected[2] += 1;
        // Nothing that is not synced survives.
        let image = disk.power_cut_losing_all();
        drop(store);
        let after = Folder::in_memory();
        image.write(after.path()).unwrap();
        assert_eq!(reopen(&after.file("journal.db"), None, false), Ok(expected), "sync {n}");
    }
    assert!(failed > 2, "{failed}");
}

/// Nor is it while somebody reads it, so that it cannot be begun anew. The power fails before or in
/// the middle of each later call.
#[test]
fn a_log_whose_sync_failed_is_written_again() {
    let mut cut = 0;
    for (n, call) in (4..14).flat_map(|n| (0..200).step_by(cases(23, 1) as usize).map(move |call| (n, call))) {
        let folder = Folder::in_memory();
        let file = folder.file("journal.db");
        let disk = Disk::new(folder.path(), &["journal.db-head"], Plan::nth(n, Op::Sync, n, Fault::SyncFails));
        if let Ok(store) = SqliteStore::open(&file) {
            let _ = store.put_charter(&WORK.0).and_then(|()| store.append(batch(Counts::default(), &[2]).0));
        }
        disk.restart(Plan::faultless(n));
        let reader = Connection::open(&file).unwrap();
        let read = reader.execute_batch("BEGIN; SELECT count(*) FROM records");
        disk.restart(Plan::at(n, call, Fault::PowerCut));
        let mut expected = Vec::new();
        if let Ok(store) = SqliteStore::open(&file) {
            let before = stored(&store);
            expected.extend(before.clone());
            if let Ok(before) = before
                && store.put_charter(&WORK.0).is_ok()
            {
                let (next, sent) = batch(before, &[2]);
                let mut after = before;
                sent.into_iter().for_each(|run| after[run] += 1);
                match store.append(next) {
                    Ok(()) => expected = vec![after],
                    Err(_) => expected.push(after),
                }
            }
        }
        cut += u32::from(disk.ended().is_some());
        let image = disk.power_cut_losing_all();
        drop(reader);
        let after = Folder::in_memory();
        image.write(after.path()).unwrap();
        let found = reopen(&after.file("journal.db"), None, false);
        if expected.is_empty() {
            // It was cut off before anything could be read: then the first process has left it.
            expected.extend(found.clone());
        }
        assert!(
            found.as_ref().is_ok_and(|found| expected.contains(found)),
            "sync {n}, call {call}, {read:?}: {found:?}, not one of {expected:?}"
        );
    }
    assert!(cut > 10, "{cut}");
}

/// After an error of the disk, SQLite rolls the whole transaction back. A rebuild that went on
/// would be committed one statement at a time.
#[test]
fn a_rebuild_ends_with_its_transaction() {
    let folder = Folder::in_memory();
    let file = folder.file("journal.db");
    let disk = Disk::new(folder.path(), &[], Plan::faultless(0));
    SqliteStore::open(&file).unwrap().put_charter(&WORK.0).unwrap();
    let mut ended = 0;
    for n in 0..20 {
        let connection = Connection::open(&file).unwrap();
        connection.execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE").unwrap();
        disk.restart(Plan::nth(n, Op::Read, n, Fault::Fails(ffi::SQLITE_IOERR_READ)));
        let result = drop_foreign(&connection);
        assert_eq!(result.is_err(), connection.is_autocommit(), "read {n}: {result:?}");
        ended += u32::from(result.is_err());
        disk.restart(Plan::faultless(n));
    }
    assert!(ended > 0, "{ended}");
}

/// A process that dies while it creates the file leaves nothing, an empty file, or a whole journal.
#[test]
fn a_file_whose_creation_was_interrupted_is_empty_or_whole() {
    let (mut empty, mut whole) = (0, 0);
    let step = cases(37, 1) as usize;
    for (n, fault) in (0..).step_by(step).flat_map(|n| [(n, Fault::Killed), (n, Fault::PowerCut)]) {
        let folder = Folder::in_memory();
        let disk = Disk::new(folder.path(), &["journal.db-head"], Plan::at(n, n, fault));
        drop(SqliteStore::open(&folder.file("journal.db")));
        let Some(ended) = disk.ended() else {
            break;
        };
        let mut image = match ended {
            Ended::PowerCut => disk.power_cut(),
            _ => Image::read(disk.folder()).unwrap(),
        };
        image.files.remove("journal.db-shm");
        let after = Folder::in_memory();
        image.write(after.path()).unwrap();
        let file = after.file("journal.db");
        match SqliteStore::open_read_only(&file) {
            Ok(store) => {
                let report = verify(&store, None).unwrap();
                assert!(report.findings.is_empty(), "call {n}, {fault:?}: {:?}", report.findings);
                whole += 1;
            }
            Err(StoreError::NotAJournal { why, .. }) if why.starts_with("it is empty") => empty += 1,
            Err(e) => assert!(!file.exists(), "call {n}, {fault:?}: {e}"),
        }
        assert_eq!(reopen(&file, None, true), Ok(Counts::default()), "call {n}, {fault:?}");
    }
    assert!(empty > 1 && whole > 1, "{empty} {whole}");
}
