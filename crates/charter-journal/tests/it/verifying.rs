//! Verification reports the first record that differs, whatever was changed, and how.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::*;
use charter_journal::{
    Anchor, Append, Difference, MemoryStore, OpenEffect, PendingTimer, Record, Reply, Report, Row, RunFilter, RunInfo,
    RunRow, SqliteStore, Store, StoreError, StoredCharter, StoredSnapshot, VerifyOptions, fork, verify, verify_with,
};
use charter_kernel::{Digest, Principal, digest::canonical};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const DOOR: &str = "
charter: 1
id: door
context: {n: 0}
events: {OPEN: {}, CLOSE: {}}
states:
  closed: {on: {OPEN: {target: opened, actions: {assign: {n: '= context.n + event.by'}}}}}
  opened: {on: {CLOSE: closed}}
";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn written_records_verify(acts in prop::collection::vec(any_act(), 0..25)) {
        let store = MemoryStore::new();
        let runs = fill(&store, &acts, "r");
        let report = verify(&store, None).unwrap();
        prop_assert_eq!(&report.findings, &[]);
        prop_assert_eq!(report.records(), runs.iter().map(|r| r.len() as u64).sum::<u64>());
        for (run, records) in report.runs.iter().zip(&runs) {
            prop_assert_eq!((run.records, run.hash), (records.len() as u64, records.last().unwrap().hash));
        }
        // A fork is verified like any run.
        for (source, records) in ALL.iter().zip(&runs) {
            let at = records.len() as u64 / 2;
            fork(&store, &machine(source), &records[0].run, at, &format!("fork of {}", records[0].run)).unwrap();
        }
        let report = verify(&store, None).unwrap();
        prop_assert_eq!(&report.findings, &[]);
        prop_assert_eq!(report.runs.len(), 6);
    }
}

#[test]
fn a_written_file_verifies() {
    let folder = Folder::new("verifies");
    let store = SqliteStore::open(&folder.file()).unwrap();
    fill(&store, &some_acts(60), "r");
    store.put_blob(b"x").unwrap();
    assert_eq!(verify(&store, None).unwrap().findings, []);
    assert_eq!(verify(&store, Some("r1")).unwrap().runs.len(), 1);
    assert_eq!(verify(&store, Some("nobody")).unwrap_err(), StoreError::UnknownRun("nobody".into()));
}

#[test]
fn a_file_verifies_while_it_is_written() {
    let folder = Folder::new("verifies-written");
    let store = SqliteStore::open(&folder.file()).unwrap();
    store.put_charter(&stored(ALL[0])).unwrap();
    let machine = machine(ALL[0]);
    let acts = some_acts(40);
    let written = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for run in 0..4 {
                for append in drive(&machine, &format!("run-{run}"), &acts) {
                    store.append(vec![append]).unwrap();
                }
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        while written.load(Ordering::Relaxed) < 4 {
            assert_eq!(verify(&store, None).unwrap().findings, []);
        }
    });
    assert_eq!(verify(&store, None).unwrap().runs.len(), 4);
}

/// Positions, sequence numbers and texts.
type Rows = Vec<(i64, i64, Vec<u8>)>;

/// A store that returns rows chosen by a test.
struct FakeRows<'s> {
    inner: &'s MemoryStore,
    rows: Rows,
}

impl FakeRows<'_> {
    fn of(inner: &MemoryStore) -> FakeRows<'_> {
        let mut rows = Vec::new();
        inner
            .scan(None, 0, &mut |row| {
                rows.push((row.place, row.seq, row.text.to_vec()));
                true
            })
            .unwrap();
        FakeRows { inner, rows }
    }
}

