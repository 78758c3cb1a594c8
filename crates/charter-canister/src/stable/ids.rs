//! The ids that senders gave their events, so that a repeated event is recognized as long as the
//! log has its record.

use charter_journal::{Record, SourceKind};
use ic_stable_structures::{Memory, StableBTreeMap};

use super::Text;

/// Maximum number of ids that one record makes the index forget. The log drops a segment of records
/// at once; their ids go little by little, so that no message pays for all of them.
const MAX_FORGOTTEN: usize = 4;

/// The event ids of the records in the log.
pub struct EventIds<M: Memory> {
    /// [`by_id`] to the number of the record, and [`by_seq`] to the id. It is one map, of the same
    /// type as the others, because each type of map adds to the size of the module.
    map: StableBTreeMap<String, Text, M>,
    /// The oldest record with an id.
    oldest: Option<u64>,
}

impl<M: Memory> EventIds<M> {
    /// Opens or creates the index.
    pub(super) fn open(memory: M) -> EventIds<M> {
        let mut ids = EventIds { map: StableBTreeMap::init(memory), oldest: None };
        ids.oldest = ids.first();
        ids
    }

    /// Returns the number of the record that has an event id. The log may have dropped it.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<u64> {
        self.map.get(&by_id(id)).and_then(|Text(seq)| seq.parse().ok())
    }

    /// The number of entries: two for an id.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.map.len()
    }

    /// Notes the id of a record, and forgets ids of the records before `first`.
    pub(super) fn note(&mut self, record: &Record, first: u64) {
        // An id that the sender did not choose is made of the run and the number of the record.
        let own = || record.id.strip_prefix(record.run.as_ref()).is_some_and(|rest| rest.starts_with('/'));
        if record.source.kind == SourceKind::External && !own() {
            self.map.insert(by_id(&record.id), Text(record.seq.to_string()));
            self.map.insert(by_seq(record.seq), Text(record.id.to_string()));
            self.oldest = self.oldest.or(Some(record.seq));
        }
        for _ in 0..MAX_FORGOTTEN {
            let Some(seq) = self.oldest.filter(|seq| *seq < first) else {
                return;
            };
            // A record of the log may have the same id, if the event was sent again after this
            // record had been dropped.
            if let Some(Text(id)) = self.map.remove(&by_seq(seq))
                && self.find(&id) == Some(seq)
            {
                self.map.remove(&by_id(&id));
            }
            self.oldest = self.first();
        }
    }

    fn first(&self) -> Option<u64> {
        let (key, _) = self.map.first_key_value()?;
        key.strip_prefix(BY_SEQ)?.parse().ok()
    }
}

/// The keys by record come first, in the order of the records.
const BY_SEQ: char = '#';

fn by_seq(seq: u64) -> String {
    format!("{BY_SEQ}{seq:020}")
}

fn by_id(id: &str) -> String {
    format!("id:{id}")
}
