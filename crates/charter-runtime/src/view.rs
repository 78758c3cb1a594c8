//! Read access to runs: lists them, returns their state and legal events, subscribes to new events,
//! and waits for a condition.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_journal::{Record, RunFilter, RunInfo};
use charter_kernel::{Legal, Principal, Snapshot};

use crate::error::RuntimeError;
use crate::events::Subscription;
use crate::inner::Inner;
use crate::mailbox::run::Seen;
use crate::request::View;
use crate::runtime::Runtime;
use crate::sync::lock;

impl Runtime {
    /// Returns the current state of a run.
    ///
    /// # Errors
    /// There is no such run, or it cannot be restored from its records.
    pub async fn view(&self, run: &str) -> Result<View, RuntimeError> {
        let Seen { charter, snapshot, dry, next_due } = self.inner.look(run).await?;
        let (id, of_run) = (run.to_owned(), charter.clone());
        let trusted = self.inner.with_store(move |inner| inner.is_trusted(&id, &of_run)).await??;
        let view = View::new(charter, snapshot, self.inner.calls.of_run(run), dry);
        Ok(View { untrusted: !trusted, next_due, ..view })
    }

    /// Returns the events that a principal may send to a run now.
    ///
    /// # Errors
    /// See [`Runtime::view`].
    pub async fn legal(&self, run: &str, by: &Principal) -> Result<Vec<Legal>, RuntimeError> {
        let Seen { charter, snapshot, .. } = self.inner.look(run).await?;
        Ok(charter.machine.legal(&snapshot, by, self.inner.clock.now()))
    }

    /// Returns a run as it was after record `seq`: without running actors, and as if it was started
    /// here.
    ///
    /// # Errors
    /// There is no such run or record, its start was refused, or it cannot be restored.
    pub async fn at(&self, run: &str, seq: u64) -> Result<View, RuntimeError> {
        let id = run.to_owned();
        let read = move |inner: &Inner| -> Result<View, RuntimeError> {
            let info = inner.store.run(&id)?.ok_or_else(|| RuntimeError::UnknownRun(id.clone()))?;
            let origin = charter_journal::origin(inner.store.as_ref(), &id)?;
            let charter = match inner.charter_in_memory(info.charter) {
                Some(charter) => charter,
                None => Arc::new(inner.stored_charter(info.charter, None)?),
            };
            let snapshot = charter_journal::replay(inner.store.as_ref(), charter.machine(), &id, Some(seq))?;
            let snapshot = snapshot.ok_or(RuntimeError::NeverStarted(id))?;
            Ok(View::new(charter, snapshot, Vec::new(), origin.is_some_and(|origin| origin.dry)))
        };
        self.inner.with_store(read).await?
    }

    /// Lists the runs in the journal.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunInfo>, RuntimeError> {
        Ok(self.inner.with_store(move |inner| inner.store.runs(&filter)).await??)
    }

    /// Subscribes to the events of one run or of all runs, from now on.
    #[must_use]
    pub fn subscribe(&self, run: Option<&str>) -> Subscription {
        self.inner.publisher.subscribe(run)
    }

    /// Waits until a run has ended.
    ///
    /// # Errors
    /// See [`Runtime::view`]; also [`RuntimeError::Closing`] if the host shuts down first.
    pub async fn ended(&self, run: &str) -> Result<View, RuntimeError> {
        self.until(run, |snapshot| snapshot.status().is_finished()).await
    }

    /// Waits until a condition holds for a run.
    ///
    /// # Errors
    /// See [`Runtime::ended`].
    pub async fn until(&self, run: &str, mut holds: impl FnMut(&Snapshot) -> bool) -> Result<View, RuntimeError> {
        let mut events = self.subscribe(Some(run));
        loop {
            let view = self.view(run).await?;
            if holds(&view.snapshot) {
                return Ok(view);
            }
            if self.inner.is_closing() || events.next().await.is_none() {
                return Err(RuntimeError::Closing);
            }
        }
    }
}

impl Inner {
    /// Returns the current state of a run without going through its mailbox.
    pub(crate) async fn look(self: &Arc<Self>, run: &str) -> Result<Seen, RuntimeError> {
        if let Some(view) = self.view_in_memory(run) {
            return Ok(view);
        }
        self.load(run).await?.seen().ok_or_else(|| RuntimeError::NeverStarted(run.into()))
    }

    /// Waits until [`Inner::look`] shows what these records have changed: other threads can read a
    /// record a moment before the state after it.
    pub(crate) async fn settled(&self, records: impl Iterator<Item = &Record>) {
        let last: BTreeMap<&str, u64> = records.map(|record| (&*record.run, record.seq)).collect();
        for (run, seq) in last {
            let run = lock(&self.runs).get(run).cloned();
            if let Some(run) = run {
                run.settled(seq).await;
            }
        }
    }

    /// Returns the current state of a run if the run is in memory.
    pub(crate) fn view_in_memory(&self, run: &str) -> Option<Seen> {
        let found = lock(&self.runs).get(run).cloned();
        found.and_then(|run| run.view())
    }
}
