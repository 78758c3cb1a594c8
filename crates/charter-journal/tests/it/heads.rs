//! Tests of the journal's head: what `FILE-head` shows that the file alone cannot.

use std::fs;
use std::path::{Path, PathBuf};

use charter_journal::{
    AcceptHead, Append, JournalHead, MemoryStore, SqliteOptions, SqliteStore, Store, StoreError, VerifyOptions, verify,
    verify_with,
};
use charter_kernel::{Digest, Principal, Timestamp};
use serde_json::json;

use crate::common::*;

/// `FILE-wal` and the like.
pub(crate) fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Copies a journal with the given files beside it, as they are while a process writes to it: what
/// is on the disk after that process was killed.
fn copy(from: &Path, to: &Path, ends: &[&str]) {
    for end in ["", "-wal", "-head"].into_iter().filter(|end| end.is_empty() || ends.contains(end)) {
        fs::copy(beside(from, end), beside(to, end)).unwrap();
    }
}

fn appends(run: &str, count: usize) -> Vec<Append> {
    let machine = machine(LOOSE);
    let (mut driver, first) = Driver::start(&machine, run);
    let mut all = vec![first];
    all.extend((1..count).map(|_| driver.send("SET", json!({"n": 1}), &Principal::new("ana", &[]))));
    all
}

fn filled(file: &Path, run: &str, count: usize) -> SqliteStore {
    let store = SqliteStore::open(file).unwrap();
    store.put_charter(&stored(LOOSE)).unwrap();
    for append in appends(run, count) {
        store.append(vec![append]).unwrap();
    }
    store
}

fn findings(file: &Path) -> Vec<String> {
    let store = SqliteStore::open_read_only(file).unwrap();
    let report = verify(&store, None).unwrap();
    assert_eq!(report.findings.is_empty(), report.is_verified());
    report.findings.iter().map(|f| f.to_string().replace(&file.display().to_string(), "FILE")).collect()
}

fn refusal(file: &Path) -> String {
    let error = SqliteStore::open(file).unwrap_err();
    assert!(matches!(error, StoreError::Head { .. }), "{error}");
    error.to_string().replace(&file.display().to_string(), "FILE")
}

fn accept(file: &Path) -> SqliteStore {
    let accept = AcceptHead { reason: "restored".into(), by: "ana".into(), at: Timestamp(T0) };
    SqliteStore::open_with(file, &SqliteOptions { accept_head: Some(accept), ..SqliteOptions::default() }).unwrap()
}

/// The smallest form of the attack: one flipped bit in the log of a killed process.
#[test]
fn a_flipped_bit_in_the_log_is_named() {
    let folder = Folder::new();
    let (file, killed) = (folder.file("journal.db"), folder.file("killed.db"));
    let store = filled(&file, "a", 30);
    copy(&file, &killed, &["-wal", "-head"]);
    drop(store);
    assert_eq!(findings(&killed), Vec::<String>::new());
    let wal = fs::read(beside(&killed, "-wal")).unwrap();
    let mut lost = 0;
    // A bit in every frame of the log: header and page.
    for at in (40..wal.len()).step_by(4_120 / 2) {
        let mut bytes = wal.clone();
        bytes[at] ^= 4;
        let (file, _) = (killed.clone(), fs::remove_file(beside(&killed, "-shm")));
        fs::write(beside(&file, "-wal"), &bytes).unwrap();
        let kept = SqliteStore::open_read_only(&file).unwrap().run("a").unwrap().map_or(0, |r| r.seq + 1);
        let found = findings(&file);
        if kept == 30 {
            assert_eq!(found, Vec::<String>::new(), "{at}");
            continue;
        }
        lost += 1;
        let missing = match kept {
            29 => "record 29 of run `a`".to_owned(),
            kept => format!("records {kept} to 29 of run `a`"),
        };
        let has = if kept == 0 { "0 runs with 0 records" } else { "1 run with" };
        assert!(found[0].contains("according to `FILE-head`, the journal has 1 run with 30 records"), "{found:?}");
        assert!(found[0].contains(has) && found[0].ends_with(&format!("missing: {missing}")), "{at}: {found:?}");
        assert!(refusal(&file).ends_with(&format!("missing: {missing}")), "{at}");
        // The damaged log is evidence and stays.
        assert_eq!(fs::read(beside(&file, "-wal")).unwrap(), bytes);
    }
    assert!(lost > 30, "{lost}");
}

