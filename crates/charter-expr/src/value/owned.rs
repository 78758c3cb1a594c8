//! Conversion to owned values. Shared parts stay shared; otherwise a value that is small because
//! its parts are shared would grow to its full size.

use std::collections::BTreeMap;

use super::{List, Map, Value};
use crate::Numbers;

impl Value<'_> {
    /// Converts the value to owned data. Recurses as deeply as the data is nested.
    pub fn into_owned(self) -> Value<'static> {
        let mut done = BTreeMap::new();
        owned(&self, &mut done)
    }
}

/// Converted containers, keyed by address, length, and the address of the types of their numbers.
/// All containers stay borrowed until the end, so an address is never reused.
type Done = BTreeMap<(usize, usize, usize), Value<'static>>;

fn owned(value: &Value<'_>, done: &mut Done) -> Value<'static> {
    let place = match value {
        Value::List(List::Owned(items)) => (items.as_ptr().addr(), items.len(), 0),
        Value::List(List::Json(items, numbers)) => (items.as_ptr().addr(), items.len(), types(*numbers)),
        Value::Map(Map::Owned(entries)) => (entries.as_ptr().addr(), entries.len(), 0),
        // An object and its first field have different addresses.
        Value::Map(Map::Json(fields, numbers)) => (std::ptr::from_ref(*fields).addr(), usize::MAX, types(*numbers)),
        Value::Map(map @ Map::Object(_)) => return Value::Map(entries(map, done)),
        Value::String(s) => return Value::String(s.clone().into_owned()),
        Value::Bytes(b) => return Value::Bytes(b.clone().into_owned()),
        Value::Null => return Value::Null,
        Value::Bool(b) => return Value::Bool(*b),
        Value::Int(i) => return Value::Int(*i),
        Value::Uint(u) => return Value::Uint(*u),
        Value::Double(d) => return Value::Double(*d),
        Value::Timestamp(t) => return Value::Timestamp(*t),
        Value::Duration(d) => return Value::Duration(*d),
        Value::Type(t) => return Value::Type(*t),
    };
    // Empty containers may all have the same address.
    let empty = place.1 == 0;
    if !empty && let Some(value) = done.get(&place) {
        return value.clone();
    }
    let copy = match value {
        Value::List(list) => Value::List(List::Owned(list.iter().map(|v| owned(&v, done)).collect())),
        Value::Map(map) => Value::Map(entries(map, done)),
        // The others have returned above.
        _ => Value::Null,
    };
    if !empty {
        done.insert(place, copy.clone());
    }
    copy
}

fn types(numbers: Option<&Numbers>) -> usize {
    numbers.map_or(0, |numbers| std::ptr::from_ref(numbers).addr())
}

fn entries(map: &Map<'_>, done: &mut Done) -> Map<'static> {
    let entries = map.entries().into_iter().map(|(k, v)| (k.into_owned(), owned(&v, done)));
    Map::Owned(entries.collect())
}
