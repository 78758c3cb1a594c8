//! What stands beside the records: the row of a run in `runs`, kept snapshots, anchors, and runs whose records are gone.

use std::collections::BTreeSet;

use super::Verifier;
use super::diagnose;
use super::records::Current;
use super::report::{Difference, VerifiedRun};
use crate::error::StoreError;
use crate::store::RunRow;

impl Verifier<'_> {
    /// A run's records are through: is its head the last of them?
    pub(super) fn finish(&mut self, mut current: Current) -> Result<(), StoreError> {
        let run = current.run.clone();
        // A run that goes on meanwhile is followed a little; what comes later is not the business of this verification.
        for _ in 0..3 {
            if current.broken {
                break;
            }
            let last = current.next.saturating_sub(1);
            let mut head = None;
            let scanned = self.store.scan_runs(Some(&run), &mut |row| head = Some(diagnose::head(row, &current)));
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
                Some(Err(diagnose::Head::Wrong(message))) => {
                    self.found(Some(run.clone()), Some(last), Difference::Head, message);
                    current.broken = true;
                }
                Some(Err(diagnose::Head::Behind(seq))) => {
                    let before = current.next;
                    let store = self.store;
                    let scanned = store.scan(Some(&run), current.next, &mut |row| {
                        self.row(&mut current, row);
                        !current.broken
                    });
                    if let Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) = scanned {
                        let message = format!("from here on the records cannot be read: {}", why_unreadable(e));
                        let seq = Some(current.next);
                        self.found(Some(run.clone()), seq, Difference::Unreadable, message);
                        current.broken = true;
                    }
                    if !current.broken && current.next == before {
                        let message =
                            format!("it is missing, with all that follow: `runs` says that the last one is {seq}");
                        self.found(Some(run.clone()), Some(before), Difference::Missing, message);
                        current.broken = true;
                    }
                }
            }
        }
        if let (false, Some(origin)) = (current.broken, &current.origin) {
            let shared = self.store.records(&origin.run, origin.seq, 1).ok().and_then(|r| r.into_iter().next());
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
        self.report.runs.push(VerifiedRun { run, first: 0, records: current.next, hash: current.hash });
        Ok(())
    }

    /// What no record has asked for: heads, snapshots, anchors of records that are not there.
    pub(super) fn rest(&mut self, only: Option<&str>) -> Result<(), StoreError> {
        let mut without = Vec::new();
        let scanned = self.store.scan_runs(only, &mut |row: &RunRow<'_>| without.push((row.run.to_owned(), row.seq)));
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
            self.report.runs.is_empty() && !self.report.findings.iter().any(|f| f.run.as_deref() == Some(run))
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
pub(super) fn why_unreadable(e: StoreError) -> String {
    match e {
        StoreError::Failed { reason, .. } | StoreError::Damaged(reason) => reason,
        e => e.to_string(),
    }
}