#[test]
fn a_journal_moved_without_its_log_is_noticed() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    // The first session is closed, the second one killed.
    drop(filled(&file, "a", 3));
    let store = filled(&file, "b", 4);
    let named = |name: &str, ends: &[&str]| {
        let to = folder.file(name);
        copy(&file, &to, ends);
        (findings(&to), SqliteStore::open(&to).map(|s| s.head().unwrap().unwrap().records))
    };
    let (found, opened) = named("all", &["-wal", "-head"]);
    assert_eq!((found.len(), opened), (0, Ok(7)));
    let (found, opened) = named("no-log", &["-head"]);
    assert!(found[0].ends_with("missing: records 0 to 3 of run `b`"), "{found:?}");
    assert!(matches!(opened, Err(StoreError::Head { .. })));
    let expected = "the last process that wrote to it did not close it, and `FILE-head`, which says how many records it then had, is missing: records may be missing";
    for ends in [&[][..], &["-wal"]] {
        let (found, opened) = named(&format!("no-head-{}", ends.len()), ends);
        assert_eq!(found, [expected]);
        assert!(matches!(opened, Err(StoreError::Head { .. })));
    }
    fs::write(beside(&folder.file("no-head-1"), "-head"), "x").unwrap();
    assert!(findings(&folder.file("no-head-1"))[0].contains("is damaged"));
    // After it was closed, the file is complete without any other.
    drop(store);
    let (found, opened) = named("closed", &[]);
    assert_eq!((found.len(), opened), (0, Ok(7)));
    let closed = SqliteStore::open_read_only(&folder.file("closed")).unwrap();
    assert_eq!(verify(&closed, None).unwrap().remarks, Vec::<String>::new());
    fs::remove_file(beside(&folder.file("closed"), "-head")).unwrap();
    let remarks = verify(&closed, None).unwrap().remarks;
    assert!(remarks[0].contains("closed-head` is missing: the file has everything"), "{remarks:?}");
}

#[test]
fn an_older_copy_is_refused_until_it_is_accepted() {
    let folder = Folder::new();
    let (file, old) = (folder.file("journal.db"), folder.file("old.db"));
    drop(filled(&file, "a", 5));
    fs::copy(&file, &old).unwrap();
    drop(filled(&file, "b", 2));
    fs::copy(&old, &file).unwrap();
    let expected = "records that were acknowledged are missing: according to `FILE-head`, the journal has 2 runs with 7 records; the file has 1 run with 5 records; missing: records 0 to 1 of run `b`";
    assert_eq!(findings(&file), [expected]);
    assert_eq!(refusal(&file), format!("`FILE`: {expected}"));
    // A single run is not verified either, because its records may be among the missing ones.
    let store = SqliteStore::open_read_only(&file).unwrap();
    assert_eq!(verify(&store, Some("a")).unwrap().findings.len(), 1);
    drop(store);
    let store = accept(&file);
    assert_eq!(store.head().unwrap().map(|h| (h.records, h.entries)), Some((5, 6)));
    let report = verify(&store, None).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.remarks, ["at 2026-11-21T10:00:00.000Z, a head that did not match was accepted: restored"]);
    drop(store);
    // Accepting twice changes nothing, and the journal continues.
    let head = accept(&file).head().unwrap();
    drop(filled(&file, "c", 3));
    assert_eq!(head.map(|h| h.entries), Some(6));
    assert_eq!(findings(&file), Vec::<String>::new());
    // What the operator did cannot be changed without a finding.
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.execute_batch("UPDATE interventions SET reason = 'x'").unwrap();
    assert_eq!(findings(&file), ["the intervention at position 6 has been changed"]);
}

