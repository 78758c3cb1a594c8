//! The kernel's function: `(machine, snapshot, envelope) -> step or refusal`. Checks at the door, then the algorithm, then the interlocks.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use smallvec::SmallVec;

use crate::actors::{child_id, new_actor};
use crate::algorithm::Begin;
use crate::content::NO_SERVICE;
use crate::door;
use crate::envelope::{EffectId, Envelope, Event};
use crate::event::{Data, Ev, Name, Origin};
use crate::ledger::Ledger;
use crate::machine::{Machine, RoleSet, TransitionId};
use crate::refusal::{Code, Refusal};
use crate::scope::Eyes;
use crate::snapshot::{
    Actors, Held, Identity, Invocation, RunName, Snapshot, Status, TimerKind, Vote,
};
use crate::step::{EffectKind, Step, Verdict};
use crate::work::{Session, Work};

/// Run control (03): the only types that begin with `charter.` and may be sent from outside.
pub(crate) const CONTROL: [&str; 3] = ["charter.pause", "charter.resume", "charter.cancel"];

impl Machine {
    /// Starts a run: record 0.
    ///
    /// # Errors
    /// A refusal, e.g. `schema` if the input does not fit, or `execution` if the context cannot be computed.
    pub fn start(&self, run: &str, envelope: &Envelope) -> Result<Step, Refusal> {
        let Event::Start { input } = &envelope.event else {
            return Err(Code::Reserved.into());
        };
        let input = door::admit(input, self.definition.limits.data)?;
        if !crate::time::is_sane(envelope.at) {
            return Err(Refusal::with(
                Code::Schema,
                None,
                "the time of the event is outside the years 1 to 9999".into(),
            ));
        }
        let chart = self.chart(0);
        if chart.input.as_ref().is_some_and(|s| !s.fits(&input)) {
            return Err(Code::Schema.into());
        }
        let root = new_actor(Identity {
            id: "root".into(),
            parent: None,
            invocation: false,
            input: Arc::new(input.into_owned()),
            shape: chart.shape.clone(),
        });
        let snapshot = Snapshot {
            run: Arc::new(RunName {
                id: run.into(),
                charter: self.definition.id.as_str().into(),
                digest: self.digest,
            }),
            seq: envelope.seq,
            status: Status::Active,
            paused_at: None,
            output: None,
            actors: Actors(SmallVec::from_iter([Arc::new(root)])),
            timers: Vec::new(),
            ledger: if self.ledger.is_empty() {
                None
            } else {
                Some(Arc::new(Ledger::new(&self.ledger)))
            },
            held: Vec::new(),
            counter: 0,
        };
        let mut work = Work::new(
            self,
            snapshot,
            &envelope.by,
            self.held(envelope),
            envelope.seq,
            envelope.at,
        );
        work.macrostep(0, Begin::Start)?;
        work.finish(None, Verdict::Accepted)
    }

