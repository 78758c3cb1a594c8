//! Limits of a provider: how many requests at once, and how many a minute.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The period of the rate.
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of requests a minute, and at once; as many times are kept.
pub const MAX: u32 = 10_000;

/// Limits that all models of a provider share.
#[derive(Debug)]
pub struct Limits {
    concurrent: Option<u32>,
    per_minute: Option<u32>,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    running: u32,
    /// When the requests of the last minute were sent.
    sent: VecDeque<Instant>,
}

/// Why a request cannot be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// Too many requests are open; one may end at any time.
    Open(u32),
    /// Too many requests were sent; this long until the next one.
    Sent(u32, Duration),
}

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Full::Open(limit) => write!(f, "{limit} requests at once"),
            Full::Sent(limit, _) => write!(f, "{limit} requests a minute"),
        }
    }
}

impl Limits {
    /// Creates limits; `None`: no limit.
    #[must_use]
    pub fn new(concurrent: Option<u32>, per_minute: Option<u32>) -> Limits {
        Limits { concurrent, per_minute, now: Mutex::default() }
    }

    /// Admits a request, until the permit is dropped.
    pub(crate) fn enter(self: &Arc<Limits>) -> Result<Permit, Full> {
        let time = Instant::now();
        let mut now = self.lock();
        if let Some(limit) = self.concurrent.filter(|limit| now.running >= *limit) {
            return Err(Full::Open(limit));
        }
        if let Some(limit) = self.per_minute {
            while now.sent.front().is_some_and(|sent| time.saturating_duration_since(*sent) >= MINUTE) {
                now.sent.pop_front();
            }
            if let Some(first) = now.sent.front().filter(|_| now.sent.len() as u64 >= u64::from(limit)) {
                return Err(Full::Sent(limit, MINUTE.saturating_sub(time.saturating_duration_since(*first))));
            }
            now.sent.push_back(time);
        }
        now.running = now.running.saturating_add(1);
        Ok(Permit(self.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The permission for one request.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Limits>);

impl Drop for Permit {
    fn drop(&mut self) {
        let mut now = self.0.lock();
        now.running = now.running.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Full, Limits};

    #[test]
    fn requests_are_limited() {
        let at_once = Arc::new(Limits::new(Some(2), None));
        let (first, _second) = (at_once.enter().unwrap(), at_once.enter().unwrap());
        assert_eq!(at_once.enter().unwrap_err(), Full::Open(2));
        drop(first);
        assert!(at_once.enter().is_ok());

        let rate = Arc::new(Limits::new(None, Some(2)));
        drop((rate.enter().unwrap(), rate.enter().unwrap()));
        let Full::Sent(2, wait) = rate.enter().unwrap_err() else { panic!("not the rate") };
        assert!((50..=60).contains(&wait.as_secs()), "{wait:?}");
    }
}
