//! The host of one process: opens a journal, takes up what was left open, takes events, tells what happens.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use charter_journal::{Record, RunFilter, RunInfo, Store, Verdict};
use charter_kernel::{Digest, EffectId, Explanation, Legal, Principal, Snapshot, Status};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use tokio::sync::oneshot;

use crate::bounds::Rates;
use crate::call::Executor;
use crate::calls::Calls;
use crate::charter::Charter;
use crate::clock::Clock;
use crate::error::RuntimeError;
use crate::mailbox::{Cell, Letter};
use crate::options::{Faults, FindFolder, Limits, NewId, Options};
use crate::publish::{Publisher, Subscription, Working};
use crate::recovery::{self, Recovery};
use crate::tally::Tally;
use crate::wheel::Wheel;

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
    pub(crate) executors: BTreeMap<String, Arc<dyn Executor>>,
    pub(crate) publisher: Publisher,
    pub(crate) wheel: Arc<Wheel>,
    pub(crate) calls: Arc<Calls>,
    pub(crate) drains: Arc<Tally>,
    pub(crate) cells: Mutex<FxHashMap<Arc<str>, Arc<Cell>>>,
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

/// A run to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The charter ([`Runtime::add`] gave its digest).
    pub charter: Digest,
    /// Its id; none: the host makes one. The same id with the same input is the same run.
    pub run: Option<String>,
    /// What it starts with.
    pub input: Json,
    /// Who starts it.
    pub by: Principal,
}

/// An event to send.
#[derive(Debug, Clone)]
pub struct Send {
    /// The run.
    pub run: String,
    /// The actor it is for; none: the root.
    pub to: Option<String>,
    /// Event type; run control too (`charter.pause`, `charter.resume`, `charter.cancel`).
    pub r#type: String,
    /// Event data.
    pub data: Json,
    /// Who sends it, as the host has authenticated it.
    pub by: Principal,
    /// The sender's idempotency key: the same id with the same content gives the first answer again, and nothing happens.
    pub id: Option<String>,
    /// The last record the sender has seen; if the run has changed since, the event is refused as `stale`.
    pub expected_seq: Option<u64>,
}

impl Send {
    /// An event for the root of a run.
    #[must_use]
    pub fn new(run: &str, r#type: &str, data: Json, by: Principal) -> Send {
        Send {
            run: run.into(),
            to: None,
            r#type: r#type.into(),
            data,
            by,
            id: None,
            expected_seq: None,
        }
    }
    /// For an actor of the run.
    #[must_use]
    pub fn to(mut self, actor: &str) -> Send {
        self.to = Some(actor.into());
        self
    }
    /// With an idempotency key.
    #[must_use]
    pub fn id(mut self, id: &str) -> Send {
        self.id = Some(id.into());
        self
    }
}

/// An event was recorded, whatever became of it.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The record, durable.
    pub record: Record,
    /// The run after it (of a repeated event: as it is now); none if its start was refused.
    pub snapshot: Option<Snapshot>,
    /// The event had been recorded before, under the same id; nothing has happened now.
    pub repeated: bool,
}

impl Receipt {
    /// Why it was refused; none if it was not.
    #[must_use]
    pub fn refusal(&self) -> Option<&Explanation> {
        self.record.refusal.as_deref()
    }
    /// Whether it was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.record.verdict == Verdict::Refused
    }
}

/// A run as it is now.
#[derive(Debug, Clone)]
pub struct View {
    /// Its charter.
    pub charter: Arc<Charter>,
    /// Its snapshot.
    pub snapshot: Snapshot,
    /// Actors at work for it on this host right now.
    pub working: Vec<Working>,
    /// Tasks that wait for a person.
    pub tasks: Vec<Task>,
}

impl View {
    /// Whether nothing can happen any more although the run goes on: no timer, nothing at work, no event that anybody could send.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        let s = &self.snapshot;
        if s.status() != Status::Active
            || !s.timers().is_empty()
            || s.invocations().any(|(_, i)| !i.is_machine())
        {
            return false;
        }
        let machine = &self.charter.machine;
        let anybody = Principal {
            id: String::new(),
            roles: machine.definition().roles.keys().cloned().collect(),
        };
        // What is legal depends on time only through permits that end, so any moment will do.
        machine.legal(s, &anybody, i64::from(u32::MAX)).is_empty()
    }
}

