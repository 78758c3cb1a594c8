//! Tests of the SQLite file: opening, sharing, checkpoints, and the documentation of its tables.

use std::path::Path;

use charter_journal::{SqliteStore, Store, StoreError};

use crate::common::*;

/// Returns the content of every table as text.
pub(crate) fn dump(store: &SqliteStore) -> String {
    store
        .query(|c| {
            let mut out = String::new();
            let tables: Vec<String> = c
                .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?
                .query_map([], |r| r.get(0))?
                .collect::<Result<_, _>>()?;
            for table in tables {
                let mut select = c.prepare(&format!("SELECT * FROM {table}"))?;
                let columns = select.column_count();
                let mut rows = select.query([])?;
                while let Some(row) = rows.next()? {
                    let values: Vec<_> = (0..columns).map(|i| format!("{:?}", row.get_ref(i).unwrap())).collect();
                    out.push_str(&format!("{table}: {}\n", values.join(", ")));
                }
            }
            Ok(out)
        })
        .unwrap()
}

#[test]
fn a_file_has_one_writer_and_many_readers() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    let refused = SqliteStore::open(&file).unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }));
    assert!(refused.to_string().contains(&format!("(process {})", std::process::id())), "{refused}");
    let reader = SqliteStore::open_read_only(&file).unwrap();
    let runs = fill(&store, &some_acts(10), "r");
    assert_eq!(reader.records("r0", 0, 99).unwrap(), runs[0]);
    assert!(reader.put_blob(b"x").unwrap_err().to_string().contains("reading only"));
    assert!(reader.query(|c| c.execute("DELETE FROM records", [])).is_err());
    drop(reader);
    drop(store);
    // After the store is closed, the file contains all data without the write-ahead log.
    let wal = folder.file("journal.db-wal");
    assert!(!wal.exists());
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(store.records("r2", 0, 99).unwrap(), runs[2]);
    fill(&store, &some_acts(3), "s");
}

#[test]
fn files_that_are_not_journals_are_not_modified() {
    let folder = Folder::new();
    let path = |name: &str| folder.file(name);
    std::fs::write(path("text"), "x".repeat(5_000)).unwrap();
    rusqlite::Connection::open(path("other")).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    drop(SqliteStore::open(&path("newer")).unwrap());
    rusqlite::Connection::open(path("newer")).unwrap().execute_batch("PRAGMA user_version = 9").unwrap();
    let refused = |name: &str| {
        let e = SqliteStore::open(&path(name)).unwrap_err();
        assert_eq!(SqliteStore::open_read_only(&path(name)).unwrap_err(), e);
        e.to_string().replace(&path(name).display().to_string(), "FILE")
    };
    assert_eq!(refused("text"), "`FILE` is not a journal file: it is not a SQLite file");
    assert_eq!(refused("other"), "`FILE` is not a journal file: it is a SQLite file of another application");
    assert_eq!(
        refused("newer"),
        "`FILE` has schema version 9; this program supports versions up to 5; use a newer version of Charter, or export the runs with it and import them here"
    );
    drop(SqliteStore::open(&path("older")).unwrap());
    rusqlite::Connection::open(path("older")).unwrap().execute_batch("PRAGMA user_version = 1").unwrap();
    assert_eq!(
        refused("older"),
        "`FILE` is a journal file made by a pre-release of Charter (record version 1); it cannot be read"
    );
    assert!(SqliteStore::open_read_only(&path("absent")).is_err());
    assert!(!path("absent").exists());
    assert!(SqliteStore::open(Path::new("/nowhere/at/all")).is_err());
}

#[test]
fn checkpoints_run_while_the_writer_continues() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    let size = |name: &str| std::fs::metadata(folder.file(name)).map_or(0, |m| m.len());
    let log = format!("{}-wal", folder.file("journal.db").file_name().unwrap().display());
    let mut written = 0u32;
    let mut write = || {
        written += 1;
        assert!(written < 1_000, "the log is not checkpointed");
        let data = written.to_le_bytes().repeat(100_000);
        store.put_blob(&data).unwrap();
    };
    while size("journal.db") < 12 << 20 {
        write();
    }
    // A reader only prevents the log from restarting.
    let reader = rusqlite::Connection::open(folder.file("journal.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM runs").unwrap();
    let before = size(&log);
    while size(&log) < before + (12 << 20) {
        write();
    }
    reader.execute_batch("COMMIT").unwrap();
    // Without the reader, the log restarts and no longer grows.
    let mut same = 0;
    while same < 10 {
        let before = size(&log);
        write();
        same = if size(&log) == before { same + 1 } else { 0 };
    }
    drop((reader, store));
    assert_eq!(size(&log), 0);
    let store = SqliteStore::open_read_only(&folder.file("journal.db")).unwrap();
    let mut blobs = 0;
    store.scan_blobs(&mut |_, _| blobs += 1).unwrap();
    assert_eq!(blobs, written);
}

#[test]
fn the_tables_are_documented() {
    let docs = include_str!("../../../../docs/sql.md");
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    let tables: Vec<String> = store
        .query(|c| {
            c.prepare("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")?
                .query_map([], |r| r.get(0))?
                .collect()
        })
        .unwrap();
    for table in tables {
        let section = docs
            .split("\n## ")
            .find(|s| s.starts_with(&format!("`{table}`")))
            .unwrap_or_else(|| panic!("docs/sql.md has no section `{table}`"));
        let columns: Vec<String> = store
            .query(|c| {
                c.prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))?
                    .query_map([], |r| r.get(0))?
                    .collect()
            })
            .unwrap();
        let documented: Vec<&str> =
            section.lines().filter_map(|l| l.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect();
        assert_eq!(documented, columns, "docs/sql.md, `{table}`");
    }
}

#[test]
fn only_a_store_that_does_io_blocks() {
    assert!(!charter_journal::MemoryStore::new().blocks());
    let folder = Folder::new();
    assert!(SqliteStore::open(&folder.file("journal.db")).unwrap().blocks());
}
