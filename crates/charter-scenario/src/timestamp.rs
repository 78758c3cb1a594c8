//! Parses and formats timestamps as people write them: RFC 3339, or whole milliseconds since 1970.

use charter_expr::{ErrorKind, ExprTimestamp};
use charter_kernel::Timestamp;
use serde_json::Value as Json;

/// Why a value is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// The value is neither RFC 3339 nor whole milliseconds.
    #[error(
        "invalid timestamp `{0}`: expected RFC 3339, such as `2026-11-21T10:00:00Z`, or whole milliseconds since 1970"
    )]
    Invalid(String),
    /// The timestamp is outside the years that the kernel supports.
    #[error("timestamp `{0}` is outside the years 1 to 9999")]
    OutOfRange(String),
}

/// Converts a JSON value to a timestamp.
///
/// # Errors
/// Returns an error if the value is neither RFC 3339 text nor whole milliseconds, or is outside the
/// years 1 to 9999.
pub fn from_json(value: &Json) -> Result<Timestamp, TimestampError> {
    match value {
        Json::String(text) => parse(text),
        Json::Number(n) => parse(&n.to_string()),
        other => Err(TimestampError::Invalid(abbreviate(&other.to_string()))),
    }
}

/// Parses a timestamp.
///
/// # Errors
/// Returns an error if the text is neither RFC 3339 nor whole milliseconds, or is outside the years
/// 1 to 9999.
pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
    if let Ok(ms) = text.parse() {
        return in_range(ms);
    }
    ExprTimestamp::parse(text).map(|at| Timestamp(at.millis())).map_err(|e| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let out_of_range = whole || e.kind() == ErrorKind::Overflow || has_long_year(digits);
        let error = if out_of_range { TimestampError::OutOfRange } else { TimestampError::Invalid };
        error(abbreviate(text))
    })
}

/// Whether the text is RFC 3339 except that the year has five or more digits or a sign.
fn has_long_year(text: &str) -> bool {
    let year = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let rest = text.get(year..).unwrap_or_default();
    // 2000 is a leap year, so every date is valid in it.
    year >= 4 && ExprTimestamp::parse(&format!("2000{rest}")).is_ok()
}

/// Checks that a timestamp is in the supported range. It is checked here because the time of one
/// event is the lower limit for all later events.
fn in_range(ms: i64) -> Result<Timestamp, TimestampError> {
    match Timestamp(ms).is_in_range() {
        true => Ok(Timestamp(ms)),
        false => Err(TimestampError::OutOfRange(ms.to_string())),
    }
}

/// Formats a timestamp as RFC 3339 in UTC.
#[must_use]
pub fn text(Timestamp(ms): Timestamp) -> String {
    ExprTimestamp::from_millis(ms).to_string()
}

/// Returns the first 60 characters of a string, for messages.
#[must_use]
pub fn abbreviate(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_rfc_3339_and_milliseconds() {
        assert_eq!(parse("1970-01-01T00:00:01Z"), Ok(Timestamp(1000)));
        assert_eq!(parse("1970-01-01T01:00:00.250+01:00"), Ok(Timestamp(250)));
        assert_eq!(parse("-5"), Ok(Timestamp(-5)));
        assert_eq!(from_json(&Json::from(7)), Ok(Timestamp(7)));
        assert!(parse("tomorrow").is_err());
        assert!(parse("9223372036854775807").is_err());
        assert!(from_json(&Json::from(1.5)).is_err());
        for text in ["0000-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", "99999999999999999999"] {
            assert_eq!(parse(text), Err(TimestampError::OutOfRange(text.to_owned())));
        }
        for text in ["10000", "1e3", "2000-02-30T00:00:00Z", "-", "", "12345-99-01T00:00:00Z"] {
            assert_ne!(parse(text), Err(TimestampError::OutOfRange(text.to_owned())));
        }
        assert_eq!(text(Timestamp(1000)), "1970-01-01T00:00:01Z");
    }
}
