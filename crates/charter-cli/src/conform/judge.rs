//! Judges a stream item by item, on the pure kernel: each run has its own snapshot, and a refused item leaves no trace in it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

use charter_kernel::{Effect, EffectKind, Envelope, Event, Explanation, Machine, Refusal, Snapshot};
use indexmap::IndexMap;
use rustc_hash::FxHasher;
use serde::Serialize;
use serde_json::Value as Json;

use super::item::{Item, Mapping, NoItem, Part};
use super::tape::{Tape, Wanted};
use crate::io::Failure;
use crate::session::MAX_FIRINGS;

/// What became of an item: a line of the output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Place in the stream, from 0; blank lines do not count.
    pub index: u64,
    /// Event type, if it could be told.
    pub r#type: Option<String>,
    /// The run it belongs to, if that could be told.
    pub episode: Option<String>,
    /// Accepted.
    pub valid: bool,
    /// Where the run stood.
    pub from: Option<String>,
    /// Where it stands now.
    pub to: Option<String>,
    /// The rule in whose name it was refused, else the refusal code.
    pub code: Option<String>,
    /// Why it was refused; for an accepted item what the charter has logged.
    pub message: Option<String>,
}

/// What time it is for an item.
#[derive(Debug, Clone, PartialEq)]
pub enum Clock {
    /// As `stream.at` says.
    Stream,
    /// A clock of the charter, or a path in the item.
    Named(String),
    /// Always this moment, in milliseconds since 1970.
    Fixed(i64),
}

/// A run, as far as it has come.
#[derive(Debug, Default)]
pub struct Run {
    /// None until something was accepted.
    pub(crate) snapshot: Option<Snapshot>,
    seq: u64,
    /// The time of the last accepted item.
    pub(crate) at: Option<i64>,
    /// Ids of accepted items with a digest of their content; see [`Judge::key`].
    ids: HashMap<(u64, u64), u64, std::hash::BuildHasherDefault<FxHasher>>,
    /// How many items were accepted.
    pub accepted: u64,
    /// How many were refused.
    pub refused: u64,
}

/// Judges the items of a stream.
pub struct Judge<'m> {
    machine: &'m Machine,
    mapping: Mapping,
    fixed: Option<i64>,
    runs: IndexMap<String, Run, std::hash::BuildHasherDefault<FxHasher>>,
    /// Two keys nobody knows: a sender cannot make two ids look the same.
    keys: (RandomState, RandomState),
    /// The last time seen in any run.
    at: i64,
    index: u64,
    lost: u64,
    quick: Option<Quick>,
}

/// The quick way: a line is read without copying it, and reduced to what decides about it.
struct Quick {
    tape: Tape,
    wanted: Wanted,
    /// Longer lines go the other way, where the limit of a charter is minded.
    longest: usize,
}

/// An item was accepted.
struct Yes {
    from: String,
    to: String,
    at: i64,
    logs: Vec<String>,
}

/// An item was refused.
struct No {
    from: Option<String>,
    code: String,
    message: String,
}

/// What judging one item takes from the stream.
struct Judging<'m> {
    machine: &'m Machine,
    fixed: Option<i64>,
    last: i64,
}

impl<'m> Judge<'m> {
    /// For a charter.
    ///
    /// # Errors
    /// The charter has no `stream`, or there is no such clock.
    pub fn new(machine: &'m Machine, clock: &Clock) -> Result<Judge<'m>, Failure> {
        let (named, fixed) = match clock {
            Clock::Stream => (None, None),
            Clock::Named(name) => (Some(name.as_str()), None),
            Clock::Fixed(at) => (None, Some(*at)),
        };
        let mapping = Mapping::new(machine.definition(), named)?;
        let longest = usize::try_from(machine.definition().limits.data / 16).unwrap_or(usize::MAX);
        let quick = mapping.wanted(machine).map(|wanted| Quick { tape: Tape::default(), wanted, longest });
        Ok(Judge {
            machine,
            mapping,
            quick,
            fixed,
            runs: IndexMap::default(),
            keys: (RandomState::new(), RandomState::new()),
            at: 0,
            index: 0,
            lost: 0,
        })
    }

    /// The same without the quick way: for tests that hold the two against each other.
    #[doc(hidden)]
    #[must_use]
    pub fn slowly(mut self) -> Judge<'m> {
        self.quick = None;
        self
    }

