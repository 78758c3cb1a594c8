//! Checks a stream item by item, using only the kernel.

use std::hash::{BuildHasher, Hasher, RandomState};

use charter_expr::{EvalError, strict_json};
use charter_kernel::{Machine, TakenKeys, Timestamp};
use indexmap::IndexMap;
use rustc_hash::FxHasher;
use serde::Serialize;
use serde_json::Value as Json;

use super::field_set::FieldSet;
use super::item::{Item, ItemError, Part, StreamError, StreamMapping};
use super::stream_run::{Accepted, ItemContext, StreamRun};
use super::tape::Tape;
use crate::lines::{self, RawLine};

/// The result of checking one item: a line of the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgment {
    /// Index of the item in the stream, from 0; blank lines are not counted.
    pub index: u64,
    /// The type of the event, if it is known.
    pub r#type: Option<String>,
    /// The run that the item belongs to, if it is known.
    pub episode: Option<String>,
    /// Whether the item was accepted.
    pub valid: bool,
    /// The state of the run before the item.
    pub from: Option<String>,
    /// The state of the run after the item.
    pub to: Option<String>,
    /// The rule that refused the item, or the refusal code if no rule did.
    pub code: Option<String>,
    /// Why the item was refused. For an accepted item, what the charter logged.
    pub message: Option<String>,
}

/// Where the time of an item comes from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamClock {
    /// The expression `stream.at` in the charter.
    Stream,
    /// A clock that the charter declares, or a path in the item.
    Named(String),
    /// The same timestamp for every item.
    Fixed(Timestamp),
}

/// Checks the items of a stream.
pub struct Judge<'m> {
    machine: &'m Machine,
    mapping: StreamMapping,
    fixed: Option<Timestamp>,
    runs: IndexMap<String, StreamRun, std::hash::BuildHasherDefault<FxHasher>>,
    /// The unique keys of accepted items.
    taken: TakenKeys,
    /// Two random keys, so that a sender cannot construct two ids that collide.
    keys: (RandomState, RandomState),
    /// The time of the last accepted item of any run.
    at: Timestamp,
    index: u64,
    unassigned: u64,
    fast_path: Option<FastPath>,
}

/// The fast path: a line is parsed without copying, and only the fields that can affect the verdict
/// are kept.
struct FastPath {
    tape: Tape,
    needed: FieldSet,
    /// Longer lines take the slow path, which enforces the size limit of the charter.
    max_bytes: usize,
}

impl<'m> Judge<'m> {
    /// Creates a checker of streams for the charter of `machine`.
    ///
    /// # Errors
    /// Returns an error if the charter does not map items to events, or if the clock is unknown.
    pub fn new(machine: &'m Machine, clock: &StreamClock) -> Result<Judge<'m>, StreamError> {
        let (named, fixed) = match clock {
            StreamClock::Stream => (None, None),
            StreamClock::Named(name) => (Some(name.as_str()), None),
            StreamClock::Fixed(at) => (None, Some(*at)),
        };
        let mapping = StreamMapping::new(machine.definition(), named)?;
        // Data takes at most 16 times as much as its text. It is not charged on the fast path,
        // which therefore uses only a part of the budget.
        let limits = &machine.definition().limits;
        let max_bytes = (limits.data / 16).min(limits.bytes / 32).min(limits.fuel);
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let fast_path =
            mapping.fields_read(machine).map(|needed| FastPath { tape: Tape::default(), needed, max_bytes });
        Ok(Judge {
            machine,
            mapping,
            fast_path,
            fixed,
            runs: IndexMap::default(),
            taken: TakenKeys::default(),
            keys: (RandomState::new(), RandomState::new()),
            at: Timestamp::default(),
            index: 0,
            unassigned: 0,
        })
    }

    /// Disables the fast path, for tests that compare it with the slow path.
    #[doc(hidden)]
    #[must_use]
    pub fn without_fast_path(mut self) -> Judge<'m> {
        self.fast_path = None;
        self
    }

    /// The runs of the stream, in the order of their first items.
    pub fn runs(&self) -> impl Iterator<Item = (&str, &StreamRun)> {
        self.runs.iter().map(|(name, run)| (name.as_str(), run))
    }

    /// The number of lines that belong to no run, because they are not valid items.
    #[must_use]
    pub fn unassigned(&self) -> u64 {
        self.unassigned
    }

    /// The machine that the items are checked against.
    #[must_use]
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// Refuses a line that is not an item.
    fn invalid(&mut self, code: &str, message: String) -> Judgment {
        self.unassigned = self.unassigned.saturating_add(1);
        Judgment {
            index: self.next_index(),
            r#type: None,
            episode: None,
            valid: false,
            from: None,
            to: None,
            code: Some(code.to_owned()),
            message: Some(message),
        }
    }

