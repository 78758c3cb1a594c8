//! Judges a stream item by item, on the pure kernel. Each run has its own snapshot; a refused item
//! leaves it unchanged.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use charter_kernel::{Effect, EffectKind, Envelope, Event, Explanation, Machine, Refusal, Snapshot};
use indexmap::IndexMap;
use rustc_hash::FxHasher;
use serde::Serialize;
use serde_json::Value as Json;

use super::item::{Item, ItemError, Part, StreamError, StreamMapping};
use super::tape::{FieldSet, Tape};
use crate::lines::{self, RawLine};
use crate::session::MAX_FIRINGS;
use crate::strict_json;

/// The result of judging one item: a line of the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgment {
    /// Index of the item in the stream, from 0; blank lines are not counted.
    pub index: u64,
    /// Event type, if it is known.
    pub r#type: Option<String>,
    /// The run that the item belongs to, if it is known.
    pub episode: Option<String>,
    /// Whether the item was accepted.
    pub valid: bool,
    /// State of the run before the item.
    pub from: Option<String>,
    /// State of the run after the item.
    pub to: Option<String>,
    /// The rule that refused the item, or else the refusal code.
    pub code: Option<String>,
    /// Why the item was refused; for an accepted item, what the charter logged.
    pub message: Option<String>,
}

/// Where the time of an item comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Clock {
    /// `stream.at` of the charter.
    Stream,
    /// A clock that the charter declares, or a path in the item.
    Named(String),
    /// The same timestamp for every item, in milliseconds since 1970.
    Fixed(i64),
}

/// A run of the stream.
#[derive(Debug, Default)]
pub struct StreamRun {
    /// `None` until an item is accepted.
    pub(crate) snapshot: Option<Snapshot>,
    seq: u64,
    /// The time of the last accepted item.
    pub(crate) at: Option<i64>,
    /// Ids of accepted items, each with a digest of its content; see [`Judge::key`].
    ids: HashMap<(u64, u64), u64, std::hash::BuildHasherDefault<FxHasher>>,
    /// How many items were accepted.
    pub accepted: u64,
    /// How many were refused.
    pub refused: u64,
}

/// Judges the items of a stream.
pub struct Judge<'m> {
    machine: &'m Machine,
    mapping: StreamMapping,
    fixed: Option<i64>,
    runs: IndexMap<String, StreamRun, std::hash::BuildHasherDefault<FxHasher>>,
    /// Two random keys: a sender cannot construct two ids that collide.
    keys: (RandomState, RandomState),
    /// Time of the last accepted item of any run.
    at: i64,
    index: u64,
    unassigned: u64,
    fast_path: Option<FastPath>,
}

/// The fast path: a line is parsed without copying, and reduced to the fields that can affect the
/// verdict.
struct FastPath {
    tape: Tape,
    needed: FieldSet,
    /// Longer lines take the slow path, which enforces the size limit of the charter.
    max_bytes: usize,
}

struct Accepted {
    from: String,
    to: String,
    at: i64,
    logs: Vec<String>,
}

struct Refused {
    from: Option<String>,
    code: String,
    message: String,
}

/// What judging an item needs of the whole stream.
struct ItemContext<'m> {
    machine: &'m Machine,
    fixed: Option<i64>,
    last: i64,
}

impl<'m> Judge<'m> {
    /// Judges streams by `machine`.
    ///
    /// # Errors
    /// If the charter does not map items to events, or does not have the clock.
    pub fn new(machine: &'m Machine, clock: &Clock) -> Result<Judge<'m>, StreamError> {
        let (named, fixed) = match clock {
            Clock::Stream => (None, None),
            Clock::Named(name) => (Some(name.as_str()), None),
            Clock::Fixed(at) => (None, Some(*at)),
        };
        let mapping = StreamMapping::new(machine.definition(), named)?;
        let max_bytes = usize::try_from(machine.definition().limits.data / 16).unwrap_or(usize::MAX);
        let fast_path =
            mapping.fields_read(machine).map(|needed| FastPath { tape: Tape::default(), needed, max_bytes });
        Ok(Judge {
            machine,
            mapping,
            fast_path,
            fixed,
            runs: IndexMap::default(),
            keys: (RandomState::new(), RandomState::new()),
            at: 0,
            index: 0,
            unassigned: 0,
        })
    }

    /// The same without the fast path: for tests that compare the two.
    #[doc(hidden)]
    #[must_use]
    pub fn without_fast_path(mut self) -> Judge<'m> {
        self.fast_path = None;
        self
    }

