//! The head of a journal: one hash over all of its entries, in the order of their commits.

use charter_kernel::Digest;
use serde::{Deserialize, Serialize};

use crate::record::GENESIS;

/// The head of a journal, which changes with every entry: with each record of any run, and with
/// each intervention (a deleted run, an accepted head, an import). The numbers only grow.
///
/// `hash` is the SHA-256 of the previous hash and the hash of the entry, 64 bytes together; before
/// the first entry it is 32 zero bytes. It depends on the order of the entries only, not on how
/// many of them shared a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalHead {
    /// Number of runs that were ever started.
    pub runs: u64,
    /// Number of records that were ever written.
    pub records: u64,
    /// Number of entries: records and interventions.
    pub entries: u64,
    /// The hash over all entries.
    pub hash: Digest,
}

impl JournalHead {
    /// The head of a journal without entries.
    pub const EMPTY: JournalHead = JournalHead { runs: 0, records: 0, entries: 0, hash: GENESIS };

    /// Adds a record with this sequence number and hash.
    pub(crate) fn add_record(&mut self, seq: u64, hash: Digest) {
        self.runs = self.runs.saturating_add(u64::from(seq == 0));
        self.records = self.records.saturating_add(1);
        self.add(hash);
    }

    /// Adds an intervention.
    pub(crate) fn add_intervention(&mut self, hash: Digest) {
        self.add(hash);
    }

    /// Describes an anchor that no head has matched; `self` is the last head.
    pub(crate) fn not_anchored(&self, at: u64, hash: Digest) -> String {
        match at > self.entries {
            true => {
                format!("the anchor expects the head {hash} after {at} entries, but the journal has {}", self.entries)
            }
            false => format!("the head after {at} entries is not {hash}, as the anchor expects"),
        }
    }

    fn add(&mut self, hash: Digest) {
        self.entries = self.entries.saturating_add(1);
        self.hash = Digest::of_parts([self.hash.0.as_slice(), hash.0.as_slice()]);
    }
}

impl std::fmt::Display for JournalHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        write!(f, "{} run{} with {} record{}", self.runs, s(self.runs), self.records, s(self.records))
    }
}

/// What a check of a journal's head found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeadCheck {
    /// The head that the stored entries give; `None` if only a part was checked.
    pub head: Option<JournalHead>,
    /// What is missing or does not match, as messages.
    pub problems: Vec<String>,
    /// What is not a problem but worth knowing: interventions, what could not be compared.
    pub remarks: Vec<String>,
}
