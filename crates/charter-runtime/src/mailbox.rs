//! One mailbox per run: its mail is handled one after the other, by a task that exists only while there is some. What waits together
//! is committed together; effects are executed after the commit, answers given after it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use charter_journal::{Append, Chain, MAX_RECORD_BYTES, StoreError};
use charter_kernel::{
    Effect, EffectKind, Envelope, Event, Principal, Refusal, Snapshot, Status, Step,
};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::calls::Asked;
use crate::charter::Charter;
use crate::clock::Work;
use crate::error::RuntimeError;
use crate::publish::{Happening, Recorded};
use crate::runtime::{Inner, Mail, Receipt, Reply, Send, Start, blocking, lock, may, task_roles};

/// After this time, in milliseconds, it is tried again to write what could not be written for now (no space).
pub(crate) const AGAIN: i64 = 1_000;
/// How many events of one run are committed together at most.
const BATCH: usize = 64;

/// Mail, and the sign that somebody has work to do with it.
pub(crate) struct Letter {
    mail: Mail,
    _work: Work,
}

impl Letter {
    pub(crate) fn new(mail: Mail, work: Work) -> Letter {
        Letter { mail, _work: work }
    }
}

/// The mailbox of a run, and the run itself while it is in memory.
#[derive(Default)]
pub(crate) struct Cell {
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    queue: VecDeque<Letter>,
    draining: bool,
    /// Here while nobody drains.
    state: Option<Box<RunState>>,
    /// What others may look at.
    view: Option<(Arc<Charter>, Snapshot)>,
}

impl Cell {
    pub(crate) fn view(&self) -> Option<(Arc<Charter>, Snapshot)> {
        lock(&self.inside).view.clone()
    }
}

/// A run in memory, as it is after its last durable record.
#[derive(Clone)]
pub(crate) struct RunState {
    pub(crate) charter: Arc<Charter>,
    /// None: its start was refused.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) chain: Chain,
    /// Time of its last record: within a run time does not go back.
    pub(crate) last: i64,
    /// Timers whose event was refused by the snapshot with this number: tried again when it has changed.
    refused: (u64, FxHashSet<(Arc<str>, u64)>),
}

impl RunState {
    pub(crate) fn new(
        charter: Arc<Charter>,
        snapshot: Option<Snapshot>,
        chain: Chain,
        last: i64,
    ) -> RunState {
        RunState {
            charter,
            snapshot,
            chain,
            last,
            refused: Default::default(),
        }
    }

    /// The next timer that may fire.
    fn timer(&self) -> Option<&charter_kernel::Timer> {
        let snapshot = self
            .snapshot
            .as_ref()
            .filter(|s| s.status() == Status::Active)?;
        let (at, refused) = &self.refused;
        let fresh = |t: &&charter_kernel::Timer| {
            *at != snapshot.seq() || !refused.contains(&(t.id.clone(), t.generation))
        };
        snapshot.timers().iter().map(AsRef::as_ref).find(fresh)
    }

    pub(crate) fn next_due(&self) -> Option<i64> {
        self.timer().map(|t| t.due)
    }
}

/// What came of a letter.
struct Made {
    append: Append,
    effects: Vec<Effect>,
    after: Option<Snapshot>,
    reply: Option<Reply>,
}

/// A batch in the making: the run as it will be, and what leads there.
struct Batch {
    state: RunState,
    made: Vec<Made>,
    ids: FxHashSet<String>,
}

/// What is to be done with a letter.
enum Judged {
    /// It is in the batch, or was answered without a record.
    Done,
    /// It needs what the batch has not written yet; it comes first in the next one.
    Later(Mail),
}

