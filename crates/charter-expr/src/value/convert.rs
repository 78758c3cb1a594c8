//! Values from JSON and to JSON, under the number law: a number is an int or a double by its value.

use std::sync::Arc;

use super::{List, Map, Value};
use crate::MAX_DATA_DEPTH;
use crate::error::{ErrorKind, EvalError};

/// Which doubles are whole numbers.
pub(crate) mod number {
    /// 2^53 - 1: up to here every integer has a double of its own.
    pub(crate) const MAX_SAFE: i64 = 9_007_199_254_740_991;
    const MAX_SAFE_F: f64 = 9_007_199_254_740_991.0;

    /// The integer with exactly this value, if it is one of JSON's safe ones.
    pub(crate) fn safe_int(d: f64) -> Option<i64> {
        // Not by `fract`, which is a call of the mathematics library on most machines.
        let i = d as i64;
        (d.abs() <= MAX_SAFE_F && i as f64 == d).then_some(i)
    }

    pub(crate) fn is_safe(i: i64) -> bool {
        (-MAX_SAFE..=MAX_SAFE).contains(&i)
    }

    pub(crate) fn exact_i64(d: f64) -> Option<i64> {
        (d.fract() == 0.0
            && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&d))
        .then_some(d as i64)
    }

    pub(crate) fn exact_u64(d: f64) -> Option<u64> {
        (d.fract() == 0.0 && (0.0..18_446_744_073_709_551_616.0).contains(&d)).then_some(d as u64)
    }
}

impl<'a> Value<'a> {
    /// A view of a JSON value. Containers are borrowed, never converted.
    #[inline]
    pub fn from_json(v: &'a serde_json::Value) -> Value<'a> {
        match v {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => Value::Bool(*b),
            serde_json::Value::Number(n) => Value::from_json_number(n),
            serde_json::Value::String(s) => Value::str(s),
            serde_json::Value::Array(a) => Value::List(List::Json(a)),
            serde_json::Value::Object(o) => Value::Map(Map::Json(o)),
        }
    }

    /// The number law: a whole number up to 2^53-1 is an int, whatever it was written as; all others are doubles.
    #[inline]
    fn from_json_number(n: &serde_json::Number) -> Value<'static> {
        if let Some(i) = n.as_i64()
            && number::is_safe(i)
        {
            return Value::Int(i);
        }
        let d = n.as_f64().unwrap_or(f64::NAN);
        match number::safe_int(d) {
            Some(i) => Value::Int(i),
            None => Value::Double(d),
        }
    }

    /// The canonical JSON form: whole numbers without a point, timestamps as RFC 3339, durations as `3.5s`, bytes
    /// as base64, numeric and boolean keys as text.
    ///
    /// Errors (`NotJson`): NaN and infinities, ints and uints beyond ±(2^53-1), types as values;
    /// (`TooDeep`): data nested deeper than [`MAX_DATA_DEPTH`].
    pub fn to_json(&self) -> Result<serde_json::Value, EvalError> {
        to_json(self, 0)
    }

    /// The same value without borrowing.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(b) => Value::Bool(b),
            Value::Int(i) => Value::Int(i),
            Value::Uint(u) => Value::Uint(u),
            Value::Double(d) => Value::Double(d),
            Value::String(s) => Value::String(s.into_owned()),
            Value::Bytes(b) => Value::Bytes(b.into_owned()),
            Value::List(l) => Value::List(List::Owned(l.iter().map(Value::into_owned).collect())),
            Value::Map(m) => {
                let entries = m
                    .entries()
                    .into_iter()
                    .map(|(k, v)| (k.into_owned(), v.into_owned()));
                Value::Map(Map::Owned(entries.collect::<Arc<[_]>>()))
            }
            Value::Timestamp(t) => Value::Timestamp(t),
            Value::Duration(d) => Value::Duration(d),
            Value::Type(t) => Value::Type(t),
        }
    }
}

fn not_json(what: impl std::fmt::Display) -> EvalError {
    EvalError::new(ErrorKind::NotJson, format!("{what} has no JSON form"))
}

fn to_json(value: &Value<'_>, depth: usize) -> Result<serde_json::Value, EvalError> {
    if depth > MAX_DATA_DEPTH {
        return Err(EvalError::too_deep());
    }
    let deeper = depth.saturating_add(1);
    Ok(match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(b) => (*b).into(),
        Value::Int(i) if number::is_safe(*i) => (*i).into(),
        Value::Int(i) => return Err(too_large(i)),
        Value::Uint(u) if *u <= number::MAX_SAFE.unsigned_abs() => (*u).into(),
        Value::Uint(u) => return Err(too_large(u)),
        Value::Double(d) => match number::safe_int(*d) {
            Some(i) => i.into(),
            None => match serde_json::Number::from_f64(*d) {
                Some(n) => serde_json::Value::Number(n),
                None => return Err(not_json(format_args!("the double {d}"))),
            },
        },
        Value::String(s) => s.as_str().into(),
        Value::Bytes(b) => crate::functions::encode::base64(b).into(),
        Value::List(l) => {
            let items: Result<Vec<_>, _> = l.iter().map(|v| to_json(&v, deeper)).collect();
            serde_json::Value::Array(items?)
        }
        Value::Map(m) => {
            let mut object = serde_json::Map::new();
            for (key, value) in m.entries() {
                let name = match &key {
                    super::Key::Int(i) => i.to_string(),
                    super::Key::Uint(u) => u.to_string(),
                    super::Key::Bool(b) => b.to_string(),
                    super::Key::String(s) => s.as_str().to_owned(),
                };
                if object.contains_key(&name) {
                    return Err(EvalError::new(
                        ErrorKind::NotJson,
                        format!("the key `{name}` comes twice as JSON"),
                    ));
                }
                object.insert(name, to_json(&value, deeper)?);
            }
            serde_json::Value::Object(object)
        }
        Value::Timestamp(t) => t.to_string().into(),
        Value::Duration(d) => d.to_string().into(),
        Value::Type(t) => return Err(not_json(format_args!("the type `{}`", t.name()))),
    })
}

fn too_large(i: impl std::fmt::Display) -> EvalError {
    not_json(format_args!("the integer {i} (beyond ±9007199254740991)"))
        .with_help("use `string(x)` to keep it exact")
}
