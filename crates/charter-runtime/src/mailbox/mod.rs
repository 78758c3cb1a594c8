//! One mailbox per run: a task that exists only while there is input handles it in order. Inputs
//! that wait together are committed together; effects start and replies are sent after the commit.

mod evaluate;
mod load;
mod perform;
mod repeated;
pub(crate) mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use charter_journal::{Append, Chain, StoreError};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::error::RuntimeError;
use crate::inner::{Inner, RETRY_WRITE};
use crate::request::{Input, Receipt, Reply, SendEvent};
use crate::sync::lock;
use charter_kernel::{Timestamp, is_larger};
use evaluate::{Batch, Evaluation, MAX_BATCH};
use perform::{fail, fail_staged};
use run::{Queued, Run, RunState};

impl Inner {
    pub(crate) async fn send(self: &Arc<Self>, send: SendEvent) -> Result<Receipt, RuntimeError> {
        self.open_for(&send.by)?;
        let limit = self.limits.data_bytes;
        if limit > 0 && is_larger(&send.data, limit) {
            return Err(RuntimeError::Limit {
                limit: "data_bytes",
                value: limit,
                what: format!("the data of `{}` is too large", send.r#type),
            });
        }
        let run: Arc<str> = send.run.as_str().into();
        self.ask(&run, |reply| Input::Event { send: Box::new(send), reply }).await
    }

    /// Puts an input from outside into a mailbox and waits for the reply.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        run: &str,
        input: impl FnOnce(Reply) -> Input,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, receiver) = oneshot::channel();
        self.deliver(run, input(reply), true)?;
        receiver.await.unwrap_or(Err(RuntimeError::Closing))
    }

    /// Puts an input of the host itself into a mailbox and waits for the reply.
    pub(crate) async fn ask_self(
        self: &Arc<Self>,
        run: &str,
        input: impl FnOnce(Reply) -> Input,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, receiver) = oneshot::channel();
        self.deliver(run, input(reply), false)?;
        receiver.await.unwrap_or(Err(RuntimeError::Closing))
    }

    /// Puts an input of the host itself into a mailbox.
    pub(crate) fn post(self: &Arc<Self>, run: &str, input: Input) {
        // Without a bound it cannot fail.
        let _ = self.deliver(run, input, false);
    }

    /// Puts an input into a mailbox, and starts a task for it if there is none. Only inputs from
    /// outside are bounded.
    fn deliver(self: &Arc<Self>, id: &str, input: Input, bounded: bool) -> Result<(), RuntimeError> {
        let queued = Queued::new(input, self.clock.work());
        let mut runs = lock(&self.runs);
        let (id, run) = match runs.get_key_value(id) {
            Some((id, run)) => (id.clone(), run.clone()),
            None => {
                let (id, run): (Arc<str>, Arc<Run>) = (id.into(), Arc::default());
                runs.insert(id.clone(), run.clone());
                (id, run)
            }
        };
        let mut mailbox = lock(&run.mailbox);
        let limit = self.limits.mailbox;
        if bounded && limit > 0 && mailbox.queue.len() >= limit as usize {
            return Err(RuntimeError::Limit {
                limit: "mailbox",
                value: limit.into(),
                what: format!("too many events wait for run `{id}`"),
            });
        }
        mailbox.queue.push_back(queued);
        if !mailbox.draining {
            mailbox.draining = true;
            self.drains.up();
            let (inner, run) = (self.clone(), run.clone());
            self.handle.spawn(async move {
                inner.drain(&id, &run).await;
                let drains = inner.drains.clone();
                drop(inner);
                drains.down();
            });
        }
        Ok(())
    }

    /// Handles inputs until there are none.
    async fn drain(self: &Arc<Self>, id: &Arc<str>, run: &Run) {
        let mut state = lock(&run.mailbox).state.take();
        loop {
            let queued: Vec<Queued> = {
                let mut mailbox = lock(&run.mailbox);
                let count = mailbox.queue.len().min(MAX_BATCH);
                mailbox.queue.drain(..count).collect()
            };
            if queued.is_empty() && self.put_back(id, run, &mut state) {
                return;
            }
            self.handle(id, run, &mut state, queued).await;
        }
    }

    /// Puts the run's state back into its mailbox, or drops the run. Returns false if an input has
    /// arrived meanwhile.
    fn put_back(&self, id: &Arc<str>, run: &Run, state: &mut Option<Box<RunState>>) -> bool {
        let mut runs = lock(&self.runs);
        let mut mailbox = lock(&run.mailbox);
        if !mailbox.queue.is_empty() {
            return false;
        }
        mailbox.draining = false;
        let finished = state.as_ref().is_none_or(|s| s.snapshot.as_ref().is_none_or(|s| s.status().is_finished()));
        let limit = self.limits.runs_in_memory;
        if finished || (limit > 0 && runs.len() > limit as usize) {
            runs.remove(id);
        } else {
            mailbox.state = state.take();
        }
        true
    }

    /// Evaluates inputs, commits their records, then performs what they request.
    async fn handle(
        self: &Arc<Self>,
        id: &Arc<str>,
        run: &Run,
        state: &mut Option<Box<RunState>>,
        queued: Vec<Queued>,
    ) {
        let mut activities = Vec::with_capacity(queued.len());
        let mut inputs: VecDeque<Input> = queued
            .into_iter()
            .map(|q| {
                activities.push(q.activity);
                q.input
            })
            .collect();
        while !inputs.is_empty() {
            if state.is_none() {
                match self.begin(id, &inputs).await {
                    Ok(fresh) => *state = Some(fresh),
                    Err(e) => {
                        if inputs.iter().any(|i| matches!(i, Input::Due)) {
                            self.publisher.trouble(Some(id), format!("its timer cannot fire: {e}"));
                        }
                        inputs.drain(..).for_each(|i| fail(i, &e));
                        return;
                    }
                }
            }
            let Some(current) = state.as_ref() else {
                return;
            };
            let exists = current.chain.next_seq() > 0;
            let lookups = match self.look_up(id, exists, inputs.iter()).await {
                Ok(lookups) => lookups,
                Err(e) => {
                    inputs.drain(..).for_each(|i| fail(i, &e));
                    return;
                }
            };
            let mut batch =
                Batch { state: (**current).clone(), staged: Vec::new(), ids: FxHashSet::default(), lookups };
            while let Some(input) = inputs.pop_front() {
                if let Evaluation::Later(input) = self.evaluate(id, &mut batch, input) {
                    inputs.push_front(input);
                    break;
                }
                if batch.staged.len() >= MAX_BATCH {
                    break;
                }
            }
            if batch.staged.is_empty() {
                self.set_timer(id, state.as_deref());
                continue;
            }
            let appends: Vec<Append> = batch.staged.iter().map(|s| s.append.clone()).collect();
            match self.commit(appends).await {
                Ok(()) => {
                    lock(&run.mailbox).view = batch.state.snapshot.clone().map(|s| (batch.state.charter.clone(), s));
                    *state = Some(Box::new(batch.state));
                    self.set_timer(id, state.as_deref());
                    if let Some(state) = state.as_ref() {
                        batch.staged.into_iter().for_each(|staged| self.perform(id, state, staged));
                        self.stop_obsolete_calls(id, state);
                    }
                }
                Err(e) => {
                    self.publisher.trouble(Some(id), e.to_string());
                    let not_written = matches!(e, StoreError::NotWritten { .. });
                    let e = RuntimeError::Store(e);
                    batch.staged.into_iter().for_each(|staged| fail_staged(staged, &e));
                    if not_written {
                        // Timers that were due still are.
                        let later = self.clock.now().saturating_add(RETRY_WRITE);
                        self.timers.set(id, Some(later), || self.clock.work());
                    } else {
                        // It may or may not be written: the journal decides.
                        *state = None;
                        lock(&run.mailbox).view = None;
                    }
                }
            }
        }
        drop(activities);
    }

    /// The run of the first input: from the journal, or a new one.
    async fn begin(self: &Arc<Self>, id: &Arc<str>, inputs: &VecDeque<Input>) -> Result<Box<RunState>, RuntimeError> {
        match (self.load(id).await, inputs.front()) {
            (Err(RuntimeError::UnknownRun(_)), Some(Input::Start { charter, .. })) => {
                Ok(Box::new(RunState::new(charter.clone(), None, Chain::new(id), Timestamp::MIN)))
            }
            (loaded, _) => loaded,
        }
    }

    async fn commit(&self, appends: Vec<Append>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.store.submit(appends, Box::new(move |result| drop(sender.send(result))));
        receiver.await.unwrap_or_else(|_| Err(StoreError::Stopped { reason: "the writer is gone".into() }))
    }
}