#[test]
fn an_older_copy_that_was_continued_is_refused() {
    let folder = Folder::new();
    let (file, old) = (folder.file("journal.db"), folder.file("old.db"));
    drop(filled(&file, "a", 3));
    fs::copy(&file, &old).unwrap();
    drop(filled(&file, "b", 2));
    drop(filled(&old, "c", 4));
    fs::copy(&old, &file).unwrap();
    let said = refusal(&file);
    assert!(said.contains("its entries are not those that were acknowledged: after 5 entries, the head is "), "{said}");
    assert_eq!(findings(&file).len(), 1);
    // A head of another journal.
    let other = folder.file("other.db");
    drop(filled(&other, "a", 3));
    fs::copy(beside(&other, "-head"), beside(&file, "-head")).unwrap();
    assert_eq!(refusal(&file), "`FILE`: `FILE-head` belongs to another journal, which had 1 run with 3 records");
}

#[test]
fn a_journal_that_disappeared_is_not_created_again() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop(filled(&file, "a", 3));
    fs::remove_file(&file).unwrap();
    let said = refusal(&file);
    assert!(
        said.contains("the file is absent or empty, but `FILE-head` says that it had 1 run with 3 records"),
        "{said}"
    );
    assert!(!file.exists());
    fs::write(&file, "").unwrap();
    assert_eq!(refusal(&file), said);
    fs::remove_file(beside(&file, "-head")).unwrap();
    drop(filled(&file, "a", 3));
}

#[test]
fn a_reopened_file_stores_its_head_only_when_it_is_due() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    let store = SqliteStore::open(&file).unwrap();
    store.put_charter(&stored(LOOSE)).unwrap();
    store.append(appends("a", 300)).unwrap();
    drop(store);
    let store = SqliteStore::open(&file).unwrap();
    let rows = || store.query(|c| c.query_row("SELECT count(*) FROM heads", [], |row| row.get::<_, i64>(0))).unwrap();
    let before = rows();
    store.append(appends("b", 2)).unwrap();
    assert_eq!(rows(), before);
    store.append(appends("c", 300)).unwrap();
    assert_eq!(rows(), before + 1);
}

#[test]
fn deleted_records_leave_a_gap() {
    let check = |sql: &str, expected: &[&str]| {
        let folder = Folder::new();
        let file = folder.file("journal.db");
        let store = filled(&file, "a", 2);
        for append in appends("b", 2).into_iter().chain(appends("c", 2)) {
            store.append(vec![append]).unwrap();
        }
        drop(store);
        rusqlite::Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let found = findings(&file);
        expected.iter().for_each(|e| assert!(found.iter().any(|f| f.contains(e)), "{sql}: {found:?}"));
        found
    };
    assert_eq!(check("", &[]), Vec::<String>::new());
    let whole = "DELETE FROM records WHERE run = 'X'; DELETE FROM runs WHERE run = 'X'; DELETE FROM snapshots WHERE run = 'X'; DELETE FROM effects WHERE run = 'X'; DELETE FROM transitions WHERE run = 'X';";
    // A run in the middle, at the start, at the end.
    let found = check(
        &whole.replace('X', "b"),
        &["entries 3 to 4 are missing, between record 1 of run `a` and record 0 of run `c`"],
    );
    assert!(
        found.iter().any(|f| f.contains("its entries are not those that were acknowledged")
            || f.contains("the last entries are missing")
            || f.contains("missing")),
        "{found:?}"
    );
    check(&whole.replace('X', "a"), &["entries 1 to 2 are missing, between the start and record 0 of run `b`"]);
    check(
        &whole.replace('X', "c"),
        &[
            "the last entries are missing: according to the table `heads`, there were 6 with the last at position 6; the last one is at 4",
        ],
    );
    // With the rows that count them; only the file beside it still knows.
    check(
        &format!("{}; DELETE FROM heads WHERE n > 0", whole.replace('X', "c")),
        &["missing: records 0 to 1 of run `c`"],
    );
    check("UPDATE heads SET hash = replace(hash, 'a', 'b') WHERE n = 6", &["the head after entry 6 is "]);
    check("UPDATE heads SET hash = 'sha256:' || upper(substr(hash, 8)) WHERE n = 6", &["the head after entry 6 is "]);
}

