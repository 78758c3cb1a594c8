//! Handling one input: timers that are due, then the input itself.

use std::sync::Arc;

use charter_journal::{MAX_RECORD_BYTES, Manifest, Record, Verdict as Outcome};
use charter_kernel::{Effect, EffectId, EffectKind, Event, Machine, Principal, Timestamp, Unique, is_larger};
use serde_json::Value as Json;

use crate::fault::Fault;
use crate::handled::{Action, Appended, Denied, InvocationRequest, Reply, Trouble, check_event_id};
use crate::input::{EventInput, Input, Known};
use crate::position::{Incoming, has_record};
use crate::retry::NextAttempt;
use crate::run::{Bounds, MAX_TIMERS, Run};
use crate::task;

/// An input that is being handled.
pub(crate) struct Handling<'a> {
    pub(crate) run: &'a mut Run,
    pub(crate) machine: &'a Machine,
    pub(crate) bounds: &'a Bounds,
    pub(crate) now: Timestamp,
    pub(crate) appended: Vec<Appended>,
    pub(crate) troubles: Vec<Trouble>,
}

impl Handling<'_> {
    /// Fires the timers that are due.
    pub(crate) fn fire(&mut self) {
        for _ in 0..MAX_TIMERS {
            let now = self.run.position.time(self.now);
            let Some((_, incoming)) = self.run.position.due(now) else {
                return;
            };
            if self.is_full(2) {
                return;
            }
            let Event::Timer { timer, generation } = &incoming.event else {
                return;
            };
            let (timer, generation) = (timer.clone(), *generation);
            match self.append(None, incoming) {
                Err(Denied::RecordTooLarge { size, limit, .. }) => {
                    self.run.position.skip_timer(&timer, generation);
                    self.troubles.push(Trouble::TimerTooLarge { timer, size, limit });
                }
                Err(_) => return,
                Ok(_) => {
                    let record = self.appended.last().map(|a| &a.append.record);
                    if let Some(why) = record.and_then(|r| r.explanation(Some(self.machine))) {
                        let (code, message) = (why.code.to_string(), why.message);
                        self.troubles.push(Trouble::TimerRefused { timer, code, message });
                    }
                }
            }
        }
    }

    pub(crate) fn input(&mut self, input: Input, known: Known) -> Result<Reply, Denied> {
        if let Input::Start { by, .. } | Input::Event(EventInput { by, .. }) | Input::Settled { by, .. } = &input {
            by.check_sender()?;
        }
        match input {
            Input::Due => Ok(Reply::None),
            Input::Start { input, by, manifest } => self.start(input, by, &manifest, known.first),
            Input::Event(event) => self.event(event, known.same, known.unique),
            Input::Outcome { effect, attempt, outcome, again_at } => self.outcome(effect, attempt, outcome, again_at),
            Input::Settled { effect, outcome, by } => {
                let snapshot = self.run.snapshot().ok_or(Denied::NeverStarted)?;
                let invocation = task::invocation(self.machine, snapshot, self.run.is_dry(), effect, &by)?.to_owned();
                self.check_own()?;
                let event = Event::answer(invocation, effect, outcome);
                self.append(None, Incoming { by, ..Incoming::host(event) })
            }
        }
    }

    fn start(
        &mut self,
        input: Json,
        by: Principal,
        manifest: &Manifest,
        first: Option<Record>,
    ) -> Result<Reply, Denied> {
        let incoming = Incoming { by, ..Incoming::host(Event::Start { input }) };
        if !self.run.exists() {
            self.run.chain.set_manifest(manifest);
            return self.append(None, incoming);
        }
        let first = first.ok_or(Denied::RunExists)?;
        let same_files = first.manifest.as_deref().unwrap_or(&Manifest::default()) == manifest;
        match same_files && first.charter == self.machine.digest() && self.is_repeated(&first, incoming) {
            true => Ok(Reply::Repeated(Box::new(first))),
            false => Err(Denied::RunExists),
        }
    }

    fn event(&mut self, event: EventInput, same: Option<Record>, unique: Option<Unique>) -> Result<Reply, Denied> {
        if self.run.snapshot().is_none() {
            return Err(Denied::NeverStarted);
        }
        let EventInput { to, r#type, data, by, id, host_id, expected_seq } = event;
        if let Some(id) = &id {
            check_event_id(self.run.id(), id, host_id)?;
        }
        let limit = self.bounds.data_bytes;
        if limit > 0 && is_larger(&data, limit) {
            return Err(Denied::DataTooLarge { event: r#type, limit });
        }
        let is_cancel = r#type == "charter.cancel";
        let expected_seq = self.run.seen(expected_seq);
        let incoming = Incoming { to, event: Event::External { r#type, data }, by, expected_seq, unique };
        if let Some(first) = same {
            return match self.is_repeated(&first, incoming) {
                true => Ok(Reply::Repeated(Box::new(first))),
                false => Err(Denied::IdTaken { id: first.id.to_string(), seq: first.seq }),
            };
        }
        if !is_cancel && self.is_full(1) {
            return Err(Denied::TooManyRecords { limit: self.bounds.records });
        }
        self.append(id, incoming)
    }

    /// Whether a record is that of the same event: same addressee, content and sender.
    fn is_repeated(&self, record: &Record, incoming: Incoming) -> bool {
        record.is_of(&self.run.position.envelope(incoming, self.now))
    }

    fn outcome(
        &mut self,
        effect: EffectId,
        attempt: u32,
        outcome: Result<Json, Json>,
        again_at: Option<Timestamp>,
    ) -> Result<Reply, Denied> {
        let snapshot = self.run.snapshot().ok_or(Denied::NeverStarted)?;
        let Some((_, i)) = snapshot.invocations().find(|(_, i)| i.effect == effect) else {
            return Ok(Reply::NotAwaited);
        };
        let invocation = i.id.to_string();
        self.check_own()?;
        match (outcome, again_at) {
            (Err(error), Some(retry_at)) => {
                let event = |error| Event::Attempt { invocation: invocation.clone(), effect, attempt, error, retry_at };
                let made = match self.answer(event(error)) {
                    Err(Denied::RecordTooLarge { size, limit, .. }) => {
                        self.answer(event(too_large("failure", size, limit).json()))?
                    }
                    made => made?,
                };
                if let Reply::Made(index) = made
                    && let Some(appended) = self.appended.get_mut(index)
                {
                    let held_since = self.run.paused_at().map(|_| appended.append.record.at);
                    let next = NextAttempt { attempt: attempt.saturating_add(1), not_before: retry_at, held_since };
                    Arc::make_mut(&mut self.run.attempts).insert(effect, next);
                    if held_since.is_none() {
                        appended.actions.extend(self.run.request(effect).map(Action::Invoke));
                    }
                }
                Ok(made)
            }
            (outcome, _) => self.settle(invocation, effect, outcome),
        }
    }

    /// Applies the answer of an actor. If the run refuses it, or if it is too large for a record, a
    /// failure follows in the same step, so that the charter can react.
    fn settle(&mut self, invocation: String, effect: EffectId, outcome: Result<Json, Json>) -> Result<Reply, Denied> {
        let failed = outcome.is_err();
        let made = self.answer(Event::answer(invocation.clone(), effect, outcome));
        let fault = match &made {
            Ok(Reply::Made(index)) => {
                match self.appended.get(*index).and_then(|a| a.append.record.refusal.as_deref()) {
                    Some(refusal) => {
                        Fault::new("refused", "the run refused the answer").with("refusal", refusal.code.word())
                    }
                    None => return made,
                }
            }
            Err(Denied::RecordTooLarge { size, limit, .. }) => too_large("answer", *size, *limit),
            _ => return made,
        };
        if !failed {
            let failure = self.answer(Event::answer(invocation.clone(), effect, Err(fault.json())))?;
            let Reply::Made(index) = failure else {
                return Ok(failure);
            };
            if self.appended.get(index).is_some_and(|a| a.append.record.verdict != Outcome::Refused) {
                return Ok(failure);
            }
        }
        self.troubles.push(Trouble::AnswerRefused { invocation });
        made
    }

    fn answer(&mut self, event: Event) -> Result<Reply, Denied> {
        self.append(None, Incoming::host(event))
    }

    /// Checks the limit for events of the host, which is twice the limit for events from outside.
    fn check_own(&mut self) -> Result<(), Denied> {
        if !self.is_full(2) {
            return Ok(());
        }
        self.troubles.push(Trouble::Full);
        Err(Denied::TooManyRecords { limit: self.bounds.records })
    }

    /// Applies the kernel's step and builds its record. A late answer has none.
    fn append(&mut self, id: Option<String>, incoming: Incoming) -> Result<Reply, Denied> {
        let now = self.run.position.time(self.now);
        self.append_at(id, incoming, now)
    }

    /// Like [`Handling::append`], for an event at a time that is not before the last record.
    pub(crate) fn append_at(&mut self, id: Option<String>, incoming: Incoming, at: Timestamp) -> Result<Reply, Denied> {
        let run = &mut *self.run;
        let envelope = run.position.envelope(incoming, at);
        let outcome = run.position.step(self.machine, run.chain.run(), &envelope);
        if !has_record(&outcome) {
            return Ok(Reply::NotAwaited);
        }
        let append = run.chain.append(self.machine, id.as_deref(), &envelope, run.snapshot(), &outcome);
        let size = append.record.text().len();
        if size > MAX_RECORD_BYTES {
            return Err(Denied::RecordTooLarge { seq: append.record.seq, size, limit: MAX_RECORD_BYTES });
        }
        run.chain.advance(&append);
        if let Some(id) = &id {
            run.recent.insert(id, append.record.seq);
        }
        let was_paused = run.paused_at().is_some();
        let (after, mut actions) = match outcome {
            Ok(step) => (Ok(step.snapshot), step.effects.into_iter().map(action).collect::<Vec<_>>()),
            Err(refusal) => (Err(refusal.code), Vec::new()),
        };
        run.position.advance(&envelope, after);
        run.forget_attempts();
        actions.extend(run.hold_attempts(was_paused, envelope.at));
        let after = run.snapshot().cloned();
        let index = self.appended.len();
        self.appended.push(Appended { append, after, actions });
        Ok(Reply::Made(index))
    }

    /// Whether the run has `times` as many records as the limit.
    pub(crate) fn is_full(&self, times: u64) -> bool {
        let limit = self.bounds.records;
        limit > 0 && self.run.chain.next_seq() >= limit.saturating_mul(times)
    }
}

fn too_large(what: &str, size: usize, limit: usize) -> Fault {
    Fault::new("too-large", format!("the record of the {what} would have {size} bytes; the limit is {limit}"))
}

fn action(effect: Effect) -> Action {
    match effect.kind {
        EffectKind::Invoke { invocation, src, input, .. } => {
            let not_before = Timestamp::MIN;
            Action::Invoke(InvocationRequest { effect: effect.id, invocation, src, input, attempt: 1, not_before })
        }
        EffectKind::Cancel { effect, .. } => Action::Stop(effect),
        EffectKind::Emit { r#type, data } => Action::Emit { r#type: r#type.to_string(), data },
        EffectKind::Log { label, value } => Action::Log { label: label.map(Into::into), value },
    }
}
