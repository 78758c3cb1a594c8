//! Normalization of JSON numbers: the notation of a number in data never matters, so a round trip
//! through JSON changes nothing.
//!
//! Whole numbers with |x| <= 2^53-1 are written as integers: `2.0` is 2 and `-0.0` is 0. In a place
//! without a declared type they are ints and all others are doubles
//! ([`Value::from_json`](crate::Value::from_json)); elsewhere the place decides
//! ([`Value::typed`](crate::Value::typed)). The functions here rewrite the JSON, so that its text
//! is canonical.

use std::fmt;

use serde_json::Value;

use crate::value::number;
use crate::{MAX_DATA_DEPTH, pointer};

/// Why external data is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberError {
    /// The position, as a JSON pointer (RFC 6901); empty for the whole value.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{} at `{}`", self.message, self.pointer)
        }
    }
}

impl std::error::Error for NumberError {}

/// Makes the numbers in external data canonical.
///
/// Refuses an integer literal beyond ±(2^53-1), which cannot be represented exactly and belongs in
/// a string. (`serde_json` parses a literal beyond 64 bits as a double, and it stays a double.)
/// Refuses data nested deeper than [`MAX_DATA_DEPTH`].
pub fn canonical(v: &mut Value) -> Result<(), NumberError> {
    walk(v, 0).map_err(|(mut path, message)| {
        path.reverse();
        let pointer = path.iter().fold(String::new(), |pointer, key| pointer::join(&pointer, key));
        NumberError { pointer, message }
    })
}

type Refused = (Vec<String>, String);

fn walk(v: &mut Value, depth: usize) -> Result<(), Refused> {
    if depth > MAX_DATA_DEPTH {
        return Err((Vec::new(), format!("the data is nested deeper than {MAX_DATA_DEPTH} levels")));
    }
    let deeper = depth.saturating_add(1);
    match v {
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                walk(item, deeper).map_err(|e| within(i, e))?;
            }
        }
        Value::Object(fields) => {
            for (name, item) in fields.iter_mut() {
                walk(item, deeper).map_err(|e| within(name, e))?;
            }
        }
        Value::Number(_) => {
            let unsafe_int = match &*v {
                Value::Number(n) if n.is_i64() || n.is_u64() => !n.as_i64().is_some_and(number::is_safe),
                _ => false,
            };
            if unsafe_int {
                let message = format!("the integer {v} is beyond ±9007199254740991 and would lose digits");
                return Err((Vec::new(), message));
            }
            normalize_number(v);
        }
        _ => {}
    }
    Ok(())
}

fn within(segment: impl fmt::Display, (mut path, message): Refused) -> Refused {
    path.push(segment.to_string());
    (path, message)
}

/// Makes the numbers in data that Charter stored canonical: an integer beyond ±(2^53-1) becomes the
/// nearest double. Never fails, and does not recurse.
pub fn normalize(v: &mut Value) {
    let mut todo = vec![v];
    while let Some(v) = todo.pop() {
        match v {
            Value::Array(items) => todo.extend(items.iter_mut()),
            Value::Object(fields) => todo.extend(fields.iter_mut().map(|(_, v)| v)),
            Value::Number(_) => normalize_number(v),
            _ => {}
        }
    }
}

fn normalize_number(v: &mut Value) {
    let Value::Number(n) = &*v else { return };
    if n.as_i64().is_some_and(number::is_safe) {
        return;
    }
    let Some(d) = n.as_f64() else { return };
    if let Some(i) = number::safe_int(d) {
        *v = Value::from(i);
    } else if !n.is_f64()
        && let Some(n) = serde_json::Number::from_f64(d)
    {
        *v = Value::Number(n);
    }
}

/// About how many bytes of memory a value takes, and not less than the length of its canonical
/// JSON. Budgets count these bytes, because a list of `{}` takes many times its text. Does not
/// recurse.
pub fn memory(v: &Value) -> u64 {
    let mut sum = 0u64;
    let mut todo = vec![v];
    while let Some(v) = todo.pop() {
        sum = sum.saturating_add(match v {
            Value::Null | Value::Bool(_) | Value::Number(_) => memory::VALUE,
            Value::String(s) => memory::text(s),
            Value::Array(items) => {
                todo.extend(items);
                memory::VALUE
            }
            Value::Object(fields) => {
                todo.extend(fields.values());
                let keys = fields.keys().map(|key| memory::text(key)).fold(0u64, u64::saturating_add);
                keys.saturating_add(memory::map(fields.len()))
            }
        });
    }
    sum
}

/// The parts of [`memory()`].
pub(crate) mod memory {
    /// Any value, without what it refers to.
    pub(crate) const VALUE: u64 = 32;
    /// The first node of a map, which has room for 11 entries.
    pub(crate) const NODE: u64 = 640;
    /// Each further entry of a map with its value; nodes are at least half full.
    pub(crate) const ENTRY: u64 = NODE / 6;

    /// A string or a key, not less than its length in JSON with escapes.
    pub(crate) fn text(s: &str) -> u64 {
        // Strings rarely need escapes. The fold is vectorized, the sum is not.
        let any = s.bytes().fold(false, |any, b| any | is_escaped(b));
        let escapes = if any { s.bytes().filter(|b| is_escaped(*b)).count().saturating_mul(5) } else { 0 };
        VALUE.saturating_add(s.len().saturating_add(escapes) as u64)
    }

    fn is_escaped(b: u8) -> bool {
        (b < 0x20) | (b == b'"') | (b == b'\\')
    }

    /// A map, without its keys, and without the [`VALUE`] of each of its values.
    pub(crate) fn map(len: usize) -> u64 {
        match (len as u64).checked_sub(1) {
            None => VALUE,
            Some(more) => VALUE.saturating_add(NODE).saturating_add(more.saturating_mul(ENTRY - VALUE)),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// A node of a `BTreeMap` has 11 keys and values, its parent and two numbers.
        #[test]
        fn a_node_of_a_map_costs_what_it_takes() {
            let node = 11 * (size_of::<String>() + size_of::<serde_json::Value>()) + size_of::<usize>() + 4;
            assert!(node as u64 <= NODE && NODE < node as u64 + 64, "{node}");
            assert!(size_of::<serde_json::Value>() as u64 <= VALUE);
            let map = |len: usize| {
                let entries = (0..len).map(|n| (n.to_string(), serde_json::Value::from(1)));
                super::super::memory(&entries.collect::<serde_json::Value>())
            };
            for len in [1usize, 6, 11, 12, 100, 10_000] {
                let nodes = len.div_ceil(6) * node + len * 8;
                let (counted, taken) = (map(len), nodes as u64);
                assert!(counted >= taken && counted < 3 * taken + 200, "{len}: {counted}, {taken}");
            }
        }
    }
}

/// Whether [`canonical`] would not change the data.
pub fn is_canonical(v: &Value) -> bool {
    let mut todo = vec![v];
    while let Some(v) = todo.pop() {
        match v {
            Value::Array(items) => todo.extend(items),
            Value::Object(fields) => todo.extend(fields.values()),
            Value::Number(n) => {
                let ok = match n.as_i64() {
                    Some(i) => number::is_safe(i),
                    None => n.is_f64() && n.as_f64().is_some_and(|d| number::safe_int(d).is_none()),
                };
                if !ok {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}