impl Store for FakeRows<'_> {
    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError> {
        let mut at = 0;
        let rows = &self.rows;
        self.inner.scan(run, 0, &mut |row| {
            let Some((place, seq, text)) = rows.get(at) else {
                return false;
            };
            at += 1;
            (*seq as u64) < from || visit(&Row { place: *place, seq: *seq, text, ..*row })
        })
    }
    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        self.inner.emitted(r#type, visit)
    }
    fn submit(&self, batch: Vec<Append>, reply: Reply) {
        self.inner.submit(batch, reply);
    }
    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError> {
        self.inner.put_charter(charter)
    }
    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError> {
        self.inner.charter(digest)
    }
    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError> {
        self.inner.charters()
    }
    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        self.inner.put_blob(data)
    }
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(digest)
    }
    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        self.inner.scan_blobs(visit)
    }
    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError> {
        self.inner.run(run)
    }
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
        self.inner.runs(filter)
    }
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.inner.records(run, from, limit)
    }
    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.inner.find(run, id)
    }
    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError> {
        self.inner.snapshot(run, at_most)
    }
    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        self.inner.put_snapshot(run, snapshot)
    }
    fn forget_snapshots(&self) -> Result<(), StoreError> {
        self.inner.forget_snapshots()
    }
    fn pending_timers(&self, until: i64, limit: usize) -> Result<Vec<PendingTimer>, StoreError> {
        self.inner.pending_timers(until, limit)
    }
    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError> {
        self.inner.open_effects(after, limit)
    }
    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError> {
        self.inner.scan_runs(run, visit)
    }
    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError> {
        self.inner.scan_snapshots(run, visit)
    }
}

fn door_store() -> (MemoryStore, Vec<Record>) {
    let store = MemoryStore::new();
    store.put_charter(&stored(DOOR)).unwrap();
    let machine = machine(DOOR);
    let (mut driver, first) = Driver::start(&machine, "a");
    let ana = Principal::new("ana", &["clerk"]);
    let mut batch = vec![first];
    for (kind, data) in [
        ("OPEN", json!({"by": 2})),
        ("OPEN", json!({"by": u64::MAX})),
        ("CLOSE", json!({})),
        ("CLOSE", json!({"x": "\n"})),
    ] {
        batch.push(driver.send(kind, data, &ana));
    }
    store.append(batch.clone()).unwrap();
    (store, batch.into_iter().map(|a| a.record).collect())
}

/// The record and kind of the first finding.
fn first(report: &Report) -> (Option<u64>, Difference) {
    let finding = report.findings.first().unwrap_or_else(|| panic!("no findings"));
    (finding.seq, finding.what)
}

#[test]
fn every_flipped_bit_of_every_record_is_reported() {
    let (store, _) = door_store();
    let intact = FakeRows::of(&store);
    assert_eq!(verify(&intact, None).unwrap().findings, []);
    let mut kinds = BTreeSet::new();
    for at in 0..intact.rows.len() {
        let mut shown = FakeRows::of(&store);
        for byte in 0..intact.rows[at].2.len() {
            for bit in 0..8 {
                shown.rows[at].2[byte] ^= 1 << bit;
                let report = verify(&shown, None).unwrap();
                let (seq, what) = first(&report);
                assert_eq!(seq, Some(at as u64), "byte {byte}, bit {bit}: {}", report.findings[0]);
                kinds.insert(what);
                shown.rows[at].2[byte] ^= 1 << bit;
            }
        }
    }
    assert!(kinds.contains(&Difference::Hash) && kinds.contains(&Difference::Unreadable), "{kinds:?}");
}

