//! When a failed attempt is repeated.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use charter_kernel::{Millis, Timestamp};

/// The pauses after failed attempts, in milliseconds, as Standard Webhooks recommends: 5 s, 5 min,
/// 30 min, 2 h, 5 h, and twice 10 h.
const PAUSES: [i64; 7] = [5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000];

/// The longest pause: a receiver cannot ask for more with `Retry-After`.
pub(super) const MAX_PAUSE: Millis = Millis(24 * 3_600_000);

/// The pause after an attempt that failed: the first one is 1. `None` if it was the last one.
/// `asked` is what the receiver asks for, and `random` spreads receivers by up to a fifth.
pub(super) fn pause(attempt: u32, asked: Option<Millis>, random: u8) -> Option<Millis> {
    let planned = *PAUSES.get(usize::try_from(attempt).ok()?.checked_sub(1)?)?;
    let fifth = planned.checked_div(5).unwrap_or_default();
    let more = fifth.saturating_mul(i64::from(random)).checked_div(i64::from(u8::MAX)).unwrap_or_default();
    let asked = asked.map_or(0, |asked| asked.0.clamp(0, MAX_PAUSE.0));
    Some(Millis(planned.saturating_add(more).max(asked)))
}

/// Reads `Retry-After`: seconds, or a date.
pub(super) fn retry_after(text: &str, now: Timestamp) -> Option<Millis> {
    if let Ok(seconds) = text.trim().parse::<u32>() {
        return Some(Millis(i64::from(seconds).saturating_mul(1_000)));
    }
    let at: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    let at = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis();
    Some(Millis(i64::try_from(at).unwrap_or(i64::MAX).saturating_sub(now.0).max(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let plain: Vec<_> = (1..=8).map(|attempt| pause(attempt, None, 0).map(|p| p.0 / 1_000)).collect();
        let expected = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000];
        assert_eq!(plain, expected.map(Some).into_iter().chain([None]).collect::<Vec<_>>());
        assert_eq!(pause(1, None, u8::MAX), Some(Millis(6_000)));
        assert_eq!(pause(0, None, 0), None);
    }

    #[test]
    fn a_receiver_can_ask_for_more_time_within_limits() {
        assert_eq!(pause(1, Some(Millis(60_000)), 0), Some(Millis(60_000)));
        assert_eq!(pause(2, Some(Millis(60_000)), 0), Some(Millis(300_000)), "not for less");
        assert_eq!(pause(1, Some(Millis(i64::MAX)), 0), Some(MAX_PAUSE));
        assert_eq!(pause(8, Some(Millis(60_000)), 0), None, "nor for a further attempt");
        let now = Timestamp(1_445_412_000_000);
        assert_eq!(retry_after("120", now), Some(Millis(120_000)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Millis(480_000)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:00:00 GMT", now), Some(Millis(0)));
        for nonsense in ["", "-1", "soon", "99999999999999999999"] {
            assert_eq!(retry_after(nonsense, now), None, "{nonsense}");
        }
    }
}
