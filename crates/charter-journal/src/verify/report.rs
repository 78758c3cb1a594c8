//! What a verification is asked, and what it says.

use std::fmt;

use charter_kernel::Digest;

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
        self.runs.iter().map(|r| r.records).fold(0, u64::saturating_add)
    }
}

/// A run that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedRun {
    /// Its id.
    pub run: String,
    /// The record it was looked at from: 0, but for an export of a host that drops old records.
    pub first: u64,
    /// How many of its records, from there on, are what they should be.
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
