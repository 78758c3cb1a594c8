//! The smallest forms of what the schedules have found.

use charter_test_disk::{Disk, Fault, Op, Plan};
use charter_test_support::Folder;

use super::model::WORK;
use crate::sqlite::SqliteStore;
use crate::store::Store;

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