/// Something that waits for a person: an invocation of an actor of kind `human`.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The run.
    pub run: String,
    /// The effect, `RUN/SEQ/INDEX`: what [`Runtime::complete`] is given.
    pub effect: String,
    /// The actor of the run that waits.
    pub actor: String,
    /// Id of the invocation.
    pub invocation: String,
    /// The entry of `actors`.
    pub src: String,
    /// What it is about (`title` of the actor).
    pub title: Option<String>,
    /// Who may answer (`by` of the actor); empty: anybody.
    pub by: Vec<String>,
    /// What the person is shown.
    pub input: Json,
    /// JSON Schema of the answer, if the charter has one.
    pub output: Option<Json>,
}

pub(crate) type Reply = oneshot::Sender<Result<Receipt, RuntimeError>>;

/// What comes into a mailbox.
pub(crate) enum Mail {
    Start {
        charter: Arc<Charter>,
        start: Box<Start>,
        reply: Reply,
    },
    Event {
        send: Box<Send>,
        reply: Reply,
    },
    Answer {
        invocation: String,
        effect: EffectId,
        outcome: Result<Json, Json>,
        person: Option<Principal>,
        reply: Reply,
    },
    /// An attempt has failed, and another one follows: for the record.
    Attempt {
        invocation: String,
        effect: EffectId,
        attempt: u32,
        error: Json,
        retry_at: i64,
        reply: Reply,
    },
    /// A timer is due.
    Due,
}

impl Runtime {
    /// Opens a journal and takes up what was left open. To be called inside a tokio runtime.
    ///
    /// A run that cannot be taken up is in the answer with the reason, and does not hold up the others.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn open(
        store: Arc<dyn Store>,
        options: Options,
    ) -> Result<(Runtime, Recovery), RuntimeError> {
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
            handle: tokio::runtime::Handle::current(),
            find_folder: options.find_folder,
            new_id: options.new_id,
            charters: Mutex::default(),
            rates: Mutex::default(),
            closing: AtomicBool::new(false),
            wheel_task: Mutex::default(),
        });
        let recovery = recovery::recover(&inner).await?;
        let wheel = inner.handle.spawn(Wheel::turn(Arc::downgrade(&inner)));
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
        self.inner.admit(&charter)?;
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
        check_run_id(&run)?;
        inner
            .ask(&run, |reply| Mail::Start {
                charter,
                start: Box::new(start),
                reply,
            })
            .await
    }

    /// Sends an event to a run. The answer comes when its record is durable; it may say that the event was refused, and why.
    ///
    /// # Errors
    /// See [`RuntimeError`].
    pub async fn send(&self, send: Send) -> Result<Receipt, RuntimeError> {
        self.inner.send(send).await
    }

    /// Answers a task that waits for a person ([`Task::effect`]). The output is checked against the actor's schema; one that does not
    /// fit is refused, and the task goes on waiting.
    ///
    /// # Errors
    /// There is no such task, it is for other roles, or as [`Runtime::send`].
    pub async fn complete(
        &self,
        task: &str,
        output: Json,
        by: Principal,
    ) -> Result<Receipt, RuntimeError> {
        self.settle_task(task, Ok(output), by).await
    }

    /// Declines a task that waits for a person: its invocation fails with the code `declined`.
    ///
    /// # Errors
    /// As [`Runtime::complete`].
    pub async fn decline(
        &self,
        task: &str,
        reason: &str,
        by: Principal,
    ) -> Result<Receipt, RuntimeError> {
        let error = crate::Fault::new("declined", reason)
            .with("by", by.id.as_str())
            .json();
        self.settle_task(task, Err(error), by).await
    }

    async fn settle_task(
        &self,
        task: &str,
        outcome: Result<Json, Json>,
        by: Principal,
    ) -> Result<Receipt, RuntimeError> {
        let inner = &self.inner;
        inner.open_for(&by)?;
        let no_task = || RuntimeError::NoTask {
            run: String::new(),
            task: task.into(),
        };
        let (run, effect) = run_of(task).ok_or_else(no_task)?;
        inner
            .ask(run, |reply| Mail::Answer {
                invocation: String::new(),
                effect,
                outcome,
                person: Some(by),
                reply,
            })
            .await
    }

    /// A run as it is now.
    ///
    /// # Errors
    /// There is no such run, or it cannot be made again from its records.
    pub async fn view(&self, run: &str) -> Result<View, RuntimeError> {
        let (charter, snapshot) = self.inner.look(run).await?;
        let tasks = self.inner.tasks_of(&charter, &snapshot);
        Ok(View {
            charter,
            snapshot,
            working: self.inner.calls.of_run(run),
            tasks,
        })
    }

    /// What a principal may send to a run now.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub async fn legal(&self, run: &str, by: &Principal) -> Result<Vec<Legal>, RuntimeError> {
        let (charter, snapshot) = self.inner.look(run).await?;
        Ok(charter.machine.legal(&snapshot, by, self.inner.clock.now()))
    }

    /// Tasks that wait for a person with these roles, over all runs, at most `limit`.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn tasks(&self, by: &Principal, limit: usize) -> Result<Vec<Task>, RuntimeError> {
        let mut out = Vec::new();
        for run in recovery::runs_with_open_effects(&self.inner).await? {
            let Ok((charter, snapshot)) = self.inner.look(&run).await else {
                continue;
            };
            let tasks = self.inner.tasks_of(&charter, &snapshot);
            out.extend(tasks.into_iter().filter(|t| may(&t.by, by)));
            if out.len() >= limit {
                out.truncate(limit);
                break;
            }
        }
        Ok(out)
    }

    /// Runs, as the journal lists them.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunInfo>, RuntimeError> {
        let inner = self.inner.clone();
        Ok(blocking(move || inner.store.runs(&filter)).await??)
    }

    /// What happens from now on, in one run or in all.
    #[must_use]
    pub fn subscribe(&self, run: Option<&str>) -> Subscription {
        self.inner.publisher.subscribe(run)
    }

    /// Waits until a run has ended, and gives it as it is then.
    ///
    /// # Errors
    /// As [`Runtime::view`]; [`RuntimeError::Closing`] if the host ends first.
    pub async fn ended(&self, run: &str) -> Result<View, RuntimeError> {
        self.until(run, |snapshot| snapshot.status().is_finished())
            .await
    }

    /// Waits until something holds of a run, and gives it as it is then.
    ///
    /// # Errors
    /// As [`Runtime::ended`].
    pub async fn until(
        &self,
        run: &str,
        mut holds: impl FnMut(&Snapshot) -> bool,
    ) -> Result<View, RuntimeError> {
        let mut news = self.subscribe(Some(run));
        loop {
            let view = self.view(run).await?;
            if holds(&view.snapshot) {
                return Ok(view);
            }
            if self.inner.closing.load(Ordering::SeqCst) || news.next().await.is_none() {
                return Err(RuntimeError::Closing);
            }
        }
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
        inner
            .publisher
            .trouble(None, "the host has shut down".into());
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Runtime")
    }
}

