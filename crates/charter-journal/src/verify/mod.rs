//! Verification: hashes the chain again *and* runs every event through the kernel again, and names the first record that differs.
//!
//! For each record, the text that the kernel and the chain lead to is written again and compared byte for byte with the text that is
//! stored. Only when they differ it is asked why ([`differ`]).

mod differ;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use charter_kernel::{Digest, Machine, Refusal, Snapshot, Step};
use rustc_hash::FxHashMap;

use crate::error::StoreError;
use crate::record::{Arrived, GENESIS, Making, Origin, Record, RecordError, Verdict, moment};
use crate::replay::{ReplayError, machine};
use crate::store::{Row, RunRow, Store};

/// What to verify.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Only this run. The container (file, tables, blobs) is only looked at when all are verified.
    pub run: Option<String>,
    /// Records whose hashes are known from elsewhere (a copy, a receipt). A chain that was written anew from one place on, consistently, is
    /// told from the true one by such a hash and by nothing else.
    pub anchors: Vec<Anchor>,
}

/// A hash that is known from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The run.
    pub run: String,
    /// The record.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

/// What was verified, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Every run, with its records as far as they are what they should be.
    pub runs: Vec<VerifiedRun>,
    /// What is not as it should be: of every run the first record that differs, and what lies outside of records.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether everything is as it should be.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many records were verified.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.runs
            .iter()
            .map(|r| r.records)
            .fold(0, u64::saturating_add)
    }
}

/// A run that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedRun {
    /// Its id.
    pub run: String,
    /// How many of its records, from the first on, are what they should be.
    pub records: u64,
    /// The hash of the last of them.
    pub hash: Digest,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The run; none: the store itself.
    pub run: Option<String>,
    /// The record; none: the run, or the store, as a whole.
    pub seq: Option<u64>,
    /// What kind of difference.
    pub what: Difference,
    /// In words.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.run, self.seq) {
            (Some(run), Some(seq)) => write!(f, "run `{run}`, record {seq}: {}", self.message),
            (Some(run), None) => write!(f, "run `{run}`: {}", self.message),
            (None, _) => f.write_str(&self.message),
        }
    }
}

/// The kinds of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Difference {
    /// What is stored is not a record.
    Unreadable,
    /// The content of a record does not give its hash.
    Hash,
    /// The record is of another run, or has another number than its place.
    Place,
    /// Records are missing.
    Missing,
    /// `prev` is not the hash of the record before.
    Prev,
    /// The record is not written canonically.
    Canonical,
    /// The record is of another charter, or its charter is not there or is damaged.
    Charter,
    /// The kernel gives something else for this event.
    Replay,
    /// The columns beside the record say something else than the record.
    Columns,
    /// The head of the run is not its last record.
    Head,
    /// A kept snapshot is not the one after its record.
    Snapshot,
    /// The record is not the one that is known from elsewhere.
    Anchor,
    /// A fork does not come from where it says.
    Origin,
    /// Something else in the store: the file, charters, blobs, projections.
    Container,
}

impl Difference {
    /// A word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Difference::Unreadable => "unreadable",
            Difference::Hash => "hash",
            Difference::Place => "place",
            Difference::Missing => "missing",
            Difference::Prev => "prev",
            Difference::Canonical => "canonical",
            Difference::Charter => "charter",
            Difference::Replay => "replay",
            Difference::Columns => "columns",
            Difference::Head => "head",
            Difference::Snapshot => "snapshot",
            Difference::Anchor => "anchor",
            Difference::Origin => "origin",
            Difference::Container => "container",
        }
    }
}

/// Verifies a store, or one run of it.
///
/// # Errors
/// The store cannot be read, or has no such run. What is *wrong* with it is no error but a finding.
pub fn verify(store: &dyn Store, run: Option<&str>) -> Result<Report, StoreError> {
    verify_with(
        store,
        &VerifyOptions {
            run: run.map(str::to_owned),
            anchors: Vec::new(),
        },
    )
}

