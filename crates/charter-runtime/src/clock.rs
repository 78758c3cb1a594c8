//! Time as the runtime sees it: a trait, and the system's clock. Tests use [`VirtualClock`](crate::VirtualClock), on which hours pass at once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A future in a box, as traits need it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where the runtime gets its time from. Times are milliseconds since 1970-01-01T00:00:00Z.
pub trait Clock: Send + Sync + 'static {
    /// What time it is.
    fn now(&self) -> i64;

    /// Waits until a moment; the caller does nothing else meanwhile.
    fn sleep_until(&self, at: i64) -> BoxFuture<'static, ()>;

    /// Waits until a moment beside other work, which may be over first.
    fn alarm_at(&self, at: i64) -> BoxFuture<'static, ()> {
        self.sleep_until(at)
    }

    /// Says that something is at work until the answer is dropped: a clock that is moved by hand waits for it.
    fn work(&self) -> ActivityGuard {
        ActivityGuard::default()
    }
}

/// Something is at work. Only a clock that is moved by hand looks at it.
#[derive(Default)]
pub struct ActivityGuard(pub(crate) Option<Arc<dyn ActivityProbe>>);

/// Counts what is at work.
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
        if let Some(gauge) = &self.0 {
            gauge.down();
        }
    }
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// The longest sleep at a stretch: if the system's clock is set meanwhile, it is noticed within this time.
const STRETCH: Duration = Duration::from_secs(20);

impl Clock for SystemClock {
    fn now(&self) -> i64 {
        let ms = |d: Duration| i64::try_from(d.as_millis()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => ms(since),
            Err(before) => ms(before.duration()).saturating_neg(),
        }
    }

    fn sleep_until(&self, at: i64) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let left = at.saturating_sub(SystemClock.now());
                let Some(left) = u64::try_from(left).ok().filter(|ms| *ms > 0) else {
                    return;
                };
                tokio::time::sleep(Duration::from_millis(left).min(STRETCH)).await;
            }
        })
    }
}
