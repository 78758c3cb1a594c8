//! The state of a run while its records are verified.

use std::sync::Arc;

use charter_kernel::{Digest, Machine, Snapshot, Timestamp};

use super::report::Difference;
use crate::record::{GENESIS, Manifest, Origin, timestamp};

/// The run that is being verified.
pub(super) struct Current {
    pub(super) run: String,
    pub(super) machine: Option<Arc<Machine>>,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) digest: Option<Digest>,
    pub(super) next: u64,
    pub(super) hash: Digest,
    pub(super) place: i64,
    pub(super) started: Timestamp,
    pub(super) updated: Timestamp,
    pub(super) status: &'static str,
    pub(super) origin: Option<Origin<'static>>,
    pub(super) manifest: Option<Box<Manifest>>,
    /// Whether a finding was reported. Later records depend on the record with the finding, so they
    /// are skipped.
    pub(super) broken: bool,
}

impl Current {
    pub(super) fn new(run: &str) -> Current {
        Current {
            run: run.into(),
            machine: None,
            snapshot: None,
            digest: None,
            next: 0,
            hash: GENESIS,
            place: i64::MIN,
            started: Timestamp::default(),
            updated: Timestamp::default(),
            status: "",
            origin: None,
            manifest: None,
            broken: false,
        }
    }

    pub(super) fn started_text(&self) -> String {
        timestamp::text(self.started)
    }

    pub(super) fn updated_text(&self) -> String {
        timestamp::text(self.updated)
    }
}

/// Why the verification of a record failed.
pub(super) type Wrong = (Difference, String);