impl Inner {
    /// Whether a charter may be hosted here.
    pub(crate) fn admit(&self, charter: &Charter) -> Result<(), RuntimeError> {
        let definition = charter.machine.definition();
        let asked = &definition.limits;
        let bounds = [
            (
                "actors_per_run",
                self.limits.actors_per_run,
                asked.actors,
                "actors",
            ),
            (
                "timers_per_run",
                self.limits.timers_per_run,
                asked.timers,
                "timers",
            ),
        ];
        for (limit, most, asked, key) in bounds {
            if most > 0 && asked > most {
                return Err(RuntimeError::Limit {
                    limit,
                    value: most.into(),
                    what: format!(
                        "the charter `{}` asks for `limits.{key}: {asked}`",
                        definition.id
                    ),
                });
            }
        }
        for (name, service) in &charter.actors {
            let wrong = |why: String| RuntimeError::Charter {
                charter: definition.id.clone(),
                why: format!("actor `{name}`: {why}"),
            };
            let Some(executor) = self.executors.get(service.kind.as_ref()) else {
                let kinds: Vec<String> = self.executors.keys().map(|k| format!("`{k}`")).collect();
                return Err(wrong(format!(
                    "this host has no executor for the kind `{}`; it has {}",
                    service.kind,
                    kinds.join(", ")
                )));
            };
            if let Some(role) = service
                .conduct
                .roles
                .iter()
                .find(|r| !definition.roles.contains_key(*r))
            {
                return Err(wrong(format!(
                    "`as` names the role `{role}`, which the charter does not declare"
                )));
            }
            executor
                .check(name, &service.decl, &charter.folder)
                .map_err(wrong)?;
        }
        Ok(())
    }

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

    pub(crate) async fn send(self: &Arc<Self>, send: Send) -> Result<Receipt, RuntimeError> {
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
        self.ask(&run, |reply| Mail::Event {
            send: Box::new(send),
            reply,
        })
        .await
    }

