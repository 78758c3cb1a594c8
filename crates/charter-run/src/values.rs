//! Values that several configurations have: durations and lists of strings.

use charter_kernel::{Millis, parse_delay};
use serde_json::Value as Json;

use crate::key_error::KeyError;

/// Parses a duration: `2s`, `1h30m`, or a number of milliseconds.
///
/// # Errors
/// The value is not a duration, or it is negative.
pub fn delay(key: &str, value: &Json) -> Result<Millis, KeyError> {
    let ms = match value {
        Json::String(text) => parse_delay(text),
        Json::Number(n) => n.as_i64().map(Millis),
        _ => None,
    };
    ms.filter(|ms| *ms >= Millis(0)).ok_or_else(|| KeyError::invalid(key, "a duration such as `2s` or `1h30m`", value))
}

/// Reads a string or a list of strings.
///
/// # Errors
/// The value is neither a string nor a list of strings.
pub fn texts(key: &str, value: &Json) -> Result<Vec<String>, KeyError> {
    let wrong = || KeyError::invalid(key, "a string or a list of strings", value);
    match value {
        Json::String(text) => Ok(vec![text.clone()]),
        Json::Array(items) => items.iter().map(|i| i.as_str().map(str::to_owned).ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}
