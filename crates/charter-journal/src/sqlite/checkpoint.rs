//! Moving what is committed from the write-ahead log into the file, on a thread of its own while the writer goes on.
//!
//! SQLite would do it within a commit: every so often one event would wait for thousands of pages of others. Beside it, most of the
//! pages are moved while the writer works; the writer itself moves the few that have come meanwhile, so that the log begins anew
//! (<https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files>).

use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use rusqlite::{Connection, OpenFlags};

use super::write::Writing;

/// How many pages the log gathers before they are moved (16 MiB). Many commits touch the same pages; these are moved once.
const PAGES: i64 = 4_000;

/// The log of a journal.
pub(super) struct Checkpoints {
    path: PathBuf,
    running: Option<JoinHandle<()>>,
    /// So many pages make the next one due. Who reads the log keeps it from beginning anew: then it is tried again after as many more.
    due: i64,
}

impl Checkpoints {
    pub(super) fn new(path: PathBuf) -> Checkpoints {
        Checkpoints { path, running: None, due: PAGES }
    }

    /// To be called between commits. What fails is tried again after a later commit: the log keeps all until then.
    pub(super) fn look(&mut self, writing: &mut Writing<'_>) {
        match self.running.take() {
            Some(running) if !running.is_finished() => self.running = Some(running),
            Some(finished) => {
                let _ = finished.join();
                let _ = writing.checkpoint();
            }
            None => self.begin(writing),
        }
    }

    fn begin(&mut self, writing: &mut Writing<'_>) {
        match writing.log_pages() {
            Ok(pages) if pages < PAGES => self.due = PAGES,
            Ok(pages) if pages >= self.due => {
                self.due = pages.saturating_add(PAGES);
                let path = self.path.clone();
                let thread = Builder::new().name("checkpoint".into());
                match thread.spawn(move || drop(checkpoint(&path))) {
                    Ok(running) => self.running = Some(running),
                    Err(_) => drop(writing.checkpoint()),
                }
            }
            _ => {}
        }
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        // The writer's connection is to be the last one that closes.
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

fn checkpoint(path: &std::path::Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