    /// The runs of the stream, in the order of their first item.
    pub fn runs(&self) -> impl Iterator<Item = (&str, &Run)> {
        self.runs.iter().map(|(name, run)| (name.as_str(), run))
    }

    /// How many lines belong to no run: they could not be read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// A line that cannot be read at all.
    pub fn unreadable(&mut self, code: &str, message: String) -> Line {
        self.lost = self.lost.saturating_add(1);
        Line {
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
    pub fn line(&mut self, number: u64, bytes: &[u8]) -> Line {
        if let Some(line) = self.quickly(bytes) {
            return line;
        }
        let item = match super::text::read(bytes) {
            Ok(item) => item,
            Err(message) => {
                return self.unreadable("not-json", format!("line {number}: {message}"));
            }
        };
        let input = self.mapping.input(&item);
        match self.mapping.read(item) {
            Ok(item) => match self.item(item, input, bytes, false) {
                Some(line) => line,
                // Only the quick way gives nothing.
                None => self.unreadable("execution", format!("line {number} was not judged")),
            },
            Err(NoItem { kind, run, message }) => {
                let message = format!("line {number} is no item: {message}");
                Line { r#type: kind, episode: run, ..self.unreadable("schema", message) }
            }
        }
    }

    /// A line that is accepted, most of the time; nothing has happened if it gives none.
    fn quickly(&mut self, bytes: &[u8]) -> Option<Line> {
        let quick = self.quick.as_mut()?;
        let text = std::str::from_utf8(bytes).ok()?;
        if bytes.len() > quick.longest || !quick.tape.read(text) {
            return None;
        }
        let root = quick.tape.root(text);
        let item = self.mapping.read(root.json(&quick.wanted)?).ok()?;
        let data = match &item.part {
            Part::Whole => root,
            Part::Field(name) => root.field(name)?,
            Part::Made => return None,
        };
        if !self.machine.surely_fits(&item.kind, data) {
            return None;
        }
        let input = Ok(Json::Object(serde_json::Map::new()));
        self.item(item, input, bytes, true)
    }

    /// Judges an item. On the quick way nothing is given, and nothing has happened, if it is not accepted.
    fn item(&mut self, item: Item, input: Result<Json, String>, bytes: &[u8], quick: bool) -> Option<Line> {
        let key = item.id.as_deref().map(|id| (self.key(id), content(bytes)));
        let (name, kind) = (item.run.clone(), item.kind.clone());
        let last = self.at;
        let place = match self.runs.get_index_of(name.as_str()) {
            Some(place) => place,
            None => self.runs.insert_full(name.clone(), Run::default()).0,
        };
        let (_, run) = self.runs.get_index_mut(place)?;
        let judging = Judging { machine: self.machine, fixed: self.fixed, last };
        let done = judging.judge(run, item, input, key, quick);
        if quick && done.is_err() {
            return None;
        }
        let index = self.index;
        self.index = index.saturating_add(1);
        let mut line = Line {
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
            Ok(Yes { from, to, at, logs }) => {
                run.accepted = run.accepted.saturating_add(1);
                self.at = at;
                (line.valid, line.from, line.to) = (true, Some(from), Some(to));
                line.message = (!logs.is_empty()).then(|| logs.join("; "));
            }
            Err(no) => {
                run.refused = run.refused.saturating_add(1);
                line.from.clone_from(&no.from);
                line.to = no.from;
                (line.code, line.message) = (Some(no.code), Some(no.message));
            }
        }
        Some(line)
    }

    fn next_index(&mut self) -> u64 {
        let index = self.index;
        self.index = index.saturating_add(1);
        index
    }

    /// Two digests of an id, by keys that change from run to run of the program: 16 bytes stand for an id of any length.
    fn key(&self, id: &str) -> (u64, u64) {
        (self.keys.0.hash_one(id), self.keys.1.hash_one(id))
    }
}

impl Judging<'_> {
    fn judge(
        &self,
        run: &mut Run,
        item: Item,
        input: Result<Json, String>,
        key: Option<((u64, u64), u64)>,
        quick: bool,
    ) -> Result<Yes, No> {
        let own_time = match self.fixed {
            Some(at) => Ok(Some(at)),
            None => item.at,
        };
        let at = match own_time {
            Ok(Some(at)) => at,
            // Without a time of its own it happens when the last one did.
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
            at,
            expected_seq: None,
        };
        let no = |code: &str, message: String| No { from: Some(from.clone()), code: code.to_owned(), message };
        let known = key.and_then(|(key, content)| run.ids.get(&key).map(|old| *old == content));
        let done = match quick {
            true => self.machine.step_checked(&snapshot, &envelope),
            false => self.machine.step(&snapshot, &envelope),
        };
        // What does not fit its schema is no second coming of something that did.
        let at_door = |refusal: &Refusal| {
            use charter_kernel::Code::{Authority, Schema, TooLarge, UnknownEvent};
            matches!(refusal.code, Authority | Schema | TooLarge | UnknownEvent)
        };
        if let Some(same) = known.filter(|_| !done.as_ref().is_err_and(at_door)) {
            let stream = self.machine.definition().stream.as_ref();
            let rule = stream.and_then(|s| s.duplicate.as_deref());
            let said = rule.and_then(|rule| self.machine.say(rule, &snapshot, &envelope));
            let again = match same {
                true => "the same again",
                false => "another one under its id",
            };
            let said = said.unwrap_or_else(|| "an item with this id was accepted before".into());
            return Err(no(rule.unwrap_or("duplicate"), format!("{said} ({again})")));
        }
        let step = done.map_err(|refusal| {
            if quick {
                // It will be judged again, with all there is.
                return no(refusal.code.word(), String::new());
            }
            let story = self.machine.explain_briefly(Some(&snapshot), &envelope, &refusal);
            let Explanation { code, message, rule, .. } = story;
            no(rule.as_deref().unwrap_or(code.word()), message)
        })?;
        if let Err(message) = own_time {
            return Err(no("schema", message));
        }
        log(&step.effects, &mut logs);
        let to = state(&step.snapshot);
        run.snapshot = Some(step.snapshot);
        (run.seq, run.at) = (seq, Some(at));
        if let Some((key, content)) = key {
            run.ids.insert(key, content);
        }
        Ok(Yes { from, to, at, logs })
    }

    fn start(&self, run: &str, input: Result<Json, String>, at: i64) -> Result<Snapshot, No> {
        let no = |code: &str, message: String| No { from: None, code: code.to_owned(), message };
        let input = input.map_err(|m| no("schema", format!("the input of the run cannot be told: {m}")))?;
        let envelope = Envelope::host(0, Event::Start { input }, at);
        match self.machine.start(run, &envelope) {
            Ok(step) => Ok(step.snapshot),
            Err(refusal) => {
                let story = self.machine.explain(None, &envelope, &refusal);
                let message = format!("the run cannot start: {}", story.message);
                Err(no(story.code.word(), message))
            }
        }
    }

    /// Timers that are due by the time of the item, each at its own time.
    fn fire(&self, snapshot: &mut Snapshot, seq: &mut u64, at: i64, logs: &mut Vec<String>) {
        let mut fired = 0;
        while let Some(timer) = snapshot.next_timer().filter(|timer| timer.due <= at) {
            let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
            let envelope = Envelope::host(seq.saturating_add(1), event, timer.due);
            // A timer that is refused stays pending, and those behind it wait; as does a chart that never comes to rest.
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

/// What the charter logs, as text.
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

/// A digest of a line, to tell the same again from another one under the same id. Only words depend on it.
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
