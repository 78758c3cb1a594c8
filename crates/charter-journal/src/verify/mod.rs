//! Verification: recomputes the hash chain, replays every event through the kernel, and reports the
//! first record of each run that differs.
//!
//! For each record, the expected text is rebuilt from the chain and the kernel, and compared byte
//! for byte with the stored one. [`diagnose`] determines the reason only if they differ.

mod current;
mod diagnose;
mod exported;
mod heads;
mod records;
mod report;

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_kernel::{Digest, Machine};
use rustc_hash::FxHashMap;

pub use exported::{verify_export, verify_export_with};
pub use report::{Anchor, Difference, Finding, Report, VerifiedRun, VerifyOptions};

use crate::error::StoreError;
use crate::head::HeadCheck;
use crate::record::GENESIS;
use crate::replay::ReplayError;
use crate::store::Store;
use current::Current;
use heads::why_unreadable;

/// Verifies a store or one of its runs.
///
/// # Errors
/// The store cannot be read, or the run does not exist. Problems in the data are findings, not
/// errors.
pub fn verify(store: &dyn Store, run: Option<&str>) -> Result<Report, StoreError> {
    verify_with(store, &VerifyOptions { run: run.map(str::to_owned), ..VerifyOptions::default() })
}

/// Like [`verify`], but with options.
///
/// # Errors
/// See [`verify`].
pub fn verify_with(store: &dyn Store, options: &VerifyOptions) -> Result<Report, StoreError> {
    let only = options.run.as_deref();
    let around = || Ok::<_, StoreError>((head(store, options)?, store.container_problems()?));
    let (around, records) = match only {
        Some(_) => (head(store, options).map(|head| (head, Vec::new())), records(store, options)),
        // The two checks only read and do not depend on each other, so they run in parallel.
        None => std::thread::scope(|scope| {
            let other = std::thread::Builder::new().name("verify".into()).spawn_scoped(scope, around);
            let records = records(store, options);
            let other = match other.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(found)) => found,
                // The thread could not be started or panicked: run the check on this thread.
                Ok(Err(_)) | Err(_) => around(),
            };
            (other, records)
        }),
    };
    let mut report = records?;
    let (head, container) = around?;
    let finding = |what: Difference| move |message: String| Finding { run: None, seq: None, what, message };
    report.findings.splice(0..0, container.into_iter().map(finding(Difference::Container)));
    report.findings.extend(head.problems.into_iter().map(finding(Difference::Journal)));
    (report.head, report.remarks) = (head.head, head.remarks);
    Ok(report)
}

/// Checks the head of the journal. For a single run, only that no record is missing at the end.
fn head(store: &dyn Store, options: &VerifyOptions) -> Result<HeadCheck, StoreError> {
    match store.check_head(&options.heads, options.run.is_none() || !options.heads.is_empty()) {
        Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) => Ok(HeadCheck {
            problems: vec![format!("the head of the journal cannot be checked: {}", why_unreadable(e))],
            ..HeadCheck::default()
        }),
        checked => checked,
    }
}

/// Verifies everything except the container: blobs, snapshots, anchors, records, heads of runs.
fn records(store: &dyn Store, options: &VerifyOptions) -> Result<Report, StoreError> {
    let only = options.run.as_deref();
    let mut verifier = Verifier::new(store);
    if only.is_none() {
        let mut wrong = Vec::new();
        let scanned = store.scan_blobs(&mut |digest, data| {
            let found = Digest::of_bytes(data).to_string();
            if found != digest {
                wrong.push(format!("blob {digest} is damaged: its content has the digest {found}"));
            }
        });
        wrong.into_iter().for_each(|w| verifier.found(None, None, Difference::Container, w));
        verifier.readable("the blobs", scanned)?;
    }
    // Read before the records: a concurrent writer stores a snapshot after its record.
    let scanned = store.scan_snapshots(only, &mut |run, seq, text| {
        verifier.snapshots.entry(run.to_owned()).or_default().insert(seq, Digest::of_bytes(text));
    });
    verifier.readable("the snapshots", scanned)?;
    verifier.expect(&options.anchors, only);
    if let Err(stopped_in) = verifier.records(only)? {
        // Runs after the unreadable position are verified one by one.
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
    verifier.leftovers(only)?;
    Ok(verifier.report)
}

struct Verifier<'s> {
    store: &'s dyn Store,
    machines: FxHashMap<Digest, Result<Arc<Machine>, ReplayError>>,
    report: Report,
    /// Digests of stored snapshots that have not been compared yet.
    snapshots: BTreeMap<String, BTreeMap<u64, Digest>>,
    anchors: BTreeMap<String, BTreeMap<u64, Digest>>,
    buffer: String,
}

impl<'s> Verifier<'s> {
    fn new(store: &'s dyn Store) -> Verifier<'s> {
        Verifier {
            store,
            machines: FxHashMap::default(),
            report: Report::default(),
            snapshots: BTreeMap::new(),
            anchors: BTreeMap::new(),
            buffer: String::new(),
        }
    }
}

impl Verifier<'_> {
    fn found(&mut self, run: Option<String>, seq: Option<u64>, what: Difference, message: String) {
        self.report.findings.push(Finding { run, seq, what, message });
    }

    /// Turns an unreadable part of the store into a finding.
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

    /// Verifies the records of one run or of all runs. If reading stops early, returns the run in
    /// which it stopped, if known.
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
            // The file cannot be read any further: a finding, with the position where reading
            // stopped.
            Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) => {
                let (run, seq) = match (&current, only) {
                    (Some(c), _) => (Some(c.run.clone()), Some(c.next)),
                    (None, run) => (run.map(str::to_owned), run.map(|_| 0)),
                };
                let message = format!("the records from here on are unreadable: {}", why_unreadable(e));
                self.found(run.clone(), seq, Difference::Unreadable, message);
                let (records, hash) = current.map_or((0, GENESIS), |c| (c.next, c.hash));
                if let Some(run) = &run {
                    self.snapshots.remove(run);
                    self.anchors.remove(run);
                    self.report.runs.push(VerifiedRun { run: run.clone(), first: 0, records, hash });
                }
                Ok(Err(run))
            }
            Err(e) => Err(e),
        }
    }
}
