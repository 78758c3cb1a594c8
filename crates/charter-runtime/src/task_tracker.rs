//! Counts running tasks, and waits until there are none.

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::sync::lock;

#[derive(Default)]
pub(crate) struct TaskTracker {
    count: Mutex<usize>,
    zero: Notify,
}

impl TaskTracker {
    pub(crate) fn up(&self) {
        let mut count = lock(&self.count);
        *count = count.saturating_add(1);
    }

    pub(crate) fn down(&self) {
        let mut count = lock(&self.count);
        *count = count.saturating_sub(1);
        if *count == 0 {
            drop(count);
            self.zero.notify_waiters();
        }
    }

    /// Whether no task runs.
    pub(crate) fn is_zero(&self) -> bool {
        *lock(&self.count) == 0
    }

    /// Waits until no task runs.
    pub(crate) async fn zero(&self) {
        loop {
            let notified = self.zero.notified();
            tokio::pin!(notified);
            // Register before the check, otherwise a notification in between would be missed.
            notified.as_mut().enable();
            if *lock(&self.count) == 0 {
                return;
            }
            notified.await;
        }
    }
}