#[test]
fn cuts_splices_reorderings_and_renumberings_are_reported() {
    let (store, records) = door_store();
    let check = |change: &dyn Fn(&mut Rows), expected: (Option<u64>, Difference)| {
        let mut shown = FakeRows::of(&store);
        change(&mut shown.rows);
        let report = verify(&shown, None).unwrap();
        assert_eq!(first(&report), expected, "{}", report.findings[0]);
        report.findings[0].to_string()
    };
    let last = records.len() - 1;
    for at in 0..records.len() {
        let seq = Some(at as u64);
        // A record is missing.
        let message = check(&|rows| drop(rows.remove(at)), (seq, Difference::Missing));
        if at == last {
            assert_eq!(
                message,
                "run `a`, record 4: this record and all later ones are missing; according to `runs`, the last one is 4"
            );
        }
        // A record is missing, and the later ones are renumbered.
        check(
            &|rows| {
                rows.remove(at);
                rows.iter_mut().zip(0..).for_each(|(row, i)| row.1 = i);
            },
            (seq, if at == last { Difference::Missing } else { Difference::Place }),
        );
        // A record is duplicated, replaced by another, or only renumbered.
        if at < last {
            check(
                &|rows| {
                    let again = rows[at].clone();
                    rows.insert(at, again);
                    rows.pop();
                    rows.iter_mut().zip(0..).for_each(|(row, i)| row.1 = i);
                },
                (Some(at as u64 + 1), Difference::Place),
            );
            let message = check(
                &|rows| {
                    let (one, other) = (rows[at].2.clone(), rows[at + 1].2.clone());
                    (rows[at].2, rows[at + 1].2) = (other, one);
                },
                (seq, Difference::Place),
            );
            assert_eq!(
                message,
                format!("run `a`, record {at}: the stored text is record {} of this run, not {at}", at + 1)
            );
            check(&|rows| rows[at].1 = 77, (seq, Difference::Place));
            check(&|rows| rows[at + 1].0 = rows[at].0, (Some(at as u64 + 1), Difference::Place));
        }
    }
}

/// Changes a record and rehashes it and all later ones, as a careful forger would.
fn forge(records: &[Record], at: usize, change: impl Fn(&mut Json)) -> Vec<Vec<u8>> {
    let mut prev: Option<Json> = None;
    let mut texts = Vec::new();
    for (i, record) in records.iter().enumerate() {
        let mut json: Json = serde_json::from_str(record.text()).unwrap();
        if i == at {
            change(&mut json);
        }
        if let Some(prev) = &prev {
            json["prev"] = prev.clone();
        }
        json.as_object_mut().unwrap().remove("hash");
        json["hash"] = Digest::of_json(&json).to_string().into();
        prev = Some(json["hash"].clone());
        texts.push(canonical(&json).into_bytes());
    }
    texts
}

#[test]
fn a_forged_record_with_valid_hashes_is_found_by_replay() {
    let (store, records) = door_store();
    let check = |at: usize, change: &dyn Fn(&mut Json), expected: &str| {
        let mut shown = FakeRows::of(&store);
        for (row, text) in shown.rows.iter_mut().zip(forge(&records, at, change)) {
            row.2 = text;
        }
        let report = verify(&shown, None).unwrap();
        assert_eq!(report.findings[0].to_string(), format!("run `a`, record {at}: {expected}"));
    };
    check(1, &|r| r["verdict"] = "ignored".into(), "`verdict` is `\"ignored\"`; replay gives `\"accepted\"`");
    check(1, &|r| r["state"] = json!(["closed"]), "`state` is `[\"closed\"]`; replay gives `[\"opened\"]`");
    check(1, &|r| r["effects"] = json!([{"kind": "log"}]), "`effects` is `[{\"kind\":\"log\"}]`; replay gives `[]`");
    check(1, &|r| r["secret"] = json!(1), "it has the unknown field `secret`");
    check(3, &|r| r["refusal"] = json!({}), "`refusal` is `{}`; replay gives nothing");
    check(
        2,
        &|r| r["state"] = json!(["closed"]),
        "its data is redacted, so it must have been refused by validation and must have changed nothing, but the record differs",
    );
    // Another input: the snapshots differ.
    let mut shown = FakeRows::of(&store);
    for (row, text) in shown.rows.iter_mut().zip(forge(&records, 1, |r| r["event"]["data"]["by"] = json!(3))) {
        row.2 = text;
    }
    let report = verify(&shown, None).unwrap();
    assert!(report.findings[0].message.starts_with("`snapshot` is"), "{}", report.findings[0]);
    // Same content, but not canonical.
    let mut shown = FakeRows::of(&store);
    shown.rows[1].2.splice(1..1, *b" ");
    assert_eq!(first(&verify(&shown, None).unwrap()), (Some(1), Difference::Canonical));
}

