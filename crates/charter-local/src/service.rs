//! What a holder does for its clients.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use charter_actors::Folder;
use charter_journal::{Record, SqliteStore, StoredCharter, TransferError, Verified};
use charter_kernel::{Auth, Machine, Millis, Principal, Status, Timestamp};
use charter_runtime::backend::{Acknowledged, Backend as _, TaskAnswer};
use charter_runtime::{Charter, Runtime, RuntimeError, SendEvent};
use serde::Serialize;
use serde_json::Value as Json;

use crate::wire::{AcknowledgedText, CharterText, Request, ViewText};

/// Maximum number of records in an answer, and of bytes after which no further one is added.
const MAX_RECORDS: usize = 1_000;
const MAX_RECORDS_BYTES: usize = 8 << 20;

/// Maximum number of tasks and runs in an answer.
const MAX_LISTED: usize = 100_000;

/// Maximum number of runs that the process stays for.
const MAX_KEPT: usize = 10_000;

/// A timer that is due this soon is waited for.
const SOON: Millis = Millis(60_000);

/// The journal and the host that a process shares with others.
#[derive(Debug)]
pub struct Service {
    runtime: Runtime,
    store: Arc<SqliteStore>,
    /// The runs that the process stays for; whether for all of their timers, or only for those that
    /// are due soon.
    kept: Mutex<BTreeMap<String, bool>>,
}

