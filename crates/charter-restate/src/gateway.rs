//! The runs of a Restate server as a [`Backend`]: what changes goes to the server, what is read
//! comes from a copy of the records in a journal file.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use charter_actors::{BoxFuture, Clock, Folder};
use charter_journal::{JournalHead, Record, RunFilter, RunInfo, StateChange, Store};
use charter_kernel::{Digest, Legal, Principal};
use charter_run::{Fault, Task};
use charter_runtime::backend::{Acknowledged, Answer, Backend, TaskAnswer, Update, Updates};
use charter_runtime::{Charter, RuntimeError, SendEvent, Start, View, Working};
use tokio::sync::broadcast;

use crate::charters::Charters;
use crate::client::Engine;
use crate::mirror::{continue_copy, copy_run, mirror_each};

/// Updates that a slow reader may be behind.
const BEHIND: usize = 4_096;
/// Runs whose tasks are read at a time.
const PAGE: usize = 500;

/// The runs of a Restate server.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    charters: Arc<Charters>,
    clock: Arc<dyn Clock>,
    /// The copy; locked while records are added to it, so that their updates are in its order.
    copy: Arc<dyn Store>,
    copying: Mutex<()>,
    news: broadcast::Sender<Update>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gateway")
    }
}

impl Gateway {
    /// Creates a gateway to the runs of a server, whose endpoints serve these charters. The copy
    /// continues if it has records already.
    #[must_use]
    pub fn new(engine: Engine, charters: Arc<Charters>, copy: Arc<dyn Store>) -> Gateway {
        let clock = charters.options.clock.clone();
        let news = broadcast::channel(BEHIND).0;
        Gateway { inner: Arc::new(Inner { engine, charters, clock, copy, copying: Mutex::new(()), news }) }
    }

    /// Copies what the copy does not have; returns what is wrong, a sentence for each run.
    ///
    /// # Errors
    /// The server does not answer, or the copy cannot be written.
    pub async fn catch_up(&self) -> Result<Vec<String>, RuntimeError> {
        self.blocking(|inner| {
            let done = mirror_each(&inner.engine, |info, done| inner.copied(info, done))?;
            Ok(done.problems)
        })
        .await
    }

    /// Follows the server, for ever: records of timers, actors and other gateways are copied
    /// within about `every`. What is wrong is an [`Update::Trouble`], once.
    pub async fn follow(self, every: Duration) {
        let mut said: Vec<String> = Vec::new();
        loop {
            tokio::time::sleep(every).await;
            let problems = self.catch_up().await.unwrap_or_else(|e| vec![e.to_string()]);
            for message in problems.iter().filter(|problem| !said.contains(problem)) {
                let _ = self.inner.news.send(Update::Trouble { run: None, message: message.clone() });
            }
            said = problems;
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, RuntimeError> + Send + 'static,
    ) -> Result<T, RuntimeError> {
        let inner = self.inner.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|e| Err(RuntimeError::Remote(format!("the work was stopped: {e}"))))
    }
}

impl Inner {
    /// Copies the records of a run that the copy does not have.
    fn copied(&self, info: &RunInfo, done: &mut crate::mirror::Mirrored) -> Result<u64, RuntimeError> {
        let _turn = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        let publish = &mut |record: &Record| drop(self.news.send(Update::Recorded(record.clone())));
        copy_run(&self.engine, self.copy.as_ref(), info, &mut done.problems, publish)
    }

    /// Copies the record that was made just now, and those before it.
    fn note(&self, record: &Record) -> Result<(), RuntimeError> {
        let _turn = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        let publish = &mut |record: &Record| drop(self.news.send(Update::Recorded(record.clone())));
        let mut problems = Vec::new();
        continue_copy(&self.engine, self.copy.as_ref(), record, &mut problems, publish)?;
        match problems.pop() {
            None => Ok(()),
            Some(problem) => Err(RuntimeError::Remote(format!("recorded, but not copied: {problem}"))),
        }
    }

    fn charter(&self, digest: Digest) -> Result<Arc<Charter>, RuntimeError> {
        if let Some(served) = self.charters.get(digest) {
            return Ok(served.clone());
        }
        // The charter of an older run.
        let stored = self.copy.charter(digest)?.ok_or(RuntimeError::UnknownCharter(digest))?;
        Ok(Arc::new(Charter::restore(&stored, Folder::None)?))
    }

