//! Output whose reader may have left (`| head`).

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};

/// Writes to a stream until its reader closes it.
pub(crate) struct Closable<'w> {
    to: &'w mut dyn Write,
    closed: &'w Cell<bool>,
    /// Whether the writer is told, so that it can stop. Otherwise the rest is dropped, and the
    /// command ends as it would have with a reader.
    tells: bool,
}

impl<'w> Closable<'w> {
    pub(crate) fn new(to: &'w mut dyn Write, closed: &'w Cell<bool>, tells: bool) -> Closable<'w> {
        Closable { to, closed, tells }
    }

    fn result<T>(&self, done: io::Result<T>, dropped: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.closed.set(true);
                if self.tells { Err(error) } else { Ok(dropped) }
            }
            other => other,
        }
    }
}

impl Write for Closable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed.get() && !self.tells {
            return Ok(bytes.len());
        }
        let done = self.to.write(bytes);
        self.result(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed.get() && !self.tells {
            return Ok(());
        }
        let done = self.to.flush();
        self.result(done, ())
    }
}
