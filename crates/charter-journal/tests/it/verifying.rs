//! Tests that verification reports the first record that differs, and the kind of difference, for
//! every kind of change.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::*;
use charter_journal::{
    Anchor, Append, Difference, MemoryStore, OpenEffect, PendingTimer, Record, Reply, Report, Row, RunFilter, RunInfo,
    RunRow, SqliteStore, Store, StoreError, StoredCharter, StoredSnapshot, VerifyOptions, fork, verify, verify_with,
};
use charter_kernel::{Digest, Principal, Timestamp, digest::canonical};
use charter_test_support::{cases, full};
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
    #![proptest_config(ProptestConfig::with_cases(cases(15, 60)))]

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
            fork(&store, &machine(source), &records[0].run, at, &format!("fork of {}", records[0].run), true).unwrap();
        }
        let report = verify(&store, None).unwrap();
        prop_assert_eq!(&report.findings, &[]);
        prop_assert_eq!(report.runs.len(), 6);
    }
}

#[test]
fn a_written_file_verifies() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
    fill(&store, &some_acts(60), "r");
    store.put_blob(b"x").unwrap();
    assert_eq!(verify(&store, None).unwrap().findings, []);
    assert_eq!(verify(&store, Some("r1")).unwrap().runs.len(), 1);
    assert_eq!(verify(&store, Some("nobody")).unwrap_err(), StoreError::UnknownRun("nobody".into()));
}

#[test]
fn a_file_verifies_while_it_is_written() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.file("journal.db")).unwrap();
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

/// Rows as position, sequence number and text.
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
    fn imported(&self, run: &str) -> Result<u64, StoreError> {
        self.inner.imported(run)
    }
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.inner.records(run, from, limit)
    }
    fn records_after(&self, position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError> {
        self.inner.records_after(position, limit)
    }
    fn last_position(&self) -> Result<u64, StoreError> {
        self.inner.last_position()
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
    fn pending_timers(&self, until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError> {
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

/// Returns the record and the kind of the first finding.
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
        // Every fourth byte, unless CI asks for all.
        for byte in (at % 4..intact.rows[at].2.len()).step_by(if full() { 1 } else { 4 }) {
            // One bit of each byte, another one in each, unless CI asks for all.
            let bits = if full() { 0..8 } else { byte % 8..byte % 8 + 1 };
            for bit in bits {
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
            assert_eq!(message, "run `a`, record 4: the last record is missing");
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

/// Changes a record and rehashes it and all later ones, as a careful attacker would.
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
    // With another input, the snapshots differ.
    let mut shown = FakeRows::of(&store);
    for (row, text) in shown.rows.iter_mut().zip(forge(&records, 1, |r| r["event"]["data"]["by"] = json!(3))) {
        row.2 = text;
    }
    let report = verify(&shown, None).unwrap();
    assert!(report.findings[0].message.starts_with("`snapshot` is"), "{}", report.findings[0]);
    // The same content, but not canonical JSON.
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
    let with =
        |anchors: Vec<Anchor>| verify_with(&forged, &VerifyOptions { anchors, ..VerifyOptions::default() }).unwrap();
    assert_eq!(with(vec![anchor(0)]).findings, []);
    assert_eq!(first(&with(vec![anchor(0), anchor(1)])), (Some(1), Difference::Anchor));
    assert_eq!(first(&with(vec![anchor(4)])), (Some(4), Difference::Anchor));
}

/// Somebody relies on an anchor, so one that is compared with nothing is not passed over.
#[test]
fn an_anchor_that_cannot_be_compared_is_a_finding() {
    let (store, records) = door_store();
    let anchor = |run: &str, seq: usize| Anchor { run: run.into(), seq: seq as u64, hash: records[seq].hash };
    let with = |run: Option<&str>, anchors: Vec<Anchor>| {
        let options = VerifyOptions { run: run.map(str::to_owned), anchors, ..VerifyOptions::default() };
        verify_with(&store, &options).unwrap()
    };
    let mut export = Vec::new();
    charter_journal::export(&store, "a", &mut export).unwrap();
    let exported = |anchors: &[Anchor]| charter_journal::verify_export(&mut export.as_slice(), anchors).unwrap();
    for report in [with(None, vec![anchor("a", 1)]), with(Some("a"), vec![anchor("a", 1)]), exported(&[anchor("a", 1)])]
    {
        assert_eq!(report.findings, []);
    }
    let other = |run: &str| vec![anchor("a", 1), anchor(run, 1)];
    for report in
        [with(None, other("b")), with(Some("a"), other("b")), with(Some("a"), other("aa")), exported(&other("b"))]
    {
        assert_eq!(first(&report), (Some(1), Difference::Anchor));
    }
    let twice = [Anchor { hash: records[0].hash, ..anchor("a", 1) }, anchor("a", 1)];
    for report in [with(None, twice.to_vec()), exported(&twice)] {
        assert_eq!(first(&report), (Some(1), Difference::Anchor));
    }
}
