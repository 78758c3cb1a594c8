//! The ids of a run's recent events, so that a host does not look up most of them in its store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct RecentIds {
    ring: Arc<Ring>,
    /// Whether the run has had ids that are not in `ring`.
    incomplete: bool,
}

/// The ids, oldest first from `next` on. It is one small block of memory, because the run keeps the
/// state before an event until the event is committed: each new id makes a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ring {
    hashes: [u32; RECENT_IDS],
    /// The numbers of the records; 0 for an unused entry, since record 0 is a start.
    seqs: [u64; RECENT_IDS],
    next: usize,
}

impl Default for RecentIds {
    fn default() -> RecentIds {
        let ring = Ring { hashes: [0; RECENT_IDS], seqs: [0; RECENT_IDS], next: 0 };
        RecentIds { ring: Arc::new(ring), incomplete: false }
    }
}

impl RecentIds {
    /// Creates the ids of a run whose earlier ids are not known.
    #[must_use]
    pub fn unknown() -> RecentIds {
        RecentIds { incomplete: true, ..RecentIds::default() }
    }

    /// Returns what is known about an id.
    #[must_use]
    pub fn state(&self, id: &str) -> IdState {
        let hash = hash(id);
        // Without an early exit, the compiler compares several hashes at a time.
        if self.ring.hashes.iter().fold(false, |found, h| found | (*h == hash)) {
            let entries = self.ring.hashes.iter().zip(&self.ring.seqs);
            if let Some(seq) = entries.filter(|(h, seq)| **h == hash && **seq > 0).map(|(_, seq)| *seq).max() {
                return IdState::Recent(seq);
            }
        }
        if self.incomplete { IdState::Unknown } else { IdState::New }
    }

    /// Notes the id of a record.
    pub(crate) fn insert(&mut self, id: &str, seq: u64) {
        self.insert_hash(hash(id), seq);
    }

    fn insert_hash(&mut self, hash: u32, seq: u64) {
        let ring = Arc::make_mut(&mut self.ring);
        let at = ring.next % RECENT_IDS;
        if let (Some(h), Some(s)) = (ring.hashes.get_mut(at), ring.seqs.get_mut(at)) {
            self.incomplete |= *s > 0;
            (*h, *s) = (hash, seq);
        }
        ring.next = at.saturating_add(1) % RECENT_IDS;
    }
}

/// Hashes an id: FNV-1a, its upper half. Hosts store hashes, so they must never change.
fn hash(id: &str) -> u32 {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    u32::try_from(hash >> 32).unwrap_or_default()
}

/// The ids as stored: hashes with the numbers of their records, the oldest first.
#[derive(Serialize, Deserialize)]
struct Stored {
    incomplete: bool,
    ids: Vec<(u32, u64)>,
}

impl From<RecentIds> for Stored {
    fn from(recent: RecentIds) -> Stored {
        let Ring { hashes, seqs, next } = recent.ring.as_ref();
        let entries = hashes.iter().copied().zip(seqs.iter().copied());
        let oldest_first = entries.clone().skip(*next).chain(entries.take(*next));
        Stored { incomplete: recent.incomplete, ids: oldest_first.filter(|(_, seq)| *seq > 0).collect() }
    }
}

impl From<Stored> for RecentIds {
    fn from(stored: Stored) -> RecentIds {
        let mut recent = RecentIds { incomplete: stored.incomplete, ..RecentIds::default() };
        stored.ids.into_iter().for_each(|(hash, seq)| recent.insert_hash(hash, seq));
        recent
    }
}
