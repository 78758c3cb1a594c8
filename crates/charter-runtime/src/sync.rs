//! Locks, and threads for blocking work.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::RuntimeError;

/// Locks even if the lock is poisoned: the data that these locks guard is consistent between any
/// two statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a blocking function on a thread for blocking work.
pub(crate) async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(f).await.map_err(|_| RuntimeError::Closing)
}