    /// The state of a run at the server.
    fn view(&self, run: &str) -> Result<View, RuntimeError> {
        let (seq, state) =
            self.engine.look(&self.charters, run)?.ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
        let snapshot = state.snapshot().cloned().ok_or_else(|| RuntimeError::NeverStarted(run.to_owned()))?;
        // Who has seen a state gets the records that led to it.
        if self.copy.run(run)?.is_none_or(|have| have.seq < seq)
            && let Some(info) = self.engine.run(run)?
        {
            self.copied(&info, &mut crate::mirror::Mirrored::default())?;
        }
        let charter = self.charter(snapshot.charter())?;
        let actors = &charter.machine().definition().actors;
        let mut working = Vec::new();
        for (_, invocation) in snapshot.invocations().filter(|(_, invocation)| !invocation.is_machine()) {
            let Some(actor) = actors.get(invocation.src.as_ref()).filter(|actor| actor.kind != "human") else {
                continue;
            };
            let requested = self.copy.records(run, invocation.effect.seq, 1)?.first().map(|record| record.at);
            // The engine makes the attempt, or waits to make it.
            working.push(Working {
                run: run.into(),
                effect: invocation.effect.text(run).into(),
                invocation: invocation.id.clone(),
                src: invocation.src.clone(),
                kind: actor.kind.as_str().into(),
                attempt: state.request(invocation.effect).map_or(1, |request| request.attempt),
                since: requested.unwrap_or_else(|| self.clock.now()),
            });
        }
        Ok(View { next_due: state.next_due(), ..View::new(charter, snapshot, working, false) })
    }

    fn tasks(&self, by: &Principal, limit: usize) -> Result<Vec<Task>, RuntimeError> {
        let mut found: Vec<Task> = Vec::new();
        let mut after: Option<String> = None;
        while found.len() < limit {
            let page = self.engine.tasks(after.as_deref(), PAGE)?;
            let Some(last) = page.last() else { break };
            after = Some(last.run.clone());
            found.extend(page.into_iter().filter(|task| task.is_for(by)));
        }
        found.truncate(limit);
        Ok(found)
    }
}

