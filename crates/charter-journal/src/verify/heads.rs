//! Verification of the data outside the records: the row of a run in `runs`, stored snapshots,
//! anchors, and runs without records.

use std::collections::BTreeSet;

use charter_kernel::Digest;

use super::Verifier;
use super::current::Current;
use super::diagnose;
use super::report::{Anchor, Difference, VerifiedRun};
use crate::error::StoreError;
use crate::record::Manifest;
use crate::store::RunRow;

impl Verifier<'_> {
    /// Checks the head of a run after its records.
    pub(super) fn finish(&mut self, mut current: Current) -> Result<(), StoreError> {
        let run = current.run.clone();
        // Follow a concurrent writer for a few rounds; later records are not part of this
        // verification.
        for _ in 0..3 {
            if current.broken {
                break;
            }
            let last = current.next.saturating_sub(1);
            let mut head = None;
            let scanned = self.store.scan_runs(Some(&run), &mut |row| head = Some(diagnose::head(row, &current)));
            if let Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) = scanned {
                let message = format!("its row in `runs` is unreadable: {}", why_unreadable(e));
                self.found(Some(run.clone()), None, Difference::Head, message);
                break;
            }
            match head {
                None => {
                    self.found(Some(run.clone()), None, Difference::Head, "its row in `runs` is missing".into());
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
                        let message = format!("the records from here on are unreadable: {}", why_unreadable(e));
                        let seq = Some(current.next);
                        self.found(Some(run.clone()), seq, Difference::Unreadable, message);
                        current.broken = true;
                    }
                    if !current.broken && current.next == before {
                        let message = match i64::try_from(before) == Ok(seq) {
                            true => "the last record is missing".to_owned(),
                            false => format!(
                                "this record and all later ones are missing; according to `runs`, the last one is {seq}"
                            ),
                        };
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
                    "`forked_from` names record {} of run `{}` with the hash {}, but that record has the hash {}",
                    origin.seq, origin.run, origin.hash, shared.hash
                );
                self.found(Some(run.clone()), Some(0), Difference::Origin, message);
            }
        }
        if let (false, Some(manifest)) = (current.broken, current.manifest.take()) {
            self.manifest(&run, &manifest)?;
        }
        if current.broken {
            self.snapshots.remove(&run);
            self.anchors.remove(&run);
        }
        self.report.runs.push(VerifiedRun { run, first: 0, records: current.next, hash: current.hash });
        Ok(())
    }

    /// Checks that the blobs of a run's files are in the store, with the content that record 0
    /// names.
    pub(super) fn manifest(&mut self, run: &str, manifest: &Manifest) -> Result<(), StoreError> {
        for (path, digest) in manifest.all() {
            let wrong = match self.store.blob(digest) {
                Ok(Some(data)) => match Digest::of_bytes(&data) {
                    found if found == digest => continue,
                    found => format!("has the digest {found}"),
                },
                Ok(None) => "is missing".to_owned(),
                Err(e @ (StoreError::Failed { .. } | StoreError::Damaged(_))) => {
                    format!("cannot be read: {}", why_unreadable(e))
                }
                Err(e) => return Err(e),
            };
            let message = format!("the manifest names `{path}` with the digest {digest}, but the blob {wrong}");
            self.found(Some(run.to_owned()), Some(0), Difference::Manifest, message);
        }
        Ok(())
    }

    /// Takes the anchors that the records are compared with. One that cannot be compared is a
    /// finding: somebody relies on it. `only` is the run that is verified, if it is one.
    pub(super) fn expect(&mut self, anchors: &[Anchor], only: Option<&str>) {
        for Anchor { run, seq, hash } in anchors {
            let message = match only {
                Some(only) if only != run => {
                    format!("the anchor is of a run that is not verified here: only `{only}` is")
                }
                _ => match self.anchors.entry(run.clone()).or_default().insert(*seq, *hash) {
                    Some(other) if other != *hash => format!("one anchor expects the hash {other}, another {hash}"),
                    _ => continue,
                },
            };
            self.found(Some(run.clone()), Some(*seq), Difference::Anchor, message);
        }
    }

    /// Reports heads, snapshots and anchors of records that do not exist.
    pub(super) fn leftovers(&mut self, only: Option<&str>) -> Result<(), StoreError> {
        let mut without = Vec::new();
        let scanned = self.store.scan_runs(only, &mut |row: &RunRow<'_>| without.push((row.run.to_owned(), row.seq)));
        self.readable("the list of runs", scanned)?;
        let seen: BTreeSet<&str> = self.report.runs.iter().map(|r| r.run.as_str()).collect();
        without.retain(|(run, _)| !seen.contains(run.as_str()));
        for (run, seq) in without {
            // A run that was started meanwhile has records by now.
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
                    format!("all records are missing; according to `runs`, the last one is {seq}"),
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
                    "a snapshot is stored for this record, but the record does not exist".into(),
                );
            }
        }
        for (run, seqs) in std::mem::take(&mut self.anchors) {
            if let Some((seq, hash)) = seqs.iter().next() {
                self.found(
                    Some(run),
                    Some(*seq),
                    Difference::Anchor,
                    format!("the anchor expects the hash {hash}, but the record does not exist"),
                );
            }
        }
        Ok(())
    }
}

/// Returns the reason for an error, without the advice to run `charter verify`.
pub(super) fn why_unreadable(e: StoreError) -> String {
    match e {
        StoreError::Failed { reason, .. } | StoreError::Damaged(reason) => reason,
        e => e.to_string(),
    }
}
