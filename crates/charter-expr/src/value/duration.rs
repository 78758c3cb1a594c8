//! Durations: whole nanoseconds, written with units.

use std::fmt;

use super::time::{Field, NANOS, digits, join, shorten, split, write_fraction};
use crate::error::EvalError;

/// 10,000 years of 365.25 days, the range of `google.protobuf.Duration`.
const MAX_DURATION_SECONDS: i64 = 315_576_000_000;

/// A length of time, positive or negative, up to 10,000 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    // Floor of the seconds and the nanoseconds above it, so that the derived order is the order of
    // time.
    seconds: i64,
    nanos: u32,
}

impl Duration {
    /// From seconds and nanoseconds of the same sign (or zero), as protobuf writes them; `None`
    /// beyond 10,000 years.
    pub fn new(seconds: i64, nanos: i32) -> Option<Duration> {
        if !(-999_999_999..=999_999_999).contains(&nanos) {
            return None;
        }
        let total = i128::from(seconds).saturating_mul(NANOS).saturating_add(i128::from(nanos));
        Duration::from_total(total).ok()
    }

    /// From milliseconds; `None` beyond 10,000 years.
    pub fn from_millis(ms: i64) -> Option<Duration> {
        Duration::from_total(i128::from(ms).saturating_mul(1_000_000)).ok()
    }

    /// Whole seconds, towards zero.
    pub fn seconds(self) -> i64 {
        i64::try_from(self.total() / NANOS).unwrap_or(0)
    }

    /// Nanoseconds beyond [`Duration::seconds`], of the same sign.
    pub fn nanos(self) -> i32 {
        i32::try_from(self.total() % NANOS).unwrap_or(0)
    }

    /// Whole milliseconds, towards zero.
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
            .ok_or_else(|| EvalError::overflow("the duration is out of range (10,000 years)"))
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

