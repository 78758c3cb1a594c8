//! How many cases slow tests run.

/// Whether `CHARTER_TESTS=full` is set, as in CI: slow tests run with all their cases.
#[must_use]
pub fn full() -> bool {
    std::env::var_os("CHARTER_TESTS").is_some_and(|value| value == "full")
}

/// The number of cases of a slow test: `full` with `CHARTER_TESTS=full`, else `default`, which
/// should take at most two seconds in a debug build.
#[must_use]
pub fn cases(default: u32, full: u32) -> u32 {
    if self::full() { full } else { default }
}