impl Service {
    /// Shares a host and its journal.
    #[must_use]
    pub fn new(runtime: Runtime, store: Arc<SqliteStore>) -> Service {
        Service { runtime, store, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run that was left to this process waits for a timer.
    pub async fn waits_for_timers(&self, now: Timestamp) -> bool {
        let kept = self.kept().clone();
        for (run, all) in kept {
            let Some(view) = self.runtime.view(&run).await.ok().filter(|v| !v.snapshot.status().is_finished()) else {
                self.kept().remove(&run);
                continue;
            };
            // The timers of a paused run do not fire.
            let due = view.snapshot.next_timer().filter(|_| view.snapshot.status() == Status::Active);
            if due.is_some_and(|t| all || t.due <= now.saturating_add(SOON)) {
                return true;
            }
        }
        false
    }

    /// Answers a request other than `updates`.
    pub(crate) async fn answer(&self, request: Request) -> Result<Json, RuntimeError> {
        let host = &self.runtime;
        match request {
            Request::Add(charter) => self.add(charter).await,
            Request::Charter { digest } => {
                let StoredCharter { digest, name, core, source } = host.charter(digest).await?.stored().clone();
                json(&CharterText { digest, name, core, source, folder: Default::default() })
            }
            Request::Start { charter, run, input, by } => {
                let start = charter_runtime::Start { charter, run, input, by: local(by) };
                acknowledged(host.start(start).await?.into())
            }
            Request::Send(send) => {
                let mut send = SendEvent::from(send);
                send.by = local(send.by);
                let done: Acknowledged = host.send(send).await?.into();
                if !done.is_refused() {
                    // Failures are reported to the subscribers of the run.
                    host.resume(&done.record.run).await;
                }
                acknowledged(done)
            }
            Request::Answer { task, output, declined, by } => {
                let answer = match declined {
                    Some(reason) => TaskAnswer::Declined(reason),
                    None => TaskAnswer::Output(output.unwrap_or_default()),
                };
                acknowledged(host.answer(task, answer, local(by)).await?)
            }
            Request::Resume { run } => {
                charter_runtime::backend::Backend::resume(host, run).await?;
                json(&())
            }
            Request::View { run } => {
                let view = host.view(&run).await?;
                let snapshot = view.charter.machine().snapshot_text(&view.snapshot);
                json(&ViewText {
                    charter: view.charter.digest(),
                    snapshot,
                    working: view.working,
                    untrusted: view.untrusted,
                    dry: view.dry,
                    next_due: view.next_due,
                })
            }
            Request::Legal { run, by } => json(&host.legal(&run, &local(by)).await?),
            Request::Tasks { by, limit } => json(&host.tasks(&local(by), limit.min(MAX_LISTED)).await?),
            Request::Run { run } => json(&host.run(run).await?),
            Request::Runs(mut filter) => {
                filter.limit = match filter.limit {
                    0 => MAX_LISTED,
                    limit => limit.min(MAX_LISTED),
                };
                json(&host.runs(filter).await?)
            }
            Request::Records { run, from, limit } => self.records(run, from, limit).await,
            Request::Fork { run, at, new, dry } => self.fork(run, at, new, dry).await,
            Request::Import { file } => self.import(&file).await,
            Request::Rebuild {} => {
                let store = self.store.clone();
                blocking(move || Ok(store.rebuild()?)).await?;
                json(&())
            }
            Request::Keep { run, all_timers } => {
                let mut kept = self.kept();
                if kept.len() >= MAX_KEPT && !kept.contains_key(&run) {
                    return Err(RuntimeError::Remote(format!("this process stays for {MAX_KEPT} runs already")));
                }
                let all = kept.entry(run).or_default();
                *all |= all_timers;
                json(&())
            }
            Request::Updates { .. } => Err(RuntimeError::Remote("not a single answer".into())),
        }
    }

    /// Adds a charter.
    async fn add(&self, text: CharterText) -> Result<Json, RuntimeError> {
        let CharterText { digest, name, core, source, folder } = text;
        let folder = folder.into();
        let stored = StoredCharter { digest, name, core, source };
        let charter = blocking(move || read_charter(&stored, folder)).await?;
        self.runtime.add(charter).await?;
        json(&())
    }

    async fn records(&self, run: String, from: u64, limit: usize) -> Result<Json, RuntimeError> {
        let mut bytes = 0usize;
        let mut texts = Vec::new();
        for record in self.runtime.records(run, from, limit.min(MAX_RECORDS)).await? {
            bytes = bytes.saturating_add(record.text().len());
            if bytes > MAX_RECORDS_BYTES && !texts.is_empty() {
                break;
            }
            texts.push(record.text().to_owned());
        }
        json(&texts)
    }

    async fn fork(&self, run: String, at: u64, new: String, dry: bool) -> Result<Json, RuntimeError> {
        charter_runtime::check_run_id(&new)?;
        let info = self.runtime.run(run.clone()).await?.ok_or(RuntimeError::UnknownRun(run.clone()))?;
        let charter = self.runtime.charter(info.charter).await?;
        let (store, id) = (self.store.clone(), new.clone());
        blocking(move || {
            charter_journal::fork(store.as_ref(), charter.machine(), &run, at, &id, dry)?;
            Ok(())
        })
        .await?;
        self.runtime.noticed(&new).await?;
        json(&())
    }

    async fn import(&self, file: &Path) -> Result<Json, RuntimeError> {
        let (store, file) = (self.store.clone(), file.to_owned());
        let run = blocking(move || {
            let cannot = |e: std::io::Error| RuntimeError::Remote(format!("cannot read `{}`: {e}", file.display()));
            let mut text = BufReader::new(std::fs::File::open(&file).map_err(cannot)?);
            let imported = Verified::read(&mut text).and_then(|run| run.write(store.as_ref()));
            imported.map_err(|e| match e {
                TransferError::Store(e) => e.into(),
                TransferError::Replay(e) => e.into(),
                other => RuntimeError::Remote(other.to_string()),
            })
        })
        .await?;
        // A run whose start was refused has neither timers nor invocations.
        if run.status.is_some() {
            self.runtime.noticed(&run.run).await?;
        }
        json(&run)
    }

    /// Subscribes to the events of one run or of all runs.
    pub(crate) fn subscribe(&self, run: Option<&str>) -> charter_runtime::Subscription {
        self.runtime.subscribe(run)
    }
}

/// A principal as the socket knows it: the peer has the user of this process, so it may be anybody,
/// but it cannot claim to be authenticated otherwise. Without a word, a principal is
/// [`Auth::Local`] already; a repeated event must have the same one.
fn local(by: Principal) -> Principal {
    let auth = by.auth.map(|auth| if auth == Auth::None { auth } else { Auth::Local });
    Principal { auth, ..by }
}

/// Compiles a charter that was handed over, or read from a holder.
pub(crate) fn read_charter(stored: &StoredCharter, folder: Folder) -> Result<Charter, RuntimeError> {
    let definition = stored.definition()?;
    let id = definition.id.clone();
    let machine = Machine::compile(definition).map_err(|problems| RuntimeError::Charter {
        charter: id,
        why: problems.first().map(ToString::to_string).unwrap_or_default(),
    })?;
    Charter::compiled(machine, &stored.name, &stored.source, folder)
}

fn acknowledged(done: Acknowledged) -> Result<Json, RuntimeError> {
    let Acknowledged { record, repeated } = done;
    json(&AcknowledgedText { record: Record::text(&record).to_owned(), repeated })
}

fn json(value: &impl Serialize) -> Result<Json, RuntimeError> {
    serde_json::to_value(value).map_err(|e| RuntimeError::Remote(format!("the answer cannot be written: {e}")))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RuntimeError> + Send + 'static,
) -> Result<T, RuntimeError> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(RuntimeError::Closing))
}
