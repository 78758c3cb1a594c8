//! The ledger of a run: permits and obligations, which outlive states.

use std::sync::Arc;

use charter_expr::{Object, Str, Value};
use serde_json::Value as Json;

use crate::refusal::Code;
use crate::snapshot::{Keyed, Snapshot};
use crate::time::Timestamp;

/// Permits and obligations of a run, by kind and key.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// Names of the kinds, as in the charter.
    pub(crate) names: Arc<[Box<str>]>,
    /// One per kind.
    pub(crate) kinds: Vec<Kind>,
}

/// All entries of a kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Kind {
    pub(crate) entries: Keyed<Arc<Entry>>,
}

/// A permit or an obligation.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its status.
    pub status: EntryStatus,
    /// Uses left; `None`: unlimited.
    pub uses: Option<u64>,
    /// When a permit expires (exclusive).
    pub expires: Option<Timestamp>,
    /// When an obligation is overdue.
    pub due: Option<Timestamp>,
    /// Its scope and other data.
    pub data: Arc<Json>,
    /// How an obligation was closed.
    pub how: Option<Arc<Json>>,
}

/// The status of a ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryStatus {
    /// A permit that can be used.
    Granted,
    /// A permit that was revoked.
    Revoked,
    /// A permit that has expired.
    Expired,
    /// A permit with no uses left.
    Exhausted,
    /// An obligation that is not fulfilled yet.
    Open,
    /// An obligation that was not fulfilled in time; it can still be closed.
    Overdue,
    /// An obligation that was fulfilled.
    Closed,
}

impl EntryStatus {
    /// The word used in JSON and in expressions.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            EntryStatus::Granted => "granted",
            EntryStatus::Revoked => "revoked",
            EntryStatus::Expired => "expired",
            EntryStatus::Exhausted => "exhausted",
            EntryStatus::Open => "open",
            EntryStatus::Overdue => "overdue",
            EntryStatus::Closed => "closed",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<EntryStatus> {
        use EntryStatus::{Closed, Exhausted, Expired, Granted, Open, Overdue, Revoked};
        [Granted, Revoked, Expired, Exhausted, Open, Overdue, Closed].into_iter().find(|s| s.word() == word)
    }
}

impl Snapshot {
    /// Returns the snapshot as expressions read it at time `at`, with the permits that expire by
    /// then expired.
    #[must_use]
    pub fn with_expired_permits(&self, at: Timestamp) -> Snapshot {
        let mut snapshot = self.clone();
        if let Some(ledger) = &mut snapshot.ledger {
            Ledger::expire(ledger, at);
        }
        snapshot
    }
}

impl Entry {
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status, EntryStatus::Open | EntryStatus::Overdue)
    }
}

impl Ledger {
    pub(crate) fn new(names: &Arc<[Box<str>]>) -> Ledger {
        Ledger { names: names.clone(), kinds: names.iter().map(|_| Kind::default()).collect() }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.kinds.iter().map(|kind| kind.entries.len()).fold(0, usize::saturating_add)
    }

    /// The number of entries of a kind.
    pub(crate) fn len_of(&self, kind: u32) -> usize {
        self.kinds.get(kind as usize).map_or(0, |kind| kind.entries.len())
    }

    /// Looks up an entry by the name of its kind and by its key.
    #[must_use]
    pub fn entry(&self, kind: &str, key: &str) -> Option<&Entry> {
        self.kind(kind)?.entries.get(key).map(AsRef::as_ref)
    }

