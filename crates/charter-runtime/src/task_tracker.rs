//! Counts what goes on, and tells when nothing does.

use std::sync::Mutex;

use tokio::sync::Notify;

use crate::runtime::lock;

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

    /// Waits until nothing goes on.
    pub(crate) async fn zero(&self) {
        loop {
            let notice = self.zero.notified();
            tokio::pin!(notice);
            notice.as_mut().enable();
            if *lock(&self.count) == 0 {
                return;
            }
            notice.await;
        }
    }
}