    /// The runs of the stream, in the order of their first item.
    pub fn runs(&self) -> impl Iterator<Item = (&str, &StreamRun)> {
        self.runs.iter().map(|(name, run)| (name.as_str(), run))
    }

    /// How many lines belong to no run, because they were not valid items.
    #[must_use]
    pub fn unassigned(&self) -> u64 {
        self.unassigned
    }

    /// The machine.
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

    /// Judges a line; `number` is that of the line in its file, from 1.
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
        let item = match strict_json::parse(bytes) {
            Ok(item) => item,
            Err(error) => return self.invalid("not-json", format!("line {number}: {error}")),
        };
        let input = self.mapping.input(&item);
        match self.mapping.read(item) {
            Ok(item) => match self.item(item, input, bytes, false) {
                Some(judgment) => judgment,
                // Only the fast path returns `None`.
                None => self.invalid("execution", format!("line {number} was not judged")),
            },
            Err(ItemError { kind, run, message }) => {
                let message = format!("line {number}: {message}");
                Judgment { r#type: kind, episode: run, ..self.invalid("schema", message) }
            }
        }
    }

    /// Judges a line on the fast path. `None`: the slow path has to judge it; nothing has changed.
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

    /// Judges an item. On the fast path, an item that is not accepted returns `None` and changes
    /// nothing.
    fn item(&mut self, item: Item, input: Result<Json, String>, bytes: &[u8], fast: bool) -> Option<Judgment> {
        let key = item.id.as_deref().map(|id| (self.key(id), content(bytes)));
        let (name, kind) = (item.run.clone(), item.kind.clone());
        let last = self.at;
        let place = match self.runs.get_index_of(name.as_str()) {
            Some(place) => place,
            None => self.runs.insert_full(name.clone(), StreamRun::default()).0,
        };
        let (_, run) = self.runs.get_index_mut(place)?;
        let context = ItemContext { machine: self.machine, fixed: self.fixed, last };
        let done = context.judge(run, item, input, key, fast);
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

    /// Two keyed hashes of an id, so that ids of any length take 16 bytes.
    fn key(&self, id: &str) -> (u64, u64) {
        (self.keys.0.hash_one(id), self.keys.1.hash_one(id))
    }
}

impl ItemContext<'_> {
    fn judge(
        &self,
        run: &mut StreamRun,
        item: Item,
        input: Result<Json, String>,
        key: Option<((u64, u64), u64)>,
        fast: bool,
    ) -> Result<Accepted, Refused> {
        let own_time = match self.fixed {
            Some(at) => Ok(Some(at)),
            None => item.at,
        };
        let at = match own_time {
            Ok(Some(at)) => at,
            // Without a time of its own, an item happens at the time of the one before it.
            _ => run.at.unwrap_or(self.last),
        };
        let (mut snapshot, mut seq) = match &run.snapshot {
            Some(snapshot) => (snapshot.clone(), run.seq),
            None => (self.start(&item.run, input, at)?, 0),
        };
        let mut logs = Vec::new();
        self.fire(&mut snapshot, &mut seq, at, &mut logs);
        let from = state(&snapshot);
        seq = seq.saturating_add(1);
        let envelope = Envelope {
            seq,
            to: item.to,
            event: Event::External { r#type: item.kind, data: item.data },
            by: item.by,
            at: at.into(),
            expected_seq: None,
        };
        let refused =
            |code: &str, message: String| Refused { from: Some(from.clone()), code: code.to_owned(), message };
        let known = key.and_then(|(key, content)| run.ids.get(&key).map(|old| *old == content));
        let done = match fast {
            true => self.machine.step_checked(&snapshot, &envelope),
            false => self.machine.step(&snapshot, &envelope),
        };
        // An event that fails validation is not a duplicate of one that passed it.
        let fails_validation = |refusal: &Refusal| {
            use charter_kernel::Code::{Authority, Schema, TooLarge, UnknownEvent};
            matches!(refusal.code, Authority | Schema | TooLarge | UnknownEvent)
        };
        if let Some(same) = known.filter(|_| !done.as_ref().is_err_and(fails_validation)) {
            let stream = self.machine.definition().stream.as_ref();
            let rule = stream.and_then(|s| s.duplicate.as_deref());
            let said = rule.and_then(|rule| self.machine.say(rule, &snapshot, &envelope));
            let content = match same {
                true => "same content",
                false => "different content",
            };
            let said = said.unwrap_or_else(|| "duplicate id: an item with this id was accepted before".into());
            return Err(refused(rule.unwrap_or("duplicate"), format!("{said} ({content})")));
        }
        let step = done.map_err(|refusal| {
            if fast {
                // The slow path judges the item again, and explains the refusal.
                return refused(refusal.code.word(), String::new());
            }
            let explanation = self.machine.explain_briefly(Some(&snapshot), &envelope, &refusal);
            let Explanation { code, message, rule, .. } = explanation;
            refused(rule.as_deref().unwrap_or(code.word()), message)
        })?;
        if let Err(message) = own_time {
            return Err(refused("schema", message));
        }
        log(&step.effects, &mut logs);
        let to = state(&step.snapshot);
        run.snapshot = Some(step.snapshot);
        (run.seq, run.at) = (seq, Some(at));
        if let Some((key, content)) = key {
            run.ids.insert(key, content);
        }
        Ok(Accepted { from, to, at, logs })
    }

    fn start(&self, run: &str, input: Result<Json, String>, at: i64) -> Result<Snapshot, Refused> {
        let refused = |code: &str, message: String| Refused { from: None, code: code.to_owned(), message };
        let input = input.map_err(|m| refused("schema", format!("cannot determine the input of the run: {m}")))?;
        let envelope = Envelope::host(0, Event::Start { input }, at);
        match self.machine.start(run, &envelope) {
            Ok(step) => Ok(step.snapshot),
            Err(refusal) => {
                let explanation = self.machine.explain(None, &envelope, &refusal);
                let message = format!("the run cannot start: {}", explanation.message);
                Err(refused(explanation.code.word(), message))
            }
        }
    }

    /// Fires the timers that are due by the time of the item, each at its own time.
    fn fire(&self, snapshot: &mut Snapshot, seq: &mut u64, at: i64, logs: &mut Vec<String>) {
        let mut fired = 0;
        while let Some(timer) = snapshot.next_timer().filter(|timer| timer.due.0 <= at) {
            let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
            let envelope = Envelope::host(seq.saturating_add(1), event, timer.due);
            // A refused timer stays pending, and so do the timers after it.
            let Ok(step) = self.machine.step(snapshot, &envelope) else {
                break;
            };
            fired += 1;
            *seq = envelope.seq;
            log(&step.effects, logs);
            *snapshot = step.snapshot;
            if fired > MAX_FIRINGS {
                break;
            }
        }
    }
}

/// Appends what the charter logs, as text.
fn log(effects: &[Effect], logs: &mut Vec<String>) {
    for effect in effects {
        if let EffectKind::Log { label, value } = &effect.kind {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            logs.push(match label {
                Some(label) => format!("{label}: {text}"),
                None => text,
            });
        }
    }
}

/// A hash of a line: tells a repeated item from another one with the same id. Only the wording of a
/// message depends on it.
fn content(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// The active states, as text.
pub(crate) fn state(snapshot: &Snapshot) -> String {
    let root = snapshot.actor("root");
    let mut states = root.iter().flat_map(|actor| actor.state());
    let mut text = states.next().unwrap_or_default().to_owned();
    for state in states {
        text.push_str(", ");
        text.push_str(state);
    }
    text
}
