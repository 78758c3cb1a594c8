//! Parses the pause that a server requests (RFC 9110, 10.2.3): `Retry-After` in seconds or as a
//! date.

use std::time::Duration;

/// Parses `Retry-After`. A date is compared with the server's own `Date`, so that no other clock
/// has to be correct.
pub(crate) fn parse(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
    let text = retry_after?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds.is_finite() && (0.0..=86_400.0).contains(&seconds)).then(|| Duration::from_secs_f64(seconds));
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{http_date, parse};

    #[test]
    fn seconds_and_dates() {
        assert_eq!(parse(Some("2"), None), Some(Duration::from_secs(2)));
        assert_eq!(parse(Some("0.25"), None), Some(Duration::from_millis(250)));
        let (later, now) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT");
        assert_eq!(parse(Some(later), Some(now)), Some(Duration::from_secs(30)));
        assert_eq!(http_date(later), Some(784_111_777));
        for (after, date) in [
            (Some(now), Some(later)),
            (Some(later), None),
            (Some("soon"), None),
            (Some("-1"), None),
            (Some("NaN"), None),
            (Some("1e300"), None),
            (None, None),
        ] {
            assert_eq!(parse(after, date), None, "{after:?}");
        }
    }
}
