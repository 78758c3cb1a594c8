//! Moments as records write them: RFC 3339, UTC, milliseconds (`2026-11-21T10:00:00.000Z`).

/// The first moment that can be written: 0001-01-01T00:00:00.000Z.
pub(crate) const FIRST: i64 = -62_135_596_800_000;
/// The last one: 9999-12-31T23:59:59.999Z.
pub(crate) const LAST: i64 = 253_402_300_799_999;

/// Appends a moment, given in milliseconds since 1970; one outside the years 1 to 9999 is moved to the nearest within.
#[allow(clippy::arithmetic_side_effects)] // all numbers are small: the range is cut first
pub(crate) fn push(out: &mut String, at: i64) {
    let at = at.clamp(FIRST, LAST);
    let (days, ms) = (at.div_euclid(86_400_000), at.rem_euclid(86_400_000));
    let (year, month, day) = date_of(days);
    // By hand and in one piece: `write!` would take longer than the rest of the record.
    let digit = |n: i64| b"0123456789".get((n % 10) as usize).copied().unwrap_or(b'0');
    let tens = |n: i64| digit(n / 10);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
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
    // Digits and marks are ASCII.
    out.push_str(std::str::from_utf8(&text).unwrap_or_default());
}

/// A moment as text.
pub(crate) fn text(at: i64) -> String {
    let mut out = String::with_capacity(24);
    push(&mut out, at);
    out
}

/// Reads what [`push`] writes, and nothing else.
#[allow(clippy::arithmetic_side_effects)] // numbers of at most four digits
pub(crate) fn read(s: &str) -> Option<i64> {
    let b: &[u8; 24] = s.as_bytes().try_into().ok()?;
    let number = |from: usize, to: usize| {
        let part = b.get(from..to)?;
        part.iter().try_fold(0i64, |n, d| d.is_ascii_digit().then(|| n * 10 + i64::from(d - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if marks.iter().any(|(at, mark)| b.get(*at) != Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second, ms) = (number(11, 13)?, number(14, 16)?, number(17, 19)?, number(20, 23)?);
    if year < 1 || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days_of(year, month, day);
    if date_of(days) != (year, month, day) {
        return None;
    }
    Some(days * 86_400_000 + hour * 3_600_000 + minute * 60_000 + second * 1_000 + ms)
}

/// Year, month, day of a day since 1970, in the proleptic Gregorian calendar: years are counted from 1 March, so that the leap day is
/// the last of its year, and in eras of 400 years, which all have the same length.
#[allow(clippy::arithmetic_side_effects)] // callers give days of the years 0 to 10000
fn date_of(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153; // 0 is March
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + next, month, day)
}

/// The day since 1970 of a date; the inverse of [`date_of`].
#[allow(clippy::arithmetic_side_effects)] // callers give years 0 to 9999
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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
            (FIRST, "0001-01-01T00:00:00.000Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(text(at), written);
            assert_eq!(read(written), Some(at));
        }
        assert_eq!(text(i64::MIN), text(FIRST));
        assert_eq!(text(i64::MAX), text(LAST));
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
        fn there_and_back(at in FIRST..=LAST) {
            prop_assert_eq!(read(&text(at)), Some(at));
        }
    }
}
