//! Compares the clock of a host with the newest record of its journal.

use charter_expr::ExprTimestamp;
use charter_kernel::{Millis, Timestamp};

const DAY: i64 = 86_400_000;

/// How far a clock may be behind the newest record: clocks differ, and are corrected.
pub const MAX_BEHIND: Millis = Millis(DAY);

/// How far a clock may be ahead of the newest record: two years, for journals that nobody has used
/// for long.
pub const MAX_AHEAD: Millis = Millis(2 * 365 * DAY);

/// A clock is so far from the newest record of a journal that it is probably wrong. With a wrong
/// clock, timers, permits and deadlines would end at once, or not for years; and because time never
/// goes back in a run, the wrong time would stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the clock says {}, but the newest record of this journal is from {}: at most {} are accepted",
    text(*now),
    text(*newest),
    if now < newest { "24 hours before it" } else { "2 years after it" }
)]
pub struct WrongClock {
    /// What the clock says.
    pub now: Timestamp,
    /// The time of the newest record.
    pub newest: Timestamp,
}

fn text(at: Timestamp) -> String {
    ExprTimestamp::from_millis(at.0).to_string()
}

/// Checks a clock against the newest record of a journal.
///
/// # Errors
/// The clock is more than [`MAX_BEHIND`] behind it, or more than [`MAX_AHEAD`] ahead of it.
pub fn check_clock(now: Timestamp, newest: Timestamp) -> Result<(), WrongClock> {
    let is_wrong = match now < newest {
        true => newest.since(now) > MAX_BEHIND,
        false => now.since(newest) > MAX_AHEAD,
    };
    if is_wrong { Err(WrongClock { now, newest }) } else { Ok(()) }
}
