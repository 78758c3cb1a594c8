//! A query on a thread of its own, so that the time limit also holds where SQLite does not look at
//! the clock: inside one call of a function.

use std::io::{ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use charter_journal::{QueryClock, SelectError};

/// How late a query may be before it is given up: usually SQLite stops it itself.
const GRACE: Duration = Duration::from_millis(500);

/// Stack of the query: what SQLite would have on the main thread.
const STACK_BYTES: usize = 8 << 20;

/// Time between two looks at the clock.
const PAUSE: Duration = Duration::from_millis(50);

/// Maximum size in bytes of the lines that wait to be written, except for one.
const MAX_WAITING_BYTES: usize = 1 << 16;

/// The lines that a query sends to the thread that writes them.
pub(super) struct Lines(Arc<Shared>);

/// Where the lines arrive.
struct Writer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: String,
    /// One of both threads has ended.
    ended: bool,
}

/// Runs a query and writes the lines that it sends. A query that is late and does not stop is given
/// up: its thread goes on until the process ends.
///
/// # Errors
/// See [`SelectError`]; the output has failed.
pub(super) fn run<T: Send + 'static>(
    clock: &QueryClock,
    timeout: Duration,
    out: &mut dyn Write,
    query: impl FnOnce(&Lines) -> Result<T, SelectError> + Send + 'static,
) -> Result<T, SelectError> {
    let shared = Arc::new(Shared::default());
    let (lines, writer) = (Lines(shared.clone()), Writer(shared));
    let thread = std::thread::Builder::new().name("query".into()).stack_size(STACK_BYTES).spawn(move || query(&lines));
    let thread = thread.map_err(|e| SelectError::Failed(e.to_string()))?;
    loop {
        let (waiting, ended) = writer.next();
        out.write_all(waiting.as_bytes()).map_err(SelectError::Visitor)?;
        if ended {
            return thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        if clock.spent() > timeout.saturating_add(GRACE) {
            return Err(SelectError::TimeOut(timeout));
        }
    }
}

impl Lines {
    /// Sends a line, after those before it have been written.
    ///
    /// # Errors
    /// Nobody writes any more.
    pub(super) fn send(&self, line: &str) -> std::io::Result<()> {
        let full = |state: &mut State| state.waiting.len() >= MAX_WAITING_BYTES && !state.ended;
        let mut state = self.0.changed.wait_while(self.0.state(), full).unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        state.waiting.push_str(line);
        self.0.changed.notify_all();
        Ok(())
    }
}

impl Writer {
    /// Waits for lines, for the end of the query, or for a moment; returns the lines and whether
    /// there will be no more.
    fn next(&self) -> (String, bool) {
        let nothing = |state: &mut State| state.waiting.is_empty() && !state.ended;
        let waited = self.0.changed.wait_timeout_while(self.0.state(), PAUSE, nothing);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.0.changed.notify_all();
        (std::mem::take(&mut state.waiting), state.ended)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.end();
    }
}
