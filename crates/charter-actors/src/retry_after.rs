//! Parses the pause that a server requests (RFC 9110, 10.2.3): `Retry-After` in seconds or as a
//! date.

use std::time::Duration;

/// Upper limit of what is read, a hundred years.
const MAX_SECONDS: f64 = 3_155_760_000.0;

/// Parses `Retry-After`. A date is compared with the server's own `Date`, so that no other clock
/// has to be correct.
#[must_use]
pub fn retry_after(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let text = retry_after?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(MAX_SECONDS)));
    }
    let (until, now) = (http_date(text)?, http_date(date?)?);
    u64::try_from(until.saturating_sub(now)).ok().map(Duration::from_secs)
}

/// Parses an HTTP date (`Sun, 06 Nov 1994 08:49:37 GMT`) into Unix seconds.
fn http_date(text: &str) -> Option<i64> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<i64>);
    let (h, m, s) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = i64::try_from(months.iter().position(|m| *m == month)?).ok()?.checked_add(1)?;
    if year < 1970 {
        return None;
    }
    charter_expr::calendar::seconds((year, month, day), (h, m, s))
}
