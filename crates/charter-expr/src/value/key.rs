//! Map keys and their total order: numbers by value, then booleans, then strings.

use std::cmp::Ordering;

use super::{Str, Value};

/// A key of a map. An int and a uint with the same value are the same key, consistent with `==`.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A boolean.
    Bool(bool),
    /// A string.
    String(Str<'a>),
}

impl<'a> Key<'a> {
    /// Converts a value to the key it is in a map literal. Returns `None` if its type cannot be a
    /// key.
    pub fn from_value(value: &Value<'a>) -> Option<Key<'a>> {
        match value {
            Value::Int(i) => Some(Key::Int(*i)),
            Value::Uint(u) => Some(Key::Uint(*u)),
            Value::Bool(b) => Some(Key::Bool(*b)),
            Value::String(s) => Some(Key::String(s.clone())),
            _ => None,
        }
    }

    /// Returns the key that equals a value, for a lookup: a double with a whole value equals an int
    /// or uint.
    pub(crate) fn lookup(value: &Value<'a>) -> Option<Key<'a>> {
        match value {
            Value::Double(d) => {
                super::number::exact_i64(*d).map(Key::Int).or_else(|| super::number::exact_u64(*d).map(Key::Uint))
            }
            other => Key::from_value(other),
        }
    }

    /// Converts the key to a value.
    pub fn into_value(self) -> Value<'a> {
        match self {
            Key::Int(i) => Value::Int(i),
            Key::Uint(u) => Value::Uint(u),
            Key::Bool(b) => Value::Bool(b),
            Key::String(s) => Value::String(s),
        }
    }

    /// Converts the key to owned data.
    pub fn into_owned(self) -> Key<'static> {
        match self {
            Key::Int(i) => Key::Int(i),
            Key::Uint(u) => Key::Uint(u),
            Key::Bool(b) => Key::Bool(b),
            Key::String(s) => Key::String(s.into_owned()),
        }
    }

    /// Compares the key with a string.
    pub(crate) fn cmp_str(&self, s: &str) -> Ordering {
        match self {
            Key::String(k) => k.as_str().cmp(s),
            _ => Ordering::Less,
        }
    }

    fn rank(&self) -> (u8, i128) {
        match self {
            Key::Int(i) => (0, i128::from(*i)),
            Key::Uint(u) => (0, i128::from(*u)),
            Key::Bool(b) => (1, i128::from(*b)),
            Key::String(_) => (2, 0),
        }
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::String(a), Key::String(b)) => a.as_str().cmp(b.as_str()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}
