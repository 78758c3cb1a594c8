//! One mailbox per run. A task, which exists only while there is input, processes the mailbox in
//! order. Inputs that are queued at the same time are committed together; effects start and replies
//! are sent after the commit.

mod evaluate;
mod keys;
mod load;
mod perform;
pub(crate) mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use charter_actors::ActivityGuard;
use charter_journal::{Append, StoreError};
use charter_run::EventInput;
use tokio::sync::oneshot;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::inner::{Inner, RETRY_WRITE};
use crate::request::{Input, Receipt, SendEvent};
use crate::sync::lock;
pub use load::is_untrusted;

use evaluate::{Batch, Entry, MAX_BATCH};
use run::{Queued, Run, RunState};

/// How often inputs are evaluated again because another run was given a key in the meantime. Each
/// time, at least one of their keys is found taken, so this is reached only if the store fails.
const MAX_KEY_CONFLICTS: usize = 2 * MAX_BATCH;

impl Inner {
    pub(crate) async fn send(self: &Arc<Self>, send: SendEvent) -> Result<Receipt, RuntimeError> {
        self.send_as(send, false).await
    }

    /// Sends an event; `host_id` means that the host generated its id.
    pub(crate) async fn send_as(self: &Arc<Self>, send: SendEvent, host_id: bool) -> Result<Receipt, RuntimeError> {
        self.open_for(&send.by)?;
        let SendEvent { run, to, r#type, data, by, id, expected_seq } = send;
        let event = EventInput { to, r#type, data, by, id, host_id, expected_seq };
        self.ask(&run, charter_run::Input::Event(event)).await
    }

    /// Puts an input from outside into a mailbox and waits for the reply.
    pub(crate) async fn ask(self: &Arc<Self>, run: &str, input: charter_run::Input) -> Result<Receipt, RuntimeError> {
        self.ask_for(run, input, None, true).await
    }

    /// Puts the start of a run into the run's mailbox and waits for the reply.
    pub(crate) async fn ask_start(
        self: &Arc<Self>,
        run: &str,
        charter: Arc<Charter>,
        input: charter_run::Input,
    ) -> Result<Receipt, RuntimeError> {
        self.ask_for(run, input, Some(charter), true).await
    }

    /// Puts an input from the host itself into a mailbox and waits for the reply.
    pub(crate) async fn ask_self(
        self: &Arc<Self>,
        run: &str,
        input: charter_run::Input,
    ) -> Result<Receipt, RuntimeError> {
        self.ask_for(run, input, None, false).await
    }

    async fn ask_for(
        self: &Arc<Self>,
        run: &str,
        input: charter_run::Input,
        charter: Option<Arc<Charter>>,
        bounded: bool,
    ) -> Result<Receipt, RuntimeError> {
        let (reply, receiver) = oneshot::channel();
        self.deliver(run, Input { input, charter, reply: Some(reply) }, bounded)?;
        receiver.await.unwrap_or(Err(RuntimeError::Closing))
    }

    /// Puts an input from the host itself into a mailbox.
    pub(crate) fn post(self: &Arc<Self>, run: &str, input: charter_run::Input) {
        // An unbounded delivery cannot fail.
        let _ = self.deliver(run, Input { input, charter: None, reply: None }, false);
    }

    /// Puts an input into a mailbox and starts a task if none is processing it. Only inputs from
    /// outside count against the bound.
    fn deliver(self: &Arc<Self>, id: &str, input: Input, bounded: bool) -> Result<(), RuntimeError> {
        let queued = Queued { input, activity: self.clock.work() };
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
                what: format!("too many events are waiting for run `{id}`"),
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

    /// Processes inputs until the mailbox is empty.
    async fn drain(self: &Arc<Self>, id: &Arc<str>, run: &Run) {
        let mut state = lock(&run.mailbox).state.take();
        loop {
            let queued: Vec<Queued> = {
                let mut mailbox = lock(&run.mailbox);
                if std::mem::take(&mut mailbox.reload) {
                    state = None;
                }
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
    /// arrived in the meantime.
    fn put_back(&self, id: &Arc<str>, run: &Run, state: &mut Option<Box<RunState>>) -> bool {
        let mut runs = lock(&self.runs);
        let mut mailbox = lock(&run.mailbox);
        if !mailbox.queue.is_empty() {
            return false;
        }
        mailbox.draining = false;
        let reload = std::mem::take(&mut mailbox.reload);
        let finished = state.as_ref().is_none_or(|s| s.run.snapshot().is_none_or(|s| s.status().is_finished()));
        let limit = self.limits.runs_in_memory;
        if finished || reload || (limit > 0 && runs.len() > limit as usize) {
            runs.remove(id);
        } else {
            mailbox.state = state.take();
        }
        true
    }

    /// Reads a run again before its next input: it was moved.
    pub(crate) fn reload(&self, run: &str) {
        let found = lock(&self.runs).get(run).cloned();
        if let Some(run) = found {
            let mut mailbox = lock(&run.mailbox);
            (mailbox.state, mailbox.view, mailbox.reload) = (None, None, mailbox.draining);
        }
    }

    /// Evaluates inputs, commits their records, then executes their effects.
    async fn handle(
        self: &Arc<Self>,
        id: &Arc<str>,
        run: &Run,
        state: &mut Option<Box<RunState>>,
        queued: Vec<Queued>,
    ) {
        let (activities, mut inputs): (Vec<ActivityGuard>, VecDeque<Input>) =
            queued.into_iter().map(|q| (q.activity, q.input)).unzip();
        // Set after the store has refused a batch because of an id: then all ids are looked up.
        let mut all_ids = false;
        let mut key_conflicts = 0;
        while !inputs.is_empty() {
            if state.is_none() {
                match self.begin(id, &inputs).await {
                    Ok(fresh) => *state = Some(fresh),
                    Err(e) => {
                        if inputs.iter().any(|i| matches!(i.input, charter_run::Input::Due)) {
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
            let lookups = match self.look_up(current, inputs.iter(), all_ids).await {
                Ok(lookups) => lookups,
                Err(e) => {
                    inputs.drain(..).for_each(|i| fail(i, &e));
                    return;
                }
            };
            let mut batch = Batch { state: (**current).clone(), entries: Vec::new(), lookups };
            while let Some(input) = inputs.pop_front() {
                self.evaluate(&mut batch, input);
                if batch.appended().count() >= MAX_BATCH {
                    break;
                }
            }
            // A denied event may be a repetition, which the store does not see.
            all_ids = batch.lookups.unsure && batch.entries.iter().any(Entry::is_denied);
            if all_ids {
                batch.give_back(&mut inputs);
                continue;
            }
            let appends: Vec<Append> = batch.appended().map(|a| self.with_beside(&batch.state, &a.append)).collect();
            if appends.is_empty() {
                let Batch { state: after, entries, .. } = batch;
                // A timer may have been skipped.
                let after = state.insert(Box::new(after));
                self.set_timer(id, after);
                entries.into_iter().for_each(|entry| self.perform(id, after, entry));
                continue;
            }
            let committing = appends.first().map(|first| run.commits_from(first.record.seq));
            match self.commit(appends).await {
                Ok(()) => {
                    let Batch { state: after, entries, .. } = batch;
                    lock(&run.mailbox).view = after.seen();
                    drop(committing);
                    let after = state.insert(Box::new(after));
                    let records = entries.iter().flat_map(|e| &e.appended).map(|a| &a.append.record);
                    records.for_each(|record| after.note_trust(record));
                    self.set_timer(id, after);
                    entries.into_iter().for_each(|entry| self.perform(id, after, entry));
                    self.stop_obsolete_calls(id, after);
                }
                // Another run was given a key in the meantime; then look it up again.
                Err(StoreError::KeyTaken { .. })
                    if batch.lookups.keys.are_used() && key_conflicts < MAX_KEY_CONFLICTS =>
                {
                    key_conflicts = key_conflicts.saturating_add(1);
                    batch.give_back(&mut inputs);
                }
                Err(StoreError::IdTaken { .. }) if batch.lookups.unsure => {
                    // Nothing was written. Evaluate the inputs again, now with the records that
                    // have their ids.
                    all_ids = true;
                    batch.give_back(&mut inputs);
                }
                Err(e) => {
                    self.publisher.trouble(Some(id), e.to_string());
                    let not_written = matches!(e, StoreError::NotWritten { .. });
                    let e = RuntimeError::Store(e);
                    batch.entries.into_iter().for_each(|entry| Inner::not_committed(id, entry, &e));
                    if not_written {
                        // Timers that were due still are, so fire them later.
                        let later = self.clock.now().saturating_add(RETRY_WRITE);
                        self.timers.set(id, Some(later), || self.clock.work());
                    } else {
                        // The batch may have been written: read the run from the journal again.
                        *state = None;
                        lock(&run.mailbox).view = None;
                    }
                }
            }
        }
        drop(activities);
    }

    /// Returns the run of the first input: from the journal, or a new one.
    async fn begin(self: &Arc<Self>, id: &Arc<str>, inputs: &VecDeque<Input>) -> Result<Box<RunState>, RuntimeError> {
        match (self.load(id).await, inputs.front().and_then(|i| i.charter.clone())) {
            (Err(RuntimeError::UnknownRun(_)), Some(charter)) => {
                let run = charter_run::Run::new(id, charter_journal::SNAPSHOT_EVERY);
                Ok(Box::new(RunState { charter, run, trusted: true, imported: 0 }))
            }
            (loaded, _) => loaded,
        }
    }

    /// A record as it is committed, with what is kept beside it.
    fn with_beside(&self, state: &RunState, append: &Append) -> Append {
        Append { state: state.beside(&append.record, |src| self.may_repeat(&state.charter, src)), ..append.clone() }
    }

    async fn commit(&self, appends: Vec<Append>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.store.submit(appends, Box::new(move |result| drop(sender.send(result))));
        receiver.await.unwrap_or_else(|_| Err(StoreError::Stopped { reason: "the writer thread has ended".into() }))
    }
}

fn fail(input: Input, e: &RuntimeError) {
    if let Some(reply) = input.reply {
        drop(reply.send(Err(e.clone())));
    }
}
