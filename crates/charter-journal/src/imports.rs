//! That records came from another journal: an entry of the head, written before the first of them.

use std::collections::BTreeMap;

use charter_kernel::Digest;
use charter_kernel::digest::canonical;
use serde_json::{Value as Json, json};

use crate::store::Append;

/// The kind of this entry among the interventions.
pub(crate) const KIND: &str = "imported";

/// The first records of a run, which came from another journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imported {
    pub(crate) run: String,
    /// Their number.
    pub(crate) records: u64,
    /// The hash of the last of them.
    pub(crate) hash: Digest,
    /// The time of the last of them.
    pub(crate) at: String,
}

impl Imported {
    /// The imported records of a batch, by run.
    pub(crate) fn of_batch(batch: &[Append]) -> BTreeMap<String, Imported> {
        let mut all = BTreeMap::new();
        for Append { record, .. } in batch.iter().filter(|append| append.imported) {
            let run = record.run.to_string();
            let (records, at) = (record.seq.saturating_add(1), record.at_text());
            all.insert(run.clone(), Imported { run, records, hash: record.hash, at });
        }
        all
    }

    /// The entry.
    pub(crate) fn json(&self) -> Json {
        let Imported { run, records, hash, at } = self;
        json!({"kind": KIND, "at": at, "run": run, "records": records, "hash": hash, "reason": ""})
    }

    /// The hash of the entry, which the head includes.
    pub(crate) fn entry_hash(&self) -> Digest {
        Digest::of_bytes(canonical(&self.json()).as_bytes())
    }
}
