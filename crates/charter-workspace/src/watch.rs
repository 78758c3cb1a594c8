//! Whoever watches an apply: told of every write before it is done, and free to stop it.

use std::io;

/// Is told each write before it happens. A host shows progress with it, and stops an apply whose invocation was cancelled.
pub trait Watch {
    /// About to do `what` (`rename`, `write`, `sync`, ...) to `path`. An error stops the work, which is then undone.
    ///
    /// # Errors
    /// Whatever stops the work.
    fn before(&mut self, what: &'static str, path: &str) -> io::Result<()>;

    /// Whether the work should end before its next step; asked while a command runs.
    fn stopped(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn before(&mut self, _: &'static str, _: &str) -> io::Result<()> {
        Ok(())
    }
}
