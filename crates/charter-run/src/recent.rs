//! The ids of a run's recent events, so that a host does not look up most of them in its store.

use std::collections::VecDeque;
use std::sync::Arc;

use charter_kernel::Digest;

/// How many ids are kept.
const RECENT_IDS: usize = 256;

/// What is known about an event's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdState {
    /// No event of the run has it.
    New,
    /// The event of this record has it, or an id with the same hash: compare the record's id.
    Recent(u64),
    /// An older event may have it: look it up in the store.
    Unknown,
}

/// The ids of a run's recent events, as hashes with the numbers of their records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecentIds {
    ids: Arc<VecDeque<(u64, u64)>>,
    /// Whether the run has had ids that are not in `ids`.
    incomplete: bool,
}

impl RecentIds {
    /// Creates the ids of a run whose earlier ids are not known.
    #[must_use]
    pub fn unknown() -> RecentIds {
        RecentIds { ids: Arc::default(), incomplete: true }
    }

    /// Returns what is known about an id.
    #[must_use]
    pub fn state(&self, id: &str) -> IdState {
        let hash = hash(id);
        match self.ids.iter().rev().find(|(h, _)| *h == hash) {
            Some((_, seq)) => IdState::Recent(*seq),
            None if self.incomplete => IdState::Unknown,
            None => IdState::New,
        }
    }

    /// Notes the id of a record.
    pub(crate) fn insert(&mut self, id: &str, seq: u64) {
        let ids = Arc::make_mut(&mut self.ids);
        if ids.len() >= RECENT_IDS {
            ids.pop_front();
            self.incomplete = true;
        }
        ids.push_back((hash(id), seq));
    }
}

fn hash(id: &str) -> u64 {
    let Digest(bytes) = Digest::of_bytes(id.as_bytes());
    bytes.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b))
}
