//! Timestamps: whole nanoseconds, RFC 3339, and a time zone database compiled into the program.

use std::fmt;
use std::sync::OnceLock;

use jiff::tz::TimeZoneDatabase;

use super::Duration;
use crate::calendar::{self, Civil};
use crate::detail::{EvalDetail, Expected};
use crate::error::EvalError;

pub(super) const NANOS: i128 = 1_000_000_000;
/// 0001-01-01T00:00:00Z, in seconds.
const FIRST_SECOND: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, in seconds.
const LAST_SECOND: i64 = 253_402_300_799;

/// A timestamp of the expression language: an instant between 0001-01-01T00:00:00Z and
/// 9999-12-31T23:59:59.999999999Z, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExprTimestamp {
    seconds: i64,
    nanos: u32,
}

/// A calendar field of a timestamp, as the accessor functions return it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    FullYear,
    Month,
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Hours,
    Minutes,
    Seconds,
    Milliseconds,
}

pub(super) fn split(nanos: i128) -> Option<(i64, u32)> {
    let seconds = i64::try_from(nanos.div_euclid(NANOS)).ok()?;
    let rest = u32::try_from(nanos.rem_euclid(NANOS)).ok()?;
    Some((seconds, rest))
}

pub(super) fn join(seconds: i64, nanos: u32) -> i128 {
    i128::from(seconds).saturating_mul(NANOS).saturating_add(i128::from(nanos))
}

impl ExprTimestamp {
    /// Creates a timestamp from seconds since 1970-01-01T00:00:00Z and additional nanoseconds.
    /// Returns `None` outside the years 1 to 9999.
    pub fn new(seconds: i64, nanos: u32) -> Option<ExprTimestamp> {
        let ok = (FIRST_SECOND..=LAST_SECOND).contains(&seconds) && nanos < 1_000_000_000;
        ok.then_some(ExprTimestamp { seconds, nanos })
    }

    /// Creates a timestamp from milliseconds since 1970-01-01T00:00:00Z, clamped to the range.
    pub fn from_millis(ms: i64) -> ExprTimestamp {
        let seconds = ms.div_euclid(1000);
        let nanos = u32::try_from(ms.rem_euclid(1000)).unwrap_or(0).saturating_mul(1_000_000);
        if seconds < FIRST_SECOND {
            ExprTimestamp { seconds: FIRST_SECOND, nanos: 0 }
        } else if seconds > LAST_SECOND {
            ExprTimestamp { seconds: LAST_SECOND, nanos: 999_999_999 }
        } else {
            ExprTimestamp { seconds, nanos }
        }
    }

    /// Seconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds above [`ExprTimestamp::seconds`].
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn millis(self) -> i64 {
        self.seconds.saturating_mul(1000).saturating_add(i64::from(self.nanos / 1_000_000))
    }

    fn total(self) -> i128 {
        join(self.seconds, self.nanos)
    }

    fn from_total(nanos: i128) -> Result<ExprTimestamp, EvalError> {
        split(nanos)
            .and_then(|(s, n)| ExprTimestamp::new(s, n))
            .ok_or_else(|| EvalDetail::OutOfRange { expected: Expected::Timestamp }.into())
    }

    pub(crate) fn add(self, d: Duration) -> Result<ExprTimestamp, EvalError> {
        ExprTimestamp::from_total(self.total().saturating_add(d.total()))
    }

    pub(crate) fn minus(self, d: Duration) -> Result<ExprTimestamp, EvalError> {
        ExprTimestamp::from_total(self.total().saturating_sub(d.total()))
    }

    pub(crate) fn since(self, other: ExprTimestamp) -> Result<Duration, EvalError> {
        Duration::from_total(self.total().saturating_sub(other.total()))
    }

    pub(crate) fn from_seconds(seconds: i64) -> Result<ExprTimestamp, EvalError> {
        ExprTimestamp::from_total(join(seconds, 0))
    }

    /// Parses RFC 3339.
    pub fn parse(text: &str) -> Result<ExprTimestamp, EvalError> {
        parse_rfc3339(text)
            .ok_or_else(|| EvalDetail::not_a(Expected::Timestamp, text).into())
            .and_then(ExprTimestamp::from_total)
    }

    /// Returns a calendar field in a time zone, which is a name of the IANA database or `+HH:MM`;
    /// without one, UTC is used.
    pub(crate) fn field(self, field: Field, zone: Option<&str>) -> Result<i64, EvalError> {
        let offset = match zone {
            None => 0,
            Some(name) => offset_seconds(name, self.seconds)?,
        };
        let at = Civil::from_seconds(self.seconds.saturating_add(offset));
        Ok(match field {
            Field::FullYear => at.year(),
            Field::Month => at.month().saturating_sub(1),
            Field::Date => at.day(),
            Field::DayOfMonth => at.day().saturating_sub(1),
            Field::DayOfWeek => at.weekday(),
            Field::DayOfYear => at.day_of_year().saturating_sub(1),
            Field::Hours => at.hour(),
            Field::Minutes => at.minute(),
            Field::Seconds => at.second(),
            Field::Milliseconds => i64::from(self.nanos / 1_000_000),
        })
    }
}

