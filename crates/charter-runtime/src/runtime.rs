//! The handle of a host: opens a journal, starts runs, sends events, shuts down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use charter_journal::{StateChange, Store};
use charter_kernel::Digest;

use crate::admit;
use crate::charter::{Charter, Kept};
use crate::error::RuntimeError;
use crate::events::Working;
use crate::inner::Inner;
use crate::options::Options;
use crate::recovery::{self, Recovery};
use crate::request::{Receipt, SendEvent, Start};
use crate::sync::lock;

/// The message of the last event of a host, which tells its subscribers that it has shut down.
pub const SHUT_DOWN: &str = "the host has shut down";

/// How often running calls are counted.
const LOOK: Duration = Duration::from_millis(20);

/// A host in this process. Clones are handles of the same host. It ends with [`Runtime::shutdown`],
/// or when the last handle is dropped: running calls are aborted then, and resumed when the journal
/// is opened again.
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
    _last: Arc<LastHandle>,
}

/// Dropped with the last handle.
struct LastHandle(Arc<Inner>);

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.close();
        self.0.calls.abort_all();
        stop_timers(&self.0);
    }
}

fn stop_timers(inner: &Inner) {
    if let Some(task) = lock(&inner.timer_task).take() {
        task.abort();
    }
}

impl Runtime {
    /// Opens a journal and resumes its open invocations and timers. The host uses the current tokio
    /// runtime, which must have timers (`enable_time`).
    ///
    /// A run that cannot be resumed is reported in [`Recovery::failed`] and does not affect the
    /// others.
    ///
    /// # Errors
    /// The journal cannot be read, there is no current tokio runtime ([`RuntimeError::NoTokio`]),
    /// or the clock is far from the newest record ([`RuntimeError::WrongClock`]).
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<(Runtime, Recovery), RuntimeError> {
        let handle = tokio::runtime::Handle::try_current().map_err(|_| RuntimeError::NoTokio)?;
        let accept_clock = options.accept_clock;
        let inner = Arc::new(Inner::new(store, options, handle));
        if !accept_clock && let Some(newest) = inner.with_store(|inner| inner.store.newest()).await?? {
            charter_run::check_clock(inner.clock.now(), newest)?;
        }
        let recovery = recovery::recover(&inner).await?;
        let weak = Arc::downgrade(&inner);
        let fire = move |run: &Arc<str>| match weak.upgrade() {
            Some(inner) => {
                inner.post(run, charter_run::Input::Due);
                true
            }
            None => false,
        };
        let task = inner.handle.spawn(inner.timers.clone().run(inner.clock.clone(), fire));
        *lock(&inner.timer_task) = Some(task.abort_handle());
        let last = Arc::new(LastHandle(inner.clone()));
        Ok((Runtime { inner, _last: last }, recovery))
    }

    /// Adds a charter, so that its runs can start, and stores the files that its actors name: runs
    /// that start from now on use exactly these, in its folder. Runs that have started stay in
    /// theirs, even if it was another one.
    ///
    /// # Errors
    /// The charter exceeds a limit of the host, names a kind of actor that the host does not have,
    /// or has an actor with an invalid configuration; or the journal failed.
    pub async fn add(&self, charter: Charter) -> Result<Arc<Charter>, RuntimeError> {
        // This reads the files of the charter.
        let add = move |inner: &Inner| -> Result<Arc<Charter>, RuntimeError> {
            let Kept { charter, blobs } = admit::admit(&inner.limits, &inner.executors, &charter)?;
            if let Some(event) = charter.machine.unique_event().filter(|_| !inner.store.keeps_keys()) {
                let why = format!(
                    "the event `{event}` has a key that is unique across runs, and the store of this host does not reserve keys"
                );
                return Err(RuntimeError::Charter { charter: charter.machine.definition().id.clone(), why });
            }
            for bytes in blobs.values() {
                inner.store.put_blob(bytes)?;
            }
            inner.store.put_charter(&charter.stored)?;
            Ok(Arc::new(charter))
        };
        let charter = self.inner.with_store(add).await??;
        self.inner.keep_charter(&charter);
        Ok(charter)
    }

    /// Starts a run. Returns when record 0 is durable; the start may have been refused.
    ///
    /// # Errors
    /// See [`RuntimeError`].
    pub async fn start(&self, start: Start) -> Result<Receipt, RuntimeError> {
        self.start_in(start, None).await
    }

    /// Starts a run of the copy of its charter that was added under this name
    /// ([`StoredCharter::name`](charter_journal::StoredCharter::name)), so in the folder of that
    /// copy, even if a copy from another folder was added since. `None`: of the last copy.
    ///
    /// # Errors
    /// See [`RuntimeError`].
    pub async fn start_in(&self, start: Start, place: Option<&str>) -> Result<Receipt, RuntimeError> {
        let inner = &self.inner;
        inner.open_for(&start.by)?;
        let charter = match inner.copy_in_memory(start.charter, place) {
            Some(charter) => charter,
            None => {
                let (digest, place) = (start.charter, place.map(str::to_owned));
                let stored = inner.with_store(move |inner| inner.stored_charter(digest, place.as_deref())).await??;
                self.add(stored).await?
            }
        };
        let run: Arc<str> = start.run.clone().unwrap_or_else(|| (inner.new_id)()).into();
        charter_run::check_run_id(&run)?;
        let Start { input, by, .. } = start;
        let manifest = charter.manifest();
        inner.ask_start(&run, charter, charter_run::Input::Start { input, by, manifest }).await
    }

