//! The host of one process: opens a journal, takes up what was left open, takes events, tells what happens.

mod look;
mod request;
mod tasks;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use charter_actors::{Clock, Executors};
use charter_journal::Store;
use charter_kernel::{Digest, Principal, is_larger};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

pub(crate) use request::{Input, Reply};
pub use request::{Receipt, SendEvent, Start, Task, View};
pub(crate) use tasks::{may, task_roles};

use crate::admit;
use crate::bounds::Rates;
use crate::calls::Calls;
use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::mailbox::{Queued, Run};
use crate::options::{Faults, FindFolder, Limits, NewId, Options};
use crate::publish::Publisher;
use crate::recovery::{self, Recovery};
use crate::task_tracker::TaskTracker;
use crate::timer_queue::TimerQueue;

/// The host of one process. Clones are the same host; it ends with [`Runtime::shutdown`], or when the last clone is dropped (what
/// is at work is cut off then, and taken up again when the journal is opened the next time).
#[derive(Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
    _last: Arc<Last>,
}

/// Dropped with the last handle.
struct Last(Arc<Inner>);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.closing.store(true, Ordering::SeqCst);
        self.0.calls.abort_all();
        if let Some(wheel) = lock(&self.0.wheel_task).take() {
            wheel.abort();
        }
    }
}

pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) faults: Faults,
    pub(crate) executors: Executors,
    pub(crate) publisher: Publisher,
    pub(crate) wheel: Arc<TimerQueue>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) drains: Arc<TaskTracker>,
    pub(crate) cells: Mutex<FxHashMap<Arc<str>, Arc<Run>>>,
    pub(crate) handle: tokio::runtime::Handle,
    find_folder: FindFolder,
    new_id: NewId,
    charters: Mutex<FxHashMap<Digest, Arc<Charter>>>,
    rates: Mutex<Rates>,
    closing: AtomicBool,
    wheel_task: Mutex<Option<tokio::task::AbortHandle>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is under these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runtime {
    /// Opens a journal and takes up what was left open. It lives on the tokio runtime that it is opened in, which must have timers (`enable_time`).
    ///
    /// A run that cannot be taken up is in the answer with the reason, and does not hold up the others.
    ///
    /// # Errors
    /// The journal cannot be read; or this is no tokio runtime ([`RuntimeError::NoTokio`]).
    pub async fn open(store: Arc<dyn Store>, options: Options) -> Result<(Runtime, Recovery), RuntimeError> {
        let handle = tokio::runtime::Handle::try_current().map_err(|_| RuntimeError::NoTokio)?;
        let calls = Arc::new(Calls::new(options.limits.calls_at_once));
        let inner = Arc::new(Inner {
            store,
            clock: options.clock,
            limits: options.limits,
            faults: options.faults,
            executors: options.executors,
            publisher: Publisher::new(),
            wheel: Arc::default(),
            calls,
            drains: Arc::default(),
            cells: Mutex::default(),
            handle,
            find_folder: options.find_folder,
            new_id: options.new_id,
            charters: Mutex::default(),
            rates: Mutex::default(),
            closing: AtomicBool::new(false),
            wheel_task: Mutex::default(),
        });
        let recovery = recovery::recover(&inner).await?;
        let wheel = inner.handle.spawn(TimerQueue::turn(Arc::downgrade(&inner)));
        *lock(&inner.wheel_task) = Some(wheel.abort_handle());
        let last = Arc::new(Last(inner.clone()));
        Ok((Runtime { inner, _last: last }, recovery))
    }

    /// Adds a charter, so that runs of it can start. Its folder is used for its runs from now on.
    ///
    /// # Errors
    /// It asks for more than the host allows, names a kind of actor that the host does not have, or an actor's configuration is
    /// wrong; or the journal failed.
    pub async fn add(&self, charter: Charter) -> Result<Arc<Charter>, RuntimeError> {
        admit::admit(&self.inner.limits, &self.inner.executors, &charter)?;
        let charter = Arc::new(charter);
        let (inner, kept) = (self.inner.clone(), charter.clone());
        blocking(move || inner.store.put_charter(&kept.stored)).await??;
        lock(&self.inner.charters).insert(charter.digest(), charter.clone());
        Ok(charter)
    }

    /// Starts a run. The answer comes when record 0 is durable; it may say that the start was refused.
    ///
    /// # Errors
    /// See [`RuntimeError`].
    pub async fn start(&self, start: Start) -> Result<Receipt, RuntimeError> {
        let inner = &self.inner;
        inner.open_for(&start.by)?;
        let charter = inner.charter(start.charter)?;
        let run: Arc<str> = start.run.clone().unwrap_or_else(|| (inner.new_id)()).into();
        admit::check_run_id(&run)?;
        inner.ask(&run, |reply| Input::Start { charter, start: Box::new(start), reply }).await
    }

    /// Sends an event to a run. The answer comes when its record is durable; it may say that the event was refused, and why.
    ///
    /// # Errors
    /// See [`RuntimeError`].
    pub async fn send(&self, send: SendEvent) -> Result<Receipt, RuntimeError> {
        self.inner.send(send).await
    }

    /// The journal.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// A charter that was added, or that a run in the journal follows.
    ///
    /// # Errors
    /// It is not known, or cannot be read.
    pub fn charter(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        self.inner.charter(digest)
    }

    /// Ends the host: takes no more events, waits for actors at work (at most `grace`), then cuts them off. What was cut off is
    /// taken up when the journal is opened again. Give up the store too, to let another process have it.
    pub async fn shutdown(&self, grace: Duration) {
        let inner = &self.inner;
        inner.closing.store(true, Ordering::SeqCst);
        let _ = tokio::time::timeout(grace, inner.calls.tally.zero()).await;
        inner.calls.abort_all();
        inner.calls.tally.zero().await;
        inner.drains.zero().await;
        if let Some(wheel) = lock(&inner.wheel_task).take() {
            wheel.abort();
        }
        // Whoever waits for news learns that there will be none.
        inner.publisher.trouble(None, "the host has shut down".into());
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}

impl Inner {
    /// Whether the host takes something from a principal now.
    fn open_for(&self, by: &Principal) -> Result<(), RuntimeError> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(RuntimeError::Closing);
        }
        lock(&self.rates).take(&by.id, self.clock.now(), self.limits.events_per_second)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    pub(crate) async fn send(self: &Arc<Self>, send: SendEvent) -> Result<Receipt, RuntimeError> {
        self.open_for(&send.by)?;
        let most = self.limits.data_bytes;
        if most > 0 && is_larger(&send.data, most) {
            return Err(RuntimeError::Limit {
                limit: "data_bytes",
                value: most,
                what: format!("the data of `{}` is too large", send.r#type),
            });
        }
        let run: Arc<str> = send.run.as_str().into();
        self.ask(&run, |reply| Input::Event { send: Box::new(send), reply }).await
    }

    /// Puts something from outside into a mailbox and waits for the answer.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        run: &str,
        mail: impl FnOnce(Reply) -> Input,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, answer) = oneshot::channel();
        let letter = Queued::new(mail(reply), self.clock.work());
        self.deliver(run, letter, true)?;
        answer.await.unwrap_or(Err(RuntimeError::Closing))
    }

    /// Puts something of the host's own into a mailbox.
    pub(crate) fn post(self: &Arc<Self>, run: &str, mail: Input) {
        let letter = Queued::new(mail, self.clock.work());
        // Only mail from outside is bounded.
        let _ = self.deliver(run, letter, false);
    }

    /// A charter: added, or from the journal.
    pub(crate) fn charter(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        if let Some(charter) = lock(&self.charters).get(&digest) {
            return Ok(charter.clone());
        }
        let stored = self.store.charter(digest)?.ok_or(RuntimeError::UnknownCharter(digest))?;
        let machine = charter_journal::machine(self.store.as_ref(), digest)?;
        let folder = (self.find_folder)(&stored);
        let charter = Arc::new(Charter::of(Arc::new(machine), stored, folder)?);
        Ok(lock(&self.charters).entry(digest).or_insert(charter).clone())
    }
}

/// Runs something that waits for a disk, beside the tasks.
pub(crate) async fn blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(f).await.map_err(|_| RuntimeError::Closing)
}
