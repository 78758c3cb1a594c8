//! Tests of what an operator does to a journal file: deletes runs, queries it, reads it from a
//! read-only folder.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use charter_journal::{
    Append, Deletion, MemoryStore, QueryClock, SelectError, SelectLimits, SqliteOptions, SqliteStore, Store,
    StoreError, verify,
};
use charter_kernel::{Digest, Principal, Timestamp};
use rusqlite::types::ValueRef;
use serde_json::json;

use crate::common::*;
use crate::heads::beside;

pub(crate) fn deletion(run: &str) -> Deletion {
    Deletion { run: run.into(), reason: "old".into(), by: "ana".into(), at: Timestamp(T0) }
}

/// A run that ends after naming this blob.
pub(crate) fn finished(run: &str, names: Digest) -> Vec<Append> {
    let machine = machine(DESK);
    let (mut driver, first) = Driver::start(&machine, run);
    let ask = driver.send("ASK", json!({"evidence": names}), &Principal::new("ana", &["clerk"]));
    let cancel = driver.send("charter.cancel", json!({}), &Principal::new("bob", &["operator"]));
    vec![first, ask, cancel]
}

/// A host stores a blob before the record that names it; meanwhile, a run is deleted that names the
/// same one.
#[test]
fn a_deletion_keeps_the_blobs_of_a_record_that_is_not_written_yet() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    store.put_charter(&stored(DESK)).unwrap();
    let put = || {
        let inner = store.put_blob(b"a file").unwrap();
        (inner, store.put_blob(format!("{{\"files\":\"{inner}\"}}").as_bytes()).unwrap())
    };
    let there = |(inner, outer)| [inner, outer].map(|blob| store.blob(blob).unwrap().is_some());
    let both = put();
    store.append(finished("a", both.1)).unwrap();
    assert_eq!(put(), both);
    store.delete(deletion("a")).unwrap();
    assert_eq!(there(both), [true, true]);
    store.append(finished("b", both.1)).unwrap();
    assert_eq!(put(), both);
    // A refused batch names nothing.
    store.append(finished("b", both.1)).unwrap_err();
    store.delete(deletion("b")).unwrap();
    assert_eq!(there(both), [true, true]);
    // What a run names that is deleted, and nothing else, goes.
    store.append(finished("c", both.1)).unwrap();
    store.delete(deletion("c")).unwrap();
    assert_eq!(there(both), [false, false]);
    assert_eq!(verify(&store, None).unwrap().findings, []);
}

