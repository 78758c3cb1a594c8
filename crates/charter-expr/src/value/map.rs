//! Maps: owned, borrowed from JSON, or computed by the host. Always in key order.

use std::fmt::Debug;
use std::sync::Arc;

use super::{Key, Str, Value};
use crate::Numbers;
use crate::detail::{EvalDetail, shorten};
use crate::error::EvalError;
use crate::fuel::Fuel;

/// A map with string keys whose values the host computes on demand.
pub trait Object: Debug {
    /// Returns the value of a field, or `None` if there is no such field.
    fn get(&self, key: &str) -> Option<Value<'_>>;
    /// Like [`Object::get`], for objects in which a field costs more than a step of an expression,
    /// because its value is built: spends the fuel first.
    ///
    /// # Errors
    /// There is not enough fuel.
    fn find(&self, key: &str, _fuel: &mut Fuel) -> Result<Option<Value<'_>>, EvalError> {
        Ok(self.get(key))
    }
    /// All field names, in any order.
    fn keys(&self) -> Vec<Str<'_>>;
    /// Number of fields.
    fn len(&self) -> usize {
        self.keys().len()
    }
    /// Whether it is empty.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A map.
#[derive(Clone)]
#[non_exhaustive]
pub enum Map<'a> {
    /// Created by an evaluation; sorted by key, without duplicates.
    Owned(Arc<[(Key<'a>, Value<'a>)]>),
    /// A JSON object and the types of its numbers; its values are converted when they are read.
    Json(&'a serde_json::Map<String, serde_json::Value>, Option<&'a Numbers>),
    /// Computed by the host on demand.
    Object(&'a dyn Object),
}

impl<'a> Map<'a> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Owned(m) => m.len(),
            Map::Json(m, _) => m.len(),
            Map::Object(o) => o.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string key.
    pub fn get_str(&self, key: &str) -> Option<Value<'a>> {
        match self {
            Map::Json(m, numbers) => m.get(key).map(|value| Value::typed(value, numbers.and_then(|n| n.field(key)))),
            Map::Object(o) => o.get(key),
            Map::Owned(m) => {
                let at = m.binary_search_by(|(k, _)| k.cmp_str(key)).ok()?;
                m.get(at).map(|(_, v)| v.clone())
            }
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &Key<'_>) -> Option<Value<'a>> {
        match (self, key) {
            (_, Key::String(s)) => self.get_str(s),
            (Map::Owned(m), key) => {
                let at = m.binary_search_by(|(k, _)| k.cmp(key)).ok()?;
                m.get(at).map(|(_, v)| v.clone())
            }
            _ => None,
        }
    }

    /// The value of a string key; spends what it costs besides the step that reads it.
    #[inline]
    pub(crate) fn find_str(&self, key: &str, fuel: &mut Fuel) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Object(o) => o.find(key, fuel),
            other => Ok(other.get_str(key)),
        }
    }

    /// The value of a key; spends what it costs besides the step that reads it.
    pub(crate) fn find(&self, key: &Key<'_>, fuel: &mut Fuel) -> Result<Option<Value<'a>>, EvalError> {
        match key {
            Key::String(s) => self.find_str(s, fuel),
            key => Ok(self.get(key)),
        }
    }

    /// The keys, sorted.
    pub fn keys(&self) -> Vec<Key<'a>> {
        let mut keys: Vec<Key<'a>> = match self {
            Map::Owned(m) => return m.iter().map(|(k, _)| k.clone()).collect(),
            Map::Json(m, _) => m.keys().map(|k| Key::String(Str::Borrowed(k))).collect(),
            Map::Object(o) => o.keys().into_iter().map(Key::String).collect(),
        };
        // A JSON object is sorted unless serde_json's `preserve_order` is enabled.
        if !keys.is_sorted() {
            keys.sort();
        }
        keys
    }

    /// The entries in key order.
    pub fn entries(&self) -> Vec<(Key<'a>, Value<'a>)> {
        if let Map::Owned(m) = self {
            return m.to_vec();
        }
        let keys = self.keys();
        keys.into_iter().filter_map(|k| self.get(&k).map(|v| (k, v))).collect()
    }

    /// Creates a map from its entries. A duplicate key is an error.
    pub fn from_entries(entries: Vec<(Key<'a>, Value<'a>)>) -> Result<Map<'a>, EvalError> {
        let mut builder = MapBuilder::default();
        for (key, value) in entries {
            builder.push(key, value);
        }
        builder.finish()
    }
}

/// Collects entries and sorts them once.
#[derive(Default)]
pub(crate) struct MapBuilder<'a> {
    entries: Vec<(Key<'a>, Value<'a>)>,
}

impl<'a> MapBuilder<'a> {
    pub(crate) fn push(&mut self, key: Key<'a>, value: Value<'a>) {
        self.entries.push((key, value));
    }

    pub(crate) fn finish(mut self) -> Result<Map<'a>, EvalError> {
        self.entries.sort_by(|a, b| a.0.cmp(&b.0));
        let twice = self.entries.array_windows().find(|[a, b]| a.0 == b.0);
        if let Some([(key, _), _]) = twice {
            let key = key.clone().into_value();
            return Err(EvalDetail::RepeatedKey { key: shorten(&format!("{key:?}")) }.into());
        }
        Ok(Map::Owned(self.entries.into()))
    }
}