#[test]
fn memory_and_file_give_the_same_head() {
    let folder = Folder::new();
    let file = SqliteStore::open(&folder.file("journal.db")).unwrap();
    let memory = MemoryStore::new();
    let all: Vec<Append> = appends("a", 300).into_iter().zip(appends("b", 300)).flat_map(|(a, b)| [a, b]).collect();
    let mut expected = [0; 32];
    for (store, batch) in [(&memory as &dyn Store, 600), (&file, 7)] {
        assert_eq!(store.head().unwrap(), Some(JournalHead::EMPTY));
        store.put_charter(&stored(LOOSE)).unwrap();
        all.chunks(batch).for_each(|batch| store.append(batch.to_vec()).unwrap());
    }
    for append in &all {
        expected = Digest::of_bytes(&[expected, append.record.hash.0].concat()).0;
    }
    let head = JournalHead { runs: 2, records: 600, entries: 600, hash: Digest(expected) };
    assert_eq!((memory.head().unwrap(), file.head().unwrap()), (Some(head), Some(head)));
    // An earlier head is an anchor.
    let mut before = JournalHead::EMPTY;
    let half: MemoryStore = MemoryStore::new();
    half.put_charter(&stored(LOOSE)).unwrap();
    half.append(all[..301].to_vec()).unwrap();
    before.hash = half.head().unwrap().unwrap().hash;
    for store in [&memory as &dyn Store, &file] {
        let with = |heads: Vec<(u64, Digest)>| {
            let report = verify_with(store, &VerifyOptions { heads, ..VerifyOptions::default() }).unwrap();
            report.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(with(vec![(301, before.hash), (600, head.hash)]), Vec::<String>::new());
        let hash = before.hash;
        assert_eq!(
            with(vec![(300, hash)]),
            [format!("the head after 300 entries is not {hash}, as the anchor expects")]
        );
        assert_eq!(
            with(vec![(601, hash)]),
            [format!("the anchor expects the head {hash} after 601 entries, but the journal has 600")]
        );
    }
}

#[test]
fn a_crash_around_the_write_of_the_head_is_no_finding() {
    let folder = Folder::new();
    let (file, killed) = (folder.file("journal.db"), folder.file("killed.db"));
    let store = filled(&file, "a", 3);
    let old = fs::read(beside(&file, "-head")).unwrap();
    for append in appends("b", 20) {
        store.append(vec![append]).unwrap();
    }
    copy(&file, &killed, &["-wal", "-head"]);
    // Killed after a commit and before the head was written, or a power cut that kept old slots.
    fs::write(beside(&killed, "-head"), &old).unwrap();
    assert_eq!(findings(&killed), Vec::<String>::new());
    // The head follows once the log is safe: when the file is closed, or with the next commit.
    let again = folder.file("again.db");
    copy(&killed, &again, &["-wal", "-head"]);
    drop(SqliteStore::open(&again).unwrap());
    assert_ne!(fs::read(beside(&again, "-head")).unwrap(), old);
    assert_eq!(findings(&again), Vec::<String>::new());
    let store = SqliteStore::open(&killed).unwrap();
    assert_eq!(store.head().unwrap().map(|h| h.records), Some(23));
    for append in appends("c", 2) {
        store.append(vec![append]).unwrap();
        assert_ne!(fs::read(beside(&killed, "-head")).unwrap(), old);
    }
    drop(store);
    assert_eq!(findings(&killed), Vec::<String>::new());
}

/// A file of the version before the head existed.
#[test]
fn a_file_without_a_head_gets_one() {
    let folder = Folder::new();
    let file = folder.file("journal.db");
    drop(filled(&file, "a", 5));
    let head = SqliteStore::open_read_only(&file).unwrap().head().unwrap();
    let sql = rusqlite::Connection::open(&file).unwrap();
    sql.execute_batch(
        "DROP TABLE journal; DROP TABLE heads; DROP TABLE interventions; DROP TABLE deleted; DROP TABLE unique_keys; PRAGMA user_version = 2",
    )
    .unwrap();
    drop(sql);
    fs::remove_file(beside(&file, "-head")).unwrap();
    // It can be read and verified as it is.
    assert_eq!(findings(&file), Vec::<String>::new());
    assert_eq!(SqliteStore::open_read_only(&file).unwrap().head().unwrap(), head);
    drop(filled(&file, "b", 2));
    assert_eq!(findings(&file), Vec::<String>::new());
    let store = SqliteStore::open_read_only(&file).unwrap();
    assert_eq!(store.head().unwrap().map(|h| h.entries), Some(7));
    assert_eq!(verify(&store, None).unwrap().remarks, Vec::<String>::new());
}
