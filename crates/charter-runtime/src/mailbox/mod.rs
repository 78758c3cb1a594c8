//! One mailbox per run: its mail is handled one after the other, by a task that exists only while there is some. What waits together
//! is committed together; effects are executed after the commit, answers given after it.

mod judge;
mod perform;
mod repeated;
mod state;

use std::collections::VecDeque;
use std::sync::Arc;

use charter_journal::{Append, Chain, StoreError};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

pub(crate) use perform::AGAIN;
pub(crate) use state::{Queued, Run, RunState};

use crate::error::RuntimeError;
use crate::runtime::{Inner, Input, lock};
use judge::{BATCH, Batch, Evaluation};
use perform::{drop_reply, fail};

impl Inner {
    /// Puts a letter into a mailbox, and sees to it that somebody handles it.
    pub(crate) fn deliver(self: &Arc<Self>, run: &str, letter: Queued, bounded: bool) -> Result<(), RuntimeError> {
        let mut cells = lock(&self.cells);
        let (run, cell) = match cells.get_key_value(run) {
            Some((run, cell)) => (run.clone(), cell.clone()),
            None => {
                let (run, cell): (Arc<str>, Arc<Run>) = (run.into(), Arc::default());
                cells.insert(run.clone(), cell.clone());
                (run, cell)
            }
        };
        let mut inside = lock(&cell.inside);
        let most = self.limits.mailbox;
        if bounded && most > 0 && inside.queue.len() >= most as usize {
            return Err(RuntimeError::Limit {
                limit: "mailbox",
                value: most.into(),
                what: format!("too many events wait for run `{run}`"),
            });
        }
        inside.queue.push_back(letter);
        if !inside.draining {
            inside.draining = true;
            self.drains.up();
            let (inner, cell) = (self.clone(), cell.clone());
            self.handle.spawn(async move {
                inner.drain(&run, &cell).await;
                let drains = inner.drains.clone();
                drop(inner);
                drains.down();
            });
        }
        Ok(())
    }

    /// Handles mail until there is none.
    async fn drain(self: &Arc<Self>, run: &Arc<str>, cell: &Run) {
        let mut state = lock(&cell.inside).state.take();
        loop {
            let letters: Vec<Queued> = {
                let mut inside = lock(&cell.inside);
                let count = inside.queue.len().min(BATCH);
                inside.queue.drain(..count).collect()
            };
            if letters.is_empty() && self.rest(run, cell, &mut state) {
                return;
            }
            self.handle_mail(run, cell, &mut state, letters).await;
        }
    }

    /// Puts the run away. Gives false if mail has come meanwhile.
    fn rest(&self, run: &Arc<str>, cell: &Run, state: &mut Option<Box<RunState>>) -> bool {
        let mut cells = lock(&self.cells);
        let mut inside = lock(&cell.inside);
        if !inside.queue.is_empty() {
            return false;
        }
        inside.draining = false;
        let over = state.as_ref().is_none_or(|s| s.snapshot.as_ref().is_none_or(|s| s.status().is_finished()));
        let most = self.limits.runs_in_memory;
        if over || (most > 0 && cells.len() > most as usize) {
            cells.remove(run);
        } else {
            inside.state = state.take();
        }
        true
    }

    /// Handles some mail: judges it, commits, then does what it asks for.
    async fn handle_mail(
        self: &Arc<Self>,
        run: &Arc<str>,
        cell: &Run,
        state: &mut Option<Box<RunState>>,
        letters: Vec<Queued>,
    ) {
        let mut works = Vec::with_capacity(letters.len());
        let mut mails: VecDeque<Input> = letters
            .into_iter()
            .map(|l| {
                works.push(l._work);
                l.mail
            })
            .collect();
        while !mails.is_empty() {
            if state.is_none() {
                match self.begin(run, &mut mails).await {
                    Ok(fresh) => *state = Some(fresh),
                    Err(e) => {
                        if mails.iter().any(|m| matches!(m, Input::Due)) {
                            self.publisher.trouble(Some(run), format!("its timer cannot fire: {e}"));
                        }
                        mails.drain(..).for_each(|m| fail(m, &e));
                        return;
                    }
                }
            }
            let Some(current) = state.as_ref() else {
                return;
            };
            let mut batch = Batch { state: (**current).clone(), made: Vec::new(), ids: FxHashSet::default() };
            while let Some(mail) = mails.pop_front() {
                if let Evaluation::Later(mail) = self.judge(run, &mut batch, mail) {
                    mails.push_front(mail);
                    break;
                }
                if batch.made.len() >= BATCH {
                    break;
                }
            }
            if batch.made.is_empty() {
                self.set_timer(run, state.as_deref());
                continue;
            }
            let appends: Vec<Append> = batch.made.iter().map(|m| m.append.clone()).collect();
            match self.commit(appends).await {
                Ok(()) => {
                    lock(&cell.inside).view = batch.state.snapshot.clone().map(|s| (batch.state.charter.clone(), s));
                    *state = Some(Box::new(batch.state));
                    self.set_timer(run, state.as_deref());
                    if let Some(state) = state.as_ref() {
                        batch.made.into_iter().for_each(|made| self.perform(run, state, made));
                        self.reconcile(run, state);
                    }
                }
                Err(e) => {
                    self.publisher.trouble(Some(run), e.to_string());
                    let again = matches!(e, StoreError::NotWritten { .. });
                    let e = RuntimeError::Store(e);
                    batch.made.into_iter().for_each(|made| drop_reply(made, &e));
                    if again {
                        // Timers that were due still are.
                        let later = self.clock.now().saturating_add(AGAIN);
                        self.wheel.set(run, Some(later), || self.clock.work());
                    } else {
                        // Whether it was written is not known now: the journal will say.
                        *state = None;
                        lock(&cell.inside).view = None;
                    }
                }
            }
        }
        drop(works);
    }

    /// The run that the first letter is for: from the journal, or a new one.
    async fn begin(
        self: &Arc<Self>,
        run: &Arc<str>,
        mails: &mut VecDeque<Input>,
    ) -> Result<Box<RunState>, RuntimeError> {
        match (self.load(run).await, mails.front()) {
            (Err(RuntimeError::UnknownRun(_)), Some(Input::Start { charter, .. })) => {
                Ok(Box::new(RunState::new(charter.clone(), None, Chain::new(run), i64::MIN)))
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
