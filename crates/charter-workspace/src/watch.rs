//! Observing an apply: a callback before every write, which can cancel it.

use std::io;

/// Called before each write. A host uses it to show progress, and to stop an apply whose invocation
/// was cancelled.
pub trait Watch {
    /// Called before the operation `what` (`rename`, `write`, `sync`, ...) on `path`. An error
    /// stops the apply, which is then undone.
    ///
    /// # Errors
    /// The apply must stop; the error is the reason.
    fn before(&mut self, what: &'static str, path: &str) -> io::Result<()>;

    /// Whether to stop before the next step; also polled while a command runs.
    fn stopped(&self) -> bool {
        false
    }
}

/// Observes nothing and never stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn before(&mut self, _: &'static str, _: &str) -> io::Result<()> {
        Ok(())
    }
}
