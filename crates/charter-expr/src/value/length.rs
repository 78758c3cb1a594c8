//! Parsing of durations as text: one or more numbers with units. CEL's `duration()` and delays use
//! this grammar with different units.

use super::time::{NANOS, digits};
use crate::delay_error::DelayError;

pub(super) type Unit = (&'static str, i128);

const MINUTE: i128 = NANOS.saturating_mul(60);
const HOUR: i128 = MINUTE.saturating_mul(60);
const DAY: i128 = HOUR.saturating_mul(24);

/// The units in nanoseconds. `ms` is before `m`, because the first unit that matches is used.
pub(super) const CEL_UNITS: [Unit; 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS),
    ("m", MINUTE),
    ("h", HOUR),
];
pub(super) const DELAY_UNITS: [Unit; 6] =
    [("ms", 1_000_000), ("s", NANOS), ("m", MINUTE), ("h", HOUR), ("d", DAY), ("w", DAY.saturating_mul(7))];

/// Parses one or more numbers with units and returns their sum in nanoseconds. Nothing is rounded:
/// a fraction of a nanosecond is [`DelayError::Fraction`].
pub(super) fn sum(text: &str, units: &[Unit]) -> Result<i128, DelayError> {
    let mut total: i128 = 0;
    let mut rest = text;
    let mut error = None;
    loop {
        let (number, unit, after) = component(rest, units).ok_or(DelayError::Malformed)?;
        match nanos(number, unit) {
            Ok(part) => total = total.saturating_add(part),
            Err(e) => error = error.or(Some(e)),
        }
        if after.is_empty() {
            return error.map_or(Ok(total), Err);
        }
        rest = after;
    }
}

/// Splits off the first number. Returns it with its unit in nanoseconds and the rest of the text.
fn component<'t>(text: &'t str, units: &[Unit]) -> Option<((&'t str, &'t str), i128, &'t str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, rest) = text.split_at_checked(end)?;
    let (unit, rest) = units.iter().find_map(|(name, size)| Some((*size, rest.strip_prefix(name)?)))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let no_number = fraction.contains('.') || (whole.is_empty() && fraction.is_empty());
    (!no_number).then_some(((whole, fraction), unit, rest))
}

/// Converts a number of units to nanoseconds.
fn nanos((whole, fraction): (&str, &str), unit: i128) -> Result<i128, DelayError> {
    let whole = match whole.trim_start_matches('0') {
        "" => 0,
        figures => digits(figures).ok_or(DelayError::TooLong)?,
    };
    let decimals = decimals(fraction.trim_end_matches('0'), unit).ok_or(DelayError::Fraction)?;
    i128::from(whole).checked_mul(unit).and_then(|nanos| nanos.checked_add(decimals)).ok_or(DelayError::TooLong)
}

/// Converts the decimals of a number of units to nanoseconds. Returns `None` if the result is not a
/// whole number; it never is if the digits do not fit into an `i128`.
fn decimals(fraction: &str, unit: i128) -> Option<i128> {
    if fraction.is_empty() {
        return Some(0);
    }
    let one = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let nanos = i128::from(digits(fraction)?).checked_mul(unit)?;
    (nanos.checked_rem(one)? == 0).then(|| nanos.checked_div(one))?
}
