//! Values in messages and tests: CEL's notation, truncated.

use std::fmt::{self, Write};

use super::{List, Map, Value};
use crate::detail::shorten;

/// Maximum number of values shown; the rest is shown as `...`.
const MOST: usize = 1000;
/// Maximum number of nesting levels shown.
const DEEPEST: usize = 32;

fn show(value: &Value<'_>, f: &mut fmt::Formatter<'_>, left: &mut usize, depth: usize) -> fmt::Result {
    if *left == 0 || depth > DEEPEST {
        return f.write_str("...");
    }
    *left = left.saturating_sub(1);
    match value {
        Value::Null => f.write_str("null"),
        Value::Bool(b) => write!(f, "{b}"),
        Value::Int(i) => write!(f, "{i}"),
        Value::Uint(u) => write!(f, "{u}u"),
        Value::Double(d) => write!(f, "{d:?}"),
        Value::String(s) => write!(f, "{:?}", s.as_str()),
        Value::Bytes(b) => write!(f, "b\"{}\"", b.as_slice().escape_ascii()),
        Value::List(l) => list(l, f, left, depth),
        Value::Map(m) => map(m, f, left, depth),
        Value::Timestamp(t) => write!(f, "timestamp({t})"),
        Value::Duration(d) => write!(f, "duration({d})"),
        Value::Type(t) => f.write_str(t.name()),
    }
}

fn list(list: &List<'_>, f: &mut fmt::Formatter<'_>, left: &mut usize, depth: usize) -> fmt::Result {
    f.write_char('[')?;
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        show(&item, f, left, depth.saturating_add(1))?;
        if *left == 0 {
            break;
        }
    }
    f.write_char(']')
}

fn map(map: &Map<'_>, f: &mut fmt::Formatter<'_>, left: &mut usize, depth: usize) -> fmt::Result {
    f.write_char('{')?;
    for (i, (key, value)) in map.entries().into_iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        show(&key.into_value(), f, left, depth)?;
        f.write_str(": ")?;
        show(&value, f, left, depth.saturating_add(1))?;
        if *left == 0 {
            break;
        }
    }
    f.write_char('}')
}

impl Value<'_> {
    /// Returns the beginning of the value as text, for messages: strings, timestamps and durations
    /// as plain text, other values in CEL's notation.
    #[must_use]
    pub fn brief(&self) -> String {
        shorten(&match self {
            Value::String(s) => s.as_str().to_owned(),
            Value::Timestamp(t) => t.to_string(),
            Value::Duration(d) => d.to_string(),
            other => format!("{other:?}"),
        })
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(self, f, &mut MOST.clone(), 0)
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(self, f, &mut MOST.clone(), 0)
    }
}

impl fmt::Debug for Map<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        map(self, f, &mut MOST.clone(), 0)
    }
}