/// As [`verify`], with options.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(store: &dyn Store, options: &VerifyOptions) -> Result<Report, StoreError> {
    let only = options.run.as_deref();
    let mut verifier = Verifier {
        store,
        machines: FxHashMap::default(),
        report: Report::default(),
        snapshots: BTreeMap::new(),
        anchors: BTreeMap::new(),
        buffer: String::new(),
    };
    if only.is_none() {
        for problem in store.container_problems()? {
            verifier.found(None, None, Difference::Container, problem);
        }
        let mut wrong = Vec::new();
        let scanned = store.scan_blobs(&mut |digest, data| {
            let found = Digest::of_bytes(data).to_string();
            if found != digest {
                wrong.push(format!("the blob {digest} has the digest {found}"));
            }
        });
        wrong
            .into_iter()
            .for_each(|w| verifier.found(None, None, Difference::Container, w));
        verifier.readable("the blobs", scanned)?;
    }
    // Taken first: what is written meanwhile has its snapshot later than its record.
    let scanned = store.scan_snapshots(only, &mut |run, seq, text| {
        verifier
            .snapshots
            .entry(run.to_owned())
            .or_default()
            .insert(seq, Digest::of_bytes(text));
    });
    verifier.readable("the snapshots", scanned)?;
    for a in options
        .anchors
        .iter()
        .filter(|a| only.is_none_or(|run| run == a.run))
    {
        verifier
            .anchors
            .entry(a.run.clone())
            .or_default()
            .insert(a.seq, a.hash);
    }
    if let Err(stopped_in) = verifier.records(only)? {
        // What lies behind the place that cannot be read is looked at run by run.
        let mut others = Vec::new();
        if only.is_none() {
            let scanned = store.scan_runs(None, &mut |row| others.push(row.run.to_owned()));
            verifier.readable("the list of runs", scanned)?;
        }
        for run in others {
            if stopped_in.as_ref().is_none_or(|stopped| run > *stopped) {
                let _ = verifier.records(Some(&run))?;
            }
        }
    }
    verifier.rest(only)?;
    Ok(verifier.report)
}

struct Verifier<'s> {
    store: &'s dyn Store,
    machines: FxHashMap<Digest, Result<Arc<Machine>, String>>,
    report: Report,
    /// Digests of kept snapshots that have not been compared yet.
    snapshots: BTreeMap<String, BTreeMap<u64, Digest>>,
    anchors: BTreeMap<String, BTreeMap<u64, Digest>>,
    buffer: String,
}

/// The run that is being verified.
struct Current {
    run: String,
    machine: Option<Arc<Machine>>,
    snapshot: Option<Snapshot>,
    digest: Option<Digest>,
    next: u64,
    hash: Digest,
    place: i64,
    started: i64,
    updated: i64,
    status: &'static str,
    origin: Option<Origin<'static>>,
    /// Something was found: the rest of the run follows from it, and is passed over.
    broken: bool,
}

impl Current {
    fn new(run: &str) -> Current {
        Current {
            run: run.into(),
            machine: None,
            snapshot: None,
            digest: None,
            next: 0,
            hash: GENESIS,
            place: i64::MIN,
            started: 0,
            updated: 0,
            status: "",
            origin: None,
            broken: false,
        }
    }
}

/// Why a record is not what it should be.
type Wrong = (Difference, String);