#[test]
fn a_chain_forged_with_the_kernel_is_found_by_an_anchor_only() {
    let (_, records) = door_store();
    let machine = machine(DOOR);
    let forged = MemoryStore::new();
    forged.put_charter(&stored(DOOR)).unwrap();
    let (mut driver, first_append) = Driver::start(&machine, "a");
    let other = driver.send("OPEN", json!({"by": 9}), &Principal::new("ana", &["clerk"]));
    forged.append(vec![first_append, other]).unwrap();
    assert_eq!(verify(&forged, None).unwrap().findings, []);
    let anchor = |seq: usize| Anchor { run: "a".into(), seq: seq as u64, hash: records[seq].hash };
    let with = |anchors: Vec<Anchor>| verify_with(&forged, &VerifyOptions { run: None, anchors }).unwrap();
    assert_eq!(with(vec![anchor(0)]).findings, []);
    assert_eq!(first(&with(vec![anchor(0), anchor(1)])), (Some(1), Difference::Anchor));
    assert_eq!(first(&with(vec![anchor(4)])), (Some(4), Difference::Anchor));
}

/// Changes a file with another program.
fn tamper(sql: &str) -> Vec<String> {
    let folder = Folder::new("tamper");
    let machine = machine(DESK);
    {
        let store = SqliteStore::open(&folder.file()).unwrap();
        store.put_charter(&stored(DESK)).unwrap();
        let ana = Principal::new("ana", &["clerk", "boss"]);
        for run in ["a", "b"] {
            let (mut driver, first) = Driver::start(&machine, run);
            store
                .append(vec![
                    first,
                    driver.send("ASK", json!({}), &ana),
                    driver.send("WORK", json!({}), &ana),
                    driver.send("FLAG", json!({}), &ana),
                ])
                .unwrap();
        }
        store.put_blob(b"blob").unwrap();
    }
    rusqlite::Connection::open(folder.file()).unwrap().execute_batch(sql).unwrap();
    let store = SqliteStore::open_read_only(&folder.file()).unwrap();
    verify(&store, None).unwrap().findings.iter().map(ToString::to_string).collect()
}

