//! Moments as people write them: RFC 3339, or whole milliseconds since 1970.

use charter_expr::Timestamp;
use serde_json::Value as Json;

/// What would be right.
pub const HELP: &str = "a moment is RFC 3339, such as `2026-11-21T10:00:00Z`, or whole milliseconds since 1970";

/// Milliseconds since 1970, from JSON.
///
/// # Errors
/// Says what is wrong.
pub fn from_json(value: &Json) -> Result<i64, String> {
    match value {
        Json::String(text) => parse(text),
        Json::Number(n) => match n.as_i64() {
            Some(ms) => sane(ms),
            None => Err(format!("`{n}` is no moment; {HELP}")),
        },
        other => Err(format!("`{}` is no moment; {HELP}", shorten(other))),
    }
}

/// Milliseconds since 1970, from text.
///
/// # Errors
/// Says what is wrong.
pub fn parse(text: &str) -> Result<i64, String> {
    if let Ok(ms) = text.parse() {
        return sane(ms);
    }
    Timestamp::parse(text).map(Timestamp::millis).map_err(|_| format!("`{}` is no moment; {HELP}", cut(text)))
}

/// The kernel knows the years 1 to 9999. What is outside of them must not become the time of the events that follow.
fn sane(ms: i64) -> Result<i64, String> {
    if Timestamp::from_millis(ms).millis() == ms {
        Ok(ms)
    } else {
        Err(format!("`{ms}` is outside the years 1 to 9999"))
    }
}

/// RFC 3339 in UTC.
#[must_use]
pub fn text(ms: i64) -> String {
    Timestamp::from_millis(ms).to_string()
}

fn shorten(value: &Json) -> String {
    cut(&value.to_string())
}

/// The beginning of a text, for messages.
#[must_use]
pub fn cut(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(parse("1970-01-01T00:00:01Z"), Ok(1000));
        assert_eq!(parse("1970-01-01T01:00:00.250+01:00"), Ok(250));
        assert_eq!(parse("-5"), Ok(-5));
        assert_eq!(from_json(&Json::from(7)), Ok(7));
        assert!(parse("tomorrow").is_err());
        assert!(parse("9223372036854775807").is_err());
        assert!(from_json(&Json::from(1.5)).is_err());
        assert_eq!(text(1000), "1970-01-01T00:00:01Z");
    }
}
