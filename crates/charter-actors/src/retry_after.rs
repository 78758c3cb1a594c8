//! Parses the pause that a server requests (RFC 9110, 10.2.3): `Retry-After` in seconds or as a
//! date.

use std::time::{Duration, SystemTime};

/// Upper limit of what is read, a hundred years.
const MAX_SECONDS: f64 = 3_155_760_000.0;

/// Parses `Retry-After`. A date is compared with the server's own `Date`, so that no other clock
/// has to be correct; without one, with the clock of this machine.
#[must_use]
pub fn retry_after(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let text = retry_after?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(MAX_SECONDS)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let now = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok()).unwrap_or_else(SystemTime::now);
    let wait = until.duration_since(now).ok()?;
    Some(wait.min(Duration::from_secs_f64(MAX_SECONDS)))
}

/// The `Date` of a response that is kept, so that a date in its `Retry-After` means the same later:
/// the time of this machine, if the server sends a pause and no date.
#[must_use]
pub fn date_of_response(retry_after: Option<&str>, date: Option<String>) -> Option<String> {
    date.or_else(|| retry_after.map(|_| httpdate::fmt_http_date(SystemTime::now())))
}