impl Inner {
    /// Puts a letter into a mailbox, and sees to it that somebody handles it.
    pub(crate) fn deliver(
        self: &Arc<Self>,
        run: &str,
        letter: Letter,
        bounded: bool,
    ) -> Result<(), RuntimeError> {
        let mut cells = lock(&self.cells);
        let (run, cell) = match cells.get_key_value(run) {
            Some((run, cell)) => (run.clone(), cell.clone()),
            None => {
                let (run, cell): (Arc<str>, Arc<Cell>) = (run.into(), Arc::default());
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
    async fn drain(self: &Arc<Self>, run: &Arc<str>, cell: &Cell) {
        let mut state = lock(&cell.inside).state.take();
        loop {
            let letters: Vec<Letter> = {
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
    fn rest(&self, run: &Arc<str>, cell: &Cell, state: &mut Option<Box<RunState>>) -> bool {
        let mut cells = lock(&self.cells);
        let mut inside = lock(&cell.inside);
        if !inside.queue.is_empty() {
            return false;
        }
        inside.draining = false;
        let over = state
            .as_ref()
            .is_none_or(|s| s.snapshot.as_ref().is_none_or(|s| s.status().is_finished()));
        let most = self.limits.runs_in_memory;
        if over || (most > 0 && cells.len() > most as usize) {
            cells.remove(run);
        } else {
            inside.state = state.take();
        }
        true
    }

    /// A run from the journal.
    pub(crate) async fn load(self: &Arc<Self>, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let (inner, run) = (self.clone(), run.to_owned());
        blocking(move || {
            let info = inner
                .store
                .run(&run)?
                .ok_or_else(|| RuntimeError::UnknownRun(run.clone()))?;
            let charter = inner.charter(info.charter)?;
            let loaded = charter_journal::load(inner.store.as_ref(), &charter.machine, &run)?;
            Ok(Box::new(RunState::new(
                charter,
                loaded.snapshot,
                loaded.chain,
                info.updated,
            )))
        })
        .await?
    }

    /// Handles some mail: judges it, commits, then does what it asks for.
    async fn handle_mail(
        self: &Arc<Self>,
        run: &Arc<str>,
        cell: &Cell,
        state: &mut Option<Box<RunState>>,
        letters: Vec<Letter>,
    ) {
        let mut works = Vec::with_capacity(letters.len());
        let mut mails: VecDeque<Mail> = letters
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
                        if mails.iter().any(|m| matches!(m, Mail::Due)) {
                            self.publisher
                                .trouble(Some(run), format!("its timer cannot fire: {e}"));
                        }
                        mails.drain(..).for_each(|m| fail(m, &e));
                        return;
                    }
                }
            }
            let Some(current) = state.as_ref() else {
                return;
            };
            let mut batch = Batch {
                state: (**current).clone(),
                made: Vec::new(),
                ids: FxHashSet::default(),
            };
            while let Some(mail) = mails.pop_front() {
                if let Judged::Later(mail) = self.judge(run, &mut batch, mail) {
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
                    lock(&cell.inside).view = batch
                        .state
                        .snapshot
                        .clone()
                        .map(|s| (batch.state.charter.clone(), s));
                    *state = Some(Box::new(batch.state));
                    self.set_timer(run, state.as_deref());
                    if let Some(state) = state.as_ref() {
                        batch
                            .made
                            .into_iter()
                            .for_each(|made| self.perform(run, state, made));
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
        mails: &mut VecDeque<Mail>,
    ) -> Result<Box<RunState>, RuntimeError> {
        match (self.load(run).await, mails.front()) {
            (Err(RuntimeError::UnknownRun(_)), Some(Mail::Start { charter, .. })) => Ok(Box::new(
                RunState::new(charter.clone(), None, Chain::new(run), i64::MIN),
            )),
            (loaded, _) => loaded,
        }
    }

    async fn commit(&self, appends: Vec<Append>) -> Result<(), StoreError> {
        let (sender, receiver) = oneshot::channel();
        self.store
            .submit(appends, Box::new(move |result| drop(sender.send(result))));
        receiver.await.unwrap_or_else(|_| {
            Err(StoreError::Stopped {
                reason: "the writer is gone".into(),
            })
        })
    }

    fn set_timer(&self, run: &Arc<str>, state: Option<&RunState>) {
        self.wheel
            .set(run, state.and_then(|s| s.next_due()), || self.clock.work());
    }

    /// Puts a letter through the kernel.
    fn judge(self: &Arc<Self>, run: &Arc<str>, batch: &mut Batch, mail: Mail) -> Judged {
        // What was due before comes before.
        self.fire(run, batch);
        match mail {
            Mail::Due => Judged::Done,
            Mail::Start {
                charter,
                start,
                reply,
            } => self.judge_start(run, batch, charter, start, reply),
            Mail::Event { send, reply } => self.judge_event(run, batch, send, reply),
            Mail::Answer {
                invocation,
                effect,
                outcome,
                person,
                reply,
            } => {
                let Some(snapshot) = &batch.state.snapshot else {
                    drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
                    return Judged::Done;
                };
                let (invocation, by) = match person {
                    None => (invocation, Principal::system()),
                    Some(person) => {
                        match task(run, &batch.state.charter, snapshot, effect, &person) {
                            Ok(invocation) => (invocation, person),
                            Err(e) => {
                                drop(reply.send(Err(e)));
                                return Judged::Done;
                            }
                        }
                    }
                };
                let effect = Some(effect);
                let event = match outcome {
                    Ok(output) => Event::Done {
                        invocation,
                        effect,
                        output,
                    },
                    Err(error) => Event::Failed {
                        invocation,
                        effect,
                        error,
                    },
                };
                self.step_of_host(run, batch, event, by, reply)
            }
            Mail::Attempt {
                invocation,
                effect,
                attempt,
                error,
                retry_at,
                reply,
            } => {
                let event = Event::Attempt {
                    invocation,
                    effect,
                    attempt,
                    error,
                    retry_at,
                };
                self.step_of_host(run, batch, event, Principal::system(), reply)
            }
        }
    }

    /// An event of the host's own: it is taken when events from outside no longer are.
    fn step_of_host(
        &self,
        run: &Arc<str>,
        batch: &mut Batch,
        event: Event,
        by: Principal,
        reply: Reply,
    ) -> Judged {
        if batch.state.snapshot.is_none() {
            drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
        } else if self.is_full(batch, 2) {
            self.publisher.trouble(Some(run), format!("run `{run}` has twice as many records as it may have, and stands still; `charter.cancel` ends it"));
            drop(reply.send(Err(self.full(run))));
        } else {
            self.step(batch, None, None, event, by, None, Some(reply));
        }
        Judged::Done
    }

    /// Fires the timers that are due.
    fn fire(&self, run: &Arc<str>, batch: &mut Batch) {
        for _ in 0..BATCH {
            let now = self.now(&batch.state);
            let Some((id, generation)) = batch
                .state
                .timer()
                .filter(|t| t.due <= now)
                .map(|t| (t.id.clone(), t.generation))
            else {
                return;
            };
            if self.is_full(batch, 2) {
                return;
            }
            let event = Event::Timer {
                timer: id.to_string(),
                generation,
            };
            let before = batch.made.len();
            self.step(batch, None, None, event, Principal::system(), None, None);
            if batch.made.len() == before {
                return;
            }
            let state = &mut batch.state;
            let refused = batch
                .made
                .last()
                .and_then(|m| m.append.record.refusal.as_deref());
            if let (Some(why), Some(snapshot)) = (refused, &state.snapshot) {
                // It stays pending. It would be refused for ever: it is tried again when the run has changed.
                if state.refused.0 != snapshot.seq() {
                    state.refused = (snapshot.seq(), FxHashSet::default());
                }
                state.refused.1.insert((id.clone(), generation));
                self.publisher.trouble(
                    Some(run),
                    format!(
                        "the timer `{id}` was refused ({}) and waits for the run to change: {}",
                        why.code, why.message
                    ),
                );
            }
        }
    }

    fn now(&self, state: &RunState) -> i64 {
        self.clock.now().max(state.last)
    }

    fn judge_start(
        self: &Arc<Self>,
        run: &Arc<str>,
        batch: &mut Batch,
        charter: Arc<Charter>,
        start: Box<Start>,
        reply: Reply,
    ) -> Judged {
        if batch.state.chain.next_seq() > 0 {
            if !batch.made.is_empty() {
                return Judged::Later(Mail::Start {
                    charter,
                    start,
                    reply,
                });
            }
            drop(reply.send(self.started_before(run, batch, &charter, &start)));
            return Judged::Done;
        }
        batch.state.charter = charter;
        let Start { input, by, .. } = *start;
        self.step(
            batch,
            None,
            None,
            Event::Start { input },
            by,
            None,
            Some(reply),
        );
        Judged::Done
    }

    /// The same run, started again.
    fn started_before(
        &self,
        run: &str,
        batch: &Batch,
        charter: &Charter,
        start: &Start,
    ) -> Result<Receipt, RuntimeError> {
        let exists = || RuntimeError::RunExists(run.to_owned());
        let first = self
            .store
            .records(run, 0, 1)?
            .into_iter()
            .next()
            .ok_or_else(exists)?;
        let event = Event::Start {
            input: start.input.clone(),
        };
        let envelope = Envelope {
            seq: 0,
            to: None,
            event,
            by: start.by.clone(),
            at: first.at,
            expected_seq: None,
        };
        let outcome = charter.machine.start(run, &envelope);
        let again = charter_journal::Record::of(
            &charter.machine,
            run,
            None,
            charter_journal::GENESIS,
            &envelope,
            None,
            &outcome,
        );
        if first.charter != charter.digest() || !first.says_the_same(&again) {
            return Err(exists());
        }
        Ok(Receipt {
            record: first,
            snapshot: batch.state.snapshot.clone(),
            repeated: true,
        })
    }

    fn judge_event(
        self: &Arc<Self>,
        run: &Arc<str>,
        batch: &mut Batch,
        send: Box<Send>,
        reply: Reply,
    ) -> Judged {
        if batch.state.snapshot.is_none() {
            drop(reply.send(Err(RuntimeError::NeverStarted(run.to_string()))));
            return Judged::Done;
        }
        if let Some(id) = &send.id {
            if batch.ids.contains(id) {
                return Judged::Later(Mail::Event { send, reply });
            }
            match self.store.find(run, id) {
                Ok(None) => {}
                Ok(Some(first)) => {
                    drop(reply.send(self.said_before(run, batch, &send, first)));
                    return Judged::Done;
                }
                Err(e) => {
                    drop(reply.send(Err(e.into())));
                    return Judged::Done;
                }
            }
        }
        if send.r#type != "charter.cancel" && self.is_full(batch, 1) {
            drop(reply.send(Err(self.full(run))));
            return Judged::Done;
        }
        let Send {
            to,
            r#type,
            data,
            by,
            id,
            expected_seq,
            ..
        } = *send;
        self.step(
            batch,
            id,
            to,
            Event::External { r#type, data },
            by,
            expected_seq,
            Some(reply),
        );
        Judged::Done
    }

    /// An event whose id is in the journal already: the first answer, if it says the same.
    fn said_before(
        &self,
        run: &str,
        batch: &Batch,
        send: &Send,
        first: charter_journal::Record,
    ) -> Result<Receipt, RuntimeError> {
        let state = &batch.state;
        let envelope = Envelope {
            seq: state.chain.next_seq(),
            to: send.to.clone(),
            event: Event::External {
                r#type: send.r#type.clone(),
                data: send.data.clone(),
            },
            by: send.by.clone(),
            at: self.now(state),
            expected_seq: send.expected_seq,
        };
        let outcome = outcome(state, &envelope);
        let again = state.chain.append(
            &state.charter.machine,
            None,
            &envelope,
            state.snapshot.as_ref(),
            &outcome,
        );
        if first.says_the_same(&again.record) {
            return Ok(Receipt {
                record: first,
                snapshot: state.snapshot.clone(),
                repeated: true,
            });
        }
        Err(RuntimeError::IdTaken {
            run: run.into(),
            id: first.id.to_string(),
            seq: first.seq,
        })
    }

    /// The kernel's step, and its record.
    #[allow(clippy::too_many_arguments)] // the parts of an envelope
    fn step(
        &self,
        batch: &mut Batch,
        id: Option<String>,
        to: Option<String>,
        event: Event,
        by: Principal,
        expected_seq: Option<u64>,
        reply: Option<Reply>,
    ) {
        let at = self.now(&batch.state);
        let state = &mut batch.state;
        let envelope = Envelope {
            seq: state.chain.next_seq(),
            to,
            event,
            by,
            at,
            expected_seq,
        };
        let outcome = outcome(state, &envelope);
        let append = state.chain.append(
            &state.charter.machine,
            id.as_deref(),
            &envelope,
            state.snapshot.as_ref(),
            &outcome,
        );
        let size = append.record.text().len();
        if size > MAX_RECORD_BYTES {
            let (run, seq) = (append.record.run.to_string(), append.record.seq);
            let e = StoreError::TooLarge {
                run,
                seq,
                size,
                limit: MAX_RECORD_BYTES,
            };
            match reply {
                Some(reply) => drop(reply.send(Err(e.into()))),
                None => self.publisher.trouble(None, e.to_string()),
            }
            return;
        }
        state.chain.advance(&append);
        state.last = at;
        batch.ids.extend(id);
        let mut effects = Vec::new();
        if let Ok(step) = outcome {
            state.snapshot = Some(step.snapshot);
            effects = step.effects;
        }
        batch.made.push(Made {
            append,
            effects,
            after: state.snapshot.clone(),
            reply,
        });
    }

    /// Whether a run has as many records as it may have, `times` over.
    fn is_full(&self, batch: &Batch, times: u64) -> bool {
        let most = self.limits.records_per_run;
        most > 0 && batch.state.chain.next_seq() >= most.saturating_mul(times)
    }

    fn full(&self, run: &str) -> RuntimeError {
        RuntimeError::Limit {
            limit: "records_per_run",
            value: self.limits.records_per_run,
            what: format!("run `{run}` has too many records; `charter.cancel` still ends it"),
        }
    }

    /// After the commit: tells, does, answers.
    fn perform(self: &Arc<Self>, run: &Arc<str>, state: &RunState, made: Made) {
        let Made {
            append,
            effects,
            after,
            reply,
        } = made;
        let record = append.record;
        let seq = record.seq;
        crate::trace::record(&record);
        self.publisher.tell(Happening::Recorded(Recorded {
            record: record.clone(),
            charter: state.charter.clone(),
            snapshot: after.clone(),
        }));
        if let Some(reply) = reply {
            drop(reply.send(Ok(Receipt {
                record,
                snapshot: after,
                repeated: false,
            })));
        }
        for effect in effects {
            match effect.kind {
                EffectKind::Invoke {
                    invocation,
                    src,
                    input,
                    ..
                } => {
                    self.invoke(
                        &state.charter,
                        run,
                        Asked {
                            effect: effect.id,
                            invocation,
                            src,
                            input,
                            attempt: 1,
                            not_before: i64::MIN,
                        },
                    );
                }
                EffectKind::Cancel { effect, .. } => {
                    self.calls.cancel(run, effect, &self.publisher)
                }
                EffectKind::Emit { r#type, data } => {
                    self.publisher.tell(Happening::Emitted {
                        run: run.clone(),
                        seq,
                        r#type,
                        data,
                    });
                }
                EffectKind::Log { label, value } => {
                    self.publisher.tell(Happening::Logged {
                        run: run.clone(),
                        seq,
                        label: label.map(Into::into),
                        value,
                    });
                }
            }
        }
    }

    /// Stops what nobody waits for any more.
    fn reconcile(&self, run: &Arc<str>, state: &RunState) {
        let Some(snapshot) = &state.snapshot else {
            return;
        };
        let ended = snapshot.status().is_finished();
        self.calls.keep(run, &self.publisher, |effect| {
            !ended && snapshot.invocations().any(|(_, i)| i.effect == effect)
        });
    }
}

fn outcome(state: &RunState, envelope: &Envelope) -> Result<Step, Refusal> {
    match (&envelope.event, &state.snapshot) {
        (Event::Start { .. }, None) => state.charter.machine.start(state.chain.run(), envelope),
        (_, Some(snapshot)) => state.charter.machine.step(snapshot, envelope),
        (_, None) => Err(charter_kernel::Code::Finished.into()),
    }
}

/// The invocation that waits for a person's answer.
fn task(
    run: &str,
    charter: &Charter,
    snapshot: &Snapshot,
    effect: charter_kernel::EffectId,
    by: &Principal,
) -> Result<String, RuntimeError> {
    let name = effect.text(run);
    let human = |src: &str| {
        charter
            .actors
            .get(src)
            .is_some_and(|s| s.kind.as_ref() == "human")
    };
    let found = snapshot
        .invocations()
        .find(|(_, i)| i.effect == effect && !i.is_machine() && human(&i.src));
    let Some((_, i)) = found.filter(|_| !snapshot.status().is_finished()) else {
        return Err(RuntimeError::NoTask {
            run: run.into(),
            task: name,
        });
    };
    let roles = task_roles(charter, &i.src);
    if !may(&roles, by) {
        return Err(RuntimeError::NotYours {
            run: run.into(),
            task: name,
            roles: roles.join(", "),
            by: by.id.clone(),
        });
    }
    Ok(i.id.to_string())
}

fn drop_reply(made: Made, e: &RuntimeError) {
    if let Some(reply) = made.reply {
        drop(reply.send(Err(e.clone())));
    }
}

fn fail(mail: Mail, e: &RuntimeError) {
    match mail {
        Mail::Start { reply, .. }
        | Mail::Event { reply, .. }
        | Mail::Attempt { reply, .. }
        | Mail::Answer { reply, .. } => drop(reply.send(Err(e.clone()))),
        Mail::Due => {}
    }
}
