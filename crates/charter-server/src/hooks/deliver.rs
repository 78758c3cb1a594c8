//! Delivery: one task for each hook, so that a receiver that does not answer holds up nobody else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use charter_journal::StateChange;
use charter_kernel::{Millis, Timestamp};
use charter_runtime::RuntimeError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Hook;
use super::asked::asked;
use super::event::{HookEvent, Message, message};
use super::progress::{self, Dead, MAX_DEAD, Progress};
use super::schedule::{MAX_PAUSE, pause};
use super::send::{Attempt, Post, Sender};
use super::sign::HookSecret;
use crate::feed::{Entry, PageSize};
use crate::http::App;
use crate::identity::HOST_RUN;

/// Records that are not for a hook before its position is written down.
const MAX_UNSAVED: u64 = 1_000;
/// How long to wait before the journal is read or written again after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// What all hooks of a server share.
#[derive(Debug)]
pub(crate) struct Hooks {
    sender: Sender,
    /// Messages that were delivered, attempts that failed, and messages that became dead letters.
    pub(crate) delivered: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) dead: AtomicU64,
    /// Hook id -> how far it is.
    cursors: Mutex<BTreeMap<String, u64>>,
}

impl Hooks {
    pub(crate) fn new() -> Hooks {
        Hooks {
            sender: Sender::new(),
            delivered: AtomicU64::default(),
            failed: AtomicU64::default(),
            dead: AtomicU64::default(),
            cursors: Mutex::default(),
        }
    }

    /// How far each hook is.
    pub(crate) fn cursors(&self) -> BTreeMap<String, u64> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_cursor(&self, hook: &str, cursor: Option<u64>) {
        let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
        match cursor {
            Some(cursor) => cursors.insert(hook.to_owned(), cursor),
            None => cursors.remove(hook),
        };
    }
}

