//! The source of time for hosts and executors: a trait, and the system clock. Tests use
//! [`VirtualClock`](crate::VirtualClock), on which hours pass instantly.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use charter_kernel::Timestamp;

/// A boxed future, as object-safe traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// The current time.
    fn now(&self) -> Timestamp;

    /// Waits until the time `at`. The caller does nothing else in the meantime.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()>;

    /// Waits until the time `at` while the caller also does other work, which may finish first.
    fn alarm_at(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        self.sleep_until(at)
    }

    /// Waits for its turn: on a virtual clock, until there is no activity. What happens at the same
    /// time then happens one after the other, in the order of these calls, whatever threads do. The
    /// caller is an activity ([`Clock::work`]). Other clocks do not wait.
    fn turn(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Marks an activity that lasts until the guard is dropped. A virtual clock does not advance
    /// during activities.
    fn work(&self) -> ActivityGuard {
        ActivityGuard::default()
    }
}

/// Marks an activity. Only a virtual clock counts activities.
#[derive(Default)]
pub struct ActivityGuard(pub(crate) Option<Arc<dyn ActivityProbe>>);

/// Counts activities.
pub(crate) trait ActivityProbe: Send + Sync {
    fn up(&self);
    fn down(&self);
}

impl std::fmt::Debug for ActivityGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ActivityGuard")
    }
}

impl Drop for ActivityGuard {
    fn drop(&mut self) {
        if let Some(probe) = &self.0 {
            probe.down();
        }
    }
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// Maximum duration of a single sleep: a change of the system clock is noticed within this time.
const MAX_SLEEP: Duration = Duration::from_secs(20);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => Timestamp(ms(since)),
            Err(before) => Timestamp(ms(before.duration()).saturating_neg()),
        }
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left = at.since(SystemClock.now());
                let Some(left) = u64::try_from(left.0).ok().filter(|ms| *ms > 0) else {
                    return;
                };
                tokio::time::sleep(Duration::from_millis(left).min(MAX_SLEEP)).await;
            }
        })
    }
}
