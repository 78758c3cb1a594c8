//! The stable structures, which survive an upgrade and are the source of truth. Each step writes
//! only what it has changed.

mod ids;
mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;

use charter_journal::StoredCharter;
use charter_kernel::{Actor, Snapshot};
use charter_run::{Action, Appended};
use ic_stable_structures::storable::Bound;
use ic_stable_structures::{Cell, Memory, StableBTreeMap, Storable};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::CanisterError;
use crate::form;
use crate::log::{Anchor, Bounds, EpisodicLog, SEGMENTS};

pub use ids::EventIds;
pub use view::{LastError, LastTurn, RuntimeView, TurnInFlight};

/// Version of the layout.
const LAYOUT: u32 = 1;

/// Number of memories that the structures need; their ids start at 0.
pub const MEMORIES: u8 = 16;

/// A string of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Text(String);

impl Storable for Text {
    const BOUND: Bound = Bound::Unbounded;
    fn to_bytes(&self) -> Cow<'_, [u8]> {
        self.0.as_bytes().into()
    }
    fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
    fn from_bytes(bytes: Cow<'_, [u8]>) -> Text {
        Text(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The stable structures.
pub struct Stable<M: Memory> {
    /// `LAYOUT` and the charter of the run; a later version of the canister may have another
    /// charter built in.
    charter: Cell<Vec<u8>, M>,
    /// [`RuntimeView`] as JSON, a newline, and the text of the kernel's snapshot.
    runtime: Cell<Vec<u8>, M>,
    view: RuntimeView,
    config: StableBTreeMap<String, Text, M>,
    skills: StableBTreeMap<String, Text, M>,
    /// The event ids of the records in the log.
    pub ids: EventIds<M>,
    /// The records.
    pub log: EpisodicLog<M>,
    projection: Cell<Vec<u8>, M>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    layout: u32,
    digest: charter_kernel::Digest,
    name: String,
    core: String,
    source: String,
}

impl<M: Memory + Clone> Stable<M> {
    /// Opens or creates the structures. `memory` returns the memories 0 to [`MEMORIES`]` - 1`.
    ///
    /// # Errors
    /// Stable memory is damaged or has another layout.
    pub fn open(memory: impl Fn(u8) -> M, bounds: Bounds) -> Result<Stable<M>, CanisterError> {
        let pairs = (0..SEGMENTS).filter_map(|i| {
            let first = u8::try_from(i).ok()?.checked_mul(2)?.checked_add(8)?;
            Some((memory(first), memory(first.checked_add(1)?)))
        });
        let runtime = Cell::init(memory(1), Vec::new());
        let view = match split(&runtime) {
            None => RuntimeView::default(),
            Some((view, _)) => form::read("the runtime cell", view)?,
        };
        Ok(Stable {
            charter: Cell::init(memory(0), Vec::new()),
            runtime,
            view,
            config: StableBTreeMap::init(memory(2)),
            skills: StableBTreeMap::init(memory(3)),
            projection: Cell::init(memory(4), Vec::new()),
            ids: EventIds::open(memory(6)),
            log: EpisodicLog::open(memory(5), pairs.collect(), bounds)?,
        })
    }

    /// Returns the charter of the run; `None` if nothing has been written yet.
    ///
    /// # Errors
    /// The stored charter is damaged or has another layout.
    pub fn charter(&self) -> Result<Option<StoredCharter>, CanisterError> {
        let bytes = self.charter.get();
        if bytes.is_empty() {
            return Ok(None);
        }
        let kept: Kept = form::read("the charter", bytes)?;
        if kept.layout != LAYOUT {
            return Err(CanisterError::Stable(format!("it has layout {}; this canister reads {LAYOUT}", kept.layout)));
        }
        Ok(Some(StoredCharter { digest: kept.digest, name: kept.name, core: kept.core, source: kept.source }))
    }

    /// Stores the charter.
    ///
    /// # Errors
    /// The charter cannot be written.
    pub fn put_charter(&mut self, charter: &StoredCharter) -> Result<(), CanisterError> {
        let kept = Kept {
            layout: LAYOUT,
            digest: charter.digest,
            name: charter.name.clone(),
            core: charter.core.clone(),
            source: charter.source.clone(),
        };
        self.charter.set(form::write(&kept)?);
        Ok(())
    }

    /// The summary for callers.
    pub fn view(&self) -> &RuntimeView {
        &self.view
    }

    /// Returns the text of the kernel's snapshot after the last record.
    ///
    /// # Errors
    /// The text is not UTF-8.
    pub fn snapshot(&self) -> Result<Option<&str>, CanisterError> {
        let Some((_, text)) = split(&self.runtime) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(text);
        text.map(Some).map_err(|_| CanisterError::Stable("the snapshot is not UTF-8".into()))
    }

    /// The progress of the projection, as stored.
    pub fn projection(&self) -> &[u8] {
        self.projection.get()
    }

    /// Stores the progress of the projection.
    pub fn put_projection(&mut self, bytes: Vec<u8>) {
        self.projection.set(bytes);
    }

    /// Writes what a step has changed: record, snapshot, settings, skills.
    ///
    /// # Errors
    /// The memory is full. A partial write is undone only by rolling back the message.
    pub fn commit(&mut self, before: Option<&Snapshot>, appended: &Appended) -> Result<(), CanisterError> {
        let record = &appended.append.record;
        // An anchor is needed only at the start of a segment, before the snapshot that it contains
        // is overwritten.
        let anchor = match self.log.needs_anchor() {
            true => Some(self.anchor(record.seq)?),
            false => None,
        };
        self.log.append(record, anchor)?;
        self.ids.note(record, self.log.first());
        let (Some(after), Some(text)) = (&appended.after, &appended.append.snapshot) else {
            return Ok(());
        };
        if record.verdict == charter_journal::Verdict::Refused {
            // Nothing has changed.
            return Ok(());
        }
        let Some(root) = after.actor("root") else {
            return Ok(());
        };
        let old = before.and_then(|s| s.actor("root"));
        self.see(root, appended);
        let mut bytes = form::write(&self.view)?;
        bytes.push(b'\n');
        bytes.extend_from_slice(text.as_bytes());
        self.runtime.set(bytes);
        if changed(old, root, "config") {
            let old = old.and_then(|o| o.variable("config"));
            write_changed(&mut self.config, old, root.variable("config"), word);
        }
        if changed(old, root, "soul") {
            for (key, value) in soul(root) {
                self.config.insert(key.into(), Text(value));
            }
        }
        if changed(old, root, "skills") {
            let old = old.and_then(|o| o.variable("skills"));
            write_changed(&mut self.skills, old, root.variable("skills"), canonical);
        }
        if old.is_none() {
            for (key, value) in system(after) {
                self.config.insert(key.into(), Text(value));
            }
        }
        Ok(())
    }

    /// Returns the state before a record that is about to be written.
    fn anchor(&self, seq: u64) -> Result<Anchor, CanisterError> {
        let before = seq.checked_sub(1).and_then(|seq| self.log.text(seq));
        Ok(Anchor { record: before.unwrap_or_default(), snapshot: self.snapshot()?.unwrap_or_default().to_owned() })
    }

    /// Updates the summary.
    fn see(&mut self, root: &Actor, appended: &Appended) {
        let view = &mut self.view;
        view.state = root.state().map(str::to_owned).collect();
        view.turn = root.variable("turn").and_then(read);
        view.looping = root.variable("loop").and_then(Json::as_bool) == Some(true);
        view.turns = root.variable("turns").and_then(Json::as_u64).unwrap_or_default();
        view.last_error = root.variable("lastError").and_then(read);
        for action in &appended.actions {
            let Action::Emit { r#type, data } = action else {
                continue;
            };
            if r#type != "turn.recorded" {
                continue;
            }
            let of = |path: &str| data.pointer(path).and_then(Json::as_str).map(str::to_owned);
            let number = data.pointer("/turn/number").and_then(Json::as_u64);
            view.last_turn = Some(LastTurn {
                id: of("/turn/id").unwrap_or_default(),
                number: number.unwrap_or_default(),
                outcome: of("/outcome").unwrap_or_default(),
                reply: of("/turn/inference/reply"),
                failure: of("/reason"),
                began: of("/turn/began").unwrap_or_default(),
                ended: of("/ended").unwrap_or_default(),
                seq: appended.append.record.seq,
            });
        }
    }

    /// Returns a setting, or a key of the soul or the system.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<String> {
        self.config.get(&key.to_owned()).map(|t| t.0)
    }

    /// Returns all settings, including the keys of the soul and the system.
    #[must_use]
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.config.iter().map(|e| (e.key().clone(), e.value().0)).collect()
    }

    /// Returns all skills: name and JSON of each.
    #[must_use]
    pub fn skills(&self) -> BTreeMap<String, String> {
        self.skills.iter().map(|e| (e.key().clone(), e.value().0)).collect()
    }

    /// Returns the differences between the maps and the run, as `config: KEY` or `skills: NAME`;
    /// empty if they agree.
    #[must_use]
    pub fn differences(&self, snapshot: &Snapshot) -> Vec<String> {
        let (settings, skills) = expected(snapshot);
        let mut found = Vec::new();
        for (map, expected, kept) in [("config", settings, self.settings()), ("skills", skills, self.skills())] {
            let keys: std::collections::BTreeSet<&String> = expected.keys().chain(kept.keys()).collect();
            for key in keys {
                if expected.get(key) != kept.get(key) {
                    found.push(format!("{map}: {key}"));
                }
            }
        }
        found
    }

    /// Rewrites both maps from the run.
    pub fn rewrite(&mut self, snapshot: &Snapshot) {
        let (settings, skills) = expected(snapshot);
        self.config.clear_new();
        for (key, value) in settings {
            self.config.insert(key, Text(value));
        }
        self.skills.clear_new();
        for (name, skill) in skills {
            self.skills.insert(name, Text(skill));
        }
    }
}

