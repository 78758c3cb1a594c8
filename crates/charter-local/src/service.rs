//! What a holder does for its clients.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use charter_guard::gate::Place;
use charter_journal::{Record, SqliteStore, Store as _, StoredCharter, TransferError};
use charter_kernel::{Auth, Millis, Principal, Status, Timestamp};
use charter_runtime::backend::{Acknowledged, Backend as _, TaskAnswer};
use charter_runtime::{Charter, Runtime, RuntimeError, SendEvent, View, read_export};
use serde::Serialize;
use serde_json::Value as Json;

use crate::wire::{AcknowledgedText, AskedModels, CharterText, Request, ViewText};

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
    /// The address of the page on which persons decide.
    page: OnceLock<String>,
}

impl Service {
    /// Shares a host and its journal.
    #[must_use]
    pub fn new(runtime: Runtime, store: Arc<SqliteStore>) -> Service {
        Service { runtime, store, kept: Mutex::default(), page: OnceLock::new() }
    }

    /// Names the address of the page on which persons decide; the first one counts.
    pub fn set_page(&self, url: &str) {
        let _ = self.page.set(url.to_owned());
    }

    /// Where persons decide.
    fn place(&self) -> Place {
        match self.page.get() {
            Some(url) => Place::Page(url.clone()),
            None => Place::Command(format!(" --db {}", quoted(&self.store.path().display().to_string()))),
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, bool>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stays for a run that another command leaves to this process: while its actors work, and for
    /// its timers, all of them or only those that are due soon.
    ///
    /// # Errors
    /// The process stays for too many runs.
    pub fn keep(&self, run: String, all_timers: bool) -> Result<(), RuntimeError> {
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT && !kept.contains_key(&run) {
            return Err(RuntimeError::Remote(format!("this process stays for {MAX_KEPT} runs already")));
        }
        let all = kept.entry(run).or_default();
        *all |= all_timers;
        Ok(())
    }

    /// The runs that were left to this process.
    #[must_use]
    pub fn left(&self) -> BTreeSet<String> {
        self.kept().keys().cloned().collect()
    }

    /// Whether a run that was left to this process waits for a timer.
    pub async fn waits_for_timers(&self, now: Timestamp) -> bool {
        !self.waiting(now, 1).await.is_empty()
    }

    /// The runs that were left to this process and wait for a timer, at most `limit`; and whether
    /// the process stays for all of their timers.
    pub async fn waiting(&self, now: Timestamp, limit: usize) -> Vec<(String, bool)> {
        let kept = self.kept().clone();
        let mut waiting = Vec::new();
        for (run, all) in kept {
            if waiting.len() >= limit {
                break;
            }
            let Some(view) = self.runtime.view(&run).await.ok().filter(|v| !v.snapshot.status().is_finished()) else {
                self.kept().remove(&run);
                continue;
            };
            // The timers of a paused run do not fire.
            let due = view.snapshot.next_timer().filter(|_| view.snapshot.status() == Status::Active);
            if due.is_some_and(|t| all || t.due <= now.saturating_add(SOON)) {
                waiting.push((run, all));
            }
        }
        waiting
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
            Request::Start { charter, run, input, by, place } => {
                let start = charter_runtime::Start { charter, run, input, by: local(by) };
                acknowledged(host.start_in(start, place.as_deref()).await?.into())
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
            Request::View { run } => view(&host.view(&run).await?),
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
            Request::Fork { run, at, new, dry } => json(&host.fork(&run, at, &new, dry).await?),
            Request::RecordsAfter { position, limit } => {
                let records = host.records_after(position, limit.min(MAX_RECORDS)).await?;
                json(&texts(records, |(position, record)| (position, record.text().to_owned()), |(_, text)| text.len()))
            }
            Request::LastPosition {} => json(&host.last_position().await?),
            Request::At { run, seq } => view(&host.at(&run, seq).await?),
            Request::Usage { run } => json(&host.usage(run).await?),
            Request::Models { run } => {
                let (store, id) = (self.store.clone(), run.clone());
                let last = blocking(move || Ok(store.last_models(&id)?)).await?;
                let last = last.into_iter().map(|last| (last.actor, last.model, last.address)).collect();
                let charter = host.view(&run).await?.charter;
                json(&AskedModels { last, begun: charter.manifest().models, now: host.models(&charter) })
            }
            Request::HostState { area } => json(&host.host_state(area).await?),
            Request::PutHostState(changes) => json(&host.put_host_state(changes).await?),
            Request::Import { file } => self.import(&file).await,
            Request::Rebuild {} => {
                let store = self.store.clone();
                blocking(move || Ok(store.rebuild()?)).await?;
                json(&())
            }
            Request::Keep { run, all_timers } => {
                self.keep(run, all_timers)?;
                json(&())
            }
            Request::Ask(mut question) => {
                question.by = local(question.by);
                json(&charter_guard::gate::ask(host, question, &self.place()).await?)
            }
            Request::Updates { .. } => Err(RuntimeError::Remote("not a single answer".into())),
        }
    }

    /// Adds a charter.
    async fn add(&self, text: CharterText) -> Result<Json, RuntimeError> {
        let CharterText { digest, name, core, source, folder } = text;
        let folder = folder.into();
        let stored = StoredCharter { digest, name, core, source };
        let charter = blocking(move || Charter::restore(&stored, folder)).await?;
        self.runtime.add(charter).await?;
        json(&())
    }

    async fn records(&self, run: String, from: u64, limit: usize) -> Result<Json, RuntimeError> {
        let records = self.runtime.records(run, from, limit.min(MAX_RECORDS)).await?;
        json(&texts(records, |record| record.text().to_owned(), String::len))
    }

    async fn import(&self, file: &Path) -> Result<Json, RuntimeError> {
        let (store, file) = (self.store.clone(), file.to_owned());
        let run = blocking(move || {
            let cannot = |e: std::io::Error| RuntimeError::Remote(format!("cannot read `{}`: {e}", file.display()));
            let mut text = BufReader::new(std::fs::File::open(&file).map_err(cannot)?);
            let imported = read_export(&mut text).and_then(|run| run.write(store.as_ref()));
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

/// A word of a command line.
fn quoted(text: &str) -> String {
    match text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A principal as the socket knows it: the peer has the user of this process, so it may be anybody,
/// but it cannot claim to be authenticated otherwise. Without a word, a principal is
/// [`Auth::Local`] already; a repeated event must have the same one.
fn local(by: Principal) -> Principal {
    let auth = by.auth.map(|auth| if auth == Auth::None { auth } else { Auth::Local });
    Principal { auth, ..by }
}

/// The first records of a list, as many as fit into an answer, and at least one.
fn texts<R, T>(records: Vec<R>, text: impl Fn(R) -> T, size: impl Fn(&T) -> usize) -> Vec<T> {
    let mut bytes = 0usize;
    let mut texts = Vec::new();
    for text in records.into_iter().map(text) {
        bytes = bytes.saturating_add(size(&text));
        if bytes > MAX_RECORDS_BYTES && !texts.is_empty() {
            break;
        }
        texts.push(text);
    }
    texts
}

fn view(view: &View) -> Result<Json, RuntimeError> {
    json(&ViewText {
        charter: view.charter.digest(),
        snapshot: view.charter.machine().snapshot_text(&view.snapshot),
        working: view.working.clone(),
        untrusted: view.untrusted,
        dry: view.dry,
        next_due: view.next_due,
    })
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
