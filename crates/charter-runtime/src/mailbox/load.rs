//! Reading a run from the journal, and the records that a batch needs from it.

use std::sync::Arc;

use charter_journal::{Record, StoreError};
use rustc_hash::FxHashMap;

use super::run::RunState;
use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::request::Input;

/// Records that decide whether an input is a repetition, read before a batch is evaluated.
#[derive(Default)]
pub(super) struct Lookups {
    /// Record 0, for a start of a run that exists.
    pub(super) first: Option<Result<Record, StoreError>>,
    /// Records by the id of the event; only those that exist.
    pub(super) by_id: FxHashMap<String, Result<Record, StoreError>>,
}

impl Inner {
    /// Reads a run from the journal.
    pub(crate) async fn load(self: &Arc<Self>, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let run = run.to_owned();
        self.with_store(move |inner| inner.load_now(&run)).await?
    }

    /// As [`Inner::load`], on a thread that may wait for the store.
    pub(crate) fn load_now(&self, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let info = self.store.run(run)?.ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
        let charter = self.charter_now(info.charter)?;
        let loaded = charter_journal::load(self.store.as_ref(), &charter.machine, run)?;
        Ok(Box::new(RunState::new(charter, loaded.snapshot, loaded.chain, info.updated)))
    }

    /// Reads the records that a batch needs. One trip to the store for all of them.
    pub(super) async fn look_up<'a>(
        self: &Arc<Self>,
        run: &Arc<str>,
        exists: bool,
        inputs: impl Iterator<Item = &'a Input>,
    ) -> Result<Lookups, RuntimeError> {
        let (mut ids, mut start) = (Vec::new(), false);
        for input in inputs {
            match input {
                Input::Event { send, .. } => ids.extend(send.id.clone()),
                Input::Start { .. } => start |= exists,
                _ => {}
            }
        }
        if ids.is_empty() && !start {
            return Ok(Lookups::default());
        }
        let run = run.clone();
        let read = move |inner: &Inner| {
            let first =
                start.then(|| inner.store.records(&run, 0, 1).map(|found| found.into_iter().next()).transpose());
            let by_id = ids.into_iter().filter_map(|id| {
                let record = inner.store.find(&run, &id).transpose()?;
                Some((id, record))
            });
            Lookups { first: first.flatten(), by_id: by_id.collect() }
        };
        self.with_store(read).await
    }
}
