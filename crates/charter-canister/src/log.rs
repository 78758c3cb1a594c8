//! The episodic log: the records of the run, as texts, in stable memory. Bounded: it consists of segments, and the oldest is dropped whole.
//!
//! A segment begins with an anchor: the record before its first one, and the snapshot after that record. So what remains can be verified
//! from there on: the anchor's hash is its own, the snapshot is the one that it names, the first record of the segment names its hash.

use charter_journal::Record;
use ic_stable_structures::{Cell, Log, Memory};
use serde::{Deserialize, Serialize};

use crate::error::Broken;
use crate::form;

/// Of how many segments a log consists. Between `SEGMENTS - 1` and `SEGMENTS` segments' worth of records are kept.
pub const SEGMENTS: usize = 4;

/// How much history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Records of a segment at most.
    pub records: u64,
    /// Bytes of a segment, after which the next one is begun.
    pub bytes: u64,
}

impl Default for Bounds {
    /// 32,768 records or 64 MiB in all, about 4,000 turns.
    fn default() -> Bounds {
        Bounds { records: 8_192, bytes: 16 << 20 }
    }
}

/// What comes before the first record of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Anchor {
    /// The text of the record before.
    pub record: String,
    /// The text of the snapshot after it.
    pub snapshot: String,
}

/// Which segment holds what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Plan {
    bounds: Bounds,
    /// Segments in use, oldest first: place among the memories, first record.
    used: Vec<(usize, u64)>,
}

/// The log. All of its content is in its memories; only the plan is also held here.
pub struct EpisodicLog<M: Memory> {
    plan: Cell<Vec<u8>, M>,
    known: Plan,
    segments: Vec<Log<Vec<u8>, M, M>>,
    memories: Vec<(M, M)>,
}

impl<M: Memory + Clone> EpisodicLog<M> {
    /// Opens a log, or makes one; `bounds` is for a new one. The memories: one for the plan, two for each of [`SEGMENTS`] segments.
    ///
    /// # Errors
    /// What is there is no log.
    pub fn open(plan: M, memories: Vec<(M, M)>, bounds: Bounds) -> Result<EpisodicLog<M>, Broken> {
        let plan = Cell::init(plan, Vec::new());
        let known = match plan.get().as_slice() {
            [] => Plan { bounds, used: Vec::new() },
            bytes => form::read("the plan of the log", bytes)?,
        };
        let segments = memories.iter().map(|(index, data)| Log::init(index.clone(), data.clone())).collect();
        Ok(EpisodicLog { plan, known, segments, memories })
    }

    /// How much is kept.
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        self.known.bounds
    }

    /// The number of the first record that is there.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.known.used.first().map_or(0, |(_, first)| *first)
    }

    /// The number that the next record has.
    #[must_use]
    pub fn end(&self) -> u64 {
        let Some((place, first)) = self.known.used.last() else {
            return 0;
        };
        let count = self.segments.get(*place).map_or(0, Log::len);
        // The anchor is an entry, too.
        first.saturating_add(count.saturating_sub(1))
    }

    /// The bytes of all records that are there, anchors included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let used = self.known.used.iter();
        used.filter_map(|(place, _)| self.segments.get(*place)).map(Log::log_size_bytes).fold(0, u64::saturating_add)
    }

    /// Whether the next record begins a segment.
    #[must_use]
    pub fn needs_anchor(&self) -> bool {
        let last = self.known.used.last();
        last.is_none_or(|(place, _)| self.is_full(*place))
    }

    /// Writes the next record. `anchor`: what comes before it, if [it is needed](EpisodicLog::needs_anchor).
    ///
    /// # Errors
    /// It is not the next one; there is no room.
    pub fn append(&mut self, record: &Record, anchor: Option<Anchor>) -> Result<(), Broken> {
        if record.seq != self.end() {
            return Err(Broken::Stable(format!(
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

    /// Begins the next segment; the oldest one makes room for it if it must.
    fn begin_segment(&mut self, first: u64, anchor: Anchor) -> Result<usize, Broken> {
        let missing = || Broken::Stable("a segment of the log has no memory".into());
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

    fn write(&self, place: usize, bytes: &Vec<u8>) -> Result<(), Broken> {
        let log = self.segments.get(place);
        let written = log.map(|log| log.append(bytes));
        match written {
            Some(Ok(_)) => Ok(()),
            Some(Err(e)) => Err(Broken::Stable(format!("the log cannot grow: {e:?}"))),
            None => Err(Broken::Stable("a segment of the log has no memory".into())),
        }
    }

    /// The text of a record; none if it is not there (any more, or yet).
    #[must_use]
    pub fn text(&self, seq: u64) -> Option<String> {
        let used = self.known.used.iter().rev();
        let (place, first) = used.copied().find(|(_, first)| *first <= seq)?;
        let at = seq.checked_sub(first)?.checked_add(1)?;
        let bytes = self.segments.get(place)?.get(at)?;
        String::from_utf8(bytes).ok()
    }

    /// A record.
    ///
    /// # Errors
    /// It is not there, or is no record.
    pub fn record(&self, seq: u64) -> Result<Record, Broken> {
        let bad = |why: String| Broken::Stable(format!("record {seq}: {why}"));
        let text = self.text(seq).ok_or_else(|| bad("it is missing".into()))?;
        Record::read(&text).map_err(|e| bad(e.to_string()))
    }

    /// What comes before [`EpisodicLog::first`]; none if nothing does.
    ///
    /// # Errors
    /// It is damaged.
    pub fn anchor(&self) -> Result<Option<Anchor>, Broken> {
        let Some((place, first)) = self.known.used.first().copied().filter(|(_, f)| *f > 0) else {
            return Ok(None);
        };
        let bytes = self.segments.get(place).and_then(|log| log.get(0));
        let what = format!("the anchor before record {first}");
        form::read(&what, &bytes.unwrap_or_default()).map(Some)
    }
}
