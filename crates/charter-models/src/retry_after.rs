//! Parses the pause that a server requests (RFC 9110, 10.2.3): `Retry-After` in seconds or as a
//! date.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

/// Upper limit of what is read, a hundred years.
const MAX_SECONDS: f64 = 3_155_760_000.0;

/// Shortens a pause of our own by a random part of up to a half, so that those who failed together
/// do not come back together.
pub(crate) fn shorter(pause: Duration) -> Duration {
    pause.saturating_sub(pause.mul_f64(random() / 2.0))
}

/// Lengthens a requested pause by a random part of up to a tenth.
pub(crate) fn longer(pause: Duration) -> Duration {
    pause.saturating_add(pause.mul_f64(random() / 10.0))
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

/// Parses `Retry-After`. A date is compared with the server's own `Date`, so that no other clock
/// has to be correct.
pub(crate) fn parse(retry_after: Option<&str>, date: Option<&str>) -> Option<Duration> {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{http_date, longer, parse, shorter};

    #[test]
    fn random_parts() {
        let second = Duration::from_secs(1);
        let pauses: Vec<Duration> = (0..50).map(|_| shorter(second)).collect();
        assert!(pauses.iter().all(|p| (500..=1_000).contains(&p.as_millis())), "{pauses:?}");
        assert!(pauses.iter().any(|p| *p != pauses[0]));
        assert!((0..50).map(|_| longer(second)).all(|p| (1_000..=1_100).contains(&p.as_millis())));
    }

    #[test]
    fn seconds_and_dates() {
        assert_eq!(parse(Some("2"), None), Some(Duration::from_secs(2)));
        assert_eq!(parse(Some("0.25"), None), Some(Duration::from_millis(250)));
        let (later, now) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:07 GMT");
        assert_eq!(parse(Some(later), Some(now)), Some(Duration::from_secs(30)));
        assert_eq!(parse(Some("1e300"), None), Some(Duration::from_secs(3_155_760_000)));
        assert_eq!(http_date(later), Some(784_111_777));
        for (after, date) in [
            (Some(now), Some(later)),
            (Some(later), None),
            (Some("soon"), None),
            (Some("-1"), None),
            (Some("NaN"), None),
            (None, None),
        ] {
            assert_eq!(parse(after, date), None, "{after:?}");
        }
    }
}
