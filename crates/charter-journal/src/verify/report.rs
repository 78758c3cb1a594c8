//! Options and report of a verification.

use std::fmt;

use charter_kernel::Digest;

use crate::head::JournalHead;

/// What to verify.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Verify only this run. The container (file, tables, blobs) is verified only together with all
    /// runs.
    pub run: Option<String>,
    /// Record hashes from another source (a copy, a receipt). They are the only way to detect a
    /// chain that was rewritten consistently from some record on.
    pub anchors: Vec<Anchor>,
    /// Hashes of earlier heads of the journal from another source, each with the number of entries
    /// that the journal had then.
    pub heads: Vec<(u64, Digest)>,
}

/// A record hash from another source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The run.
    pub run: String,
    /// The record.
    pub seq: u64,
    /// Its hash.
    pub hash: Digest,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Every run, with the number of its valid records.
    pub runs: Vec<VerifiedRun>,
    /// Findings: for every run the first record that differs, and problems outside the records.
    pub findings: Vec<Finding>,
    /// The head of the journal, if all of it was verified and the store keeps one.
    pub head: Option<JournalHead>,
    /// What is no finding but worth knowing.
    pub remarks: Vec<String>,
}

impl Report {
    /// Whether there are no findings.
    #[must_use]
    pub fn is_verified(&self) -> bool {
        self.findings.is_empty()
    }

    /// Total number of verified records.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.runs.iter().map(|r| r.records).fold(0, u64::saturating_add)
    }
}

/// A verified run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedRun {
    /// Its id.
    pub run: String,
    /// The first verified record: 0, except for an export by a host that drops old records.
    pub first: u64,
    /// Number of valid records, starting with `first`.
    pub records: u64,
    /// Hash of the last valid record.
    pub hash: Digest,
}

/// A finding of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The run; `None`: the store itself.
    pub run: Option<String>,
    /// The record; `None`: the run or the store as a whole.
    pub seq: Option<u64>,
    /// The kind of difference.
    pub what: Difference,
    /// The message.
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
#[non_exhaustive]
pub enum Difference {
    /// The stored text is not a record.
    Unreadable,
    /// The content of a record does not match its hash.
    Hash,
    /// The record belongs to another run or has an unexpected sequence number.
    Place,
    /// Records are missing.
    Missing,
    /// `prev` is not the hash of the previous record.
    Prev,
    /// The record is not canonical JSON.
    Canonical,
    /// The record has another charter, or its charter is missing or damaged.
    Charter,
    /// The kernel computes a different result for this event.
    Replay,
    /// The columns of the row differ from the record.
    Columns,
    /// The row in `runs` does not match the last record.
    Head,
    /// A stored snapshot does not match its record.
    Snapshot,
    /// The record does not match its anchor.
    Anchor,
    /// The origin of a fork does not match.
    Origin,
    /// The entries of the journal are not those of its head: some are missing or were replaced.
    Journal,
    /// A file of a run's manifest is missing, or its content does not match its digest.
    Manifest,
    /// A problem of the container: the file, charters, blobs, projections.
    Container,
}

impl Difference {
    /// The kind as text.
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
            Difference::Journal => "journal",
            Difference::Manifest => "manifest",
            Difference::Container => "container",
        }
    }
}