    /// Sends an event to a run. Returns when its record is durable; the event may have been
    /// refused.
    ///
    /// # Errors
    /// See [`RuntimeError`].
    pub async fn send(&self, send: SendEvent) -> Result<Receipt, RuntimeError> {
        self.inner.send(send).await
    }

    /// The models that the actors of a charter ask on this host, as in [`Manifest::models`]. A run
    /// may have begun with others.
    ///
    /// [`Manifest::models`]: charter_journal::Manifest::models
    #[must_use]
    pub fn models(&self, charter: &Charter) -> BTreeMap<String, Vec<String>> {
        admit::models(&self.inner.executors, charter)
    }

    /// The journal.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Looks up a charter that was added or that a run in the journal uses.
    ///
    /// # Errors
    /// The charter is unknown or cannot be read.
    pub async fn charter(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        self.inner.charter(digest).await
    }

    /// Resumes the invocations of a run that were open when the journal was opened, if the host was
    /// opened with [`ResumeRuns::OnRequest`](crate::ResumeRuns::OnRequest) and they still are open.
    /// The time of a fork goes on before that. Idempotent.
    pub async fn resume(&self, run: &str) -> Recovery {
        recovery::resume_interrupted(&self.inner, run).await
    }

    /// Arms the timers of all runs, if the host was opened with
    /// [`ResumeRuns::OnRequest`](crate::ResumeRuns::OnRequest). Idempotent. A fork whose time
    /// stands still waits for [`Runtime::resume`] or an event.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn resume_timers(&self) -> Result<(), RuntimeError> {
        recovery::arm_timers(&self.inner, recovery::Forks::Wait).await.map(drop)
    }

    /// Creates a run that shares the records of another one up to `at`. If it is `dry`, no actor is
    /// called for it.
    ///
    /// # Errors
    /// The run or record does not exist, the new id is taken or invalid, or the events have other
    /// results under the new id.
    pub async fn fork(&self, run: &str, at: u64, new: &str, dry: bool) -> Result<(), RuntimeError> {
        charter_run::check_run_id(new)?;
        let (run, id) = (run.to_owned(), new.to_owned());
        let write = move |inner: &Inner| -> Result<(), RuntimeError> {
            let info = inner.store.run(&run)?.ok_or_else(|| RuntimeError::UnknownRun(run.clone()))?;
            let machine = charter_journal::machine(inner.store.as_ref(), info.charter)?;
            charter_journal::fork(inner.store.as_ref(), &machine, &run, at, &id, dry)?;
            Ok(())
        };
        self.inner.with_store(write).await??;
        self.noticed(new).await
    }

    /// Moves a run to where its charter has this name: from now on, its actors work in that folder.
    /// Their programs must have the digests that they had when the run started.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn move_run(&self, run: &str, name: &str) -> Result<(), RuntimeError> {
        self.change_host_state(vec![charter_journal::move_run(run, name)]).await
    }

    pub(crate) async fn change_host_state(&self, changes: Vec<StateChange>) -> Result<(), RuntimeError> {
        let moved: Vec<String> = changes.iter().filter_map(charter_journal::moved_run).map(str::to_owned).collect();
        self.inner.with_store(move |inner| inner.store.put_host_state(changes)).await??;
        moved.iter().for_each(|run| self.inner.reload(run));
        Ok(())
    }

    /// Takes notice of a run that was written into the journal without this host, by a fork or an
    /// import: its timers are armed, and [`Runtime::resume`] resumes its open invocations.
    ///
    /// # Errors
    /// The run cannot be read.
    pub async fn noticed(&self, run: &str) -> Result<(), RuntimeError> {
        recovery::note_interrupted(&self.inner, run).await
    }

    /// The calls of actors that are running, of all runs.
    #[must_use]
    pub fn working(&self) -> Vec<Working> {
        self.inner.calls.all()
    }

    /// Waits until no call of an actor is running and no input is being processed.
    pub async fn idle(&self) {
        let inner = &self.inner;
        while !(inner.drains.is_zero() && inner.calls.tasks.is_zero()) {
            inner.drains.zero().await;
            inner.calls.tasks.zero().await;
        }
    }

    /// Stops the running calls of a run, as the end of this host would: their invocations stay
    /// open, and no call of the run begins, until [`Runtime::resume`] resumes it.
    pub fn stop(&self, run: &str) {
        self.inner.stop(&run.into());
    }

    /// Waits until no call of an actor is running for these runs and no input is being processed.
    pub async fn idle_in(&self, runs: &BTreeSet<String>) {
        let inner = &self.inner;
        loop {
            inner.drains.zero().await;
            if self.working().iter().all(|call| !runs.contains(&*call.run)) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Shuts down the host: accepts no more events, waits for running calls (at most `grace`), then
    /// aborts them. Aborted calls are resumed when the journal is opened again. Drop the store as
    /// well so that another process can open it.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &self.inner;
        inner.close();
        let _ = tokio::time::timeout(grace, inner.calls.tasks.zero()).await;
        inner.calls.abort_all();
        inner.calls.tasks.zero().await;
        inner.drains.zero().await;
        stop_timers(inner);
        // Wake subscribers that wait for an event.
        inner.publisher.trouble(None, SHUT_DOWN.into());
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}
