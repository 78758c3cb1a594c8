//! Parsing of JSON that Charter wrote, which may be nested deeper than the parser allows by
//! default. A separate limit applies.

use serde::Deserialize as _;
use serde_json::Value as Json;

/// Maximum nesting of a record's text: data (128) within values of the charter (128) within the
/// record.
pub(crate) const MAX_DEPTH: usize = 512;

/// A number of brackets that every parser accepts, however they are nested.
const FLAT: usize = 100;

/// Computes an upper bound of the nesting of a JSON text (exact if it has many brackets). It is
/// checked before a recursive parser is used.
pub(crate) fn depth(text: &str) -> usize {
    // The number of opening brackets bounds the depth. Counting them vectorizes and is enough for
    // almost every text.
    let opened = text.bytes().filter(|b| matches!(b, b'[' | b'{')).count();
    if opened <= FLAT {
        return opened;
    }
    let (mut depth, mut max, mut quoted, mut escaped) = (0usize, 0usize, false, false);
    for b in text.bytes() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth = depth.saturating_add(1);
                max = max.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    max
}

/// Describes why text could not be parsed. For a syntax error, gives only the position, because the
/// message of the parser is meant for Rust programmers.
pub(crate) fn why(e: &serde_json::Error) -> String {
    match e.classify() {
        serde_json::error::Category::Syntax => format!("invalid JSON at line {} column {}", e.line(), e.column()),
        _ => e.to_string(),
    }
}

/// Parses JSON written by Charter, which may nest deeper than the default limit of `serde_json`.
pub(crate) fn json_of(text: &str) -> serde_json::Result<Json> {
    if depth(text) > MAX_DEPTH {
        return Err(serde::de::Error::custom(format!("nested deeper than {MAX_DEPTH} levels")));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Json::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}