    /// Checks a line. `number` is the number of the line in its file, counted from 1.
    pub fn line(&mut self, number: u64, line: &RawLine<'_>) -> Judgment {
        match line {
            RawLine::Bytes(bytes) => self.bytes(number, bytes),
            RawLine::TooLong => {
                let limit = lines::MAX_BYTES >> 20;
                self.invalid("too-large", format!("line {number} is longer than {limit} MiB"))
            }
        }
    }

    fn bytes(&mut self, number: u64, bytes: &[u8]) -> Judgment {
        if let Some(judgment) = self.judge_fast(bytes) {
            return judgment;
        }
        let item = match strict_json::from_slice(bytes) {
            Ok(item) => item,
            Err(error) => {
                // The parser counts lines from the beginning of this one.
                let (column, why) = (error.column(), strict_json::without_place(&error));
                return self.invalid("not-json", format!("line {number}: column {column}: {why}"));
            }
        };
        let input = self.mapping.input(&item);
        match self.mapping.read(item) {
            Ok(item) => match self.item(item, input, bytes, false) {
                Some(judgment) => judgment,
                // Only the fast path can return `None`.
                None => self.invalid("execution", format!("line {number} was not checked")),
            },
            Err(ItemError { kind, run, problem }) => {
                let message = format!("line {number}: {problem}");
                Judgment { r#type: kind, episode: run, ..self.invalid("schema", message) }
            }
        }
    }

    /// Checks a line on the fast path. Returns `None`, and changes nothing, if the slow path has to
    /// check it.
    fn judge_fast(&mut self, bytes: &[u8]) -> Option<Judgment> {
        let fast_path = self.fast_path.as_mut()?;
        let text = std::str::from_utf8(bytes).ok()?;
        if bytes.len() > fast_path.max_bytes || !fast_path.tape.read(text) {
            return None;
        }
        let root = fast_path.tape.root(text);
        let item = self.mapping.read(root.json(&fast_path.needed)?).ok()?;
        let data = match &item.part {
            Part::Whole => root,
            Part::Field(name) => root.field(name)?,
            Part::Computed => return None,
        };
        if !self.machine.surely_fits(&item.kind, data) {
            return None;
        }
        let input = Ok(Json::Object(serde_json::Map::new()));
        self.item(item, input, bytes, true)
    }

    /// Checks an item. On the fast path, returns `None` and changes nothing if the item is not
    /// accepted.
    fn item(&mut self, item: Item, input: Result<Json, EvalError>, bytes: &[u8], fast: bool) -> Option<Judgment> {
        let key = item.id.as_deref().map(|id| (self.key(id), content(bytes)));
        let (name, kind) = (item.run.clone(), item.kind.clone());
        let last = self.at;
        let place = match self.runs.get_index_of(name.as_str()) {
            Some(place) => place,
            None => self.runs.insert_full(name.clone(), StreamRun::default()).0,
        };
        let (_, run) = self.runs.get_index_mut(place)?;
        let context = ItemContext { machine: self.machine, fixed: self.fixed, last };
        let done = context.judge(run, item, input, key, &mut self.taken, fast);
        if fast && done.is_err() {
            return None;
        }
        let index = self.index;
        self.index = index.saturating_add(1);
        let mut judgment = Judgment {
            index,
            r#type: Some(kind),
            episode: Some(name),
            valid: false,
            from: None,
            to: None,
            code: None,
            message: None,
        };
        match done {
            Ok(Accepted { from, to, at, logs }) => {
                run.accepted = run.accepted.saturating_add(1);
                self.at = at;
                (judgment.valid, judgment.from, judgment.to) = (true, Some(from), Some(to));
                judgment.message = (!logs.is_empty()).then(|| logs.join("; "));
            }
            Err(refused) => {
                run.refused = run.refused.saturating_add(1);
                judgment.from.clone_from(&refused.from);
                judgment.to = refused.from;
                (judgment.code, judgment.message) = (Some(refused.code), Some(refused.message));
            }
        }
        Some(judgment)
    }

    fn next_index(&mut self) -> u64 {
        let index = self.index;
        self.index = index.saturating_add(1);
        index
    }

    /// Returns two keyed hashes of an id, so that an id of any length takes 16 bytes.
    fn key(&self, id: &str) -> (u64, u64) {
        (self.keys.0.hash_one(id), self.keys.1.hash_one(id))
    }
}

/// Returns a hash of a line, to distinguish a repeated item from a different item with the same id.
/// Only the wording of a message depends on it.
fn content(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
