//! Durations in whole nanoseconds.

use std::fmt;

use super::length::{self, CEL_UNITS};
use super::time::{Field, NANOS, join, split, write_fraction};
use crate::delay_error::DelayError;
use crate::detail::{EvalDetail, Expected};
use crate::error::EvalError;

/// 10,000 years of 365.25 days, the range of `google.protobuf.Duration`.
const MAX_DURATION_SECONDS: i64 = 315_576_000_000;

/// A length of time, positive or negative, up to 10,000 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    // The seconds are rounded down and the nanoseconds are not negative, so that the derived order
    // is the order of durations.
    seconds: i64,
    nanos: u32,
}

impl Duration {
    /// Creates a duration from seconds and nanoseconds of the same sign (or zero), as in protobuf.
    /// Returns `None` beyond 10,000 years.
    pub fn new(seconds: i64, nanos: i32) -> Option<Duration> {
        if !(-999_999_999..=999_999_999).contains(&nanos) {
            return None;
        }
        let total = i128::from(seconds).saturating_mul(NANOS).saturating_add(i128::from(nanos));
        Duration::from_total(total).ok()
    }

    /// Creates a duration from milliseconds. Returns `None` beyond 10,000 years.
    pub fn from_millis(ms: i64) -> Option<Duration> {
        Duration::from_total(i128::from(ms).saturating_mul(1_000_000)).ok()
    }

    /// Whole seconds, rounded toward zero.
    pub fn seconds(self) -> i64 {
        i64::try_from(self.total() / NANOS).unwrap_or(0)
    }

    /// Nanoseconds beyond [`Duration::seconds`], of the same sign.
    pub fn nanos(self) -> i32 {
        i32::try_from(self.total() % NANOS).unwrap_or(0)
    }

    /// Whole milliseconds, rounded toward zero.
    pub fn millis(self) -> i64 {
        i64::try_from(self.total() / 1_000_000).unwrap_or(0)
    }

    pub(super) fn total(self) -> i128 {
        join(self.seconds, self.nanos)
    }

    pub(super) fn from_total(nanos: i128) -> Result<Duration, EvalError> {
        let max = join(MAX_DURATION_SECONDS, 0);
        let in_range = (max.saturating_neg()..=max).contains(&nanos);
        split(nanos)
            .filter(|_| in_range)
            .map(|(seconds, nanos)| Duration { seconds, nanos })
            .ok_or_else(|| EvalDetail::OutOfRange { expected: Expected::Duration }.into())
    }

    pub(crate) fn add(self, other: Duration) -> Result<Duration, EvalError> {
        Duration::from_total(self.total().saturating_add(other.total()))
    }

    pub(crate) fn minus(self, other: Duration) -> Result<Duration, EvalError> {
        Duration::from_total(self.total().saturating_sub(other.total()))
    }

    pub(crate) fn negated(self) -> Result<Duration, EvalError> {
        Duration::from_total(self.total().saturating_neg())
    }

    /// Parses a string such as `1h30m`, `-1.5s` or `250ms`: numbers with the units h, m, s, ms, us,
    /// ns, in any order, as in Go and CEL.
    pub fn parse(text: &str) -> Result<Duration, EvalError> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Duration::from_total(0);
        }
        let total = length::sum(rest, &CEL_UNITS).map_err(|error| match error {
            DelayError::TooLong => EvalDetail::OutOfRange { expected: Expected::Duration },
            _ => EvalDetail::not_a(Expected::Duration, text),
        })?;
        Duration::from_total(if negative { total.saturating_neg() } else { total })
    }

    pub(crate) fn field(self, field: Field) -> Option<i64> {
        let seconds = self.seconds();
        Some(match field {
            Field::Hours => seconds / 3600,
            Field::Minutes => seconds / 60,
            Field::Seconds => seconds,
            Field::Milliseconds => i64::from(self.nanos()) / 1_000_000,
            _ => return None,
        })
    }
}

impl fmt::Display for Duration {
    /// Writes seconds with as many decimals as needed: `90s`, `-1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        if total < 0 {
            f.write_str("-")?;
        }
        let size = total.unsigned_abs();
        let nanos = u32::try_from(size % 1_000_000_000).unwrap_or(0);
        write!(f, "{}", size / 1_000_000_000)?;
        write_fraction(f, nanos)?;
        f.write_str("s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let show = |text: &str| Duration::parse(text).map(|d| d.to_string()).ok();
        assert_eq!(show("1h30m"), Some("5400s".to_owned()));
        assert_eq!(show("-1.5s"), Some("-1.5s".to_owned()));
        assert_eq!(show("250ms"), Some("0.25s".to_owned()));
        assert_eq!(show("1h1ns"), Some("3600.000000001s".to_owned()));
        assert_eq!(show("0"), Some("0s".to_owned()));
        assert_eq!(show(".5h"), Some("1800s".to_owned()));
        assert_eq!(show("0.00000000005m"), Some("0.000000003s".to_owned()));
        for text in
            ["", "1", "s", "1d", "1..5s", "--1s", "1h-1m", "1 s", "99999999999999999999s", "1.0000000001s", "0.1ns"]
        {
            assert_eq!(show(text), None, "{text}");
        }
        let d = Duration::parse("-1.5s").unwrap();
        assert_eq!((d.seconds(), d.nanos(), d.millis()), (-1, -500_000_000, -1500));
        assert_eq!(Duration::new(-1, -500_000_000), Some(d));
    }
}