#[test]
fn a_deleted_run_leaves_only_its_hashes() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    let memory = MemoryStore::new();
    let inner = store.put_blob(b"only a names me").unwrap();
    let own = store.put_blob(format!("{{\"of\":\"{inner}\"}}").as_bytes()).unwrap();
    let shared = store.put_blob(b"both name me").unwrap();
    for store in [&store as &dyn Store, &memory] {
        store.put_charter(&stored(DESK)).unwrap();
        for append in finished("a", own).into_iter().chain(finished("b", shared)) {
            store.append(vec![append]).unwrap();
        }
    }
    let (machine, ana) = (machine(DESK), Principal::new("ana", &["clerk"]));
    let (mut driver, first) = Driver::start(&machine, "c");
    let second = driver.send("ASK", json!({"both": shared}), &ana);
    store.append(vec![first, second]).unwrap();
    assert!(store.run("a").unwrap().unwrap().status.is_some_and(charter_kernel::Status::is_finished));
    let refused = StoreError::NotFinished { run: "c".into(), status: "active".into() };
    assert_eq!(store.delete(deletion("c")), Err(refused));
    assert_eq!(store.delete(deletion("d")), Err(StoreError::UnknownRun("d".into())));
    let before = store.head().unwrap().unwrap();
    store.delete(deletion("a")).unwrap();
    store.delete(deletion("b")).unwrap();
    let head = store.head().unwrap().unwrap();
    assert_eq!((head.runs, head.records, head.entries), (before.runs, before.records, before.entries + 2));
    assert_eq!(store.delete(deletion("a")), Err(StoreError::UnknownRun("a".into())));
    for (run, kept) in [("a", 0), ("b", 0), ("c", 2)] {
        assert_eq!(store.records(run, 0, 99).unwrap().len(), kept);
    }
    let blobs = [own, inner, shared].map(|blob| store.blob(blob).unwrap().is_some());
    assert_eq!(blobs, [false, false, true]);
    let report = verify(&store, None).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.remarks.len(), 2);
    assert_eq!(report.remarks[0], "run `a` was deleted at 2026-11-21T10:00:00.000Z: old");
    // The file goes on, and its content is gone from the disk.
    let third = driver.send("WORK", json!({}), &ana);
    store.append(vec![third]).unwrap();
    store.rebuild().unwrap();
    drop(store);
    let bytes = fs::read(&file).unwrap();
    for gone in [b"only a names me".as_slice(), b"evidence"] {
        assert!(!bytes.windows(gone.len()).any(|w| w == gone));
    }
    let store = SqliteStore::open(&file).unwrap();
    assert_eq!(verify(&store, None).unwrap().findings, []);
    // The same without an intervention is a finding, and so is a changed list.
    drop(store);
    let sql = rusqlite::Connection::open(&file).unwrap();
    let found = |change: &str| -> Vec<String> {
        sql.execute_batch(change).unwrap();
        let store = SqliteStore::open_read_only(&file).unwrap();
        verify(&store, None).unwrap().findings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        found("UPDATE deleted SET seq = 2 WHERE run = 'a' AND seq = 1"),
        ["the deleted records of run `a` are not listed with the numbers that they had"]
    );
    assert_eq!(
        found("UPDATE deleted SET run = 'x' WHERE n = 1"),
        [
            "3 records of run `a` were deleted, but 2 are listed as deleted",
            "0 records of run `x` were deleted, but 1 are listed as deleted"
        ]
    );
}

/// The limit of memory holds for the whole process, so other tests would meet a lower one.
const LIMITS: SelectLimits =
    SelectLimits { timeout: Duration::from_secs(10), memory_bytes: 16 << 30, host_state: true };

fn select(store: &SqliteStore, sql: &str, limits: &SelectLimits) -> Result<usize, SelectError> {
    let mut rows = 0;
    let mut visit = |_: &[String], row: Option<&[ValueRef<'_>]>| {
        rows += usize::from(row.is_some());
        Ok(())
    };
    store.select(sql, limits, &QueryClock::default(), &mut visit)?;
    Ok(rows)
}

#[test]
fn a_query_only_reads() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop({
        let store = SqliteStore::open(&file).unwrap();
        fill(&store, &some_acts(5), "r");
        store
    });
    let place = |name: &str| folder.file(name).display().to_string();
    let before = fs::read(&file).unwrap();
    let files = || {
        let mut names: Vec<_> = fs::read_dir(folder.file("")).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let store = SqliteStore::open_read_only(&file).unwrap();
    assert_eq!(select(&store, "SELECT 1", &LIMITS).unwrap(), 1);
    let names = files();
    for sql in [
        format!("VACUUM INTO '{}'", place("copy.db")),
        format!("ATTACH '{}' AS other", place("other.db")),
        format!("ATTACH 'file:{}?mode=rwc' AS other", place("other.db")),
        "PRAGMA journal_mode = DELETE".into(),
        "PRAGMA user_version = 7".into(),
        "PRAGMA writable_schema = 1".into(),
        "PRAGMA query_only = 0".into(),
        "PRAGMA wal_checkpoint(TRUNCATE)".into(),
        format!("PRAGMA temp_store_directory = '{}'", place("")),
        "PRAGMA hard_heap_limit = 9000000000".into(),
        "SELECT load_extension('x')".into(),
        "SELECT * FROM pragma_wal_checkpoint".into(),
        "CREATE TEMP TABLE t AS SELECT 1".into(),
        "CREATE VIRTUAL TABLE temp.t USING fts5(x)".into(),
        "DELETE FROM records".into(),
        "BEGIN IMMEDIATE".into(),
        "SAVEPOINT x".into(),
        "REINDEX".into(),
        "ANALYZE".into(),
        "VACUUM".into(),
    ] {
        let result = select(&store, &sql, &LIMITS);
        assert!(result.is_err(), "{sql}: {result:?}");
    }
    for sql in ["", "-- nothing", " ; "] {
        assert!(matches!(select(&store, sql, &LIMITS), Err(SelectError::Empty)), "{sql}");
    }
    assert!(matches!(select(&store, "SELECT 1; SELECT 2", &LIMITS), Err(SelectError::Several)));
    for (sql, rows) in [
        ("SELECT 1", 1),
        ("SELECT * FROM runs", 3),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5) SELECT i FROM n", 5),
        ("SELECT name FROM pragma_table_info('runs')", 7),
        ("PRAGMA user_version", 1),
        ("EXPLAIN QUERY PLAN SELECT 1", 1),
        ("SELECT * FROM events LIMIT 2", 2),
    ] {
        assert_eq!(select(&store, sql, &LIMITS).unwrap(), rows, "{sql}");
    }
    drop(store);
    assert_eq!(files(), names);
    assert_eq!(fs::read(&file).unwrap(), before);
}

