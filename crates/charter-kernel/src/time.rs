//! Time as data: milliseconds since 1970, never read from a clock.

/// The longest delay: 1,000 years, in milliseconds.
pub(crate) const MAX_DELAY: i64 = 1_000 * 365 * 24 * 3_600 * 1_000;

/// Moments that the kernel accepts: the years 1 to 9999.
pub(crate) fn is_sane(at: i64) -> bool {
    (-62_135_596_800_000..=253_402_300_799_999).contains(&at)
}