    /// All entries as kind, key and entry, ordered by kind as declared, then by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str, &Entry)> {
        let named = self.names.iter().zip(&self.kinds);
        named.flat_map(|(name, kind)| {
            kind.entries.iter().map(move |(key, entry)| (name.as_ref(), key.as_ref(), entry.as_ref()))
        })
    }

    /// Returns the entries that are new or differ from `before`, as kind, key and entry, ordered by
    /// kind as declared, then by key. Entries are never removed.
    pub fn changes<'a>(&'a self, before: Option<&'a Ledger>) -> impl Iterator<Item = (&'a str, &'a str, &'a Entry)> {
        let same_ledger = before.is_some_and(|b| std::ptr::eq(b, self));
        let kinds = self.names.iter().zip(&self.kinds).enumerate().filter(move |_| !same_ledger);
        kinds.flat_map(move |(i, (name, kind))| {
            let old = before.and_then(|b| b.kinds.get(i));
            let same = move |key: &str, e: &Arc<Entry>| {
                old.and_then(|k| k.entries.get(key)).is_some_and(|o| Arc::ptr_eq(o, e) || o == e)
            };
            kind.entries
                .iter()
                .filter(move |(key, e)| !same(key, e))
                .map(move |(key, e)| (name.as_ref(), key.as_ref(), e.as_ref()))
        })
    }

    fn kind(&self, name: &str) -> Option<&Kind> {
        let at = self.names.iter().position(|n| n.as_ref() == name)?;
        self.kinds.get(at)
    }

    pub(crate) fn get(&self, kind: u32, key: &str) -> Option<&Arc<Entry>> {
        self.kinds.get(kind as usize)?.entries.get(key)
    }

    /// Marks the permits that expire by `now` as expired; this is permanent.
    pub(crate) fn expire(this: &mut Arc<Ledger>, now: Timestamp) {
        let over = |e: &Entry| e.status == EntryStatus::Granted && e.expires.is_some_and(|t| t <= now);
        if !this.kinds.iter().any(|k| k.entries.values().any(|e| over(e))) {
            return;
        }
        for entry in Arc::make_mut(this).kinds.iter_mut().flat_map(|k| k.entries.values_mut()) {
            if over(entry) {
                Arc::make_mut(entry).status = EntryStatus::Expired;
            }
        }
    }

    /// Returns a permit that can be used, without checking its scope, or why it cannot be used.
    pub(crate) fn usable(&self, kind: u32, key: &str) -> Result<&Entry, Code> {
        let entry = self.get(kind, key).ok_or(Code::PermitMissing)?;
        match entry.status {
            EntryStatus::Granted => Ok(entry),
            EntryStatus::Revoked => Err(Code::PermitRevoked),
            EntryStatus::Expired => Err(Code::PermitExpired),
            EntryStatus::Exhausted => Err(Code::PermitExhausted),
            EntryStatus::Open | EntryStatus::Overdue | EntryStatus::Closed => Err(Code::PermitMissing),
        }
    }

    /// Whether a permit of a kind can be used.
    pub(crate) fn has_usable(&self, kind: u32) -> bool {
        let entries = self.kinds.get(kind as usize).into_iter().flat_map(|kind| kind.entries.values());
        entries.into_iter().any(|entry| entry.status == EntryStatus::Granted)
    }

    /// Counts one use; the last one exhausts the permit.
    pub(crate) fn count_use(&mut self, kind: u32, key: &str) -> Result<(), Code> {
        self.usable(kind, key)?;
        let entry =
            self.kinds.get_mut(kind as usize).and_then(|k| k.entries.get_mut(key)).ok_or(Code::PermitMissing)?;
        if let Some(left) = entry.uses {
            let entry = Arc::make_mut(entry);
            let left = left.saturating_sub(1);
            entry.uses = Some(left);
            if left == 0 {
                entry.status = EntryStatus::Exhausted;
            }
        }
        Ok(())
    }

    pub(crate) fn open_keys(&self, kind: u32) -> impl Iterator<Item = &Arc<str>> {
        self.kinds
            .get(kind as usize)
            .into_iter()
            .flat_map(|k| k.entries.iter().filter(|(_, e)| e.is_open()).map(|(key, _)| key))
    }

    /// Inserts a new entry; returns false if the key was used before.
    pub(crate) fn insert(&mut self, kind: u32, key: Arc<str>, entry: Entry) -> bool {
        let Some(kind) = self.kinds.get_mut(kind as usize) else {
            return false;
        };
        match kind.entries.entry(key) {
            std::collections::btree_map::Entry::Occupied(_) => false,
            std::collections::btree_map::Entry::Vacant(v) => {
                v.insert(Arc::new(entry));
                true
            }
        }
    }

    /// Revokes one permit, or all granted permits of the kind.
    pub(crate) fn revoke(&mut self, kind: u32, key: Option<&str>) -> bool {
        let Some(kind) = self.kinds.get_mut(kind as usize) else {
            return false;
        };
        match key {
            Some(key) => match kind.entries.get_mut(key) {
                Some(e)
                    if e.status == EntryStatus::Granted
                        || e.status == EntryStatus::Exhausted
                        || e.status == EntryStatus::Expired =>
                {
                    Arc::make_mut(e).status = EntryStatus::Revoked;
                    true
                }
                Some(e) => e.status == EntryStatus::Revoked,
                None => false,
            },
            None => {
                for e in kind.entries.values_mut().filter(|e| e.status == EntryStatus::Granted) {
                    Arc::make_mut(e).status = EntryStatus::Revoked;
                }
                true
            }
        }
    }

    /// Closes one obligation, or all open obligations of the kind. Returns the keys that were
    /// closed.
    pub(crate) fn close(&mut self, kind: u32, key: Option<&str>, how: Option<&Arc<Json>>) -> Vec<Arc<str>> {
        let Some(kind) = self.kinds.get_mut(kind as usize) else {
            return Vec::new();
        };
        let mut closed = Vec::new();
        for (k, e) in kind.entries.iter_mut().filter(|(k, e)| e.is_open() && key.is_none_or(|key| key == k.as_ref())) {
            let e = Arc::make_mut(e);
            e.status = EntryStatus::Closed;
            e.how = how.cloned();
            closed.push(k.clone());
        }
        closed
    }

    /// Changes when an obligation is due.
    pub(crate) fn set_due(&mut self, kind: u32, key: &str, due: Timestamp) {
        if let Some(e) = self.kinds.get_mut(kind as usize).and_then(|k| k.entries.get_mut(key)) {
            Arc::make_mut(e).due = Some(due);
        }
    }

    pub(crate) fn set_overdue(&mut self, kind: u32, key: &str) {
        if let Some(e) = self.kinds.get_mut(kind as usize).and_then(|k| k.entries.get_mut(key)) {
            Arc::make_mut(e).status = EntryStatus::Overdue;
        }
    }
}

