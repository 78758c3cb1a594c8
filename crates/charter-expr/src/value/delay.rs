//! Delays: durations as written in charters, in whole milliseconds. The same grammar applies to the
//! text of charters, to their JSON Schema and to computed values.

use super::length::{self, DELAY_UNITS};
use super::time::digits;
use super::{Duration, Value};
use crate::delay_error::DelayError;
use crate::detail::EvalDetail;
use crate::error::EvalError;

/// The longest delay, in milliseconds: 1,000 years of 365 days.
pub const MAX_DELAY_MS: i64 = 1_000 * 365 * 24 * 3_600 * 1_000;

/// The strings that [`parse_delay`] accepts, as a regular expression (ECMA 262), except for numbers
/// without a unit. The pattern cannot express that the total must be a whole number of milliseconds
/// within the limit.
pub const DELAY_PATTERN: &str = r"^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(w|d|h|m|s|ms))+$";

/// Parses a delay, such as `500ms`, `24h`, `1h30m` or `2d`, and returns it in milliseconds.
///
/// The grammar is the one of CEL's `duration()`, with the additional units `w` and `d`, but without
/// a sign and without units below `ms`. A number without a unit is in milliseconds.
///
/// # Errors
/// The text is not a delay, not a whole number of milliseconds, or longer than [`MAX_DELAY_MS`].
pub fn parse_delay(text: &str) -> Result<i64, DelayError> {
    if is_number(text) {
        return digits(text).map_or(Err(DelayError::TooLong), |ms| delay_ms(i128::from(ms)));
    }
    match text.strip_prefix('-') {
        None => length::sum(text, &DELAY_UNITS).and_then(whole),
        Some(rest) if rest.starts_with('-') => Err(DelayError::Malformed),
        Some(rest) => match parse_delay(rest) {
            Err(DelayError::Malformed) => Err(DelayError::Malformed),
            _ => Err(DelayError::Negative),
        },
    }
}

/// Whether an unknown name was probably meant as a delay: a unit without a number, a number with
/// digits that are not ASCII, or an ISO 8601 duration.
#[must_use]
pub fn resembles_delay(name: &str) -> bool {
    let iso = name.strip_prefix('P').is_some_and(|rest| {
        rest.trim_start_matches('T').starts_with(|c: char| c.is_ascii_digit())
            && rest.ends_with(['Y', 'M', 'W', 'D', 'H', 'S'])
    });
    iso || name.starts_with(char::is_numeric) || DELAY_UNITS.iter().any(|(unit, _)| *unit == name)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Converts nanoseconds to a delay.
fn whole(nanos: i128) -> Result<i64, DelayError> {
    let ms = delay_ms(nanos / 1_000_000)?;
    if nanos % 1_000_000 == 0 { Ok(ms) } else { Err(DelayError::Fraction) }
}

/// Checks that a number of milliseconds is a valid delay.
///
/// # Errors
/// The number is negative or greater than [`MAX_DELAY_MS`].
pub fn delay_ms(ms: i128) -> Result<i64, DelayError> {
    if ms < 0 {
        return Err(DelayError::Negative);
    }
    i64::try_from(ms).ok().filter(|ms| *ms <= MAX_DELAY_MS).ok_or(DelayError::TooLong)
}

impl Duration {
    /// Converts the duration to a delay, in milliseconds.
    ///
    /// # Errors
    /// The duration is negative, not a whole number of milliseconds, or longer than
    /// [`MAX_DELAY_MS`].
    pub fn delay(self) -> Result<i64, DelayError> {
        let nanos = self.total();
        if nanos < 0 { Err(DelayError::Negative) } else { whole(nanos) }
    }
}

/// Converts a computed value to a delay, in milliseconds. The value is a duration, a number of
/// milliseconds or a string.
///
/// # Errors
/// The value is not a delay; the error contains the value as text.
pub fn delay_of(value: &Value<'_>) -> Result<i64, EvalError> {
    let delay = match value {
        Value::Duration(d) => d.delay(),
        Value::Int(ms) => delay_ms(i128::from(*ms)),
        Value::Double(ms) if ms.fract() == 0.0 => delay_ms(*ms as i128),
        other => other.as_str().map_or(Err(DelayError::Malformed), parse_delay),
    };
    delay.map_err(|error| EvalDetail::NotADelay { value: value.brief(), error }.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            ("31536000000000", 31_536_000_000_000),
            ("365000d", 31_536_000_000_000),
        ] {
            assert_eq!(parse_delay(text), Ok(ms), "{text}");
        }
        use DelayError::{Fraction, Malformed, Negative, TooLong};
        for (texts, error) in [
            (vec!["", "h", "1x", "+1s", "+5", "1.s.", "soon", ".s", ".", "1.5", "1s x", " 1s", "1 s"], Malformed),
            (vec!["1000us", "1min", "PT1H", "½h", "--1s", "-", "-h", "1h-1m"], Malformed),
            (vec!["-1s", "-1", "-0.5ms", "-99999999999999999999h"], Negative),
            (vec!["1.5ms", "1.0000001ms", "0.0000001ms", "0.0000000000000000000000001s", "0.0001ms1h"], Fraction),
            (vec!["99999999999999999h", "9007199254740992ms", "31536000000001", "99999999999999999999"], TooLong),
            (vec!["365001d", "99999999999999999999999999999999999999999999w"], TooLong),
        ] {
            for text in texts {
                assert_eq!(parse_delay(text), Err(error), "{text}");
            }
        }
    }

    proptest! {
        /// A string that is both a delay in a charter and a duration in CEL has the same length in
        /// both.
        #[test]
        fn a_delay_is_the_duration_of_cel(text in r"(([0-9]{1,4}|[0-9]{0,3}\.[0-9]{0,4})(h|m|s|ms)){1,4}") {
            let cel = Duration::parse(&text).ok();
            prop_assert_eq!(parse_delay(&text).ok(), cel.and_then(|d| d.delay().ok()));
        }

        #[test]
        fn the_pattern_accepts_every_delay(text in r"(([0-9]{0,3}\.?[0-9]{0,4})(w|d|h|m|s|ms|us|min|)){0,3}") {
            let pattern = regex::Regex::new(DELAY_PATTERN).unwrap();
            let number = digits(&text).is_some();
            match parse_delay(&text) {
                Ok(_) => prop_assert!(number || pattern.is_match(&text)),
                // The pattern cannot express these two.
                Err(DelayError::Fraction | DelayError::TooLong) => {}
                Err(_) => prop_assert!(!pattern.is_match(&text)),
            }
        }
    }
}
