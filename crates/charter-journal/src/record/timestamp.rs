//! Timestamps as records write them: RFC 3339, UTC, milliseconds (`2026-11-21T10:00:00.000Z`).

use charter_expr::calendar::{self, Civil};
use charter_kernel::Timestamp;

/// Appends a timestamp, clamped to the years 1 to 9999.
#[allow(clippy::arithmetic_side_effects)] // all numbers are small after clamping
pub(crate) fn push(out: &mut String, at: Timestamp) {
    let Timestamp(at) = at.clamp(Timestamp::FIRST, Timestamp::LAST);
    let (date, ms) = (Civil::from_seconds(at.div_euclid(1_000)), at.rem_euclid(1_000));
    // Formatted by hand and appended once: `write!` would cost more than the rest of the record.
    let digit = |n: i64| b"0123456789".get((n % 10) as usize).copied().unwrap_or(b'0');
    let tens = |n: i64| digit(n / 10);
    let (year, month, day) = (date.year(), date.month(), date.day());
    let (hour, minute, second) = (date.hour(), date.minute(), date.second());
    let text = [
        digit(year / 1_000),
        digit(year / 100),
        tens(year),
        digit(year),
        b'-',
        tens(month),
        digit(month),
        b'-',
        tens(day),
        digit(day),
        b'T',
        tens(hour),
        digit(hour),
        b':',
        tens(minute),
        digit(minute),
        b':',
        tens(second),
        digit(second),
        b'.',
        digit(ms / 100),
        tens(ms),
        digit(ms),
        b'Z',
    ];
    // The text is ASCII.
    out.push_str(std::str::from_utf8(&text).unwrap_or_default());
}

/// Formats a timestamp.
pub(crate) fn text(at: Timestamp) -> String {
    let mut out = String::with_capacity(24);
    push(&mut out, at);
    out
}

/// Parses a timestamp in exactly the form that [`push`] writes.
#[allow(clippy::arithmetic_side_effects)] // numbers of at most four digits, and seconds of the year 9999
pub(crate) fn read(s: &str) -> Option<Timestamp> {
    let b: &[u8; 24] = s.as_bytes().try_into().ok()?;
    let number = |from: usize, to: usize| {
        let part = b.get(from..to)?;
        part.iter().try_fold(0i64, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if marks.iter().any(|(at, mark)| b.get(*at) != Some(mark)) {
        return None;
    }
    let date = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let time = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let seconds = calendar::seconds(date, time).filter(|_| date.0 > 0)?;
    Some(Timestamp(seconds * 1_000 + number(20, 23)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        for (at, written) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_255_200_123, "2026-11-21T10:00:00.123Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (Timestamp::FIRST.0, "0001-01-01T00:00:00.000Z"),
            (Timestamp::LAST.0, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text(Timestamp(at)), written);
            assert_eq!(read(written), Some(Timestamp(at)));
        }
        assert_eq!(text(Timestamp::MIN), text(Timestamp::FIRST));
        assert_eq!(text(Timestamp::MAX), text(Timestamp::LAST));
    }

    #[test]
    fn only_its_own_writing_is_read() {
        for bad in [
            "",
            "2026-11-21T10:00:00Z",
            "2026-11-21 10:00:00.000Z",
            "2026-02-29T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-00-01T00:00:00.000Z",
            "2026-01-00T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T00:60:00.000Z",
            "2026-01-01T00:00:60.000Z",
            "0000-01-01T00:00:00.000Z",
            "2026-01-01T00:00:00.0é",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(at in Timestamp::FIRST.0..=Timestamp::LAST.0) {
            prop_assert_eq!(read(&text(Timestamp(at))), Some(Timestamp(at)));
        }
    }
}