#[test]
fn changes_to_the_tables_are_reported() {
    assert_eq!(tamper(""), Vec::<String>::new());
    let check = |sql: &str, expected: &[&str]| {
        let found = tamper(sql);
        let short = |s: &String| {
            // Digests are abbreviated.
            let mut s = s.clone();
            while let Some(at) = s.find("sha256:").filter(|at| s.len() >= at + 71) {
                s.replace_range(at + 9..at + 71, "");
                s.replace_range(at..at + 7, "#");
            }
            s
        };
        assert_eq!(found.iter().map(short).collect::<Vec<_>>(), expected, "{sql}");
    };
    let first = |sql: &str, expected: &str| {
        let found = tamper(sql);
        assert!(found.iter().any(|f| f.contains(expected)), "{sql}: {found:?}");
    };
    check("DELETE FROM runs WHERE run = 'a'", &["run `a`: its row in `runs` is missing"]);
    check(
        "UPDATE runs SET status = 'done' WHERE run = 'b'",
        &["run `b`, record 3: column `status` of its row in `runs` is `done`, but the records give `active`"],
    );
    check(
        "UPDATE runs SET seq = 2 WHERE run = 'b'",
        &["run `b`, record 3: according to `runs`, the last record is 2, but this later one exists"],
    );
    check(
        "UPDATE runs SET seq = 9 WHERE run = 'b'",
        &["run `b`, record 4: this record and all later ones are missing; according to `runs`, the last one is 9"],
    );
    for column in ["hash", "charter", "started", "updated"] {
        first(
            &format!("UPDATE runs SET {column} = upper({column}) || 'x' WHERE run = 'b'"),
            &format!("run `b`, record 3: column `{column}` of its row in `runs` is"),
        );
    }
    first(
        "UPDATE runs SET hash = 'sha256:' || upper(substr(hash, 8)) WHERE run = 'b'",
        "run `b`, record 3: column `hash`",
    );
    first("UPDATE runs SET run = 'c' WHERE run = 'b'", "run `b`: its row in `runs` is missing");
    first(
        "UPDATE runs SET run = 'c' WHERE run = 'b'",
        "run `c`: all records are missing; according to `runs`, the last one is 3",
    );
    first("DELETE FROM records WHERE run = 'b'", "run `b`: all records are missing");
    first(
        "DELETE FROM records WHERE run = 'b' AND seq = 3",
        "run `b`, record 3: this record and all later ones are missing",
    );
    first(
        "DELETE FROM records WHERE run = 'b' AND seq = 0",
        "run `b`, record 0: the record is missing; the next stored one is 1",
    );
    first(
        "UPDATE records SET seq = 5 WHERE run = 'b' AND seq = 2",
        "run `b`, record 2: the record is missing; the next stored one is 3",
    );
    first(
        "UPDATE records SET seq = seq + 10 WHERE run = 'b' AND seq = 3",
        "run `b`, record 3: the row of this record has `seq` 13",
    );
    first("UPDATE records SET run = 'c' WHERE run = 'b'", "run `c`, record 0: the stored text is record 0 of run `b`");
    first(
        "UPDATE records SET json = (SELECT json FROM records WHERE run = 'a' AND seq = 1) WHERE run = 'b' AND seq = 1",
        "run `b`, record 1: the stored text is record 1 of run `a`",
    );
    first(
        "UPDATE records SET json = replace(json, 'ana', 'eve') WHERE run = 'b' AND seq = 1",
        "run `b`, record 1: its content does not match its hash",
    );
    first(
        "UPDATE records SET n = n + 100 WHERE run = 'b' AND seq = 1",
        "run `b`, record 2: it is stored before its predecessor",
    );
    for column in ["id", "at", "type", "verdict", "hash"] {
        check_column(column);
    }
    first("DELETE FROM charters", "run `a`, record 0: charter sha256:");
    first("UPDATE charters SET core = replace(core, 'boss', 'bass')", "run `a`, record 0: charter sha256:");
    first("UPDATE charters SET source = source || ' '", "its id, version, name or source has been changed");
    first(
        "UPDATE snapshots SET json = json || ' ' WHERE run = 'b'",
        "run `b`, record 0: the stored snapshot has the digest",
    );
    first(
        "UPDATE snapshots SET seq = 9 WHERE run = 'b'",
        "run `b`, record 9: a snapshot is stored for this record, but the record does not exist",
    );
    first("UPDATE blobs SET data = x'00'", "has the digest");
    check(
        "DROP INDEX records_id; DROP VIEW events; CREATE VIEW events AS SELECT 1; CREATE INDEX mine ON records(at)",
        &[
            "the view `events` has an unexpected definition; run `charter rebuild`",
            "the index `records_id` is missing; run `charter rebuild`",
        ],
    );
    for table in ["transitions", "refusals", "effects", "timers", "ledger"] {
        check(
            &format!("DELETE FROM {table} WHERE run = 'b'"),
            &[&format!("table `{table}` does not match the records; run `charter rebuild`")],
        );
    }
    check("UPDATE effects SET status = 'done'", &["table `effects` does not match the records; run `charter rebuild`"]);
}