/// Runs in a process of its own.
#[test]
#[ignore = "run by `a_query_has_limited_memory`"]
fn child_with_limited_memory() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop(SqliteStore::open(&file).unwrap());
    let store = SqliteStore::open_read_only(&file).unwrap();
    let long = SelectLimits { timeout: Duration::from_secs(60), memory_bytes: 256 << 20, host_state: true };
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT";
    for sql in
        [format!("{endless} randomblob(1000000) AS b FROM n ORDER BY b"), "SELECT zeroblob(2000000000)".to_owned()]
    {
        let ended = select(&store, &sql, &long);
        assert!(matches!(ended, Err(SelectError::Memory(256) | SelectError::Failed(_))), "{sql}: {ended:?}");
    }
}

#[test]
fn a_query_has_limited_memory() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let ran = child.args(["operator::child_with_limited_memory", "--exact", "--ignored"]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn a_query_has_limits() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop(SqliteStore::open(&file).unwrap());
    let store = SqliteStore::open_read_only(&file).unwrap();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT";
    let short = SelectLimits { timeout: Duration::from_millis(300), ..LIMITS };
    let begin = Instant::now();
    for sql in [format!("{endless} count(*) FROM n"), format!("{endless} i FROM n")] {
        let ended = select(&store, &sql, &short);
        assert!(matches!(ended, Err(SelectError::TimeOut(_))), "{ended:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    // The time of the visitor does not count, and it can stop.
    let mut rows = 0;
    let slow = store.select("SELECT 1 UNION ALL SELECT 2", &short, &QueryClock::default(), &mut |_, row| {
        rows += usize::from(row.is_some());
        std::thread::sleep(Duration::from_millis(200));
        Ok(())
    });
    assert!(slow.is_ok() && rows == 2, "{slow:?}");
    let stopped =
        store.select("SELECT 1", &short, &QueryClock::default(), &mut |_, _| Err(io::ErrorKind::BrokenPipe.into()));
    assert!(matches!(stopped, Err(SelectError::Visitor(e)) if e.kind() == io::ErrorKind::BrokenPipe));
}

/// Opens a file after a change with SQL; returns the error, and the findings of a verification.
fn changed(sql: &str) -> (Option<StoreError>, Vec<String>) {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop({
        let store = SqliteStore::open(&file).unwrap();
        fill(&store, &some_acts(3), "r");
        store
    });
    rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
    let error = SqliteStore::open(&file).err();
    let store = SqliteStore::open_read_only(&file).unwrap();
    let found = verify(&store, None).unwrap().findings.iter().map(ToString::to_string).collect();
    drop(store);
    if error.is_some() {
        // A rebuild removes what is in the way.
        let options = SqliteOptions { repair: true, ..SqliteOptions::default() };
        let store = SqliteStore::open_with(&file, &options).unwrap();
        store.rebuild().unwrap();
        drop(store);
        SqliteStore::open(&file).unwrap().put_blob(b"x").unwrap();
    }
    (error, found)
}

#[test]
fn foreign_tables_views_and_triggers_are_found() {
    for (sql, kind, name) in [
        ("CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM refusals; END", "trigger", "t"),
        ("CREATE TRIGGER \"a \"\"b\" AFTER UPDATE ON journal BEGIN SELECT 1; END", "trigger", "a \"b"),
        ("CREATE VIEW v AS SELECT 1", "view", "v"),
        ("CREATE VIEW sqlitex AS SELECT 1", "view", "sqlitex"),
    ] {
        let (error, found) = changed(sql);
        let why = format!("the {kind} `{name}` does not belong to the journal; `charter rebuild` removes it");
        assert_eq!(found, [why.as_str()], "{sql}");
        assert!(matches!(error, Some(StoreError::Schema { why: said, .. }) if said == why), "{sql}");
    }
    for (sql, kind, name) in
        [("CREATE TABLE mine(x)", "table", "mine"), ("CREATE INDEX i ON records(at)", "index", "i")]
    {
        let (error, found) = changed(sql);
        assert_eq!(
            (error, found),
            (None, vec![format!("the {kind} `{name}` does not belong to the journal")]),
            "{sql}"
        );
    }
    let (error, _) = changed("DROP INDEX runs_status");
    assert!(error.unwrap().to_string().ends_with("the index `runs_status` is missing; run `charter rebuild`"));
    // What SQLite itself makes belongs to nobody.
    assert_eq!(changed("ANALYZE"), (None, vec![]));
}

fn runs_as_nobody(command: &str) -> Option<std::process::Output> {
    let output = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", command])
        .output();
    match output {
        Ok(output) => Some(output),
        Err(e) => {
            eprintln!("skipped: `setpriv` is not available ({e})");
            None
        }
    }
}

/// Not a test, but the process of a user who cannot write, in the next one.
#[test]
#[ignore = "the child process of another test"]
fn unprivileged() {
    let Some(file) = std::env::var_os("JOURNAL_OF_CHILD") else {
        return;
    };
    let store = SqliteStore::open_read_only(Path::new(&file)).unwrap();
    let report = verify(&store, None).unwrap();
    let again = store.records("r0", 0, 99).unwrap().len();
    println!("\nread {} records, {again} of one run, {} findings", report.records(), report.findings.len());
    println!("wrote {}", SqliteStore::open(Path::new(&file)).is_ok());
}

#[cfg(target_os = "linux")]
#[test]
fn a_journal_in_a_read_only_folder_can_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    fs::set_permissions(folder.file(""), fs::Permissions::from_mode(0o755)).unwrap();
    let own = folder.file("test");
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    fill(&store, &some_acts(5), "r");
    let records = verify(&store, None).unwrap().records();
    let check = |name: &str, ends: &[&str]| {
        let other = folder.file(name);
        fs::create_dir(&other).unwrap();
        let copy = other.join("journal ?.db");
        for end in ends {
            fs::copy(beside(&file, end), beside(&copy, end)).unwrap();
            // Journals are private; this one is shared on purpose.
            fs::set_permissions(beside(&copy, end), fs::Permissions::from_mode(0o644)).unwrap();
        }
        fs::set_permissions(&other, fs::Permissions::from_mode(0o555)).unwrap();
        let command = format!(
            "cd / && JOURNAL_OF_CHILD='{}' exec '{}' --exact operator::unprivileged --ignored --nocapture",
            copy.display(),
            own.display()
        );
        let output = runs_as_nobody(&command);
        fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
        let Some(output) = output else { return };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains(&format!("read {records} records")), "{name}: {said}{output:?}");
        assert!(said.contains(" 0 findings") && said.contains("wrote false"), "{name}: {said}");
    };
    check("killed", &["", "-wal", "-head"]);
    drop(store);
    check("closed", &["", "-head"]);
}
