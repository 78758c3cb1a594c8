//! A full disk: senders get an error, answers and timers wait, and everything continues when there
//! is space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::*;
use charter_actors::VirtualClock;
use charter_journal::*;
use charter_kernel::{Digest, Timestamp};
use charter_runtime::RuntimeError;
use serde_json::json;

/// A store that rejects writes while it is full.
struct Disk {
    inside: MemoryStore,
    full: Arc<AtomicBool>,
}

impl Store for Disk {
    fn submit(&self, batch: Vec<Append>, reply: Reply) {
        if self.full.load(Ordering::SeqCst) {
            return reply(Err(StoreError::NotWritten { reason: "the disk is full".into() }));
        }
        self.inside.submit(batch, reply);
    }
    fn put_charter(&self, charter: &StoredCharter) -> Result<(), StoreError> {
        self.inside.put_charter(charter)
    }
    fn imported(&self, run: &str) -> Result<u64, StoreError> {
        self.inside.imported(run)
    }
    fn charter(&self, digest: Digest) -> Result<Option<StoredCharter>, StoreError> {
        self.inside.charter(digest)
    }
    fn charters(&self) -> Result<Vec<StoredCharter>, StoreError> {
        self.inside.charters()
    }
    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        self.inside.put_blob(data)
    }
    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.inside.blob(digest)
    }
    fn scan_blobs(&self, visit: &mut dyn FnMut(&str, &[u8])) -> Result<(), StoreError> {
        self.inside.scan_blobs(visit)
    }
    fn run(&self, run: &str) -> Result<Option<RunInfo>, StoreError> {
        self.inside.run(run)
    }
    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunInfo>, StoreError> {
        self.inside.runs(filter)
    }
    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.inside.records(run, from, limit)
    }
    fn records_after(&self, position: u64, limit: usize) -> Result<Vec<(u64, Record)>, StoreError> {
        self.inside.records_after(position, limit)
    }
    fn last_position(&self) -> Result<u64, StoreError> {
        self.inside.last_position()
    }
    fn find(&self, run: &str, id: &str) -> Result<Option<Record>, StoreError> {
        self.inside.find(run, id)
    }
    fn snapshot(&self, run: &str, at_most: u64) -> Result<Option<StoredSnapshot>, StoreError> {
        self.inside.snapshot(run, at_most)
    }
    fn put_snapshot(&self, run: &str, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        self.inside.put_snapshot(run, snapshot)
    }
    fn forget_snapshots(&self) -> Result<(), StoreError> {
        self.inside.forget_snapshots()
    }
    fn pending_timers(&self, until: Timestamp, limit: usize) -> Result<Vec<PendingTimer>, StoreError> {
        self.inside.pending_timers(until, limit)
    }
    fn open_effects(&self, after: Option<&OpenEffect>, limit: usize) -> Result<Vec<OpenEffect>, StoreError> {
        self.inside.open_effects(after, limit)
    }
    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        self.inside.emitted(r#type, visit)
    }
    fn scan(&self, run: Option<&str>, from: u64, visit: &mut dyn FnMut(&Row<'_>) -> bool) -> Result<(), StoreError> {
        self.inside.scan(run, from, visit)
    }
    fn scan_runs(&self, run: Option<&str>, visit: &mut dyn FnMut(&RunRow<'_>)) -> Result<(), StoreError> {
        self.inside.scan_runs(run, visit)
    }
    fn scan_snapshots(&self, run: Option<&str>, visit: &mut dyn FnMut(&str, u64, &[u8])) -> Result<(), StoreError> {
        self.inside.scan_snapshots(run, visit)
    }
}

const SOURCE: &str = "
charter: 1
id: patient
events: {PING: {}}
context: {log: []}
actors:
  work: {kind: scripted, answers: [{after: 1h, output: work}]}
type: parallel
on: {PING: {actions: {assign: {log: '= context.log + [\"ping\"]'}}}}
states:
  works:
    initial: working
    states:
      working: {invoke: {src: work, onDone: {target: worked, actions: {assign: {log: '= context.log + [event.output]'}}}}}
      worked: {}
  waits:
    initial: waiting
    states:
      waiting: {after: {2h: {target: waited, actions: {assign: {log: '= context.log + [\"timer\"]'}}}}}
      waited: {}
";

#[test]
fn answers_and_timers_are_written_when_there_is_space() {
    block_on(async {
        let full = Arc::new(AtomicBool::new(false));
        let store = Arc::new(Disk { inside: MemoryStore::new(), full: full.clone() });
        let clock = VirtualClock::new(BEGIN);
        let h = open(store, clock.clone(), charter(SOURCE), options(&clock)).await;
        h.start("r", json!({})).await;
        full.store(true, Ordering::SeqCst);
        let ping = || charter_runtime::SendEvent::new("r", "PING", json!({}), who("ana", &[])).id("p");
        let e = h.try_send(ping()).await.unwrap_err();
        assert!(matches!(e, RuntimeError::Store(StoreError::NotWritten { .. })), "{e}");
        // Neither the answer nor the timer can be written.
        h.clock.advance(3 * 3_600_000).await;
        assert_eq!(h.story("r").len(), 1);
        assert_eq!(h.runtime.view("r").await.unwrap().snapshot.actor("root").unwrap().context()["log"], json!([]));
        full.store(false, Ordering::SeqCst);
        h.clock.advance(1_000).await;
        // The sender got an error and retries.
        assert!(!h.try_send(ping()).await.unwrap().repeated);
        let view = h.runtime.view("r").await.unwrap();
        let mut log = view.snapshot.actor("root").unwrap().context()["log"].as_array().unwrap().clone();
        assert_eq!(log.pop(), Some(json!("ping")));
        log.sort_by_key(ToString::to_string);
        assert_eq!(log, [json!("timer"), json!("work")]);
        assert!(verify(h.store.as_ref(), None).unwrap().is_verified());
    });
}
