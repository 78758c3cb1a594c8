//! Reads a run from the journal, and the records that a batch needs from it.

use std::sync::Arc;

use charter_journal::{Record, RunInfo, Store, StoreError};
use charter_kernel::Digest;
use charter_run::IdState;
use rustc_hash::FxHashMap;

use super::keys::Keys;
use super::run::{RunState, TRUST, allows};
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::inner::Inner;
use crate::request::Input;

/// Records that decide whether an input repeats an earlier one, read before a batch is evaluated.
#[derive(Default)]
pub(super) struct Lookups {
    /// Record 0, for a start of a run that exists.
    pub(super) first: Option<Record>,
    /// Records by event id. Ids without a record have no entry.
    pub(super) by_id: FxHashMap<String, Record>,
    /// The unique keys of the events.
    pub(super) keys: Keys,
    /// Whether there is an id that may belong to an older event and was not looked up.
    pub(super) unsure: bool,
}

/// Whether a run in a journal came from another one, and nobody has allowed its actors to work:
/// what [`View::untrusted`](crate::View::untrusted) says, without a host.
///
/// # Errors
/// The journal cannot be read.
pub fn is_untrusted(store: &dyn Store, run: &RunInfo) -> Result<bool, StoreError> {
    let first = store.records(&run.run, 0, 1)?.into_iter().next();
    let manifest = first.and_then(|first| first.manifest.clone()).map(|manifest| *manifest).unwrap_or_default();
    Ok(!trusts(store, &run.run, &manifest.digest(run.charter))?)
}

fn trusts(store: &dyn Store, run: &str, manifest: &Digest) -> Result<bool, StoreError> {
    let imported = store.imported(run)?;
    if imported == 0 {
        return Ok(true);
    }
    let mut trusted = false;
    store.scan(Some(run), imported, &mut |row| {
        trusted = row.r#type == TRUST
            && std::str::from_utf8(row.text).is_ok_and(|t| Record::read(t).is_ok_and(|r| allows(&r, manifest)));
        !trusted
    })?;
    Ok(trusted)
}

impl Inner {
    /// Reads a run from the journal.
    pub(crate) async fn load(self: &Arc<Self>, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let run = run.to_owned();
        self.with_store(move |inner| inner.load_now(&run)).await?
    }

    /// Like [`Inner::load`], but must be called on a thread that may block on the store.
    pub(crate) fn load_now(&self, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let info = self.store.run(run)?.ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
        let first = self.store.records(run, 0, 1)?.into_iter().next();
        let origin = first.as_ref().and_then(|first| first.forked_from.clone());
        let manifest = first.and_then(|first| first.manifest.clone()).map(|m| *m).unwrap_or_default();
        let charter = self.charter_of_run(run, info.charter, manifest)?;
        let loaded = charter_journal::load(self.store.as_ref(), &charter.machine, run)?;
        let mut current = charter_run::Run::loaded(loaded, info.updated).with_origin(origin.as_ref());
        let read = |from: u64, limit: usize| self.store.records(run, from, limit);
        current.note_refused(read)?;
        current.note_fork(read)?;
        current.note_attempts(&charter.machine, read)?;
        let trusted = self.is_trusted(run, &charter)?;
        let imported = self.store.imported(run)?;
        Ok(Box::new(RunState { charter, run: current, trusted, imported }))
    }

    /// Whether a run was started here, or somebody has allowed its manifest since it was imported.
    pub(crate) fn is_trusted(&self, run: &str, charter: &Charter) -> Result<bool, RuntimeError> {
        Ok(trusts(self.store.as_ref(), run, &charter.manifest().digest(charter.digest()))?)
    }

    /// Reads the records that a batch needs, all in one trip to the store. With `all_ids`, also
    /// looks up ids that may belong to older events; without it, the store refuses a batch that
    /// contains such an id.
    pub(super) async fn look_up<'a>(
        self: &Arc<Self>,
        state: &RunState,
        inputs: impl Iterator<Item = &'a Input>,
        all_ids: bool,
    ) -> Result<Lookups, RuntimeError> {
        let (mut ids, mut start, mut unsure) = (Vec::new(), false, false);
        let mut keys = Vec::new();
        // The charter of a run that has not started is that of its start.
        let mut charters = vec![&state.charter];
        for input in inputs {
            if let charter_run::Input::Event(event) = &input.input {
                let key = |c: &&Arc<Charter>| c.machine.unique_key(&event.r#type, &event.data, &event.by);
                keys.extend(charters.iter().filter_map(key).map(|key| (event.r#type.clone(), key)));
            }
            charters.extend(input.charter.as_ref().filter(|_| !state.run.exists()));
            match &input.input {
                charter_run::Input::Event(charter_run::EventInput { id: Some(id), .. }) => {
                    match state.run.id_state(id) {
                        IdState::New => {}
                        IdState::Recent(seq) => ids.push((id.clone(), Some(seq))),
                        IdState::Unknown if all_ids => ids.push((id.clone(), None)),
                        IdState::Unknown => unsure = true,
                    }
                }
                charter_run::Input::Start { .. } => start |= state.run.exists(),
                _ => {}
            }
        }
        if ids.is_empty() && !start && keys.is_empty() {
            return Ok(Lookups { unsure, ..Lookups::default() });
        }
        let (run, dry) = (state.run.id().to_owned(), state.run.is_dry());
        let read = move |inner: &Inner| -> Result<Lookups, RuntimeError> {
            let mut lookups = Lookups { unsure, ..Lookups::default() };
            lookups.keys = Keys::read(inner.store.as_ref(), &run, dry, keys)?;
            if start {
                lookups.first = inner.store.records(&run, 0, 1)?.into_iter().next();
            }
            for (id, seq) in ids {
                // Another id may have the same hash.
                let recent = seq.map(|seq| inner.store.records(&run, seq, 1)).transpose()?;
                let recent = recent.and_then(|records| records.into_iter().find(|r| *r.id == *id));
                if let Some(record) = recent.map_or_else(|| inner.store.find(&run, &id), |r| Ok(Some(r)))? {
                    lookups.by_id.insert(id, record);
                }
            }
            Ok(lookups)
        };
        self.with_store(read).await?
    }
}
