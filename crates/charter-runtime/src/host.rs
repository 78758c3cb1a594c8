//! Implements the host interface of executors for this host.

use std::sync::Arc;

use charter_actors::{
    ActorEvent, BoxFuture, CallHost, CallProgress, Clock, Delivery, Executor, Fault, RunUpdate, RunUpdates,
};
use charter_journal::{Record, Store, StoreError, UsageFilter, UsageRow, UsageTotals};
use charter_kernel::{Digest, Machine, Snapshot};
use rustc_hash::FxHashMap;

use crate::error::RuntimeError;
use crate::events::{RuntimeEvent, Subscription};
use crate::inner::Inner;
use crate::mailbox::run::Seen;
use crate::request::SendEvent;

impl CallHost for Inner {
    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    fn executor(&self, kind: &str) -> Option<Arc<dyn Executor>> {
        self.executors.get(kind).cloned()
    }

    fn send(self: Arc<Self>, event: ActorEvent) -> BoxFuture<'static, Result<Delivery, Fault>> {
        Box::pin(async move {
            let ActorEvent { run, to, r#type, data, by, id } = event;
            let send = SendEvent { run: run.to_string(), to, r#type, data, by, id: Some(id), expected_seq: None };
            let receipt = self.send_as(send, true).await.map_err(|e| Fault::new("send", e.to_string()))?;
            let charter = match receipt.is_refused() {
                true => self.charter(receipt.record.charter).await.ok(),
                false => None,
            };
            let machine = charter.as_ref().map(|c| c.machine().as_ref());
            Ok(Delivery {
                seq: receipt.record.seq,
                refusal: receipt.explanation(machine).map(Box::new),
                snapshot_seq: receipt.snapshot.as_ref().map(Snapshot::seq),
                repeated: receipt.repeated,
            })
        })
    }

    fn updates(&self, run: &str) -> Box<dyn RunUpdates> {
        Box::new(self.publisher.subscribe(Some(run)))
    }

    fn snapshot(&self, run: &str) -> Result<Snapshot, Fault> {
        if let Some(Seen { snapshot, .. }) = self.view_in_memory(run) {
            return Ok(snapshot);
        }
        let snapshot =
            self.load_now(run).and_then(|state| state.seen().ok_or_else(|| RuntimeError::NeverStarted(run.into())));
        snapshot.map(|seen| seen.snapshot).map_err(|e| Fault::new("journal", e.to_string()))
    }

    fn progress(&self, progress: CallProgress) {
        self.publisher.publish(RuntimeEvent::Progress(progress));
    }

    fn machine(&self, run: &str) -> Result<Arc<Machine>, Fault> {
        if let Some(Seen { charter, .. }) = self.view_in_memory(run) {
            return Ok(charter.machine().clone());
        }
        let state = self.load_now(run).map_err(|e| Fault::new("journal", e.to_string()))?;
        Ok(state.charter.machine().clone())
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.store.records(run, from, limit)
    }

    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        let mut failed = None;
        let mut origins: FxHashMap<String, Option<u64>> = FxHashMap::default();
        self.store.emitted(r#type, &mut |run, seq, data| {
            let from = match origins.get(run) {
                Some(from) => *from,
                None => match own_records(self.store.as_ref(), run) {
                    Ok(from) => *origins.entry(run.to_owned()).or_insert(from),
                    Err(e) => {
                        failed = Some(e);
                        return false;
                    }
                },
            };
            from.is_none_or(|from| seq < from) || visit(run, seq, data)
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        self.store.put_blob(data)
    }

    fn blob(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.blob(digest)
    }

    fn put_usage(&self, rows: Vec<UsageRow>) -> Result<(), StoreError> {
        self.store.put_usage(rows)
    }

    fn usage(&self, filter: &UsageFilter) -> Result<Option<UsageTotals>, StoreError> {
        self.store.usage(filter).map(Some)
    }
}

/// Returns the first record of a run that counts: all of a run that is no fork; of a fork those
/// that it does not share with a run of this journal; of a dry fork none, since what it did is not
/// real.
fn own_records(store: &dyn Store, run: &str) -> Result<Option<u64>, StoreError> {
    Ok(match charter_journal::origin(store, run)? {
        None => Some(0),
        Some(origin) if origin.dry => None,
        Some(origin) => match store.run(&origin.run)? {
            Some(_) => Some(origin.seq.saturating_add(1)),
            None => Some(0),
        },
    })
}

impl RunUpdates for Subscription {
    fn next(&mut self) -> BoxFuture<'_, Option<RunUpdate>> {
        Box::pin(async move {
            loop {
                match Subscription::next(self).await? {
                    RuntimeEvent::Recorded(recorded) => return Some(RunUpdate::Recorded(recorded.snapshot)),
                    RuntimeEvent::Missed(_) => return Some(RunUpdate::Missed),
                    _ => {}
                }
            }
        })
    }
}
