//! The connections of readers. Opening one parses the schema, which takes longer than most reads.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

/// Maximum number of idle connections.
const MAX_IDLE: usize = 4;
/// How long a reader waits for a connection of another one if there are as many already: a short
/// read is over by then, and a long one does not hold up others.
const PATIENCE: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Connections {
    idle: Vec<Connection>,
    in_use: usize,
}

#[derive(Debug, Default)]
pub(super) struct Readers {
    connections: Mutex<Connections>,
    returned: Condvar,
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a connection; without one, `open` is called. [`Readers::put`] or [`Readers::lose`] has
    /// to follow.
    pub(super) fn take<E>(&self, open: impl FnOnce() -> Result<Connection, E>) -> Result<Connection, E> {
        let none = |c: &mut Connections| c.idle.is_empty() && c.in_use >= MAX_IDLE;
        let waited = self.returned.wait_timeout_while(self.lock(), PATIENCE, none);
        let (mut connections, _) = waited.unwrap_or_else(PoisonError::into_inner);
        connections.in_use = connections.in_use.saturating_add(1);
        let kept = connections.idle.pop();
        drop(connections);
        match kept {
            Some(connection) => Ok(connection),
            None => open().inspect_err(|_| self.release(None)),
        }
    }

    /// A connection that was taken is not used any more; `None`: it was closed.
    pub(super) fn release(&self, connection: Option<Connection>) {
        let mut connections = self.lock();
        connections.in_use = connections.in_use.saturating_sub(1);
        if let Some(connection) = connection.filter(|_| connections.idle.len() < MAX_IDLE) {
            connections.idle.push(connection);
        }
        drop(connections);
        self.returned.notify_one();
    }

    /// Closes the idle connections.
    pub(super) fn close(&self) {
        self.lock().idle.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn short_reads_share_connections_and_long_ones_do_not_hold_up_others() {
        let (readers, opened) = (Readers::default(), AtomicUsize::new(0));
        let open = || {
            opened.fetch_add(1, Ordering::SeqCst);
            Connection::open_in_memory()
        };
        for _ in 0..10 {
            readers.release(Some(readers.take(open).unwrap()));
        }
        assert_eq!(opened.load(Ordering::SeqCst), 1);
        // As many as there may be are in use for long: one more is opened all the same.
        let long: Vec<Connection> = (0..=MAX_IDLE).map(|_| readers.take(open).unwrap()).collect();
        assert_eq!(opened.load(Ordering::SeqCst), MAX_IDLE + 1);
        for connection in long {
            readers.release(Some(connection));
        }
        let count = |readers: &Readers| {
            let connections = readers.lock();
            (connections.idle.len(), connections.in_use)
        };
        assert_eq!(count(&readers), (MAX_IDLE, 0));
        readers.take(open).unwrap();
        assert_eq!(opened.load(Ordering::SeqCst), MAX_IDLE + 1);
        readers.release(None);
        // One that cannot be opened is not counted.
        readers.close();
        assert!(readers.take(|| Err(())).is_err());
        assert_eq!(count(&readers), (0, 0));
    }
}