    /// Reads `1h30m`, `-1.5s`, `250ms`: numbers with the units h, m, s, ms, us, ns, in any order
    /// (as Go and CEL do).
    pub fn parse(text: &str) -> Result<Duration, EvalError> {
        let bad = || {
            EvalError::argument(format!("`{}` is not a duration", shorten(text)))
                .with_help("write numbers with the units h, m, s, ms, us or ns, e.g. `1h30m` or `2.5s`")
        };
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if rest == "0" {
            return Duration::from_total(0);
        }
        let total = sum(rest, &CEL_UNITS).ok_or_else(bad)?;
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

type Unit = (&'static str, i128);

const MINUTE: i128 = NANOS.saturating_mul(60);
const HOUR: i128 = MINUTE.saturating_mul(60);
const DAY: i128 = HOUR.saturating_mul(24);

/// Nanoseconds; `ms` before `m`, because the first unit that fits is taken.
const CEL_UNITS: [Unit; 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS),
    ("m", MINUTE),
    ("h", HOUR),
];
const DELAY_UNITS: [Unit; 6] =
    [("ms", 1_000_000), ("s", NANOS), ("m", MINUTE), ("h", HOUR), ("d", DAY), ("w", DAY.saturating_mul(7))];

/// The longest delay, in milliseconds: 2^53-1, beyond which JSON readers disagree about integers.
const MAX_DELAY: i128 = (1 << 53) - 1;

/// What [`parse_delay`] reads, as a regular expression (ECMA 262), apart from a number without a
/// unit. It cannot express that the total must be a whole number of milliseconds within the limit.
pub const DELAY_PATTERN: &str = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(w|d|h|m|s|ms))+$";

/// Reads a delay, such as `500ms`, `24h`, `1h30m` or `2d`, in milliseconds. `None`: the text is not
/// a delay.
///
/// The grammar is that of CEL's `duration()` with the units `w` and `d` besides, without a sign and
/// the units below `ms`. The result must be a whole number of milliseconds, at most 2^53-1. A
/// number alone is milliseconds.
#[must_use]
pub fn parse_delay(text: &str) -> Option<i64> {
    let ms = match digits(text) {
        Some(ms) => i128::from(ms),
        None => {
            let nanos = sum(text, &DELAY_UNITS)?;
            (nanos % 1_000_000 == 0).then_some(nanos / 1_000_000)?
        }
    };
    i64::try_from(ms).ok().filter(|_| ms <= MAX_DELAY)
}

/// The sum of one or more numbers with units, in nanoseconds.
fn sum(text: &str, units: &[Unit]) -> Option<i128> {
    let mut total: i128 = 0;
    let mut rest = text;
    loop {
        let (part, after) = component(rest, units)?;
        total = total.saturating_add(part);
        if after.is_empty() {
            return Some(total);
        }
        rest = after;
    }
}

/// One number with its unit, in nanoseconds, and what follows.
fn component<'t>(text: &'t str, units: &[Unit]) -> Option<(i128, &'t str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at_checked(end)?;
    let (unit, rest) = units.iter().find_map(|(name, size)| Some((*size, rest.strip_prefix(name)?)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { digits(whole)? };
    let mut nanos = i128::from(whole).checked_mul(unit)?;
    let mut place = unit;
    for figure in fraction.bytes() {
        place /= 10;
        nanos = nanos.checked_add(i128::from(figure.checked_sub(b'0')?).checked_mul(place)?)?;
    }
    Some((nanos, rest))
}

impl fmt::Display for Duration {
    /// Seconds with as many decimals as needed: `90s`, `-1.5s`.
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
    use proptest::prelude::*;

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
        for text in ["", "1", "s", "1d", "1..5s", "--1s", "1h-1m", "1 s", "99999999999999999999s"] {
            assert_eq!(show(text), None, "{text}");
        }
        let d = Duration::parse("-1.5s").unwrap();
        assert_eq!((d.seconds(), d.nanos(), d.millis()), (-1, -500_000_000, -1500));
        assert_eq!(Duration::new(-1, -500_000_000), Some(d));
    }

    #[test]
    fn delays() {
        for (text, ms) in [
            ("500ms", 500),
            ("24h", 86_400_000),
            ("1h30m", 5_400_000),
            ("30m1h", 5_400_000),
            ("1h1h", 7_200_000),
            ("1.5s", 1_500),
            (".5s", 500),
            ("1.s", 1_000),
            ("0.5w", 302_400_000),
            ("250", 250),
            ("2d", 172_800_000),
            ("0s", 0),
            ("9007199254740991", 9_007_199_254_740_991),
        ] {
            assert_eq!(parse_delay(text), Some(ms), "{text}");
        }
        for text in [
            "",
            "h",
            "1x",
            "-1s",
            "+1s",
            "+5",
            "1.s.",
            "soon",
            ".s",
            ".",
            "1.5",
            "99999999999999999h",
            "1s x",
            " 1s",
            "1 s",
            "1.5ms",
            "1000us",
            "1min",
            "9007199254740992",
            "9007199254740992ms",
        ] {
            assert_eq!(parse_delay(text), None, "{text}");
        }
    }

    proptest! {
        /// What is a delay in a charter and a duration in CEL is the same length in both.
        #[test]
        fn a_delay_is_the_duration_of_cel(text in r"(([0-9]{1,4}|[0-9]{0,3}\.[0-9]{0,4})(h|m|s|ms)){1,4}") {
            let cel = Duration::parse(&text).ok();
            let whole = cel.filter(|d| d.total() % 1_000_000 == 0);
            prop_assert_eq!(parse_delay(&text), whole.map(Duration::millis));
        }

        #[test]
        fn the_pattern_accepts_every_delay(text in r"(([0-9]{0,3}\.?[0-9]{0,4})(w|d|h|m|s|ms|us|min|)){0,3}") {
            let pattern = regex::Regex::new(DELAY_PATTERN).unwrap();
            let number = digits(&text).is_some();
            if parse_delay(&text).is_some() {
                prop_assert!(number || pattern.is_match(&text));
            } else if pattern.is_match(&text) {
                // All that a pattern cannot see.
                let nanos = sum(&text, &DELAY_UNITS).unwrap();
                prop_assert!(nanos % 1_000_000 != 0 || nanos / 1_000_000 > MAX_DELAY);
            }
        }
    }
}
