//! Conversion of values to JSON. A small value with shared parts can have huge JSON, so the size is
//! limited.

use serde_json::{Map as JsonMap, Value as Json};

use super::convert::number;
use super::{Key, List, Map, Value};
use crate::detail::{EvalDetail, shorten};
use crate::error::EvalError;
use crate::json::memory;
use crate::{MAX_DATA_DEPTH, MAX_JSON_SIZE};

impl Value<'_> {
    /// Converts the value to its canonical JSON form: whole numbers without a point, timestamps as
    /// RFC 3339, durations as `3.5s`, bytes as base64, numeric and boolean keys as text.
    ///
    /// Errors (`NotJson`): NaN and infinities, ints and uints beyond ±(2^53-1), types as values;
    /// (`TooDeep`): data nested deeper than [`MAX_DATA_DEPTH`]; (`TooLarge`): a result beyond
    /// [`MAX_JSON_SIZE`].
    pub fn to_json(&self) -> Result<Json, EvalError> {
        self.to_json_within(&mut (MAX_JSON_SIZE as u64))
    }

    /// Like [`Value::to_json`], but the result may take `left` bytes of memory, as
    /// [`memory`](crate::json::memory) counts them. They are deducted before they are allocated, so
    /// a small value with huge JSON costs no more than that; also after an error, `left` is what
    /// was not used.
    ///
    /// Errors: as [`Value::to_json`], `TooLarge` for a result beyond `left`.
    pub fn to_json_within(&self, left: &mut u64) -> Result<Json, EvalError> {
        to_json(self, 0, &mut Size(left))
    }
}

/// The bytes that the result may still take.
struct Size<'l>(&'l mut u64);

impl Size<'_> {
    #[inline]
    fn take(&mut self, bytes: u64) -> Result<(), EvalError> {
        match self.0.checked_sub(bytes) {
            Some(left) => {
                *self.0 = left;
                Ok(())
            }
            None => Err(EvalDetail::LargeJson { limit: MAX_JSON_SIZE }.into()),
        }
    }
}

fn not_json(value: &Value<'_>, text: impl std::fmt::Display) -> EvalError {
    EvalDetail::NotJson { found: value.type_name().to_owned(), value: text.to_string() }.into()
}

fn deeper(depth: usize) -> Result<usize, EvalError> {
    if depth >= MAX_DATA_DEPTH { Err(EvalError::too_deep()) } else { Ok(depth.saturating_add(1)) }
}

fn to_json(value: &Value<'_>, depth: usize, size: &mut Size<'_>) -> Result<Json, EvalError> {
    size.take(match value {
        Value::String(s) => memory::text(s),
        Value::Bytes(b) => memory::VALUE.saturating_add((b.len() as u64).saturating_mul(2)),
        Value::Map(map) => memory::map(map.len()),
        _ => memory::VALUE,
    })?;
    Ok(match value {
        Value::Null => Json::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(i) if number::is_safe(*i) => (*i).into(),
        Value::Int(i) => return Err(not_json(value, i)),
        Value::Uint(u) if *u <= number::MAX_SAFE.unsigned_abs() => (*u).into(),
        Value::Uint(u) => return Err(not_json(value, u)),
        Value::Double(d) => match number::safe_int(*d) {
            Some(i) => i.into(),
            None => match serde_json::Number::from_f64(*d) {
                Some(n) => Json::Number(n),
                None => return Err(not_json(value, d)),
            },
        },
        Value::String(s) => s.as_str().into(),
        Value::Bytes(b) => crate::functions::encode::base64(b).into(),
        Value::List(List::Json(items, _)) => array(items, depth, size)?,
        Value::List(List::Owned(items)) => {
            let depth = deeper(depth)?;
            let mut out = Vec::with_capacity(items.len());
            for item in items.iter() {
                out.push(to_json(item, depth, size)?);
            }
            Json::Array(out)
        }
        Value::Map(Map::Json(fields, _)) => object(fields, depth, size)?,
        Value::Map(map) => entries(map, depth, size)?,
        Value::Timestamp(t) => t.to_string().into(),
        Value::Duration(d) => d.to_string().into(),
        Value::Type(t) => return Err(not_json(value, format_args!("`{}`", t.name()))),
    })
}

fn entries(map: &Map<'_>, depth: usize, size: &mut Size<'_>) -> Result<Json, EvalError> {
    let depth = deeper(depth)?;
    let mut out = JsonMap::new();
    for (key, value) in map.entries() {
        let name = match key {
            Key::Int(i) => i.to_string(),
            Key::Uint(u) => u.to_string(),
            Key::Bool(b) => b.to_string(),
            Key::String(s) => s.as_str().to_owned(),
        };
        size.take(memory::text(&name))?;
        if out.contains_key(&name) {
            return Err(EvalDetail::RepeatedName { name: shorten(&name) }.into());
        }
        out.insert(name, to_json(&value, depth, size)?);
    }
    Ok(Json::Object(out))
}

/// Copies borrowed JSON with canonical numbers.
fn copy(v: &Json, depth: usize, size: &mut Size<'_>) -> Result<Json, EvalError> {
    match v {
        Json::Array(items) => {
            size.take(memory::VALUE)?;
            array(items, depth, size)
        }
        Json::Object(fields) => {
            size.take(memory::map(fields.len()))?;
            object(fields, depth, size)
        }
        leaf => to_json(&Value::from_json(leaf), depth, size),
    }
}

fn array(items: &[Json], depth: usize, size: &mut Size<'_>) -> Result<Json, EvalError> {
    let depth = deeper(depth)?;
    let mut out = Vec::with_capacity(items.len());
    for item in items {
        out.push(copy(item, depth, size)?);
    }
    Ok(Json::Array(out))
}

fn object(fields: &JsonMap<String, Json>, depth: usize, size: &mut Size<'_>) -> Result<Json, EvalError> {
    let depth = deeper(depth)?;
    let mut out = JsonMap::new();
    for (name, value) in fields {
        size.take(memory::text(name))?;
        out.insert(name.clone(), copy(value, depth, size)?);
    }
    Ok(Json::Object(out))
}
