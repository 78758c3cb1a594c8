//! A run in memory, on the pure kernel: no journal, no effects executed, time only from the events. What `step` and `test` drive.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use charter_kernel::{
    Code, Effect, EffectId, Envelope, Event, Explanation, Machine, Note, Principal, Refusal, Snapshot, Timer,
    TimerChange, Verdict,
};
use serde_json::Value as Json;

/// More timers than this do not fire in one go: a statechart that re-arms itself would never end.
pub const MAX_FIRINGS: u64 = 100_000;

/// A run in memory.
#[derive(Debug, Clone)]
pub struct Session<'m> {
    machine: &'m Machine,
    run: String,
    snapshot: Snapshot,
    /// Of the last record.
    seq: u64,
    /// The last moment seen, in milliseconds since 1970.
    at: i64,
}

/// What became of one input.
#[derive(Debug)]
pub struct Outcome<'m> {
    /// The record's number; for inputs that write none, that of the last one.
    pub seq: u64,
    /// `accepted`, `refused`, `ignored`, `vote`, `late`.
    pub verdict: &'static str,
    /// The actor addressed; for answers the owner of the invocation, for timers theirs.
    pub to: String,
    /// Effects as they stand in the record.
    pub effects: Vec<Json>,
    /// Transitions taken; those of another actor than `to` with its id in front.
    pub transitions: Vec<String>,
    /// Addresses in the core form of the transitions taken.
    pub taken: Vec<&'m str>,
    /// Timers set and taken back.
    pub timers: Vec<Json>,
    /// What is worth knowing and changed no verdict.
    pub notes: Vec<Note>,
    /// How many timers fired, for a tick.
    pub fired: Option<u64>,
    /// Timers that were refused, if others were accepted; they stay pending.
    pub timers_refused: usize,
    /// Why it was refused.
    pub refusal: Option<Box<Explanation>>,
}

/// Something from outside.
#[derive(Debug, Clone)]
pub struct Given {
    /// What.
    pub event: Event,
    /// The actor it is for.
    pub to: Option<String>,
    /// Who sends it; for answers, nobody looks.
    pub by: Principal,
    /// When; none: the last moment seen.
    pub at: Option<i64>,
    /// The last record the sender has seen.
    pub expected_seq: Option<u64>,
}

/// Time cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_FIRINGS} timers are due: the statechart sets a new one each time one fires")]
pub struct Endless;

impl<'m> Session<'m> {
    /// Starts a run.
    ///
    /// # Errors
    /// Why the start is refused.
    pub fn start(
        machine: &'m Machine,
        run: &str,
        input: Json,
        at: i64,
    ) -> Result<(Session<'m>, Outcome<'m>), Box<Explanation>> {
        let envelope = Envelope::host(0, Event::Start { input }, at);
        match machine.start(run, &envelope) {
            Ok(step) => {
                let mut outcome = Outcome::new(0, "root".into());
                outcome.add(machine, run, &step);
                outcome.verdict = step.verdict.word();
                let session = Session { machine, run: run.into(), snapshot: step.snapshot, seq: 0, at };
                Ok((session, outcome))
            }
            Err(refusal) => Err(Box::new(machine.explain(None, &envelope, &refusal))),
        }
    }

    /// The run now.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The machine it runs on.
    #[must_use]
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// The last moment seen.
    #[must_use]
    pub fn at(&self) -> i64 {
        self.at
    }

