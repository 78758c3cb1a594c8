//! A server as a store to read: what the commands that look at runs need. It is never written.

use charter_journal::{
    Append, OpenEffect, PendingTimer, Record, Reply, Row, RunFilter, RunInfo, RunRow, Store, StoreError, StoredCharter,
    StoredSnapshot,
};
use charter_kernel::{Digest, Timestamp};
use charter_runtime::RuntimeError;

use crate::Remote;

/// The runs of a server, to read.
#[derive(Debug, Clone)]
pub struct RemoteStore(pub Remote);

fn failed(error: RuntimeError) -> StoreError {
    match error {
        RuntimeError::UnknownRun(run) => StoreError::UnknownRun(run),
        other => StoreError::Failed { doing: "reading from the server", reason: other.to_string() },
    }
}

fn not_here<T>() -> Result<T, StoreError> {
    let reason = "this works on a journal file only, not on a server".to_owned();
    Err(StoreError::Failed { doing: "reading from the server", reason })
}

impl Store for RemoteStore {
    fn submit(&self, _: Vec<Append>, reply: Reply) {
        reply(not_here());
    }

    fn put_charter(&self, _: &StoredCharter) -> Result<(), StoreError> {
        not_here()
    }

    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError> {
        Ok(Some(self.0.charter_of(digest).map_err(failed)?.stored().clone()))
    }

    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError> {
        not_here()
    }

    fn put_blob(&self, _: &[u8]) -> Result<Digest, StoreError> {
        not_here()
    }

    /// A server keeps the files of its charters to itself.
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let reason = format!(
            "the charter has files beside it (such as {digest}), which a server does not give away; do this on the machine of the server, with its journal file"
        );
        Err(StoreError::Failed { doing: "reading from the server", reason })
    }

    fn scan_blobs(&self, _: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        Ok(())
    }

    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError> {
        self.0.info_of(run).map_err(failed)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
        self.0.list(filter).map_err(failed)
    }

    fn imported(&self, _: &str) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.0.records_of(run, from, limit).map_err(failed)
    }

    fn records_after(&self, _: u64, _: usize) -> Result<Vec<(u64, Record)>, StoreError> {
        not_here()
    }

    fn last_position(&self) -> Result<u64, StoreError> {
        not_here()
    }

    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError> {
        let mut found = None;
        self.each(run, 0, |record| {
            if &*record.id == id {
                found = Some(record.clone());
            }
            found.is_none()
        })?;
        Ok(found)
    }

    /// Snapshots are a cache; the state is replayed from the records.
    fn snapshot(&self, _: &str, _: u64) -> Result<Option<StoredSnapshot>, StoreError> {
        Ok(None)
    }

    fn put_snapshot(&self, _: &str, _: &StoredSnapshot) -> Result<(), StoreError> {
        not_here()
    }

    fn forget_snapshots(&self) -> Result<(), StoreError> {
        not_here()
    }

    /// The server fires its timers itself.
    fn pending_timers(&self, _: Timestamp, _: usize) -> Result<Vec<PendingTimer>, StoreError> {
        Ok(Vec::new())
    }

    fn open_effects(&self, _: Option<&OpenEffect>, _: usize) -> Result<Vec<OpenEffect>, StoreError> {
        Ok(Vec::new())
    }

    fn emitted(&self, _: &str, _: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        not_here()
    }

    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError> {
        let Some(run) = run else { return not_here() };
        self.each(run, from, |record| Row::of_record(0, record, visit))
    }

    fn scan_runs(&self, _: Option<&str>, _: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError> {
        not_here()
    }

    fn scan_snapshots(&self, _: Option<&str>, _: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError> {
        Ok(())
    }
}

impl RemoteStore {
    /// Visits the records of a run, page by page, until `visit` returns false.
    fn each(&self, run: &str, from: u64, mut visit: impl FnMut(&Record) -> bool) -> Result<(), StoreError> {
        let mut next = from;
        loop {
            let page = self.records(run, next, 1_000)?;
            let Some(last) = page.last() else { return Ok(()) };
            next = last.seq.saturating_add(1);
            if !page.iter().all(&mut visit) {
                return Ok(());
            }
        }
    }
}