/// The result of `rebuild` after the file was changed, the findings of a verification after it, and
/// whether the tables are restored.
fn rebuilt(sql: &str) -> (Result<(), String>, Vec<String>, bool) {
    let folder = Folder::new("rebuilt");
    let store = SqliteStore::open(&folder.file()).unwrap();
    store.put_charter(&stored(DESK)).unwrap();
    let machine = machine(DESK);
    let ana = Principal::new("ana", &["clerk", "boss"]);
    let (mut driver, first) = Driver::start(&machine, "a");
    let second = driver.send("ASK", json!({}), &ana);
    store.append(vec![first, second]).unwrap();
    let change = rusqlite::Connection::open(folder.file()).unwrap();
    change.execute_batch(sql).unwrap();
    drop(change);
    let schema = |store: &SqliteStore| -> Vec<(String, Option<String>)> {
        let all = "SELECT name, sql FROM sqlite_schema ORDER BY name";
        let read = |c: &rusqlite::Connection| {
            let mut select = c.prepare(all)?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        store.query(read).unwrap()
    };
    let before = schema(&store);
    let said = store.rebuild().map_err(|e| e.to_string());
    let same = schema(&store) == before;
    if said.is_ok() {
        // The store stays usable.
        let third = driver.send("WORK", json!({}), &ana);
        store.append(vec![third]).unwrap();
    }
    let found = verify(&store, None).unwrap().findings;
    (said, found.iter().map(ToString::to_string).collect(), same)
}

#[test]
fn rebuild_restores_tables_indexes_and_views() {
    for sql in [
        "DROP INDEX records_id",
        "DROP INDEX records_run; CREATE INDEX records_run ON records(run, seq)",
        "DROP INDEX runs_status; DROP INDEX effects_open; DROP INDEX snapshots_run; DROP INDEX blobs_digest",
        "DROP VIEW events",
        "DROP VIEW events; CREATE VIEW events AS SELECT 1",
        "DROP TABLE effects; DROP TABLE ledger",
        "DROP TABLE effects; CREATE VIEW effects AS SELECT 1",
        "ALTER TABLE effects ADD COLUMN mine TEXT; INSERT INTO refusals VALUES ('', 0, '', '', '', '', '')",
        "CREATE TABLE mine(x); CREATE VIEW ours AS SELECT * FROM events; DROP INDEX effects_open",
    ] {
        let (said, found, _) = rebuilt(sql);
        assert_eq!(said, Ok(()), "{sql}");
        assert_eq!(found, Vec::<String>::new(), "{sql}");
    }
    for (sql, why) in [
        (
            "DROP VIEW events; DROP INDEX records_run; INSERT INTO records SELECT n + 10, run, seq, id, at, type, verdict, hash, json FROM records",
            "the index `records_run` cannot be recreated: existing rows violate it (UNIQUE constraint failed: records.run, records.seq)",
        ),
        ("DROP INDEX records_id; DROP TABLE blobs", "the table `blobs` is missing, and its content cannot be rebuilt"),
        (
            "DROP INDEX effects_open; DROP VIEW events; CREATE TABLE events(mine)",
            "a table named `events` is in the place of the view `events`; rename it",
        ),
    ] {
        let (said, _, same) = rebuilt(sql);
        let said = said.unwrap_err();
        assert!(said.contains(why), "{sql}: {said}");
        assert!(same, "{sql}");
    }
}

fn check_column(column: &str) {
    let found = tamper(&format!("UPDATE records SET {column} = {column} || 'x' WHERE run = 'b' AND seq = 1"));
    assert!(found[0].starts_with(&format!("run `b`, record 1: column `{column}` is `")), "{found:?}");
    // Every character is compared, even where a parser would be lenient.
    let found = tamper(&format!(
        "UPDATE records SET {column} = upper({column}) || lower({column}) WHERE run = 'a' AND seq = 2"
    ));
    assert!(found[0].starts_with(&format!("run `a`, record 2: column `{column}` is `")), "{found:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Changes any byte of the file: the change is found, or no record has changed.
    #[test]
    fn no_change_of_a_byte_in_the_file_is_missed(at in any::<prop::sample::Index>(), mask in 1u8.., seed in 0u8..2) {
        let folder = Folder::new("bytes");
        let file = folder.file();
        let rows = |store: &SqliteStore| {
            let mut rows = Vec::new();
            store.scan(None, 0, &mut |row| { rows.push(format!("{row:?}")); true }).map(|()| rows)
        };
        let before = {
            let store = SqliteStore::open(&file).unwrap();
            fill(&store, &some_acts(6 + seed as usize), "r");
            rows(&store).unwrap()
        };
        // Closed, so that everything is in one file.
        let mut bytes = std::fs::read(&file).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= mask;
        std::fs::write(&file, &bytes).unwrap();
        let Ok(store) = SqliteStore::open_read_only(&file) else { return Ok(()) };
        match verify(&store, None) {
            Err(_) => {}
            Ok(report) if !report.is_verified() => {}
            Ok(_) => prop_assert_eq!(rows(&store).unwrap(), before, "byte {} was changed without a finding", at),
        }
    }
}

/// Zeroed, random and exchanged pages, and truncated files: the damage is found, or no record has
/// changed.
#[test]
fn damaged_pages_are_found() {
    let folder = Folder::new("pages");
    let file = folder.file();
    let rows = |store: &SqliteStore| {
        let mut rows = Vec::new();
        store
            .scan(None, 0, &mut |row| {
                rows.push(format!("{row:?}"));
                true
            })
            .map(|()| rows)
    };
    let before = {
        let store = SqliteStore::open(&file).unwrap();
        fill(&store, &some_acts(12), "r");
        store.put_blob(b"blob").unwrap();
        rows(&store).unwrap()
    };
    let intact = std::fs::read(&file).unwrap();
    let page = 4096;
    let pages = intact.len() / page;
    let mut said = BTreeSet::new();
    let mut check = |bytes: &[u8], how: &str| {
        std::fs::write(&file, bytes).unwrap();
        let store = match SqliteStore::open_read_only(&file) {
            Ok(store) => store,
            Err(e) => {
                said.insert(e.to_string());
                return;
            }
        };
        match verify(&store, None) {
            Err(e) => drop(said.insert(e.to_string())),
            Ok(report) if report.is_verified() => {
                assert_eq!(rows(&store).unwrap(), before, "{how}: no finding");
            }
            Ok(report) => said.extend(report.findings.iter().map(ToString::to_string)),
        }
    };
    for n in 0..pages {
        let (from, to) = (n * page, (n + 1) * page);
        let mut bytes = intact.clone();
        bytes[from..to].fill(0);
        check(&bytes, &format!("page {n} zeroed"));
        bytes[from..to].iter_mut().zip(0u32..).for_each(|(b, i)| {
            *b = (i.wrapping_mul(2_654_435_761) >> 13) as u8;
        });
        check(&bytes, &format!("page {n} noise"));
        let other = (n * 7 + 3) % pages;
        let mut bytes = intact.clone();
        bytes.copy_within(other * page..(other + 1) * page, from);
        check(&bytes, &format!("page {n} is page {other}"));
        check(&intact[..from], &format!("cut to {n} pages"));
        check(&intact[..from + 700], &format!("cut in page {n}"));
    }
    let said: Vec<_> = said.into_iter().collect();
    let some = |words: &str| {
        assert!(said.iter().any(|s| s.contains(words)), "{words}: {said:#?}");
    };
    some("SQLite integrity check");
    some("the records from here on are unreadable: the file is damaged");
    some("is not a journal");
    // Records after an unreadable page are still verified.
    assert!(said.iter().all(|s| !s.contains("for details")), "{said:#?}");
}