    /// The number of the last record.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// One thing happens.
    pub fn apply(&mut self, given: Given) -> Outcome<'m> {
        let envelope = self.envelope(given);
        let to = self.addressee(&envelope);
        let mut outcome = Outcome::new(envelope.seq, to);
        match self.machine.step(&self.snapshot, &envelope) {
            Ok(step) => {
                outcome.verdict = step.verdict.word();
                outcome.add(self.machine, &self.run, &step);
                self.snapshot = step.snapshot;
            }
            Err(refusal) => outcome.refuse(self.explain(&envelope, &refusal)),
        }
        outcome
    }

    /// Refuses something that the kernel never saw, e.g. an event id that was used for another event.
    pub fn refuse(&mut self, given: Given, code: Code, message: String) -> Outcome<'m> {
        let envelope = self.envelope(given);
        let mut outcome = Outcome::new(envelope.seq, self.addressee(&envelope));
        let legal = self.machine.legal(&self.snapshot, &envelope.by, envelope.at);
        let mut legal: Vec<String> = legal.into_iter().map(|l| l.r#type).collect();
        legal.dedup();
        outcome.refuse(Explanation {
            code,
            message,
            rule: None,
            candidates: Vec::new(),
            misfits: Vec::new(),
            interlock: None,
            legal,
        });
        outcome
    }

    /// Fires every timer that is due at or before a moment, in order, each at its own time; timers that these set fire too.
    ///
    /// # Errors
    /// There is no end to them; nothing has changed then.
    pub fn tick(&mut self, until: i64) -> Result<Outcome<'m>, Endless> {
        let saved = self.clone();
        let mut ticking = Ticking::new();
        while self.fire(&mut ticking, until) {
            if ticking.fired > MAX_FIRINGS {
                *self = saved;
                return Err(Endless);
            }
        }
        self.at = until;
        Ok(ticking.outcome(self.seq))
    }

    /// Lets time jump from timer to timer until the run is finished or none is left.
    ///
    /// # Errors
    /// There is no end to them; the run stands where it was after [`MAX_FIRINGS`].
    pub fn run_out(&mut self) -> Result<Outcome<'m>, Endless> {
        let mut ticking = Ticking::new();
        while self.fire(&mut ticking, i64::MAX) {
            if ticking.fired >= MAX_FIRINGS {
                return Err(Endless);
            }
        }
        Ok(ticking.outcome(self.seq))
    }

    /// To JSON text and back.
    ///
    /// # Errors
    /// Says what has changed on the way, which must never happen.
    pub fn restore(&mut self) -> Result<Outcome<'m>, String> {
        let text = self.machine.snapshot_json(&self.snapshot).to_string();
        let json = serde_json::from_str(&text).map_err(|e| format!("the snapshot's JSON cannot be read: {e}"))?;
        let restored = self.machine.restore(&json).map_err(|e| e.to_string())?;
        if restored != self.snapshot {
            return Err("the snapshot is another one after a trip through JSON".into());
        }
        self.snapshot = restored;
        let mut outcome = Outcome::new(self.seq, "root".into());
        outcome.verdict = Verdict::Accepted.word();
        Ok(outcome)
    }

    /// Fires the next timer that is due by `until` and was not tried before in this tick; false if there is none.
    fn fire(&mut self, ticking: &mut Ticking<'m>, until: i64) -> bool {
        // Paused: timers stand still.
        if self.snapshot.next_timer().is_none() {
            return false;
        }
        // A refused timer stays pending; it is tried once in a tick.
        let tried = |t: &Timer| {
            let same = |(id, generation): &(String, u64)| *generation == t.generation && *id == *t.id;
            ticking.refused.iter().any(same)
        };
        let mut timers = self.snapshot.timers().iter();
        let Some(timer) = timers.find(|t| t.due <= until && !tried(t)) else {
            return false;
        };
        let timer = Arc::clone(timer);
        let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
        self.at = timer.due;
        let envelope = Envelope::host(self.next_seq(), event, timer.due);
        let actor = timer.actor.to_string();
        match self.machine.step(&self.snapshot, &envelope) {
            Ok(step) => {
                ticking.accepted |= step.verdict == Verdict::Accepted;
                ticking.sum.add(self.machine, &self.run, &step);
                self.snapshot = step.snapshot;
            }
            Err(refusal) => {
                let story = self.explain(&envelope, &refusal);
                let key = (timer.id.to_string(), timer.generation);
                ticking.refused.push(key);
                ticking.stories.push((actor.clone(), story));
            }
        }
        ticking.actors.insert(actor);
        ticking.fired = ticking.fired.saturating_add(1);
        true
    }

    fn next_seq(&mut self) -> u64 {
        self.seq = self.seq.saturating_add(1);
        self.seq
    }

    fn envelope(&mut self, given: Given) -> Envelope {
        self.at = given.at.unwrap_or(self.at);
        Envelope {
            seq: self.next_seq(),
            to: given.to,
            event: given.event,
            by: given.by,
            at: self.at,
            expected_seq: given.expected_seq,
        }
    }

    fn explain(&self, envelope: &Envelope, refusal: &Refusal) -> Explanation {
        self.machine.explain(Some(&self.snapshot), envelope, refusal)
    }

    /// Whose state a record shows.
    fn addressee(&self, envelope: &Envelope) -> String {
        if let Some(to) = &envelope.to {
            return to.clone();
        }
        let answered: Option<(&str, Option<EffectId>)> = match &envelope.event {
            Event::Done { invocation, effect, .. } | Event::Failed { invocation, effect, .. } => {
                Some((invocation, *effect))
            }
            _ => None,
        };
        let owner = answered.and_then(|(id, effect)| {
            let mut invocations = self.snapshot.invocations();
            invocations.find(|(_, i)| !i.is_machine() && i.id.as_ref() == id && effect.is_none_or(|e| e == i.effect))
        });
        owner.map_or_else(|| "root".into(), |(actor, _)| actor.id().into())
    }
}

