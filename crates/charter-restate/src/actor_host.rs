//! The host behind the calls of actors: events and records go through the engine.

use std::sync::Arc;
use std::time::Duration;

use charter_actors::{
    ActorEvent, BoxFuture, CallHost, Clock, Delivery, Executor, Executors, Fault, RunUpdate, RunUpdates,
};
use charter_journal::{Record, StoreError};
use charter_kernel::{Digest, Machine, Snapshot, Timestamp};

use crate::charters::Charters;
use crate::client::Engine;
use crate::wire::{EventRequest, WaitsRequest};

/// How often a run is looked at for who waits for its news.
const LOOK: Duration = Duration::from_millis(200);

/// How often a call asks whether its run still waits for it.
const ASK: Duration = Duration::from_secs(1);

/// The host behind the calls.
pub(crate) struct ActorHost {
    engine: Engine,
    charters: Arc<Charters>,
    clock: Arc<dyn Clock>,
    executors: Executors,
}

impl ActorHost {
    pub(crate) fn new(engine: Engine, charters: Arc<Charters>) -> ActorHost {
        let (clock, executors) = (charters.options.clock.clone(), charters.options.executors.clone());
        ActorHost { engine, charters, clock, executors }
    }

    /// Waits until the run no longer waits for an attempt.
    pub(crate) async fn not_awaited(self: Arc<Self>, run: Arc<str>, request: WaitsRequest) {
        loop {
            tokio::time::sleep(ASK).await;
            let (host, run, request) = (self.clone(), run.clone(), request.clone());
            let waits = tokio::task::spawn_blocking(move || host.engine.waits(&run, &request)).await;
            // Without an answer, the call goes on.
            if let Ok(Ok(false)) = waits {
                return;
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn unreachable_engine(error: &charter_runtime::RuntimeError) -> Fault {
    Fault::new("engine", error.to_string()).retryable()
}

impl CallHost for ActorHost {
    fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    fn executor(&self, kind: &str) -> Option<Arc<dyn Executor>> {
        self.executors.get(kind).cloned()
    }

    fn send(self: Arc<Self>, event: ActorEvent) -> BoxFuture<'static, Result<Delivery, Fault>> {
        Box::pin(async move {
            let ActorEvent { run, to, r#type, data, by, id } = event;
            let (at, host) = (self.now(), self.clone());
            let request = EventRequest {
                at,
                to,
                r#type,
                data: crate::wire::Doc(data),
                by,
                id: Some(id),
                host_id: true,
                expected_seq: None,
            };
            let send = move || -> Result<Delivery, Fault> {
                let (record, repeated) = host.engine.event(&run, &request).map_err(|e| unreachable_engine(&e))?;
                let snapshot_seq = host.snapshot(&run).ok().map(|snapshot| snapshot.seq());
                let machine = host.charters.get(record.charter).map(|charter| charter.machine().clone());
                let refusal = record.explanation(machine.as_deref()).map(Box::new);
                Ok(Delivery { seq: record.seq, refusal, snapshot_seq, repeated })
            };
            let sent = tokio::task::spawn_blocking(send).await;
            sent.unwrap_or_else(|e| Err(Fault::new("engine", e.to_string()).retryable()))
        })
    }

    fn updates(&self, run: &str) -> Box<dyn RunUpdates> {
        let (engine, charters) = (self.engine.clone(), self.charters.clone());
        Box::new(Polled { engine, charters, run: run.to_owned(), seen: None })
    }

    fn snapshot(&self, run: &str) -> Result<Snapshot, Fault> {
        let found = self.engine.look(&self.charters, run).map_err(|e| unreachable_engine(&e))?;
        found
            .and_then(|(_, run)| run.snapshot().cloned())
            .ok_or_else(|| Fault::new("no-run", format!("no run `{run}`")))
    }

    fn machine(&self, run: &str) -> Result<Arc<Machine>, Fault> {
        let records = self.engine.records(run, 0, 1).map_err(|e| unreachable_engine(&e))?;
        let charter = records.first().and_then(|first| self.charters.get(first.charter));
        charter.map(|c| c.machine().clone()).ok_or_else(|| Fault::new("no-run", format!("no run `{run}`")))
    }

    fn records(&self, run: &str, from: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.engine.records(run, from, limit).map_err(|e| StoreError::Damaged(e.to_string()))
    }

    fn emitted(&self, r#type: &str, visit: &mut dyn FnMut(&str, u64, &str) -> bool) -> Result<(), StoreError> {
        let found = self
            .engine
            .emitted(r#type)
            .map_err(|e| StoreError::Failed { doing: "the search for emitted events", reason: e.to_string() })?;
        let _ = found.iter().all(|one| visit(&one.run, one.seq, &one.data));
        Ok(())
    }

    fn put_blob(&self, _: &[u8]) -> Result<Digest, StoreError> {
        Err(StoreError::NotWritten { reason: "this host stores no blobs of actors".into() })
    }

    fn blob(&self, _: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn stores_blobs(&self) -> bool {
        false
    }
}

/// The news of a run for a call: the run is looked at again and again.
struct Polled {
    engine: Engine,
    charters: Arc<Charters>,
    run: String,
    /// The last record that was seen.
    seen: Option<Option<u64>>,
}

impl RunUpdates for Polled {
    fn next(&mut self) -> BoxFuture<'_, Option<RunUpdate>> {
        Box::pin(async move {
            loop {
                let (engine, charters, run) = (self.engine.clone(), self.charters.clone(), self.run.clone());
                let look = tokio::task::spawn_blocking(move || engine.look(&charters, &run)).await;
                if let Ok(Ok(found)) = look {
                    let (seq, snapshot) = found.map_or((None, None), |(seq, run)| (Some(seq), run.snapshot().cloned()));
                    let before = self.seen.replace(seq);
                    if before.is_some_and(|before| before != seq) {
                        return Some(RunUpdate::Recorded(snapshot));
                    }
                }
                tokio::time::sleep(LOOK).await;
            }
        })
    }
}