/// The task of a hook. It ends when this is dropped.
struct Working {
    hook: watch::Sender<Hook>,
    task: JoinHandle<()>,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Delivers for all hooks, as they are added, changed and removed.
pub(crate) async fn supervise(app: Arc<App>) {
    let mut changes = app.office.changes();
    let mut working: BTreeMap<String, Working> = BTreeMap::new();
    // What a process that was killed has left of removed hooks.
    if let Ok(known) = progress::known(app.backend.as_ref()).await {
        for id in known {
            if app.office.directory().was_removed(&id) {
                let _ = progress::forget(app.backend.as_ref(), &id).await;
            }
        }
    }
    loop {
        let directory = changes.borrow_and_update().clone();
        let open: BTreeMap<&str, &Hook> = directory.hooks().filter(|(_, hook)| hook.closed.is_none()).collect();
        working.retain(|id, _| {
            let stays = open.contains_key(id.as_str());
            if !stays {
                app.hooks.set_cursor(id, None);
            }
            stays
        });
        for (id, hook) in open {
            match working.get(id).filter(|working| !working.task.is_finished()) {
                Some(working) => {
                    working.hook.send_if_modified(|known| {
                        let changed = known != hook;
                        known.clone_from(hook);
                        changed
                    });
                }
                None => {
                    let (sender, receiver) = watch::channel(hook.clone());
                    let task = tokio::spawn(work(app.clone(), id.to_owned(), receiver));
                    working.insert(id.to_owned(), Working { hook: sender, task });
                }
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}

async fn work(app: Arc<App>, id: String, hook: watch::Receiver<Hook>) {
    let loaded = loop {
        let secret = progress::secret(app.backend.as_ref(), &id).await;
        let all = progress::all(app.backend.as_ref()).await;
        match (secret, all) {
            (Ok(secret), Ok(mut all)) => break secret.zip(all.remove(&id)),
            _ => tokio::time::sleep(PAUSE).await,
        }
    };
    // Without a secret, the run `host` came from another journal: nothing is sent from here.
    let Some((secret, progress)) = loaded else { return };
    app.hooks.set_cursor(&id, Some(progress.cursor));
    Worker { app, id, hook, secret, progress, unsaved: 0, size: PageSize(1) }.run().await;
}

/// Delivers for one hook.
struct Worker {
    app: Arc<App>,
    id: String,
    hook: watch::Receiver<Hook>,
    secret: HookSecret,
    progress: Progress,
    /// Records since the position was written down.
    unsaved: u64,
    size: PageSize,
}

/// What a worker does next.
enum Next {
    /// The next message.
    Again,
    /// It waits for records.
    Idle,
    /// It waits until this time.
    Until(Timestamp),
    /// The hook is closed.
    Closed,
}

impl Worker {
    async fn run(mut self) {
        let clock = self.app.options.clock.0.clone();
        let mut working = clock.work();
        loop {
            let hook = self.hook.borrow_and_update().clone();
            let changed = match self.step(&hook).await {
                Ok(Next::Again) => continue,
                Ok(Next::Closed) => return,
                Ok(Next::Idle) => {
                    drop(working);
                    let (app, cursor) = (self.app.clone(), self.progress.cursor);
                    let changed = tokio::select! {
                        () = app.feed.after(cursor) => Ok(()),
                        changed = self.hook.changed() => changed,
                    };
                    working = clock.work();
                    changed
                }
                Ok(Next::Until(at)) => {
                    let mut alarm = clock.alarm_at(at);
                    drop(working);
                    let changed = tokio::select! {
                        () = &mut alarm => Ok(()),
                        changed = self.hook.changed() => changed,
                    };
                    // Before the alarm ends, so that a virtual clock stays where it is.
                    working = clock.work();
                    changed
                }
                // The journal can neither be read nor written; who uses it hears of that.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    Ok(())
                }
            };
            if changed.is_err() {
                return;
            }
        }
    }

    async fn step(&mut self, hook: &Hook) -> Result<Next, RuntimeError> {
        if hook.retries > self.progress.retries {
            return self.retry(hook).await;
        }
        // A time that is farther away was written before the clock of the machine was set back.
        let left = |at: Timestamp| at.since(self.app.now());
        if let Some(at) = self.progress.next.filter(|at| (Millis(1)..=MAX_PAUSE).contains(&left(*at))) {
            return Ok(Next::Until(at));
        }
        let Some(message) = self.next(hook).await? else { return Ok(Next::Idle) };
        let mut progress = self.progress.clone();
        if progress.pending != message.position {
            (progress.pending, progress.attempts) = (message.position, 0);
        }
        progress.next = None;
        match self.send(hook, &message).await {
            Attempt::Gone => self.close().await,
            Attempt::Delivered => {
                let delivered = Some(self.app.now());
                let progress = Progress { cursor: message.position, attempts: 0, error: None, delivered, ..progress };
                self.save(progress, Vec::new()).await?;
                Ok(Next::Again)
            }
            Attempt::Failed { why, wait, .. } => {
                progress.attempts = progress.attempts.saturating_add(1);
                progress.error = Some(why.clone());
                let mut random = [0u8];
                // Without randomness, nothing is spread.
                let _ = getrandom::fill(&mut random);
                match pause(progress.attempts, wait, random[0]) {
                    Some(pause) => {
                        progress.next = Some(self.app.now().saturating_add(pause));
                        self.save(progress, Vec::new()).await?;
                    }
                    None => self.bury(progress, message, why).await?,
                }
                Ok(Next::Again)
            }
        }
    }

    /// Finds the next record that is for the hook. The position stays before it.
    async fn next(&mut self, hook: &Hook) -> Result<Option<Message>, RuntimeError> {
        let app = self.app.clone();
        loop {
            let page = app.feed.page(app.backend.as_ref(), self.progress.cursor, self.size.0).await?;
            if page.is_empty() {
                return Ok(None);
            }
            self.size.after(page.len(), page.iter().map(|entry| entry.record.text().len()).sum());
            for (index, entry) in page.iter().enumerate() {
                if let Some(message) = self.message(hook, entry).await? {
                    // What follows the message is read again after it.
                    self.size = PageSize(index.saturating_add(1));
                    return Ok(Some(message));
                }
                self.progress.cursor = entry.position;
                self.unsaved = self.unsaved.saturating_add(1);
            }
            self.app.hooks.set_cursor(&self.id, Some(self.progress.cursor));
            if self.unsaved >= MAX_UNSAVED {
                self.save(self.progress.clone(), Vec::new()).await?;
            }
        }
    }

    async fn message(&self, hook: &Hook, entry: &Entry) -> Result<Option<Message>, RuntimeError> {
        let Entry { position, record } = entry;
        if &*record.run == HOST_RUN {
            return Ok(None);
        }
        let charter = match self.app.charter(record.charter).await {
            Ok(charter) => charter,
            // A charter that this version does not understand; there is nothing to say about it.
            Err(RuntimeError::UnknownCharter(_) | RuntimeError::Charter { .. }) => return Ok(None),
            Err(e) => return Err(e),
        };
        if hook.charter.as_ref().is_some_and(|id| *id != charter.machine().definition().id) {
            return Ok(None);
        }
        let app = &self.app;
        let asked = match hook.on.contains(&HookEvent::Task) {
            true => asked(app, record, &charter).await?,
            false => Vec::new(),
        };
        let Some(found) = message(&self.id, &hook.on, &self.app.url(), *position, record, &charter, &asked) else {
            return Ok(None);
        };
        // The records that a fork shares were sent when they were made.
        let first = self.app.backend.records(record.run.to_string(), 0, 1).await?;
        let origin = first.first().and_then(|first| first.forked_from.as_ref());
        Ok(Some(found).filter(|_| origin.is_none_or(|origin| record.seq > origin.seq)))
    }

    async fn send(&self, hook: &Hook, message: &Message) -> Attempt {
        let hooks = &self.app.hooks;
        let post = Post {
            url: hook.url.clone(),
            private: hook.private,
            secret: self.secret.clone(),
            id: message.id.clone(),
            body: message.body.clone(),
            now: self.app.now(),
        };
        let attempt = hooks.sender.send(post).await;
        let counter = if attempt == Attempt::Delivered { &hooks.delivered } else { &hooks.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        attempt
    }

    /// Writes how far the hook is. Nothing changes in memory before that.
    async fn save(&mut self, progress: Progress, mut changes: Vec<StateChange>) -> Result<(), RuntimeError> {
        changes.push(progress::put(&self.id, &progress));
        self.app.backend.put_host_state(changes).await?;
        self.progress = progress;
        self.unsaved = 0;
        self.app.hooks.set_cursor(&self.id, Some(self.progress.cursor));
        Ok(())
    }

    /// Keeps a message as a dead letter, and goes on after it.
    async fn bury(&mut self, mut progress: Progress, message: Message, error: String) -> Result<(), RuntimeError> {
        let Message { position, run, seq, event, id, .. } = message;
        let (event, attempts, at) = (event.word().to_owned(), progress.attempts, self.app.now());
        let mut changes = vec![progress::bury(&self.id, &Dead { position, run, seq, event, id, attempts, error, at })];
        let dead = progress::dead(self.app.backend.as_ref(), &self.id).await?;
        let excess = dead.len().saturating_add(1).saturating_sub(MAX_DEAD);
        changes.extend(dead.iter().take(excess).map(|dead| progress::unbury(&self.id, dead.position)));
        progress.dropped = progress.dropped.saturating_add(u64::try_from(excess).unwrap_or_default());
        (progress.cursor, progress.attempts, progress.next) = (position, 0, None);
        self.save(progress, changes).await?;
        self.app.hooks.dead.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Sends the dead letters again, as somebody asked for, and the current message now.
    async fn retry(&mut self, hook: &Hook) -> Result<Next, RuntimeError> {
        let app = self.app.clone();
        for dead in progress::dead(app.backend.as_ref(), &self.id).await? {
            let before = dead.position.saturating_sub(1);
            let found = app.backend.records_after(before, 1).await?.into_iter().next();
            let entry = found.filter(|(position, _)| *position == dead.position);
            let message = match entry.map(|(position, record)| Entry { position, record }) {
                Some(entry) => self.message(hook, &entry).await?,
                None => None,
            };
            // Its run was deleted.
            let Some(message) = message else {
                app.backend.put_host_state(vec![progress::unbury(&self.id, dead.position)]).await?;
                continue;
            };
            match self.send(hook, &message).await {
                Attempt::Gone => return self.close().await,
                Attempt::Delivered => {
                    app.backend.put_host_state(vec![progress::unbury(&self.id, dead.position)]).await?;
                }
                Attempt::Failed { why, answered, .. } => {
                    let attempts = dead.attempts.saturating_add(1);
                    let dead = Dead { attempts, error: why, at: app.now(), ..dead };
                    app.backend.put_host_state(vec![progress::bury(&self.id, &dead)]).await?;
                    if !answered {
                        break;
                    }
                }
            }
        }
        let progress = Progress { retries: hook.retries, next: None, ..self.progress.clone() };
        self.save(progress, Vec::new()).await?;
        Ok(Next::Again)
    }

    /// Writes down that the receiver wants nothing any more.
    async fn close(&self) -> Result<Next, RuntimeError> {
        let owner = &self.app.options.owner;
        match self.app.office.close_hook(&self.id, "the receiver answered 410 (gone)", owner).await {
            Err(crate::identity::HostError::Runtime(e)) => Err(e),
            // Refused: it was closed or removed in the meantime.
            _ => Ok(Next::Closed),
        }
    }
}
