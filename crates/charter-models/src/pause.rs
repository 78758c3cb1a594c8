//! The random part of pauses between attempts.

use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;

/// Shortens a pause of our own by a random part of up to a half, so that those who failed together
/// do not come back together.
pub(crate) fn shorter(pause: Duration) -> Duration {
    pause.saturating_sub(pause.mul_f64(random() / 2.0))
}

/// Lengthens a requested pause by a random part of up to a tenth.
pub(crate) fn longer(pause: Duration) -> Duration {
    pause.saturating_add(pause.mul_f64(random() / 10.0))
}

/// A random number from 0 to 1.
fn random() -> f64 {
    let bits = std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{longer, shorter};

    #[test]
    fn random_parts() {
        let second = Duration::from_secs(1);
        let pauses: Vec<Duration> = (0..50).map(|_| shorter(second)).collect();
        assert!(pauses.iter().all(|p| (500..=1_000).contains(&p.as_millis())), "{pauses:?}");
        assert!(pauses.iter().any(|p| *p != pauses[0]));
        assert!((0..50).map(|_| longer(second)).all(|p| (1_000..=1_100).contains(&p.as_millis())));
    }
}