    /// Puts something from outside into a mailbox and waits for the answer.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        run: &str,
        mail: impl FnOnce(Reply) -> Mail,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, answer) = oneshot::channel();
        let letter = Letter::new(mail(reply), self.clock.work());
        self.deliver(run, letter, true)?;
        answer.await.unwrap_or(Err(RuntimeError::Closing))
    }

    /// Puts something of the host's own into a mailbox.
    pub(crate) fn post(self: &Arc<Self>, run: &str, mail: Mail) {
        let letter = Letter::new(mail, self.clock.work());
        // Only mail from outside is bounded.
        let _ = self.deliver(run, letter, false);
    }

    /// A charter: added, or from the journal.
    pub(crate) fn charter(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        if let Some(charter) = lock(&self.charters).get(&digest) {
            return Ok(charter.clone());
        }
        let stored = self
            .store
            .charter(digest)?
            .ok_or(RuntimeError::UnknownCharter(digest))?;
        let machine = charter_journal::machine(self.store.as_ref(), digest)?;
        let folder = (self.find_folder)(&stored);
        let charter = Arc::new(Charter::of(Arc::new(machine), stored, folder)?);
        Ok(lock(&self.charters)
            .entry(digest)
            .or_insert(charter)
            .clone())
    }

    /// A run as it is now, without touching its mailbox.
    pub(crate) async fn look(
        self: &Arc<Self>,
        run: &str,
    ) -> Result<(Arc<Charter>, Snapshot), RuntimeError> {
        let cell = lock(&self.cells).get(run).cloned();
        if let Some(seen) = cell.and_then(|c| c.view()) {
            return Ok(seen);
        }
        let state = self.load(run).await?;
        let snapshot = state
            .snapshot
            .ok_or_else(|| RuntimeError::NeverStarted(run.into()))?;
        Ok((state.charter, snapshot))
    }

    /// What of a snapshot waits for a person.
    pub(crate) fn tasks_of(&self, charter: &Charter, snapshot: &Snapshot) -> Vec<Task> {
        if snapshot.status() != Status::Active {
            return Vec::new();
        }
        let task = |(actor, i): (&charter_kernel::Actor, &charter_kernel::Invocation)| {
            let service = charter
                .actors
                .get(i.src.as_ref())
                .filter(|s| s.kind.as_ref() == "human" && !i.is_machine())?;
            let config = &service.decl.config;
            Some(Task {
                run: snapshot.run().to_owned(),
                effect: i.effect.text(snapshot.run()),
                actor: actor.id().to_owned(),
                invocation: i.id.to_string(),
                src: i.src.to_string(),
                title: config
                    .get("title")
                    .and_then(Json::as_str)
                    .map(str::to_owned),
                by: task_roles(charter, &i.src),
                input: (*i.input).clone(),
                output: service.decl.output.clone(),
            })
        };
        snapshot.invocations().filter_map(task).collect()
    }
}

/// Roles that may answer a task of an actor.
pub(crate) fn task_roles(charter: &Charter, src: &str) -> Vec<String> {
    let config = charter
        .actors
        .get(src)
        .and_then(|s| s.decl.config.get("by"));
    config
        .and_then(|by| crate::config::texts("by", by).ok())
        .unwrap_or_default()
}

/// Whether a principal has one of the roles; an empty list asks for none.
pub(crate) fn may(roles: &[String], by: &Principal) -> bool {
    roles.is_empty() || roles.iter().any(|r| by.roles.contains(r))
}

/// `RUN/SEQ/INDEX`.
fn run_of(effect: &str) -> Option<(&str, EffectId)> {
    let id = EffectId::parse(effect)?;
    let run = effect.rsplitn(3, '/').nth(2)?;
    Some((run, id))
}

fn check_run_id(run: &str) -> Result<(), RuntimeError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if run.is_empty() || run.len() > 128 || !run.chars().all(fine) {
        return Err(RuntimeError::BadRunId(run.chars().take(140).collect()));
    }
    Ok(())
}

/// Whether the JSON text of a value has more than `most` bytes.
pub(crate) fn is_larger(value: &Json, most: u64) -> bool {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let len = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            self.0 = self
                .0
                .checked_sub(len)
                .ok_or(std::io::ErrorKind::FileTooLarge)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    serde_json::to_writer(Count(most), value).is_err()
}

/// Runs something that waits for a disk, beside the tasks.
pub(crate) async fn blocking<T: std::marker::Send + 'static>(
    f: impl FnOnce() -> T + std::marker::Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(f)
        .await
        .map_err(|_| RuntimeError::Closing)
}
