//! The proleptic Gregorian calendar in UTC, based on `jiff`. Only this module converts between
//! seconds and dates.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

/// The calendar repeats after 400 years, weekdays included. `jiff` keeps two days of its range for
/// offsets and has no year 10000, so later instants are computed one cycle earlier.
const CYCLE_YEARS: i64 = 400;
const CYCLE_SECONDS: i64 = 146_097 * 86_400;
/// 9999-01-01T00:00:00Z.
const LAST_YEAR: i64 = 253_370_764_800;

/// A date and a time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    at: DateTime,
    /// Whether `at` is shifted by one cycle to an earlier date.
    shifted: bool,
}

impl Civil {
    /// Returns the date and time of day a number of seconds after 1970-01-01T00:00:00, clamped to
    /// the years -9999 to 10398.
    #[must_use]
    pub fn from_seconds(seconds: i64) -> Civil {
        let shifted = seconds >= LAST_YEAR;
        let seconds = if shifted { seconds.saturating_sub(CYCLE_SECONDS) } else { seconds };
        let seconds = seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let instant = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        Civil { at: Offset::UTC.to_datetime(instant), shifted }
    }

    /// The year.
    #[must_use]
    pub fn year(self) -> i64 {
        i64::from(self.at.year()).saturating_add(if self.shifted { CYCLE_YEARS } else { 0 })
    }

    /// The month, 1 to 12.
    #[must_use]
    pub fn month(self) -> i64 {
        self.at.month().into()
    }

    /// The day of the month, 1 to 31.
    #[must_use]
    pub fn day(self) -> i64 {
        self.at.day().into()
    }

    /// The hour, 0 to 23.
    #[must_use]
    pub fn hour(self) -> i64 {
        self.at.hour().into()
    }

    /// 0 to 59.
    #[must_use]
    pub fn minute(self) -> i64 {
        self.at.minute().into()
    }

    /// 0 to 59.
    #[must_use]
    pub fn second(self) -> i64 {
        self.at.second().into()
    }

    /// The day of the week, 0 (Sunday) to 6.
    #[must_use]
    pub fn weekday(self) -> i64 {
        self.at.weekday().to_sunday_zero_offset().into()
    }

    /// The day of the year, 1 to 366.
    #[must_use]
    pub fn day_of_year(self) -> i64 {
        self.at.day_of_year().into()
    }
}

/// Returns the seconds from 1970-01-01T00:00:00Z to a date and time of day in the years 0 to 9999,
/// or `None` if there is no such date or time. Leap seconds do not exist.
#[must_use]
pub fn seconds(date: (i64, i64, i64), time: (i64, i64, i64)) -> Option<i64> {
    let (year, month, day) = date;
    let (hour, minute, second) = time;
    if !(0..=9999).contains(&year) {
        return None;
    }
    let shifted = year == 9999;
    let year = if shifted { year.saturating_sub(CYCLE_YEARS) } else { year };
    let small = |n: i64| i8::try_from(n).ok();
    let (month, day) = (small(month)?, small(day)?);
    let (hour, minute, second) = (small(hour)?, small(minute)?, small(second)?);
    let at = DateTime::new(i16::try_from(year).ok()?, month, day, hour, minute, second, 0).ok()?;
    let seconds = Offset::UTC.to_timestamp(at).ok()?.as_second();
    Some(seconds.saturating_add(if shifted { CYCLE_SECONDS } else { 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the days of the first and the last cycle one by one, without any calendar arithmetic.
    #[test]
    fn every_day_there_and_back() {
        let (mut year, mut month, mut day) = (1, 1, 1);
        let mut start = -62_135_596_800;
        while year < 10_000 {
            assert_eq!(seconds((year, month, day), (0, 0, 0)), Some(start));
            let c = Civil::from_seconds(start + 86_399);
            assert_eq!((c.year(), c.month(), c.day()), (year, month, day));
            assert_eq!((c.hour(), c.minute(), c.second()), (23, 59, 59));
            start += 86_400;
            // 1970-01-01 was a Thursday.
            assert_eq!(c.weekday(), (start / 86_400 + 3).rem_euclid(7));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let days = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            let before: i64 = days.iter().take(month as usize - 1).sum();
            assert_eq!(c.day_of_year(), before + day);
            assert_eq!(seconds((year, month, days[month as usize - 1] + 1), (0, 0, 0)), None);
            day += 1;
            if day > days[month as usize - 1] {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
            if (year, month, day) == (402, 1, 1) {
                (year, start) = (9_602, start + 23 * CYCLE_SECONDS);
            }
        }
        assert_eq!(Civil::from_seconds(start).year(), 10_000);
    }

    #[test]
    fn no_such_date() {
        for date in [(2023, 0, 1), (2023, 13, 1), (2023, 1, 0), (10_000, 1, 1), (-1, 1, 1), (2023, 257, 1)] {
            assert_eq!(seconds(date, (0, 0, 0)), None, "{date:?}");
        }
        for time in [(24, 0, 0), (0, 60, 0), (0, 0, 60), (-1, 0, 0)] {
            assert_eq!(seconds((2023, 1, 1), time), None, "{time:?}");
        }
    }
}