/// `ledger` in expressions.
impl Object for Ledger {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.kind(key).map(|k| Value::object(k))
    }
    fn keys(&self) -> Vec<Str<'_>> {
        let mut keys: Vec<_> = self.names.iter().map(|n| Str::from(n.as_ref())).collect();
        keys.sort_unstable_by(|a: &Str<'_>, b| a.as_str().cmp(b.as_str()));
        keys
    }
    fn len(&self) -> usize {
        self.names.len()
    }
}

/// `ledger.token` in expressions.
impl Object for Kind {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        self.entries.get(key).map(|e| Value::object(e.as_ref()))
    }
    fn keys(&self) -> Vec<Str<'_>> {
        self.entries.keys().map(|k| Str::from(k.as_ref())).collect()
    }
    fn len(&self) -> usize {
        self.entries.len()
    }
}

/// `ledger.token["k"]` (and `entry` in `requires`) in expressions.
impl Object for Entry {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "status" => Some(Value::from(self.status.word())),
            "uses" => Some(self.uses.and_then(|u| i64::try_from(u).ok()).map_or(Value::Null, Value::Int)),
            "expires" => Some(self.expires.map_or(Value::Null, |t| Value::timestamp_millis(t.0))),
            "due" => Some(self.due.map_or(Value::Null, |t| Value::timestamp_millis(t.0))),
            "data" => Some(Value::from_json(&self.data)),
            "how" => Some(self.how.as_deref().map_or(Value::Null, Value::from_json)),
            _ => None,
        }
    }
    fn keys(&self) -> Vec<Str<'_>> {
        ["data", "due", "expires", "how", "status", "uses"].into_iter().map(Str::from).collect()
    }
    fn len(&self) -> usize {
        6
    }
}
