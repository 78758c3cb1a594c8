//! Time as data: timestamps and lengths in milliseconds, never read from a clock.

use serde::{Deserialize, Serialize};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Earlier than every other timestamp; stands for "at once".
    pub const MIN: Timestamp = Timestamp(i64::MIN);
    /// Later than every other timestamp; stands for "never".
    pub const MAX: Timestamp = Timestamp(i64::MAX);
    /// The first timestamp that the kernel accepts and records can hold: 0001-01-01T00:00:00.000Z.
    pub const FIRST: Timestamp = Timestamp(-62_135_596_800_000);
    /// The last timestamp that the kernel accepts: 9999-12-31T23:59:59.999Z.
    pub const LAST: Timestamp = Timestamp(253_402_300_799_999);

    /// Whether the timestamp lies in the years 1 to 9999.
    #[must_use]
    pub fn is_in_range(self) -> bool {
        (Timestamp::FIRST..=Timestamp::LAST).contains(&self)
    }

    /// Returns the timestamp that is `length` later.
    #[must_use]
    pub fn saturating_add(self, length: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add(length.0))
    }

    /// Returns the time since an earlier timestamp; negative if `earlier` is in fact later.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<i64> for Timestamp {
    fn from(ms: i64) -> Timestamp {
        Timestamp(ms)
    }
}

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub i64);

impl From<i64> for Millis {
    fn from(ms: i64) -> Millis {
        Millis(ms)
    }
}

/// Parses a delay such as `500ms`, `24h`, `1h30m` or `2d` (see [`charter_expr::parse_delay`]).
#[must_use]
pub fn parse_delay(text: &str) -> Option<Millis> {
    charter_expr::parse_delay(text).ok().map(Millis)
}