impl Backend for Gateway {
    fn add(&self, charter: Charter) -> Answer<'_, Arc<Charter>> {
        Box::pin(self.blocking(move |inner| {
            let prepared = inner.charters.iter().find(|(served, _)| served.digest() == charter.digest());
            let Some((served, blobs)) = prepared else {
                let why = "no endpoint of the Restate server serves it; start one with its file".into();
                return Err(RuntimeError::Charter { charter: charter.machine().definition().id.clone(), why });
            };
            inner.engine.put_charter(served.stored(), blobs)?;
            inner.charter(served.digest())
        }))
    }

    fn charter(&self, digest: Digest) -> Answer<'_, Arc<Charter>> {
        Box::pin(self.blocking(move |inner| inner.charter(digest)))
    }

    fn start(&self, start: Start) -> Answer<'_, Acknowledged> {
        Box::pin(self.blocking(move |inner| {
            let (record, repeated) = inner.engine.start(start, inner.clock.now())?;
            inner.note(&record)?;
            Ok(Acknowledged { record, repeated })
        }))
    }

    fn send(&self, send: SendEvent) -> Answer<'_, Acknowledged> {
        Box::pin(self.blocking(move |inner| {
            let (record, repeated) = inner.engine.send(send, inner.clock.now())?;
            inner.note(&record)?;
            Ok(Acknowledged { record, repeated })
        }))
    }

    fn answer(&self, task: String, answer: TaskAnswer, by: Principal) -> Answer<'_, Acknowledged> {
        Box::pin(self.blocking(move |inner| {
            let outcome = match answer {
                TaskAnswer::Output(output) => Ok(output),
                TaskAnswer::Declined(reason) => Err(Fault::declined(&reason, &by).json()),
            };
            let record = inner.engine.settle(&task, outcome, by, inner.clock.now())?;
            inner.note(&record)?;
            Ok(Acknowledged { record, repeated: false })
        }))
    }

    fn resume(&self, _: String) -> Answer<'_, ()> {
        // The engine does it.
        Box::pin(async { Ok(()) })
    }

    fn view(&self, run: String) -> Answer<'_, View> {
        Box::pin(self.blocking(move |inner| inner.view(&run)))
    }

    fn legal(&self, run: String, by: Principal) -> Answer<'_, Vec<Legal>> {
        Box::pin(self.blocking(move |inner| {
            let View { charter, snapshot, .. } = inner.view(&run)?;
            Ok(charter.machine().legal(&snapshot, &by, inner.clock.now()))
        }))
    }

    fn tasks(&self, by: Principal, limit: usize) -> Answer<'_, Vec<Task>> {
        Box::pin(self.blocking(move |inner| inner.tasks(&by, limit)))
    }

    fn run(&self, run: String) -> Answer<'_, Option<RunInfo>> {
        Box::pin(self.blocking(move |inner| {
            if let Some(known) = inner.copy.run(&run)? {
                return Ok(Some(known));
            }
            let Some(info) = inner.engine.run(&run)? else { return Ok(None) };
            inner.copied(&info, &mut crate::mirror::Mirrored::default())?;
            Ok(inner.copy.run(&run)?)
        }))
    }

    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunInfo>> {
        Box::pin(self.blocking(move |inner| Ok(inner.copy.runs(&filter)?)))
    }

    fn records(&self, run: String, from: u64, limit: usize) -> Answer<'_, Vec<Record>> {
        Box::pin(self.blocking(move |inner| Ok(inner.copy.records(&run, from, limit)?)))
    }

    fn records_after(&self, position: u64, limit: usize) -> Answer<'_, Vec<(u64, Record)>> {
        Box::pin(self.blocking(move |inner| Ok(inner.copy.records_after(position, limit)?)))
    }

    fn last_position(&self) -> Answer<'_, u64> {
        Box::pin(self.blocking(|inner| Ok(inner.copy.last_position()?)))
    }

    fn head(&self) -> Answer<'_, Option<JournalHead>> {
        Box::pin(self.blocking(|inner| Ok(inner.copy.head()?)))
    }

    fn at(&self, run: String, seq: u64) -> Answer<'_, View> {
        Box::pin(self.blocking(move |inner| {
            let info = inner.copy.run(&run)?.ok_or_else(|| RuntimeError::UnknownRun(run.clone()))?;
            let charter = inner.charter(info.charter)?;
            let snapshot = charter_journal::replay(inner.copy.as_ref(), charter.machine(), &run, Some(seq))?;
            let snapshot = snapshot.ok_or(RuntimeError::NeverStarted(run))?;
            Ok(View::new(charter, snapshot, Vec::new(), false))
        }))
    }

    fn fork(&self, run: String, _: u64, _: String, _: bool) -> Answer<'_, ()> {
        let why = "runs on a Restate server cannot be forked; fork a copy: `charter-restate mirror --db FILE`, then `charter fork`";
        Box::pin(async { Err(RuntimeError::Denied { run, why: why.into() }) })
    }

    fn updates(&self, run: Option<String>) -> Answer<'_, Box<dyn Updates>> {
        let receiver = self.inner.news.subscribe();
        Box::pin(async move { Ok(Box::new(News { receiver, run }) as Box<dyn Updates>) })
    }

    fn host_state(&self, area: String) -> Answer<'_, Vec<(String, String)>> {
        Box::pin(self.blocking(move |inner| Ok(inner.copy.host_state(&area)?)))
    }

    fn put_host_state(&self, changes: Vec<StateChange>) -> Answer<'_, ()> {
        Box::pin(self.blocking(move |inner| Ok(inner.copy.put_host_state(changes)?)))
    }
}

/// The updates of one run, or of all.
struct News {
    receiver: broadcast::Receiver<Update>,
    run: Option<String>,
}

impl Updates for News {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(async move {
            loop {
                let update = match self.receiver.recv().await {
                    Ok(update) => update,
                    Err(broadcast::error::RecvError::Lagged(count)) => Update::Missed(count),
                    Err(broadcast::error::RecvError::Closed) => return None,
                };
                let other = match (&self.run, &update) {
                    (Some(wanted), Update::Recorded(record)) => *record.run != **wanted,
                    _ => false,
                };
                if !other {
                    return Some(update);
                }
            }
        })
    }
}