    /// Applies an event, whole (to quiescence) or not at all.
    ///
    /// # Errors
    /// A refusal; nothing has changed. [`Machine::explain`] tells the whole story.
    pub fn step(&self, snapshot: &Snapshot, envelope: &Envelope) -> Result<Step, Refusal> {
        if snapshot.run.digest != self.digest {
            return Err(Code::CharterMismatch.into());
        }
        if !crate::time::is_sane(envelope.at) {
            return Err(Refusal::with(
                Code::Schema,
                None,
                "the time of the event is outside the years 1 to 9999".into(),
            ));
        }
        match &envelope.event {
            Event::Start { .. } => Err(Code::Reserved.into()),
            Event::External { r#type, data } => {
                self.external(snapshot, envelope, r#type, data, false)
            }
            Event::Done {
                invocation,
                effect,
                output,
            } => {
                let output = door::admit(output, self.definition.limits.data)?.into_owned();
                self.answered(snapshot, envelope, invocation, *effect, Ok(output))
            }
            Event::Failed {
                invocation,
                effect,
                error,
            } => {
                let error = door::admit(error, self.definition.limits.data)?.into_owned();
                self.answered(snapshot, envelope, invocation, *effect, Err(error))
            }
            Event::Attempt {
                invocation,
                effect,
                error,
                ..
            } => {
                door::admit(error, self.definition.limits.data)?;
                let awaited = !snapshot.status.is_finished()
                    && self
                        .owner(snapshot, envelope, invocation, Some(*effect))
                        .is_some();
                Ok(self.unchanged(
                    snapshot,
                    envelope,
                    if awaited {
                        Verdict::Ignored
                    } else {
                        Verdict::Late
                    },
                ))
            }
            Event::Timer { timer, generation } => {
                self.timer(snapshot, envelope, timer, *generation)
            }
        }
    }

    /// Nothing happens, and the record says so: not even the number of the snapshot changes.
    fn unchanged(&self, snapshot: &Snapshot, envelope: &Envelope, verdict: Verdict) -> Step {
        let mut step = Work::new(
            self,
            snapshot.clone(),
            &envelope.by,
            RoleSet::SYSTEM,
            envelope.seq,
            envelope.at,
        )
        .step(verdict);
        step.snapshot.seq = snapshot.seq;
        step
    }

    /// The same for an external event whose data is known to fit its schema and to be within the limits, and may be reduced to
    /// [`Machine::event_reads`]. It is not looked at again.
    ///
    /// # Errors
    /// As [`Machine::step`].
    pub fn step_checked(&self, snapshot: &Snapshot, envelope: &Envelope) -> Result<Step, Refusal> {
        match &envelope.event {
            Event::External { r#type, data }
                if snapshot.charter() == self.digest && crate::time::is_sane(envelope.at) =>
            {
                self.external(snapshot, envelope, r#type, data, true)
            }
            _ => self.step(snapshot, envelope),
        }
    }

    /// The roles of a sender, as bits. `system` is nobody's to claim.
    pub(crate) fn held(&self, envelope: &Envelope) -> RoleSet {
        let mut set = RoleSet::default();
        for role in &envelope.by.roles {
            if let Some(bit) = self.roles.iter().position(|r| r.as_ref() == role) {
                set.0 |= 1u128
                    .checked_shl(u32::try_from(bit).unwrap_or(u32::MAX))
                    .unwrap_or(0);
            }
        }
        set.0 &= !RoleSet::SYSTEM.0;
        set
    }

    fn work<'m>(&'m self, snapshot: &Snapshot, envelope: &'m Envelope, held: RoleSet) -> Work<'m> {
        let mut s = snapshot.clone();
        if let Some(ledger) = &mut s.ledger {
            Ledger::settle(ledger, envelope.at);
        }
        Work::new(self, s, &envelope.by, held, envelope.seq, envelope.at)
    }

    fn external(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        name: &str,
        data: &Json,
        checked: bool,
    ) -> Result<Step, Refusal> {
        let data = match checked {
            // Small by now; its numbers still have to be canonical.
            true => door::admit(data, u64::MAX)?,
            false => door::admit(data, self.definition.limits.data)?,
        };
        let control = CONTROL.contains(&name);
        if !control && crate::compile::is_platform(name) {
            return Err(Code::Reserved.into());
        }
        let id = self.events.id(name);
        let info = self.events.info(id).filter(|i| i.declared);
        if !control && self.definition.strict && info.is_none() {
            return Err(Code::UnknownEvent.into());
        }
        if snapshot.status.is_finished() {
            return Err(Code::Finished.into());
        }
        if snapshot.status == Status::Paused && !control && !info.is_some_and(|i| i.while_paused) {
            return Err(Code::Paused.into());
        }
        let to = envelope.to.as_deref().unwrap_or("root");
        let Some(ai) = snapshot.actors.position(to) else {
            return Err(Code::UnknownActor.into());
        };
        if snapshot
            .actors
            .find(to)
            .is_some_and(|a| a.status != Status::Active)
        {
            return Err(Code::Finished.into());
        }
        // Stale: the run has changed since the sender looked, or the sender claims to have seen what is not there yet.
        if envelope
            .expected_seq
            .is_some_and(|seen| seen < snapshot.seq || seen >= envelope.seq)
        {
            return Err(Code::Stale.into());
        }
        let held = self.held(envelope);
        let required = if control {
            RoleSet::OPERATOR
        } else {
            info.map(|i| i.by).unwrap_or_default()
        };
        if !required.admits(held) {
            return Err(Code::Authority.into());
        }
        if control {
            return self.control(snapshot, envelope, name, held);
        }
        if let Some(schema) = info.and_then(|i| i.schema.as_ref())
            && !checked
            && !schema.fits(&data)
        {
            return Err(Code::Schema.into());
        }
        let data = match &data {
            std::borrow::Cow::Borrowed(data) => Data::Borrowed(data),
            std::borrow::Cow::Owned(data) => Data::Borrowed(data),
        };
        let ev = Ev {
            id,
            name: Name::Borrowed(name),
            data,
            origin: Origin::External,
            meta: None,
        };
        if let Some(actor) = snapshot.actors.0.get(ai) {
            let (machine, by, now) = (self, &envelope.by, envelope.at);
            let eyes = Eyes {
                machine,
                snapshot,
                actor,
                event: Some(&ev),
                by,
                now,
                locals: &[],
                entry: None,
            };
            match self.short_way(snapshot, ai, &ev, &eyes, held) {
                Some(Ok((id, plain))) => {
                    return Ok(self.moved(snapshot, ai, id, plain, envelope.seq));
                }
                Some(Err(code)) => return Err(code.into()),
                None => {}
            }
        }
        let mut work = self.work(snapshot, envelope, held);
        let mut session = Session::new();
        work.before_selection(ai, &ev, &mut session)?;
        let selection = work.select_judged(ai, &ev, &mut session);
        if selection.refused.is_some() {
            // `explain` finds the transition again, and says the sentence.
            return Err(Code::Rule.into());
        }
        if selection.enabled.is_empty() && selection.votes.is_empty() {
            if self.definition.strict {
                return Err(selection.furthest.unwrap_or(Code::Unhandled).into());
            }
        } else if !selection.votes.is_empty() {
            work.vote(ai, &selection.votes, &ev);
            if selection.enabled.is_empty() {
                return Ok(work.step(Verdict::Vote));
            }
        }
        work.deliver(ai, &ev, selection.enabled, session)?;
        work.finish(Some(snapshot), Verdict::Accepted)
    }

    fn control(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        name: &str,
        held: RoleSet,
    ) -> Result<Step, Refusal> {
        let mut work = self.work(snapshot, envelope, held);
        match (name, snapshot.status) {
            ("charter.pause", Status::Active) => {
                work.s.status = Status::Paused;
                work.s.paused_at = Some(envelope.at);
                Ok(work.step(Verdict::Accepted))
            }
            ("charter.pause", _) => Err(Code::Paused.into()),
            ("charter.resume", Status::Paused) => {
                work.resume()?;
                work.finish(Some(snapshot), Verdict::Accepted)
            }
            ("charter.resume", _) => Err(Refusal::with(
                Code::Unhandled,
                None,
                "the run is not paused".into(),
            )),
            _ => {
                work.s.status = Status::Active;
                work.s.paused_at = None;
                work.ended = true;
                work.cancel_actor(0)?;
                work.settle()?;
                work.s.status = Status::Cancelled;
                Ok(work.step(Verdict::Accepted))
            }
        }
    }

    /// Which invocation an answer belongs to: owner and invocation.
    fn owner<'s>(
        &self,
        snapshot: &'s Snapshot,
        envelope: &Envelope,
        invocation: &str,
        effect: Option<EffectId>,
    ) -> Option<(usize, &'s Arc<Invocation>)> {
        let fits = |i: &Arc<Invocation>| {
            i.service != NO_SERVICE
                && i.id.as_ref() == invocation
                && effect.is_none_or(|e| e == i.effect)
        };
        let of = |ai: usize| {
            let actor = snapshot
                .actors
                .0
                .get(ai)
                .filter(|a| a.status == Status::Active)?;
            actor.invocations.iter().find(|i| fits(i)).map(|i| (ai, i))
        };
        match &envelope.to {
            Some(to) => of(snapshot.actors.position(to)?),
            None => (0..snapshot.actors.0.len()).find_map(of),
        }
    }

    fn answered(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        id: &str,
        effect: Option<EffectId>,
        outcome: Result<Json, Json>,
    ) -> Result<Step, Refusal> {
        let late = || self.unchanged(snapshot, envelope, Verdict::Late);
        if snapshot.status.is_finished() {
            return Ok(late());
        }
        let Some((ai, invocation)) = self.owner(snapshot, envelope, id, effect) else {
            return Ok(late());
        };
        if let Ok(output) = &outcome
            && let Some(schema) = &self.service(invocation.service).output
            && !schema.fits(output)
        {
            return Err(Code::Schema.into());
        }
        let mut work = self.work(snapshot, envelope, RoleSet::SYSTEM);
        let owner = work.actor(ai).identity().id.clone();
        if snapshot.status == Status::Paused {
            // It waits; a second answer to the same effect is late.
            if snapshot.held.iter().any(|h| h.effect == invocation.effect) {
                return Ok(late());
            }
            let held = Held {
                actor: owner,
                invocation: invocation.id.clone(),
                effect: invocation.effect,
                outcome,
            };
            work.s.held.push(Arc::new(held));
            return Ok(work.step(Verdict::Accepted));
        }
        work.take_answer(ai, invocation.effect, id, outcome)?;
        work.finish(Some(snapshot), Verdict::Ignored)
    }

    fn timer(
        &self,
        snapshot: &Snapshot,
        envelope: &Envelope,
        id: &str,
        generation: u64,
    ) -> Result<Step, Refusal> {
        let timer = snapshot
            .timers
            .iter()
            .find(|t| t.id.as_ref() == id && t.generation == generation && t.due <= envelope.at);
        let Some(timer) = timer.filter(|_| snapshot.status == Status::Active) else {
            // Of an earlier generation, early, or of a paused or finished run: nothing happens, and the record says so.
            return Ok(self.unchanged(snapshot, envelope, Verdict::Ignored));
        };
        let mut work = self.work(snapshot, envelope, RoleSet::SYSTEM);
        work.s
            .timers
            .retain(|t| !(t.id == timer.id && t.generation == generation));
        let Some(ai) = work.s.actors.position(&timer.actor) else {
            return work.finish(Some(snapshot), Verdict::Ignored);
        };
        match &timer.what {
            TimerKind::After { state, index } => {
                let event = usize::try_from(*index)
                    .ok()
                    .and_then(|i| work.chart(ai).state(*state).after.get(i))
                    .map(|a| a.event);
                if let Some(event) = event {
                    let ev = work.known(event, json!({}), Origin::Platform);
                    work.receive(ai, &ev)?;
                }
            }
            TimerKind::Send {
                to,
                kind,
                data,
                send_id,
            } => {
                let ev = Ev::new(
                    self.events.id(kind),
                    kind.clone(),
                    data.clone(),
                    Origin::Sent,
                );
                work.post(ai, to.clone(), ev, send_id.clone());
            }
            TimerKind::Timeout { invocation, effect } => {
                let owner = work.actor(ai).identity().id.clone();
                let cancel = EffectKind::Cancel {
                    invocation: invocation.clone(),
                    effect: *effect,
                };
                let service = work
                    .actor(ai)
                    .invocations
                    .iter()
                    .find(|i| i.id == *invocation)
                    .map(|i| i.service);
                match service {
                    Some(NO_SERVICE) => {
                        let id = invocation.clone();
                        work.actor_mut(ai).invocations.retain(|i| i.id != id);
                        let id = child_id(self.definition.strict, &owner, &id);
                        if let Some(child) = work.s.actors.position(&id) {
                            work.cancel_actor(child)?;
                        }
                    }
                    Some(_) => drop(work.effect(owner, cancel)),
                    None => return work.finish(Some(snapshot), Verdict::Ignored),
                }
                let error = json!({"code": "timeout", "message": format!("`{invocation}` has not answered in time"), "retryable": true});
                work.take_answer(ai, *effect, invocation, Err(error))?;
            }
            TimerKind::Due { kind, key } => {
                work.ledger_mut().set_overdue(*kind, key);
                let name = self.ledger.get(*kind as usize).map_or("", AsRef::as_ref);
                let ev = work.named(
                    "charter.overdue",
                    json!({"kind": name, "key": key.as_ref()}),
                    Origin::Platform,
                );
                work.receive(ai, &ev)?;
            }
        }
        work.finish(Some(snapshot), Verdict::Ignored)
    }
}

impl Work<'_> {
    /// A platform event reaches an actor.
    fn receive(&mut self, ai: usize, ev: &Ev<'_>) -> Result<(), Refusal> {
        let mut session = Session::new();
        self.before_selection(ai, ev, &mut session)?;
        let enabled = self.select(ai, ev, &mut session)?;
        self.deliver(ai, ev, enabled, session)
    }

    /// The answer of a service is taken: the invocation is over before its event is matched.
    fn take_answer(
        &mut self,
        ai: usize,
        effect: EffectId,
        invocation: &str,
        outcome: Result<Json, Json>,
    ) -> Result<(), Refusal> {
        self.actor_mut(ai)
            .invocations
            .retain(|i| !(i.effect == effect && i.id.as_ref() == invocation));
        let owner = self.actor(ai).identity().id.clone();
        self.cancel_timers(|t| t.actor == owner && matches!(&t.what, TimerKind::Timeout { effect: e, invocation: i } if *e == effect && i.as_ref() == invocation));
        let ev = self.answer_event(invocation, outcome);
        self.receive(ai, &ev)
    }

    /// Time goes on from where it stood, then the answers that waited are taken in the order in which they came.
    fn resume(&mut self) -> Result<(), Refusal> {
        let stood = self
            .at
            .saturating_sub(self.s.paused_at.unwrap_or(self.at))
            .max(0);
        self.s.status = Status::Active;
        self.s.paused_at = None;
        let timers = std::mem::take(&mut self.s.timers);
        for timer in timers {
            let mut timer = timer;
            Arc::make_mut(&mut timer).due = timer.due.saturating_add(stood);
            self.timers
                .push(crate::step::TimerChange::Set(timer.clone()));
            self.s.timers.push(timer);
        }
        for held in std::mem::take(&mut self.s.held) {
            if self.ended {
                break;
            }
            let Some(ai) = self
                .s
                .actors
                .position(&held.actor)
                .filter(|a| self.actor(*a).status == Status::Active)
            else {
                continue;
            };
            if self
                .actor(ai)
                .invocations
                .iter()
                .any(|i| i.effect == held.effect && i.id == held.invocation)
            {
                self.take_answer(ai, held.effect, &held.invocation, held.outcome.clone())?;
                self.quiesce()?;
            }
        }
        Ok(())
    }

    fn vote(&mut self, ai: usize, transitions: &[TransitionId], ev: &Ev<'_>) {
        let digest = crate::digest::Digest::of_json(ev.data());
        let by: Box<str> = self.by.id.as_str().into();
        for t in transitions {
            let votes = &mut self.actor_mut(ai).votes;
            match votes
                .iter_mut()
                .find(|v| v.transition == *t && v.digest == digest)
            {
                Some(vote) => vote.by.push(by.clone()),
                None => votes.push(Vote {
                    transition: *t,
                    digest,
                    by: vec![by.clone()],
                }),
            }
        }
    }

    /// To quiescence, then the interlocks, then the end of the run if its root has ended.
    fn finish(mut self, before: Option<&Snapshot>, unless_taken: Verdict) -> Result<Step, Refusal> {
        self.quiesce()?;
        if !self.m.interlocks.is_empty() {
            self.interlocks(before)?;
        }
        self.settle()?;
        let moved = !self.taken.is_empty() || !self.effects.is_empty();
        let verdict = match unless_taken {
            Verdict::Ignored if moved => Verdict::Accepted,
            // Not strict: an event that moved nothing is ignored.
            Verdict::Accepted
                if !moved
                    && before.is_some_and(|b| {
                        b.status == self.s.status
                            && b.actors == self.s.actors
                            && b.timers == self.s.timers
                    }) =>
            {
                Verdict::Ignored
            }
            other => other,
        };
        let unchanged = verdict == Verdict::Ignored
            && before.is_some_and(|b| {
                Snapshot {
                    seq: self.s.seq,
                    ..b.clone()
                } == self.s
            });
        let seq = self.s.seq;
        let mut step = self.step(verdict);
        if unchanged {
            step.snapshot.seq = seq;
        }
        Ok(step)
    }
}
