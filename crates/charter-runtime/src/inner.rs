//! The state of a host, shared by all of its handles and tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use charter_actors::{Clock, Executors, KeptFiles};
use charter_journal::{Manifest, Store, StoreError, StoredCharter};
use charter_kernel::{Digest, EffectId, Millis, Principal};
use rustc_hash::FxHashMap;

use crate::calls::registry::Calls;
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::events::Publisher;
use crate::mailbox::run::Run;
use crate::options::{FaultInjection, FindFolder, Limits, NewId, Options, ResumeRuns};
use crate::rates::Rates;
use crate::sync::{blocking, lock};
use crate::task_tracker::TaskTracker;
use crate::timer_queue::TimerQueue;

/// Delay before retrying a write that failed for lack of space.
pub(crate) const RETRY_WRITE: Millis = Millis(1_000);

/// Copies of a charter that are kept in memory, each from another place.
const MAX_COPIES: usize = 16;

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) inject: FaultInjection,
    pub(crate) executors: Executors,
    pub(crate) publisher: Publisher,
    pub(crate) timers: Arc<TimerQueue>,
    pub(crate) calls: Arc<Calls>,
    /// Tasks that process mailboxes.
    pub(crate) drains: Arc<TaskTracker>,
    /// Runs that are in memory.
    pub(crate) runs: Mutex<FxHashMap<Arc<str>, Arc<Run>>>,
    pub(crate) handle: tokio::runtime::Handle,
    pub(crate) new_id: NewId,
    pub(crate) timer_task: Mutex<Option<tokio::task::AbortHandle>>,
    /// What to resume when the journal is opened.
    pub(crate) resume: ResumeRuns,
    /// The invocations of each run that were open when the journal was opened, and have not been
    /// resumed.
    pub(crate) interrupted: Mutex<BTreeMap<String, BTreeSet<EffectId>>>,
    /// Runs whose actors were stopped, and begin no call until the run is resumed.
    pub(crate) stopped: Mutex<BTreeSet<String>>,
    /// Interrupted invocations of paused runs that are executed again once their run is resumed.
    pub(crate) held: Mutex<BTreeMap<String, BTreeSet<EffectId>>>,
    find_folder: FindFolder,
    /// The charters that were added, by digest: their copies from different places, in order.
    charters: Mutex<FxHashMap<Digest, Vec<Arc<Charter>>>>,
    /// The charters of runs in memory, by digest, digest of their manifest, and place.
    of_runs: Mutex<FxHashMap<(Digest, Digest, String), Weak<Charter>>>,
    rates: Mutex<Rates>,
    closing: AtomicBool,
}

