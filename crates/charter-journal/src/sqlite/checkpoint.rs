//! Checkpoints: moving committed pages from the write-ahead log into the file, on a separate
//! thread.
//!
//! By default SQLite checkpoints within a commit, so from time to time one event would wait for
//! thousands of pages. Here most pages are moved while the writer continues; the writer itself
//! moves the few that were added meanwhile, so that the log can restart
//! (<https://www.sqlite.org/wal.html#avoiding_excessively_large_wal_files>).

use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

use rusqlite::OpenFlags;

use super::connect::connect;
use super::prepared::Prepared;
use super::write::Writing;

/// Number of pages in the log that starts a checkpoint (16 MiB). A page that several commits change
/// in the meantime is moved only once.
const PAGES: i64 = 4_000;

/// The checkpoints of a journal.
pub(super) struct Checkpoints {
    path: PathBuf,
    running: Option<JoinHandle<()>>,
    /// Number of pages at which the next checkpoint starts. A reader can keep the log from
    /// restarting; then a checkpoint is tried again after another `PAGES` pages.
    due: i64,
}

impl Checkpoints {
    pub(super) fn new(path: PathBuf) -> Checkpoints {
        Checkpoints { path, running: None, due: PAGES }
    }

    /// Starts or finishes a checkpoint between two commits. A failed checkpoint is retried after a
    /// later commit: the log keeps the data until then.
    pub(super) fn poll(&mut self, writing: &mut Writing<'_>) {
        match self.running.take() {
            Some(running) if !running.is_finished() => self.running = Some(running),
            Some(finished) => {
                let _ = finished.join();
                let _ = writing.checkpoint();
            }
            None => self.start(writing),
        }
    }

    fn start(&mut self, writing: &mut Writing<'_>) {
        match writing.log_pages() {
            Ok(pages) if pages < PAGES => self.due = PAGES,
            Ok(pages) if pages >= self.due => {
                self.due = pages.saturating_add(PAGES);
                let (path, head) = (self.path.clone(), writing.head_handle());
                let thread = Builder::new().name("checkpoint".into());
                let work = move || {
                    // The log holds what the head says until it is overwritten. A head that is not
                    // synced can only be behind.
                    let _ = head.map(|file| file.sync_data());
                    drop(checkpoint(&path));
                };
                match thread.spawn(work) {
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
        // The writer's connection must be the last one to close.
        if let Some(running) = self.running.take() {
            let _ = running.join();
        }
    }
}

/// Moves pages of the log into the file, and returns whether all were moved. A reader of an older
/// state can prevent it, or the checkpoint of another program.
pub(super) fn move_log(prepared: &mut Prepared<'_>) -> rusqlite::Result<bool> {
    prepared.get("PRAGMA wal_checkpoint(PASSIVE)")?.query_row([], |row| {
        let (busy, log, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        // During the checkpoint of another program, both numbers are -1.
        Ok(busy == 0 && log >= 0 && log == moved)
    })
}

pub(super) fn checkpoint(path: &std::path::Path) -> rusqlite::Result<()> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