impl Verifier<'_> {
    fn found(&mut self, run: Option<String>, seq: Option<u64>, what: Difference, message: String) {
        self.report.findings.push(Finding {
            run,
            seq,
            what,
            message,
        });
    }

    /// That a part of the store cannot be read is a finding.
    fn readable(&mut self, what: &str, read: Result<(), StoreError>) -> Result<(), StoreError> {
        match read {
            Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) => {
                let message = format!("{what} cannot be read: {}", why_unreadable(e));
                self.found(None, None, Difference::Container, message);
                Ok(())
            }
            read => read,
        }
    }

    /// All records, of one run or of all. If they cannot be read to their end: the run in which that happened, if it is known.
    fn records(&mut self, only: Option<&str>) -> Result<Result<(), Option<String>>, StoreError> {
        let mut current: Option<Current> = None;
        let mut failure = None;
        let store = self.store;
        let scanned = store.scan(only, 0, &mut |row| {
            if current.as_ref().is_none_or(|c| c.run != row.run) {
                if let Some(done) = current.take()
                    && let Err(e) = self.finish(done)
                {
                    failure = Some(e);
                    return false;
                }
                current = Some(Current::new(row.run));
            }
            if let Some(current) = &mut current {
                self.row(current, row);
            }
            true
        });
        if let Some(e) = failure {
            return Err(e);
        }
        match scanned {
            Ok(()) => {
                if let Some(done) = current {
                    self.finish(done)?;
                }
                Ok(Ok(()))
            }
            // The file cannot be read any further: a finding, with the place where it stopped.
            Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) => {
                let (run, seq) = match (&current, only) {
                    (Some(c), _) => (Some(c.run.clone()), Some(c.next)),
                    (None, run) => (run.map(str::to_owned), run.map(|_| 0)),
                };
                let message = format!(
                    "from here on the records cannot be read: {}",
                    why_unreadable(e)
                );
                self.found(run.clone(), seq, Difference::Unreadable, message);
                let (records, hash) = current.map_or((0, GENESIS), |c| (c.next, c.hash));
                if let Some(run) = &run {
                    self.snapshots.remove(run);
                    self.anchors.remove(run);
                    self.report.runs.push(VerifiedRun {
                        run: run.clone(),
                        records,
                        hash,
                    });
                }
                Ok(Err(run))
            }
            Err(e) => Err(e),
        }
    }

    fn row(&mut self, current: &mut Current, row: &Row<'_>) {
        if current.broken {
            return;
        }
        if let Err((what, message)) = self.check(current, row) {
            current.broken = true;
            self.found(Some(current.run.clone()), Some(current.next), what, message);
        }
    }

    /// One record: made again, compared.
    fn check(&mut self, current: &mut Current, row: &Row<'_>) -> Result<(), Wrong> {
        if u64::try_from(row.seq) != Ok(current.next) {
            return Err(differ::out_of_place(current.next, row));
        }
        let text = std::str::from_utf8(row.text)
            .map_err(|_| (Difference::Unreadable, "it is not text".to_owned()))?;
        let arrived = Arrived::read(text).map_err(|e| differ::unreadable(text, &e))?;
        if arrived.run != current.run || arrived.seq != current.next {
            return Err(differ::elsewhere(
                text,
                &current.run,
                current.next,
                &arrived,
            ));
        }
        if current.next == 0 {
            let found = self.machine(arrived.charter);
            current.machine =
                Some(found.map_err(|why| {
                    differ::first_intact(text).unwrap_or((Difference::Charter, why))
                })?);
            current.origin = arrived.forked_from.clone().map(|o| Origin {
                run: o.run.into_owned().into(),
                seq: o.seq,
                hash: o.hash,
            });
        }
        // It is there: record 0 has set it, or the run is broken.
        let Some(machine) = current.machine.clone() else {
            return Ok(());
        };
        if current.next > 0 && current.snapshot.is_none() {
            return Err((
                Difference::Replay,
                "the start of the run was refused, so nothing can come after it".into(),
            ));
        }
        let id = arrived.id.clone();
        let place = (row.place, current.place);
        let outcome: Result<Step, Refusal>;
        match arrived.envelope() {
            Ok(envelope) => {
                outcome = match &current.snapshot {
                    None => machine.start(&current.run, &envelope),
                    Some(before) => machine.step(before, &envelope),
                };
                let digest = match (&outcome, &current.snapshot) {
                    (Ok(step), Some(before)) if step.snapshot.seq() == before.seq() => {
                        current.digest
                    }
                    (Ok(step), _) => {
                        self.buffer.clear();
                        machine.write_snapshot(&mut self.buffer, &step.snapshot);
                        Some(Digest::of_bytes(self.buffer.as_bytes()))
                    }
                    _ => current.digest,
                };
                let forked_from = if current.next == 0 {
                    current.origin.clone()
                } else {
                    None
                };
                let making = Making {
                    machine: &machine,
                    run: &current.run,
                    id: Some(&id),
                    prev: current.hash,
                    envelope: &envelope,
                    before: current.snapshot.as_ref(),
                    outcome: &outcome,
                    snapshot: digest,
                    forked_from,
                };
                let mut fields = making.fields();
                self.buffer.clear();
                fields.write_hashed(&mut self.buffer);
                if self.buffer != text {
                    return Err(differ::why(text, &self.buffer));
                }
                if fields.seq == 0 {
                    current.started = fields.at;
                }
                (current.updated, current.status) = (fields.at, fields.status_word());
                (current.hash, current.digest) = (fields.hash, Some(fields.snapshot));
                differ::columns(row, &fields)?;
            }
            Err(RecordError::Withheld) => {
                outcome = Err(charter_kernel::Code::TooLarge.into());
                self.withheld(current, row, text)?;
            }
            Err(e) => return Err((Difference::Unreadable, e.to_string())),
        }
        if let Ok(step) = outcome {
            current.snapshot = Some(step.snapshot);
        }
        if place.0 <= place.1 {
            return Err((
                Difference::Place,
                "it was stored before the record in front of it".into(),
            ));
        }
        current.place = row.place;
        if let Some(kept) = self
            .snapshots
            .get_mut(&current.run)
            .and_then(|s| s.remove(&current.next))
            && Some(kept) != current.digest
        {
            return Err((
                Difference::Snapshot,
                format!(
                    "the snapshot that is kept after it has the digest {kept}, the record says {}",
                    current.digest.unwrap_or_default()
                ),
            ));
        }
        if let Some(anchor) = self
            .anchors
            .get_mut(&current.run)
            .and_then(|a| a.remove(&current.next))
            && anchor != current.hash
        {
            return Err((
                Difference::Anchor,
                format!(
                    "its hash is {}, but it is known to be {anchor}",
                    current.hash
                ),
            ));
        }
        current.next = current.next.saturating_add(1);
        Ok(())
    }

    /// A record whose data was not kept cannot be run again; but it must have changed nothing, for one of the reasons of the door.
    fn withheld(&self, current: &mut Current, row: &Row<'_>, text: &str) -> Result<(), Wrong> {
        let record = Record::read(text).map_err(|e| differ::unreadable(text, &e))?;
        if let Some(wrong) = differ::first_intact(text) {
            return Err(wrong);
        }
        if record.prev != current.hash {
            return Err(differ::wrong_prev(record.prev, current.hash));
        }
        if Some(record.charter) != current.machine.as_ref().map(|m| m.digest()) {
            return Err((
                Difference::Charter,
                format!(
                    "it is of the charter {}, the run of another",
                    record.charter
                ),
            ));
        }
        let state: Vec<&str> = current
            .snapshot
            .as_ref()
            .and_then(|s| s.actor(&record.to))
            .map(|a| a.state().collect())
            .unwrap_or_default();
        let code = record.refusal.as_ref().map_or("", |r| r.code.word());
        let unchanged = record.verdict == Verdict::Refused
            && matches!(
                code,
                "too-large" | "schema" | "charter-mismatch" | "reserved"
            )
            && record.from == state
            && record.state == state
            && record.transitions.is_empty()
            && record.effects.is_empty()
            && record.timers.is_empty()
            && record.ledger.is_empty()
            && record.approvals.is_empty()
            && record.status == current.snapshot.as_ref().map(Snapshot::status)
            && record.snapshot == current.digest.unwrap_or_else(|| Digest::of_bytes(b"null"));
        if !unchanged {
            return Err((Difference::Replay, "its data was not kept, so it must have been refused at the door and have changed nothing; it says otherwise".into()));
        }
        if record.seq == 0 {
            current.started = record.at;
        }
        (current.updated, current.status, current.hash) =
            (record.at, record.status_word(), record.hash);
        differ::columns(row, &record)
    }

    fn machine(&mut self, digest: Digest) -> Result<Arc<Machine>, String> {
        let store = self.store;
        self.machines
            .entry(digest)
            .or_insert_with(|| {
                machine(store, digest).map(Arc::new).map_err(|e| match e {
                    // Its other words send people here.
                    ReplayError::Store(StoreError::Damaged(why)) => why,
                    e => e.to_string(),
                })
            })
            .clone()
    }

    /// A run's records are through: is its head the last of them?
    fn finish(&mut self, mut current: Current) -> Result<(), StoreError> {
        let run = current.run.clone();
        // A run that goes on meanwhile is followed a little; what comes later is not the business of this verification.
        for _ in 0..3 {
            if current.broken {
                break;
            }
            let last = current.next.saturating_sub(1);
            let mut head = None;
            let scanned = self.store.scan_runs(Some(&run), &mut |row| {
                head = Some(differ::head(row, &current))
            });
            if let Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) = scanned {
                let message = format!("its row in `runs` cannot be read: {}", why_unreadable(e));
                self.found(Some(run.clone()), None, Difference::Head, message);
                break;
            }
            match head {
                None => {
                    self.found(
                        Some(run.clone()),
                        None,
                        Difference::Head,
                        "it has records, but no row in `runs`".into(),
                    );
                    current.broken = true;
                }
                Some(Ok(())) => break,
                Some(Err(differ::Head::Wrong(message))) => {
                    self.found(Some(run.clone()), Some(last), Difference::Head, message);
                    current.broken = true;
                }
                Some(Err(differ::Head::Behind(seq))) => {
                    let before = current.next;
                    let store = self.store;
                    let scanned = store.scan(Some(&run), current.next, &mut |row| {
                        self.row(&mut current, row);
                        !current.broken
                    });
                    if let Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) = scanned {
                        let message = format!(
                            "from here on the records cannot be read: {}",
                            why_unreadable(e)
                        );
                        let seq = Some(current.next);
                        self.found(Some(run.clone()), seq, Difference::Unreadable, message);
                        current.broken = true;
                    }
                    if !current.broken && current.next == before {
                        let message = format!(
                            "it is missing, with all that follow: `runs` says that the last one is {seq}"
                        );
                        self.found(
                            Some(run.clone()),
                            Some(before),
                            Difference::Missing,
                            message,
                        );
                        current.broken = true;
                    }
                }
            }
        }
        if let (false, Some(origin)) = (current.broken, &current.origin) {
            let shared = self
                .store
                .records(&origin.run, origin.seq, 1)
                .ok()
                .and_then(|r| r.into_iter().next());
            if let Some(shared) = shared.filter(|r| r.seq == origin.seq && r.hash != origin.hash) {
                let message = format!(
                    "it says that it comes from record {} of run `{}` with the hash {}, but that record has {}",
                    origin.seq, origin.run, origin.hash, shared.hash
                );
                self.found(Some(run.clone()), Some(0), Difference::Origin, message);
            }
        }
        if current.broken {
            self.snapshots.remove(&run);
            self.anchors.remove(&run);
        }
        self.report.runs.push(VerifiedRun {
            run,
            records: current.next,
            hash: current.hash,
        });
        Ok(())
    }

    /// What no record has asked for: heads, snapshots, anchors of records that are not there.
    fn rest(&mut self, only: Option<&str>) -> Result<(), StoreError> {
        let mut without = Vec::new();
        let scanned = self.store.scan_runs(only, &mut |row: &RunRow<'_>| {
            without.push((row.run.to_owned(), row.seq))
        });
        self.readable("the list of runs", scanned)?;
        let seen: BTreeSet<&str> = self.report.runs.iter().map(|r| r.run.as_str()).collect();
        without.retain(|(run, _)| !seen.contains(run.as_str()));
        for (run, seq) in without {
            // A run that has begun meanwhile has records by now.
            let mut begun = false;
            let scanned = self.store.scan(Some(&run), 0, &mut |_| {
                begun = true;
                false
            });
            if scanned.is_ok() && !begun {
                self.found(
                    Some(run),
                    None,
                    Difference::Missing,
                    format!("all its records are missing: `runs` says that the last one is {seq}"),
                );
            }
        }
        if let Some(run) = only.filter(|run| {
            self.report.runs.is_empty()
                && !self
                    .report
                    .findings
                    .iter()
                    .any(|f| f.run.as_deref() == Some(run))
        }) {
            return Err(StoreError::UnknownRun(run.into()));
        }
        for (run, seqs) in std::mem::take(&mut self.snapshots) {
            if let Some(seq) = seqs.keys().next() {
                self.found(
                    Some(run),
                    Some(*seq),
                    Difference::Snapshot,
                    "a snapshot is kept after it, but there is no such record".into(),
                );
            }
        }
        for (run, seqs) in std::mem::take(&mut self.anchors) {
            if let Some((seq, hash)) = seqs.iter().next() {
                self.found(
                    Some(run),
                    Some(*seq),
                    Difference::Anchor,
                    format!("it is known to have the hash {hash}, but there is no such record"),
                );
            }
        }
        Ok(())
    }
}

/// What is wrong with the file, without what people are told who are not verifying it.
fn why_unreadable(e: StoreError) -> String {
    match e {
        StoreError::Failed { reason, .. } | StoreError::Damaged(reason) => reason,
        e => e.to_string(),
    }
}

impl Current {
    fn started_text(&self) -> String {
        moment::text(self.started)
    }
    fn updated_text(&self) -> String {
        moment::text(self.updated)
    }
}