impl Inner {
    pub(crate) fn new(store: Arc<dyn Store>, options: Options, handle: tokio::runtime::Handle) -> Inner {
        Inner {
            store,
            clock: options.clock,
            calls: Arc::new(Calls::new(options.limits.calls_at_once)),
            limits: options.limits,
            inject: options.inject,
            executors: options.executors,
            publisher: Publisher::new(),
            timers: Arc::default(),
            drains: Arc::default(),
            runs: Mutex::default(),
            handle,
            new_id: options.new_id,
            timer_task: Mutex::default(),
            resume: options.resume,
            interrupted: Mutex::default(),
            stopped: Mutex::default(),
            held: Mutex::default(),
            find_folder: options.find_folder,
            charters: Mutex::default(),
            of_runs: Mutex::default(),
            rates: Mutex::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// Checks that the host accepts an event of a principal now.
    pub(crate) fn open_for(&self, by: &Principal) -> Result<(), RuntimeError> {
        if self.is_closing() {
            return Err(RuntimeError::Closing);
        }
        lock(&self.rates).take(&by.id, self.clock.now(), self.limits.events_per_second)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// Reads or writes the store, on a thread for blocking work unless the store never blocks.
    pub(crate) async fn with_store<T: Send + 'static>(
        self: &Arc<Self>,
        f: impl FnOnce(&Inner) -> T + Send + 'static,
    ) -> Result<T, RuntimeError> {
        if !self.store.blocks() {
            return Ok(f(self));
        }
        let inner = self.clone();
        blocking(move || f(&inner)).await
    }

    pub(crate) fn keep_charter(&self, charter: &Arc<Charter>) {
        let mut charters = lock(&self.charters);
        let copies = charters.entry(charter.digest()).or_default();
        copies.retain(|copy| copy.stored.name != charter.stored.name);
        if copies.len() >= MAX_COPIES {
            copies.remove(0);
        }
        copies.push(charter.clone());
    }

    /// Returns the charter that was added last.
    pub(crate) fn charter_in_memory(&self, digest: Digest) -> Option<Arc<Charter>> {
        lock(&self.charters).get(&digest).and_then(|copies| copies.last().cloned())
    }

    /// Returns the copy of a charter that was added from a place; `None`: from the last one.
    pub(crate) fn copy_in_memory(&self, digest: Digest, place: Option<&str>) -> Option<Arc<Charter>> {
        let Some(place) = place else {
            return self.charter_in_memory(digest);
        };
        lock(&self.charters).get(&digest)?.iter().find(|copy| copy.stored.name == place).cloned()
    }

    /// Returns a charter that was added or that is in the journal.
    pub(crate) async fn charter(self: &Arc<Self>, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        if let Some(charter) = self.charter_in_memory(digest) {
            return Ok(charter);
        }
        self.with_store(move |inner| inner.stored_charter(digest, None).map(Arc::new)).await?
    }

    /// Reads a charter from the journal, with the folder where it was, or that of another place.
    pub(crate) fn stored_charter(&self, digest: Digest, place: Option<&str>) -> Result<Charter, RuntimeError> {
        let stored = self.store.charter(digest)?.ok_or(RuntimeError::UnknownCharter(digest))?;
        let stored = match place {
            Some(place) => StoredCharter { name: place.to_owned(), ..stored },
            None => stored,
        };
        let machine = match self.charter_in_memory(digest) {
            Some(added) => added.machine.clone(),
            None => Arc::new(charter_journal::machine(self.store.as_ref(), digest)?),
        };
        let folder = (self.find_folder)(&stored);
        Charter::of(machine, stored, folder)
    }

    /// Returns the charter of a run, with the files of its manifest, where the run was started.
    /// Must be called on a thread that may block on the store.
    pub(crate) fn charter_of_run(
        &self,
        run: &str,
        digest: Digest,
        manifest: Manifest,
    ) -> Result<Arc<Charter>, RuntimeError> {
        let place = charter_journal::place(self.store.as_ref(), run)?;
        let added = self.copy_in_memory(digest, place.as_deref());
        let name = place.clone().or_else(|| added.as_ref().map(|added| added.stored.name.clone()));
        let key = (digest, manifest.digest(digest), name.unwrap_or_default());
        if let Some(charter) = lock(&self.of_runs).get(&key).and_then(Weak::upgrade) {
            return Ok(charter);
        }
        let charter = match added {
            Some(added) if added.manifest() == manifest => added,
            Some(added) => Arc::new(self.restore(&added, manifest)?),
            None => Arc::new(self.restore(&self.stored_charter(digest, place.as_deref())?, manifest)?),
        };
        let mut of_runs = lock(&self.of_runs);
        of_runs.retain(|_, charter| charter.strong_count() > 0);
        of_runs.insert(key, Arc::downgrade(&charter));
        Ok(charter)
    }

    /// Returns a charter with the files of a manifest, which are blobs of the journal.
    fn restore(&self, charter: &Charter, manifest: Manifest) -> Result<Charter, RuntimeError> {
        let files = KeptFiles::restore(manifest, charter.folder().at().clone(), |path, digest| {
            let damaged = |why: &str| {
                StoreError::Damaged(format!("the file `{path}` of a run {why} (expected digest: {digest})"))
            };
            let bytes = self.store.blob(digest)?.ok_or_else(|| damaged("is missing"))?;
            match Digest::of_bytes(&bytes) == digest {
                true => Ok(bytes),
                false => Err(damaged("does not match its digest")),
            }
        });
        Ok(charter.with_files(files.map_err(RuntimeError::Store)?))
    }
}
