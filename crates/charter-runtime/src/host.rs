//! Implements the host interface of executors for this host.

use std::sync::Arc;

use charter_actors::{ActorEvent, BoxFuture, CallHost, Clock, Delivery, Executor, Fault, RunUpdate, RunUpdates};
use charter_journal::{Record, StoreError};
use charter_kernel::{Digest, Snapshot};

use crate::events::{RuntimeEvent, Subscription};
use crate::inner::Inner;
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
        if let Some((_, snapshot)) = self.view_in_memory(run) {
            return Ok(snapshot);
        }
        let snapshot = self.load_now(run).and_then(|state| state.started());
        snapshot.map_err(|e| Fault::new("journal", e.to_string()))
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.store.records(run, from, limit)
    }

    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        self.store.emitted(r#type, visit)
    }

    fn put_blob(&self, data: &[u8]) -> Result<Digest, StoreError> {
        self.store.put_blob(data)
    }
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
