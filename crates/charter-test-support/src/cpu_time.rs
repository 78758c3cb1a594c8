//! CPU time, for tests that bound the cost of hostile input.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Returns the CPU time of this thread, which other tests do not affect, or the wall-clock time
/// where Linux's `schedstat` is not available.
#[must_use]
pub fn cpu_time() -> Duration {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let begin = BEGIN.get_or_init(Instant::now);
    let nanos = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = nanos.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(|| begin.elapsed(), Duration::from_nanos)
}