/// Returns the offset of a time zone from UTC at an instant, in seconds.
fn offset_seconds(name: &str, at: i64) -> Result<i64, EvalError> {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    if name.is_empty() || name == "UTC" {
        return Ok(0);
    }
    if let Some(seconds) = fixed_offset(name) {
        return Ok(seconds);
    }
    let zone = ZONES
        .get_or_init(TimeZoneDatabase::bundled)
        .get(name)
        .map_err(|_| EvalDetail::not_a(Expected::TimeZone, name))?;
    // The last two days of the year 9999 are beyond the range of the database; they get the last
    // offset within it.
    let (first, last) = (jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
    let instant = jiff::Timestamp::from_second(at.clamp(first, last)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    Ok(i64::from(zone.to_offset(instant).seconds()))
}

/// Parses `+HH:MM`, `-HH:MM` or `HH:MM` and returns the offset in seconds.
fn fixed_offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => (1, text),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two = |s: &str| (s.len() == 2).then(|| digits(s)).flatten();
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    if hours > 23 || minutes > 59 {
        return None;
    }
    Some(hours.saturating_mul(3600).saturating_add(minutes.saturating_mul(60)).saturating_mul(sign))
}

pub(super) fn digits(s: &str) -> Option<i64> {
    if s.is_empty() || s.len() > 18 || !s.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    s.parse().ok()
}

/// Parses RFC 3339 and returns nanoseconds since 1970-01-01T00:00:00Z.
fn parse_rfc3339(text: &str) -> Option<i128> {
    let part = |from: usize, to: usize| text.get(from..to).and_then(digits);
    let is = |at: usize, chars: &[u8]| text.as_bytes().get(at).is_some_and(|b| chars.contains(b));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let date = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let time = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let local = calendar::seconds(date, time)?;
    let mut rest = text.get(19..)?;
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let end = fraction.find(|c: char| !c.is_ascii_digit())?;
        let (figures, after) = fraction.split_at_checked(end)?;
        if figures.is_empty() || figures.len() > 9 {
            return None;
        }
        nanos = digits(&format!("{figures:0<9}"))?;
        rest = after;
    }
    let offset = match rest {
        "Z" | "z" => 0,
        _ if rest.starts_with(['+', '-']) => fixed_offset(rest)?,
        _ => return None,
    };
    Some(join(local.saturating_sub(offset), u32::try_from(nanos).ok()?))
}

impl fmt::Display for ExprTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Civil::from_seconds(self.seconds);
        write!(f, "{:04}-{:02}-{:02}", at.year(), at.month(), at.day())?;
        write!(f, "T{:02}:{:02}:{:02}", at.hour(), at.minute(), at.second())?;
        write_fraction(f, self.nanos)?;
        f.write_str("Z")
    }
}

pub(super) fn write_fraction(f: &mut fmt::Formatter<'_>, nanos: u32) -> fmt::Result {
    if nanos == 0 {
        return Ok(());
    }
    let figures = format!("{nanos:09}");
    write!(f, ".{}", figures.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_range_can_be_read_and_shown() {
        for text in [
            "0001-01-01T00:00:00Z",
            "1969-12-31T23:59:59.999999999Z",
            "2000-02-29T12:00:00.5Z",
            "9999-12-31T23:59:59.999999999Z",
        ] {
            assert_eq!(ExprTimestamp::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ExprTimestamp::parse("2026-01-01T01:30:00+01:30").unwrap().to_string(), "2026-01-01T00:00:00Z");
        for text in [
            "0000-12-31T23:59:59Z",
            "10000-01-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2023-01-01T24:00:00Z",
            "2023-01-01T00:00:60Z",
            "2023-01-01 00:00:00Z",
            "2023-01-01T00:00:00",
            "2023-01-01T00:00:00.Z",
            "9999-12-31T23:59:59-00:01",
            "2023-13-01T00:00:00Z",
            "\u{661}023-01-01T00:00:00Z",
        ] {
            assert!(ExprTimestamp::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn zones() {
        let t = ExprTimestamp::parse("2009-02-13T23:31:30Z").unwrap();
        let hours = |zone| t.field(Field::Hours, Some(zone));
        assert_eq!(hours("Europe/Berlin"), Ok(0));
        assert_eq!(hours("US/Central"), Ok(17));
        assert_eq!(hours("-01:30"), Ok(22));
        assert_eq!(hours("UTC"), Ok(23));
        assert!(hours("Middle/Earth").is_err());
        let last = ExprTimestamp::parse("9999-12-31T23:59:59Z").unwrap();
        assert_eq!(last.field(Field::FullYear, Some("Asia/Tokyo")), Ok(10_000));
    }
}