/// What has been gathered while time passes.
struct Ticking<'m> {
    fired: u64,
    accepted: bool,
    /// Names of transitions have the actor in front, whichever it is.
    sum: Outcome<'m>,
    actors: BTreeSet<String>,
    stories: Vec<(String, Explanation)>,
    refused: Vec<(String, u64)>,
}

impl<'m> Ticking<'m> {
    fn new() -> Ticking<'m> {
        Ticking {
            fired: 0,
            accepted: false,
            sum: Outcome::new(0, String::new()),
            actors: BTreeSet::new(),
            stories: Vec::new(),
            refused: Vec::new(),
        }
    }

    fn outcome(self, seq: u64) -> Outcome<'m> {
        let mut outcome = self.sum;
        outcome.seq = seq;
        outcome.fired = Some(self.fired);
        // The actor whose timers fired, if they were those of one actor.
        outcome.to = match (self.actors.first(), self.actors.len()) {
            (Some(actor), 1) => actor.clone(),
            _ => "root".into(),
        };
        let front = format!("{}:", outcome.to);
        for name in &mut outcome.transitions {
            if let Some(own) = name.strip_prefix(&front) {
                *name = own.to_owned();
            }
        }
        let mut stories = self.stories.into_iter();
        if self.accepted {
            outcome.verdict = Verdict::Accepted.word();
        } else if let Some((_, story)) = stories.next() {
            outcome.refuse(story);
        }
        outcome.timers_refused = stories.len();
        outcome.notes.extend(stories.map(|(actor, story)| Note {
            actor: actor.into(),
            at: None,
            message: format!("a timer was refused: {}", story.message),
        }));
        outcome
    }
}

impl<'m> Outcome<'m> {
    fn new(seq: u64, to: String) -> Outcome<'m> {
        Outcome {
            seq,
            verdict: Verdict::Ignored.word(),
            to,
            effects: Vec::new(),
            transitions: Vec::new(),
            taken: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
            fired: None,
            timers_refused: 0,
            refusal: None,
        }
    }

    fn add(&mut self, machine: &'m Machine, run: &str, step: &charter_kernel::Step) {
        let effects = step.effects.iter().map(|effect: &Effect| effect.json(run));
        self.effects.extend(effects);
        self.transitions.extend(machine.transition_names(step, &self.to).map(Cow::into_owned));
        self.taken.extend(machine.taken(step));
        self.timers.extend(step.timers.iter().map(TimerChange::json));
        self.notes.extend(step.notes.iter().cloned());
    }

    fn refuse(&mut self, story: Explanation) {
        self.verdict = "refused";
        self.refusal = Some(Box::new(story));
    }

    /// The refusal code.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        self.refusal.as_ref().map(|story| story.code)
    }
}