/// Computes the contents of both maps from the run.
fn expected(snapshot: &Snapshot) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let Some(root) = snapshot.actor("root") else {
        return Default::default();
    };
    let entries = |name: &str, text: fn(&Json) -> String| -> BTreeMap<String, String> {
        let map = root.variable(name).and_then(Json::as_object);
        let map = map.into_iter().flatten();
        map.map(|(key, value)| (key.clone(), text(value))).collect()
    };
    let mut settings = entries("config", word);
    let own = soul(root).into_iter().chain(system(snapshot));
    settings.extend(own.map(|(key, value)| (key.to_owned(), value)));
    (settings, entries("skills", canonical))
}

fn soul(root: &Actor) -> [(&'static str, String); 2] {
    let part = |key: &str| root.variable("soul").and_then(|s| s.get(key)).map(word);
    [("soul.text", part("text").unwrap_or_default()), ("soul.version", part("version").unwrap_or_default())]
}

fn system(snapshot: &Snapshot) -> [(&'static str, String); 2] {
    [("system.charter", snapshot.charter().to_string()), ("system.run", snapshot.run().to_owned())]
}

fn word(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => canonical(other),
    }
}

fn canonical(value: &Json) -> String {
    charter_kernel::digest::canonical(value)
}

fn read<T: for<'d> Deserialize<'d>>(value: &Json) -> Option<T> {
    T::deserialize(value).ok()
}

/// Whether a variable has changed. Steps share values, so comparing addresses usually suffices.
fn changed(old: Option<&Actor>, new: &Actor, name: &str) -> bool {
    match (old.and_then(|o| o.variable(name)), new.variable(name)) {
        (Some(old), Some(new)) => !std::ptr::eq(old, new) && old != new,
        (None, None) => false,
        _ => true,
    }
}

fn write_changed<M: Memory>(
    map: &mut StableBTreeMap<String, Text, M>,
    old: Option<&Json>,
    new: Option<&Json>,
    text: fn(&Json) -> String,
) {
    let entries = |json: Option<&Json>| json.and_then(Json::as_object).cloned().unwrap_or_default();
    let (old, new) = (entries(old), entries(new));
    for key in old.keys().filter(|k| !new.contains_key(*k)) {
        map.remove(key);
    }
    for (key, value) in &new {
        if old.get(key) != Some(value) {
            map.insert(key.clone(), Text(text(value)));
        }
    }
}

/// Splits the runtime cell into its two parts; returns `None` if nothing has been written yet.
fn split<M: Memory>(runtime: &Cell<Vec<u8>, M>) -> Option<(&[u8], &[u8])> {
    let bytes = runtime.get();
    let end = bytes.iter().position(|b| *b == b'\n')?;
    Some((bytes.get(..end)?, bytes.get(end.saturating_add(1)..)?))
}
