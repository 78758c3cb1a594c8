//! Dates and times (RFC 3339) and durations (its appendix A).

use charter_expr::calendar;

/// The number that two digits at this place are.
fn two(text: &[u8], at: usize) -> Option<u32> {
    let digit = |at: usize| match text.get(at) {
        Some(b @ b'0'..=b'9') => Some(u32::from(b.wrapping_sub(b'0'))),
        _ => None,
    };
    Some(digit(at)?.wrapping_mul(10).wrapping_add(digit(at.wrapping_add(1))?))
}

pub(super) fn is_date(text: &[u8]) -> bool {
    let parts = (two(text, 0), two(text, 2), two(text, 5), two(text, 8));
    let (Some(century), Some(year), Some(month), Some(day)) = parts else {
        return false;
    };
    let date = (i64::from(century.wrapping_mul(100).wrapping_add(year)), month.into(), day.into());
    let hyphens = text.get(4) == Some(&b'-') && text.get(7) == Some(&b'-');
    text.len() == 10 && hyphens && calendar::seconds(date, (0, 0, 0)).is_some()
}

pub(super) fn is_time(text: &[u8]) -> bool {
    let (Some(hour), Some(minute), Some(second)) = (two(text, 0), two(text, 3), two(text, 6)) else {
        return false;
    };
    let marks = text.get(2) == Some(&b':') && text.get(5) == Some(&b':');
    if !marks || hour > 23 || minute > 59 || second > 60 {
        return false;
    }
    let mut rest = text.get(8..).unwrap_or_default();
    if let Some((b'.', fraction)) = rest.split_first() {
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        rest = fraction.get(digits..).unwrap_or_default();
        if digits == 0 {
            return false;
        }
    }
    let offset = match rest {
        [b'Z' | b'z'] => 0i64,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => match (two(rest, 1), two(rest, 4)) {
            (Some(hours @ 0..=23), Some(minutes @ 0..=59)) => {
                let offset = i64::from(hours.wrapping_mul(60).wrapping_add(minutes));
                if *sign == b'+' { offset } else { offset.wrapping_neg() }
            }
            _ => return false,
        },
        _ => return false,
    };
    // A leap second is the last one of a day, in UTC.
    let utc = i64::from(hour.wrapping_mul(60).wrapping_add(minute)).wrapping_sub(offset).rem_euclid(1_440);
    second < 60 || utc == 1_439
}

pub(super) fn is_date_time(text: &[u8]) -> bool {
    let (Some(date), Some(b'T' | b't'), Some(time)) = (text.get(..10), text.get(10), text.get(11..)) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// `P`, then weeks, or a date and after `T` a time. Between two units none is missing.
pub(super) fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else {
        return false;
    };
    let (date, time) = rest.split_once('T').map_or((rest, None), |(date, time)| (date, Some(time)));
    if let Some(time) = time {
        return (date.is_empty() || components(date, "YMD")) && components(time, "HMS");
    }
    components(date, "YMD") || components(date, "W")
}

/// Whether the text is numbers with consecutive units out of `units`, at least one.
fn components(mut text: &str, mut units: &str) -> bool {
    let mut first = true;
    while !text.is_empty() {
        let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(unit) = rest.chars().next().filter(|_| rest.len() < text.len()) else {
            return false;
        };
        let Some((_, later)) = units.split_once(unit).filter(|(skipped, _)| first || skipped.is_empty()) else {
            return false;
        };
        (text, units, first) = (rest.get(unit.len_utf8()..).unwrap_or_default(), later, false);
    }
    !first
}

#[cfg(test)]
mod tests {
    use super::is_date;

    #[test]
    fn a_date_is_a_day_of_the_calendar() {
        for date in ["2026-11-22", "2000-02-29", "2024-02-29", "0000-02-29", "9999-12-31"] {
            assert!(is_date(date.as_bytes()), "{date}");
        }
        let wrong = ["1900-02-29", "2026-02-29", "2026-04-31", "2026-00-10", "2026-13-01", "2026-01-00", "2026-1-01"];
        for date in wrong.into_iter().chain(["2026/01/01", "2026-01-011", "-026-01-01", ""]) {
            assert!(!is_date(date.as_bytes()), "{date}");
        }
    }
}
