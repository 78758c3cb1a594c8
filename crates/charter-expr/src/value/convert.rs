//! Conversion from JSON. The place of a number decides whether it is an int or a double; in a place
//! without a type its value does, never its notation (see [`crate::json`]).

use super::{List, Map, Value};
use crate::{NumberType, Numbers};

/// Conversion of doubles to whole numbers.
pub(crate) mod number {
    /// 2^53 - 1: up to here, every integer has a double of its own.
    pub(crate) const MAX_SAFE: i64 = 9_007_199_254_740_991;
    const MAX_SAFE_F: f64 = 9_007_199_254_740_991.0;

    /// Returns the integer with exactly this value, if it is safe in JSON.
    pub(crate) fn safe_int(d: f64) -> Option<i64> {
        // `fract` would be a library call on most machines.
        let i = d as i64;
        (d.abs() <= MAX_SAFE_F && i as f64 == d).then_some(i)
    }

    /// A JSON number as an int or a double.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Number {
        Int(i64),
        Double(f64),
    }

    /// Converts a JSON number: a whole number up to 2^53-1 is an int, regardless of its notation;
    /// all other numbers are doubles.
    #[inline]
    pub(crate) fn of_json(n: &serde_json::Number) -> Number {
        if let Some(i) = n.as_i64()
            && is_safe(i)
        {
            return Number::Int(i);
        }
        let d = n.as_f64().unwrap_or(f64::NAN);
        match safe_int(d) {
            Some(i) => Number::Int(i),
            None => Number::Double(d),
        }
    }

    pub(crate) fn is_safe(i: i64) -> bool {
        (-MAX_SAFE..=MAX_SAFE).contains(&i)
    }

    pub(crate) fn exact_i64(d: f64) -> Option<i64> {
        (d.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&d))
            .then_some(d as i64)
    }

    pub(crate) fn exact_u64(d: f64) -> Option<u64> {
        (d.fract() == 0.0 && (0.0..18_446_744_073_709_551_616.0).contains(&d)).then_some(d as u64)
    }
}

impl<'a> Value<'a> {
    /// Converts a JSON value without declared types. Arrays and objects are borrowed.
    #[inline]
    pub fn from_json(v: &'a serde_json::Value) -> Value<'a> {
        Value::typed(v, None)
    }

    /// Converts a JSON value whose numbers have the types of their places. A number with a fraction
    /// in the place of an int is a double.
    #[inline]
    pub fn typed(v: &'a serde_json::Value, numbers: Option<&'a Numbers>) -> Value<'a> {
        match v {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => Value::Bool(*b),
            serde_json::Value::Number(n) => match (Value::from_json_number(n), numbers.and_then(Numbers::number)) {
                (Value::Int(i), Some(NumberType::Double)) => Value::Double(i as f64),
                (by_value, _) => by_value,
            },
            serde_json::Value::String(s) => Value::str(s),
            serde_json::Value::Array(a) => Value::List(List::Json(a, numbers)),
            serde_json::Value::Object(o) => Value::Map(Map::Json(o, numbers)),
        }
    }

    #[inline]
    fn from_json_number(n: &serde_json::Number) -> Value<'static> {
        match number::of_json(n) {
            number::Number::Int(i) => Value::Int(i),
            number::Number::Double(d) => Value::Double(d),
        }
    }
}
