//! A clock for tests: it does not advance during activities, and hours pass instantly between them.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use charter_kernel::{Millis, Timestamp};
use tokio::sync::Notify;

use crate::clock::{ActivityGuard, ActivityProbe, BoxFuture, Clock};

/// A clock that only advances on request. Clones share the same time.
///
/// ```
/// # let rt = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # rt.block_on(async {
/// use charter_actors::{Clock, VirtualClock};
/// use charter_kernel::Timestamp;
/// let clock = VirtualClock::new(0);
/// let work = clock.work();
/// let sleeper = { let clock = clock.clone(); tokio::spawn(async move { clock.sleep_until(Timestamp(3_600_000)).await; let at = clock.now(); drop(work); at }) };
/// clock.advance(86_400_000).await;
/// assert_eq!(sleeper.await.unwrap(), Timestamp(3_600_000));
/// assert_eq!(clock.now(), Timestamp(86_400_000));
/// # });
/// ```
#[derive(Clone)]
pub struct VirtualClock(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    idle: Notify,
}

struct State {
    now: Timestamp,
    next: u64,
    /// Sleepers, by time and then in the order in which they began.
    sleepers: BTreeMap<(Timestamp, u64), Option<Waker>>,
    /// Number of activities that are not asleep.
    active: i64,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, by: i64) {
        let mut state = self.lock();
        state.active = state.active.saturating_add(by);
        if state.active > 0 {
            return;
        }
        // A sleeper that is due already waits for its turn.
        let now = state.now;
        if state.sleepers.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            return Inner::wake_first(state);
        }
        drop(state);
        self.idle.notify_waiters();
    }

    /// Wakes the first sleeper, which is an activity from then on.
    fn wake_first(mut state: MutexGuard<'_, State>) {
        // Wake one at a time, so that sleepers with the same time wake in a fixed order.
        if let Some((_, waker)) = state.sleepers.pop_first() {
            state.active = state.active.saturating_add(1);
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl ActivityProbe for Inner {
    fn up(&self) {
        self.count(1);
    }
    fn down(&self) {
        self.count(-1);
    }
}

impl VirtualClock {
    /// Creates a clock that starts at the time `now`.
    #[must_use]
    pub fn new(now: impl Into<Timestamp>) -> VirtualClock {
        VirtualClock(Arc::new(Inner {
            state: Mutex::new(State { now: now.into(), next: 0, sleepers: BTreeMap::new(), active: 0 }),
            idle: Notify::new(),
        }))
    }

    /// Waits until there is no activity: everything still open waits for time, a person, or an
    /// event.
    pub async fn settle(&self) {
        loop {
            let idle = self.0.idle.notified();
            tokio::pin!(idle);
            // Register before the check, otherwise a notification in between would be missed.
            idle.as_mut().enable();
            if self.0.lock().active <= 0 {
                return;
            }
            idle.await;
        }
    }

    /// Lets time pass: everything that becomes due happens at its own time, one after the other.
    pub async fn advance(&self, length: impl Into<Millis>) {
        let until = self.now().saturating_add(length.into().max(Millis(0)));
        loop {
            self.settle().await;
            if !self.wake(until) {
                break;
            }
        }
        self.settle().await;
    }

    /// Lets time pass until nothing sleeps, for at most `at_most`. Returns the time that passed.
    pub async fn run(&self, at_most: impl Into<Millis>) -> Millis {
        let begin = self.now();
        let until = begin.saturating_add(at_most.into().max(Millis(0)));
        loop {
            self.settle().await;
            let more = self.0.lock().sleepers.first_key_value().is_some_and(|((at, _), _)| *at <= until);
            if !more || !self.wake(until) {
                return self.now().since(begin);
            }
        }
    }

    /// Returns when the next sleeper is due; `None` if there is none, or none with a deadline.
    #[must_use]
    pub fn next(&self) -> Option<Timestamp> {
        let state = self.0.lock();
        state.sleepers.first_key_value().map(|((at, _), _)| *at).filter(|at| *at < Timestamp::MAX)
    }

    /// Moves to the time of the next sleeper, but not past `until`, and wakes it. Returns false if
    /// no sleeper is due by then.
    fn wake(&self, until: Timestamp) -> bool {
        let mut state = self.0.lock();
        let due = state.sleepers.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= until);
        let Some(at) = due else {
            state.now = state.now.max(until);
            return false;
        };
        state.now = state.now.max(at);
        Inner::wake_first(state);
        true
    }

    /// `at`: `None` waits for the next moment without activity.
    fn sleep(&self, at: Option<Timestamp>, idles: bool) -> Sleep {
        let mut state = self.0.lock();
        let id = (at.unwrap_or(state.now), state.next);
        let waits = at.is_none_or(|at| at > state.now);
        if waits {
            state.next = state.next.saturating_add(1);
            state.sleepers.insert(id, None);
        }
        drop(state);
        if waits && idles {
            self.0.count(-1);
        }
        Sleep { clock: self.0.clone(), id: waits.then_some(id), idles }
    }
}

impl std::fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.lock();
        write!(f, "VirtualClock({}, {} active, {} asleep)", state.now.0, state.active, state.sleepers.len())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.0.lock().now
    }
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(self.sleep(Some(at), true))
    }
    fn alarm_at(&self, at: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(self.sleep(Some(at), false))
    }
    fn turn(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.sleep(None, true))
    }
    fn work(&self) -> ActivityGuard {
        self.0.up();
        ActivityGuard(Some(self.0.clone()))
    }
}

/// One sleep. It is in the list of sleepers from its creation, not only from its first poll.
///
/// A sleeper (`idles`) is not active, so the count of activities is one lower while it is in the
/// list. Waking a sleep raises the count by one, so the clock does not advance before it has run: a
/// sleeper continues as an activity, and an alarm counts until it is dropped.
struct Sleep {
    clock: Arc<Inner>,
    /// `None` if its time had already passed when it began.
    id: Option<(Timestamp, u64)>,
    idles: bool,
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(id) = self.id else {
            return Poll::Ready(());
        };
        match self.clock.lock().sleepers.get_mut(&id) {
            Some(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(id) = self.id else {
            return;
        };
        let asleep = self.clock.lock().sleepers.remove(&id).is_some();
        match (asleep, self.idles) {
            (true, true) => self.clock.count(1),
            (false, false) => self.clock.count(-1),
            _ => {}
        }
    }
}
