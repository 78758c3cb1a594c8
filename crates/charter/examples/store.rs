//! A store of your own: keeps records in memory and counts its commits. A real one writes to a
//! database; the documentation of `Store` lists its guarantees.
//!
//! `cargo run -p charter --example store`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use charter::actors::Folder;
use charter::journal::{
    Append, MemoryStore, OpenEffect, PendingTimer, Record, Reply, Row, RunFilter, RunInfo, RunRow, Store, StoreError,
    StoredCharter, StoredSnapshot, verify,
};
use charter::kernel::{Digest, Principal, Timestamp};
use charter::runtime::{Charter, Options, Runtime, Start};
use serde_json::json;

#[derive(Default)]
struct Counting {
    inner: MemoryStore,
    commits: AtomicU64,
}

impl Store for Counting {
    /// This is the only method that writes records: a batch is committed as a whole or not at all,
    /// and `reply` is called afterwards.
    fn submit(&self, batch: Vec<Append>, reply: Reply) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.inner.submit(batch, reply);
    }

    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError> {
        self.inner.put_charter(charter)
    }

    fn imported(&self, run: &str) -> Result<u64, StoreError> {
        self.inner.imported(run)
    }

    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError> {
        self.inner.charter(digest)
    }

    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError> {
        self.inner.charters()
    }

    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        self.inner.put_blob(data)
    }

    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.blob(digest)
    }

    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        self.inner.scan_blobs(visit)
    }

    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError> {
        self.inner.run(run)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
        self.inner.runs(filter)
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.inner.records(run, from, limit)
    }

    fn records_after(&self, position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError> {
        self.inner.records_after(position, limit)
    }

    fn last_position(&self) -> Result<u64, StoreError> {
        self.inner.last_position()
    }

    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.inner.find(run, id)
    }

    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError> {
        self.inner.snapshot(run, at_most)
    }

    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        self.inner.put_snapshot(run, snapshot)
    }

    fn forget_snapshots(&self) -> Result<(), StoreError> {
        self.inner.forget_snapshots()
    }

    fn pending_timers(&self, until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError> {
        self.inner.pending_timers(until, limit)
    }

    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError> {
        self.inner.open_effects(after, limit)
    }

    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        self.inner.emitted(r#type, visit)
    }

    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError> {
        self.inner.scan(run, from, visit)
    }

    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError> {
        self.inner.scan_runs(run, visit)
    }

    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError> {
        self.inner.scan_snapshots(run, visit)
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let store = Arc::new(Counting::default());
    let (runtime, _) = Runtime::open(store.clone(), Options::default()).await?;
    let source = "{charter: 1, id: short, states: {a: {always: b}, b: {type: final}}}";
    let document = charter::format::read(source, "short.yaml", &Default::default())?;
    let charter = runtime.add(Charter::new(&document, Folder::None)?).await?;
    let by = Principal::new("ana", &[]);
    runtime.start(Start { charter: charter.digest(), run: Some("run-1".into()), input: json!({}), by }).await?;
    runtime.ended("run-1").await?;

    let report = verify(store.as_ref(), None)?;
    println!("{} commits, {} records verified", store.commits.load(Ordering::Relaxed), report.records());
    Ok(())
}
