//! The backend of a long connection: if the process that hosts the run ends, what was requested is
//! repeated where the run is hosted then.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use charter_journal::{Record, RunFilter, RunInfo};
use charter_kernel::{Digest, Legal, Principal};
use charter_runtime::backend::{Acknowledged, Answer, Backend, TaskAnswer, Updates};
use charter_runtime::{Charter, RuntimeError, SendEvent, Start, Task, View, new_run_id};
use tokio::sync::{mpsc, watch};

use crate::journal::access::MAX_LOST;

/// How long another place may take to be found.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two attempts at the same place: a server that does not answer.
const PAUSE: Duration = Duration::from_millis(100);

/// A backend that moves.
pub(super) struct Moving {
    current: watch::Receiver<Arc<dyn Backend>>,
    lost: mpsc::Sender<()>,
}

impl Moving {
    /// Begins at a place. A message at the receiver asks for the next place, which goes to the
    /// sender.
    pub(super) fn new(place: Arc<dyn Backend>) -> (Moving, mpsc::Receiver<()>, watch::Sender<Arc<dyn Backend>>) {
        let (sender, current) = watch::channel(place);
        let (lost, receiver) = mpsc::channel(1);
        (Moving { current, lost }, receiver, sender)
    }

    fn again<'a, T: Send + 'a, F, W>(&'a self, work: W) -> Answer<'a, T>
    where
        F: Future<Output = Result<T, RuntimeError>> + Send + 'a,
        W: Fn(Arc<dyn Backend>) -> F + Send + Sync + 'a,
    {
        Box::pin(async move {
            let mut current = self.current.clone();
            let mut pid = 0;
            for _ in 0..MAX_LOST {
                let place = current.borrow_and_update().clone();
                match work(place).await {
                    Err(RuntimeError::Lost { pid: of }) => pid = of,
                    done => return done,
                }
                // Full: somebody else has said so already.
                let _ = self.lost.try_send(());
                if !matches!(tokio::time::timeout(PATIENCE, current.changed()).await, Ok(Ok(()))) {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
            }
            Err(RuntimeError::Lost { pid })
        })
    }
}

impl Backend for Moving {
    fn add(&self, charter: Charter) -> Answer<'_, Arc<Charter>> {
        self.again(move |b| {
            let charter = charter.clone();
            async move { b.add(charter).await }
        })
    }

    fn charter(&self, digest: Digest) -> Answer<'_, Arc<Charter>> {
        self.again(move |b| async move { b.charter(digest).await })
    }

    fn start(&self, mut start: Start) -> Answer<'_, Acknowledged> {
        start.run.get_or_insert_with(new_run_id);
        self.again(move |b| {
            let start = start.clone();
            async move { b.start(start).await }
        })
    }

    fn start_in(&self, mut start: Start, place: String) -> Answer<'_, Acknowledged> {
        start.run.get_or_insert_with(new_run_id);
        self.again(move |b| {
            let (start, place) = (start.clone(), place.clone());
            async move { b.start_in(start, place).await }
        })
    }

    fn send(&self, mut send: SendEvent) -> Answer<'_, Acknowledged> {
        send.id.get_or_insert_with(new_run_id);
        self.again(move |b| {
            let send = send.clone();
            async move { b.send(send).await }
        })
    }

    fn answer(&self, task: String, answer: TaskAnswer, by: Principal) -> Answer<'_, Acknowledged> {
        self.again(move |b| {
            let (task, answer, by) = (task.clone(), answer.clone(), by.clone());
            async move { b.answer(task, answer, by).await }
        })
    }

    fn resume(&self, run: String) -> Answer<'_, ()> {
        self.again(move |b| {
            let run = run.clone();
            async move { b.resume(run).await }
        })
    }

    fn view(&self, run: String) -> Answer<'_, View> {
        self.again(move |b| {
            let run = run.clone();
            async move { b.view(run).await }
        })
    }

    fn legal(&self, run: String, by: Principal) -> Answer<'_, Vec<Legal>> {
        self.again(move |b| {
            let (run, by) = (run.clone(), by.clone());
            async move { b.legal(run, by).await }
        })
    }

    fn tasks(&self, by: Principal, limit: usize) -> Answer<'_, Vec<Task>> {
        self.again(move |b| {
            let by = by.clone();
            async move { b.tasks(by, limit).await }
        })
    }

    fn run(&self, run: String) -> Answer<'_, Option<RunInfo>> {
        self.again(move |b| {
            let run = run.clone();
            async move { b.run(run).await }
        })
    }

    fn runs(&self, filter: RunFilter) -> Answer<'_, Vec<RunInfo>> {
        self.again(move |b| {
            let filter = filter.clone();
            async move { b.runs(filter).await }
        })
    }

    fn records(&self, run: String, from: u64, limit: usize) -> Answer<'_, Vec<Record>> {
        self.again(move |b| {
            let run = run.clone();
            async move { b.records(run, from, limit).await }
        })
    }

    fn records_after(&self, position: u64, limit: usize) -> Answer<'_, Vec<(u64, Record)>> {
        self.again(move |b| async move { b.records_after(position, limit).await })
    }

    fn last_position(&self) -> Answer<'_, u64> {
        self.again(move |b| async move { b.last_position().await })
    }

    fn at(&self, run: String, seq: u64) -> Answer<'_, View> {
        self.again(move |b| {
            let run = run.clone();
            async move { b.at(run, seq).await }
        })
    }

    fn fork(&self, run: String, at: u64, new: String, dry: bool) -> Answer<'_, ()> {
        self.again(move |b| {
            let (run, new) = (run.clone(), new.clone());
            async move { b.fork(run, at, new, dry).await }
        })
    }

    fn updates(&self, run: Option<String>) -> Answer<'_, Box<dyn Updates>> {
        self.again(move |b| {
            let run = run.clone();
            async move { b.updates(run).await }
        })
    }
}
