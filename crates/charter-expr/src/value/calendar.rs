//! The proleptic Gregorian calendar, for the years 1 to 9999 in UTC.
//!
//! Our own, because `jiff` keeps two days of its range for offsets and could not show the last day of the year 9999.
//! Days are counted from 1970-01-01; the arithmetic is that of eras of 400 years that begin in March.

/// Days in 400 years.
const ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// A calendar date and time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    /// 1 to 12
    pub(super) month: i64,
    /// 1 to 31
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    pub(super) second: i64,
    /// 0 is Sunday
    pub(super) weekday: i64,
    /// 0 is the first of January
    pub(super) day_of_year: i64,
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// The number of days of a month; 0 if there is no such month.
pub(super) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 0,
    }
}

/// Days from 1970-01-01 to a date.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    // January and February belong to the year before.
    let year = year.saturating_sub(i64::from(month <= 2));
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = month.saturating_add(9) % 12;
    let day_of_year = month_from_march.saturating_mul(153).saturating_add(2) / 5;
    let day_of_year = day_of_year.saturating_add(day).saturating_sub(1);
    let day_of_era = year_of_era
        .saturating_mul(365)
        .saturating_add(year_of_era / 4)
        .saturating_sub(year_of_era / 100)
        .saturating_add(day_of_year);
    era.saturating_mul(ERA).saturating_add(day_of_era).saturating_sub(EPOCH)
}

/// The date and time of day, seconds after 1970-01-01T00:00:00.
pub(super) fn civil(seconds: i64) -> Civil {
    let day_number = seconds.div_euclid(86_400);
    let of_day = seconds.rem_euclid(86_400);
    let from_march = day_number.saturating_add(EPOCH);
    let era = from_march.div_euclid(ERA);
    let day_of_era = from_march.rem_euclid(ERA);
    // The years of an era are 365 days, but for the leap days before the day.
    let year_of_era = day_of_era
        .saturating_sub(day_of_era / 1460)
        .saturating_add(day_of_era / 36_524)
        .saturating_sub(day_of_era / 146_096)
        / 365;
    let day_of_year = day_of_era
        .saturating_sub(year_of_era.saturating_mul(365))
        .saturating_sub(year_of_era / 4)
        .saturating_add(year_of_era / 100);
    let month_from_march = day_of_year.saturating_mul(5).saturating_add(2) / 153;
    let day = day_of_year.saturating_sub(month_from_march.saturating_mul(153).saturating_add(2) / 5).saturating_add(1);
    let month = month_from_march.saturating_add(2) % 12;
    let month = month.saturating_add(1);
    let year = era.saturating_mul(400).saturating_add(year_of_era).saturating_add(i64::from(month <= 2));
    Civil {
        year,
        month,
        day,
        hour: of_day / 3600,
        minute: of_day / 60 % 60,
        second: of_day % 60,
        // 1970-01-01 was a Thursday.
        weekday: day_number.saturating_add(4).rem_euclid(7),
        day_of_year: day_number.saturating_sub(days(year, 1, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_there_and_back() {
        let first = days(1, 1, 1);
        let last = days(9999, 12, 31);
        let (mut year, mut month, mut day) = (1, 1, 1);
        for number in first..=last {
            let c = civil(number * 86_400 + 86_399);
            assert_eq!((c.year, c.month, c.day), (year, month, day));
            assert_eq!((c.hour, c.minute, c.second), (23, 59, 59));
            assert_eq!(days(year, month, day), number);
            day += 1;
            if day > days_in_month(year, month) {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
    }

    #[test]
    fn like_jiff() {
        for number in (-719_000..2_900_000).step_by(997) {
            let theirs = jiff::tz::Offset::UTC.to_datetime(jiff::Timestamp::from_second(number * 86_400).unwrap());
            let ours = civil(number * 86_400);
            assert_eq!(i64::from(theirs.year()), ours.year);
            assert_eq!(i64::from(theirs.weekday().to_sunday_zero_offset()), ours.weekday);
            assert_eq!(i64::from(theirs.day_of_year()) - 1, ours.day_of_year);
        }
    }
}
