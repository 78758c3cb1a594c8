//! The episodic log: the records of the run, as text, in stable memory. It is bounded: it consists
//! of segments, and the oldest segment is dropped as a whole.
//!
//! A segment begins with an anchor: the record before its first one, and the snapshot after that
//! record. The remaining log can be verified from there: the anchor hashes to its own hash, names
//! the digest of the snapshot, and is named by the first record of the segment.

use charter_journal::Record;
use ic_stable_structures::{Cell, Log, Memory};
use serde::{Deserialize, Serialize};

use crate::error::CanisterError;
use crate::form;

/// Number of segments of a log. It holds between `SEGMENTS - 1` and `SEGMENTS` segments of records.
pub const SEGMENTS: usize = 4;

/// Limits of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Maximum number of records in a segment.
    pub records: u64,
    /// Size of a segment in bytes after which the next one begins.
    pub bytes: u64,
}

impl Default for Bounds {
    /// Returns limits of 32,768 records or 64 MiB in all, about 4,000 turns.
    fn default() -> Bounds {
        Bounds { records: 8_192, bytes: 16 << 20 }
    }
}

/// The state before the first record of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Anchor {
    /// The text of the record before the segment.
    pub record: String,
    /// The text of the snapshot after that record.
    pub snapshot: String,
}

/// The layout of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Plan {
    bounds: Bounds,
    /// Segments in use, oldest first: index of the memory, sequence number of the first record.
    used: Vec<(usize, u64)>,
}

/// The log. Its content is in its memories; only the layout is cached.
pub struct EpisodicLog<M: Memory> {
    plan: Cell<Vec<u8>, M>,
    known: Plan,
    segments: Vec<Log<Vec<u8>, M, M>>,
    memories: Vec<(M, M)>,
}

impl<M: Memory + Clone> EpisodicLog<M> {
    /// Opens or creates a log; `bounds` applies only to a new one. It needs one memory for the
    /// layout and two for each of [`SEGMENTS`] segments.
    ///
    /// # Errors
    /// The memory holds something else.
    pub fn open(plan: M, memories: Vec<(M, M)>, bounds: Bounds) -> Result<EpisodicLog<M>, CanisterError> {
        let plan = Cell::init(plan, Vec::new());
        let known = match plan.get().as_slice() {
            [] => Plan { bounds, used: Vec::new() },
            bytes => form::read("the plan of the log", bytes)?,
        };
        let segments = memories.iter().map(|(index, data)| Log::init(index.clone(), data.clone())).collect();
        Ok(EpisodicLog { plan, known, segments, memories })
    }

    /// The limits of the history.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.known.bounds
    }

    /// The sequence number of the first stored record.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.known.used.first().map_or(0, |(_, first)| *first)
    }

    /// The sequence number of the next record.
    #[must_use]
    pub fn end(&self) -> u64 {
        let Some((place, first)) = self.known.used.last() else {
            return 0;
        };
        let count = self.segments.get(*place).map_or(0, Log::len);
        // The anchor counts as an entry as well.
        first.saturating_add(count.saturating_sub(1))
    }

    /// The size of all stored records and anchors, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let used = self.known.used.iter();
        used.filter_map(|(place, _)| self.segments.get(*place)).map(Log::log_size_bytes).fold(0, u64::saturating_add)
    }

    /// Whether the next record begins a segment and needs an anchor.
    #[must_use]
    pub fn needs_anchor(&self) -> bool {
        let last = self.known.used.last();
        last.is_none_or(|(place, _)| self.is_full(*place))
    }

    /// Appends the next record. `anchor` is the state before it, if one is
    /// [needed](EpisodicLog::needs_anchor).
    ///
    /// # Errors
    /// The record is not the next one, or the memory is full.
    pub fn append(&mut self, record: &Record, anchor: Option<Anchor>) -> Result<(), CanisterError> {
        if record.seq != self.end() {
            return Err(CanisterError::Stable(format!(
                "record {} does not follow record {} of the log",
                record.seq,
                self.end()
            )));
        }
        let place = match self.known.used.last() {
            Some((place, _)) if !self.is_full(*place) => *place,
            _ => self.begin_segment(record.seq, anchor.unwrap_or_default())?,
        };
        let bytes = record.text().as_bytes().to_vec();
        self.write(place, &bytes)
    }

    fn is_full(&self, place: usize) -> bool {
        self.segments.get(place).is_none_or(|log| {
            log.len() > self.known.bounds.records.max(1) || log.log_size_bytes() >= self.known.bounds.bytes.max(1)
        })
    }

    /// Begins the next segment, replacing the oldest one if all are in use.
    fn begin_segment(&mut self, first: u64, anchor: Anchor) -> Result<usize, CanisterError> {
        let missing = || CanisterError::Stable("a segment of the log has no memory".into());
        let place = match self.known.used.len() < self.segments.len() {
            true => self.known.used.len(),
            false => self.known.used.first().ok_or_else(missing)?.0,
        };
        self.known.used.retain(|(used, _)| *used != place);
        self.known.used.push((place, first));
        let (index, data) = self.memories.get(place).ok_or_else(missing)?;
        let fresh = Log::new(index.clone(), data.clone());
        *self.segments.get_mut(place).ok_or_else(missing)? = fresh;
        let anchor = form::write(&anchor)?;
        self.write(place, &anchor)?;
        let plan = form::write(&self.known)?;
        self.plan.set(plan);
        Ok(place)
    }

    fn write(&self, place: usize, bytes: &Vec<u8>) -> Result<(), CanisterError> {
        let log = self.segments.get(place);
        let written = log.map(|log| log.append(bytes));
        match written {
            Some(Ok(_)) => Ok(()),
            Some(Err(e)) => Err(CanisterError::Stable(format!("the log cannot grow: {e:?}"))),
            None => Err(CanisterError::Stable("a segment of the log has no memory".into())),
        }
    }

    /// Returns the text of a record; `None` if it was never stored or has been deleted.
    #[must_use]
    pub fn text(&self, seq: u64) -> Option<String> {
        let used = self.known.used.iter().rev();
        let (place, first) = used.copied().find(|(_, first)| *first <= seq)?;
        let at = seq.checked_sub(first)?.checked_add(1)?;
        let bytes = self.segments.get(place)?.get(at)?;
        String::from_utf8(bytes).ok()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The record is not stored, or it is damaged.
    pub fn record(&self, seq: u64) -> Result<Record, CanisterError> {
        let bad = |why: String| CanisterError::Stable(format!("record {seq}: {why}"));
        let text = self.text(seq).ok_or_else(|| bad("it is missing".into()))?;
        Record::read(&text).map_err(|e| bad(e.to_string()))
    }

    /// Returns the state before [`EpisodicLog::first`]; `None` if that is record 0.
    ///
    /// # Errors
    /// The anchor is damaged.
    pub fn anchor(&self) -> Result<Option<Anchor>, CanisterError> {
        let Some((place, first)) = self.known.used.first().copied().filter(|(_, f)| *f > 0) else {
            return Ok(None);
        };
        let bytes = self.segments.get(place).and_then(|log| log.get(0));
        let what = format!("the anchor before record {first}");
        form::read(&what, &bytes.unwrap_or_default()).map(Some)
    }
}
