//! The automaton: a run, its stable structures, and what it waits for. Every step is written before anything is done because of it.

use std::collections::VecDeque;
use std::sync::Arc;

use charter_journal::Record;
use charter_kernel::{EffectId, EffectKind, Event, Principal, Snapshot};
use ic_stable_structures::Memory;
use serde_json::Value as Json;

use crate::charter::{Charter, built_in};
use crate::error::Broken;
use crate::log::Bounds;
use crate::run::{Run, Stepped};
use crate::stable::Stable;
use crate::work::{fault, perform};

/// How many timers fire before an event, at most; as on the embedded host.
const MAX_TIMERS: usize = 64;

/// How many records are held for the projection; more are read from the log.
const MAX_RECENT: usize = 256;

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub enum Mail {
    /// Only time has passed.
    Due,
    /// An event from somebody.
    Event {
        /// Type of the event.
        r#type: String,
        /// Its data.
        data: Json,
        /// Who sends it.
        by: Principal,
    },
    /// What came of the work of an actor.
    Answer {
        /// The invocation.
        invocation: Arc<str>,
        /// The effect that asked.
        effect: EffectId,
        /// The output, or the error.
        outcome: Result<Json, Json>,
    },
}

/// Work that the run asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The effect that asks: the same work has the same.
    pub effect: EffectId,
    /// The invocation that its answer is for.
    pub invocation: Arc<str>,
    /// The entry of `actors`.
    pub actor: Arc<str>,
    /// What it is given.
    pub input: Arc<Json>,
}

/// The automaton of a canister.
pub struct Automaton<M: Memory> {
    charter: Charter,
    run: Run,
    /// What survives.
    pub stable: Stable<M>,
    pending: VecDeque<Asked>,
    recent: VecDeque<Record>,
}

impl<M: Memory + Clone> Automaton<M> {
    /// A new automaton: record 0 is its start. `memory` gives the memories of [`Stable`].
    ///
    /// # Errors
    /// The charter refuses to start; stable memory is not empty, or there is no room.
    pub fn start(
        memory: impl Fn(u8) -> M,
        run: &str,
        bounds: Bounds,
        now: i64,
        input: Json,
        by: Principal,
    ) -> Result<Automaton<M>, Broken> {
        let mut stable = Stable::open(memory, bounds)?;
        if stable.charter()?.is_some() {
            return Err(Broken::Stable("an automaton is there already".into()));
        }
        let charter = Charter::compile(built_in())?;
        stable.put_charter(&charter.stored)?;
        let mut automaton =
            Automaton { charter, run: Run::new(run), stable, pending: VecDeque::new(), recent: VecDeque::new() };
        let record = automaton.step(now, Event::Start { input }, by)?;
        match record.explanation(Some(&automaton.charter.machine)) {
            None => Ok(automaton),
            Some(why) => Err(Broken::Start(why.message)),
        }
    }

    /// An automaton from what survived, exactly as it was; [`Automaton::recover`] then takes up what was at work.
    ///
    /// # Errors
    /// What is there is not what it should be.
    pub fn open(memory: impl Fn(u8) -> M) -> Result<Automaton<M>, Broken> {
        let stable = Stable::open(memory, Bounds::default())?;
        let missing = |what: &str| Broken::Stable(format!("{what} is missing"));
        let charter = stable.charter()?.ok_or_else(|| missing("the charter"))?;
        let charter = Charter::compile(charter)?;
        let last = stable.log.end().checked_sub(1);
        let last = stable.log.record(last.ok_or_else(|| missing("the log"))?)?;
        let snapshot = stable.snapshot()?.ok_or_else(|| missing("the snapshot"))?;
        let run = Run::restore(&charter.machine, &last, snapshot)?;
        Ok(Automaton { charter, run, stable, pending: VecDeque::new(), recent: VecDeque::new() })
    }

    /// Takes up what was at work when the host was stopped: what may be done twice is asked for again, for the rest the run is told that
    /// its outcome is not known (code `unknown`). Gives the records that were made.
    ///
    /// # Errors
    /// As [`Automaton::handle`].
    pub fn recover(&mut self, now: i64) -> Result<Vec<Record>, Broken> {
        let open = self.open_work();
        let mut made = Vec::new();
        for asked in open {
            let again = self.charter.actor(&asked.actor).is_none_or(|a| a.idempotent);
            if again {
                self.pending.push_back(asked);
                continue;
            }
            let message = format!(
                "the host stopped while `{}` was at work; whether it has done its work is not known",
                asked.actor
            );
            made.extend(self.handle(
                now,
                Mail::Answer {
                    invocation: asked.invocation,
                    effect: asked.effect,
                    outcome: Err(fault("unknown", &message)),
                },
            )?);
        }
        // An upgrade may have come from a canister that wrote them otherwise.
        if let Some(snapshot) = self.run.snapshot()
            && !self.stable.differences(snapshot).is_empty()
        {
            self.stable.rewrite(snapshot);
        }
        Ok(made)
    }

    /// The work that the run waits for.
    #[must_use]
    pub fn open_work(&self) -> Vec<Asked> {
        let Some(snapshot) = self.run.snapshot() else {
            return Vec::new();
        };
        let services = snapshot.invocations().filter(|(_, i)| !i.is_machine());
        let asked = services.map(|(_, i)| Asked {
            effect: i.effect,
            invocation: i.id.clone(),
            actor: i.src.clone(),
            input: i.input.clone(),
        });
        asked.collect()
    }

    /// Puts what came in through the kernel, with the timers that are due before it; writes each record, and the state after it. Gives the
    /// records, that of the mail last (for [`Mail::Due`] there may be none).
    ///
    /// # Errors
    /// It could not be written. The message has to be undone, then.
    pub fn handle(&mut self, now: i64, mail: Mail) -> Result<Vec<Record>, Broken> {
        let mut made = Vec::new();
        for _ in 0..MAX_TIMERS {
            let Some(event) = self.run.due(now) else {
                break;
            };
            made.push(self.step(now, event, Principal::system())?);
        }
        match mail {
            Mail::Due => {}
            Mail::Event { r#type, data, by } => {
                made.push(self.step(now, Event::External { r#type, data }, by)?);
            }
            Mail::Answer { invocation, effect, outcome } => {
                let failed = outcome.is_err();
                let answer = |outcome| Event::answer(&*invocation, effect, outcome);
                let record = self.step(now, answer(outcome), Principal::system())?;
                let refused = record.explanation(None).map(|why| {
                    let why = format!("{} ({})", why.message, why.code);
                    fault("refused", &format!("the run refuses the answer: {why}"))
                });
                made.push(record);
                // What the run refuses becomes a failure, so that the charter hears of it.
                if let Some(error) = refused.filter(|_| !failed) {
                    made.push(self.step(now, answer(Err(error)), Principal::system())?);
                }
            }
        }
        Ok(made)
    }

    /// One step: the kernel's, then stable memory.
    fn step(&mut self, now: i64, event: Event, by: Principal) -> Result<Record, Broken> {
        let stepped = self.run.step(&self.charter.machine, now, event, by);
        self.stable.commit(&stepped, self.run.snapshot())?;
        let Stepped { record, effects, .. } = stepped;
        for effect in effects {
            match effect.kind {
                EffectKind::Invoke { invocation, src, input, .. } => {
                    self.pending.push_back(Asked { effect: effect.id, invocation, actor: src, input })
                }
                EffectKind::Cancel { effect, .. } => self.pending.retain(|a| a.effect != effect),
                // Both are in the record; whoever wants them reads them there.
                EffectKind::Emit { .. } | EffectKind::Log { .. } => {}
            }
        }
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(record.clone());
        Ok(record)
    }

    /// Takes the next work that was asked for; it is given to nobody else.
    pub fn take_work(&mut self) -> Option<Asked> {
        self.pending.pop_front()
    }

    /// Whether work was asked for that nobody has taken.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Does the work of an effect that the run waits for; changes nothing. None: nobody waits for it (any more).
    #[must_use]
    pub fn perform(&self, effect: EffectId) -> Option<Result<Json, Json>> {
        let asked = self.open_work().into_iter().find(|a| a.effect == effect)?;
        Some(perform(&self.charter, &asked.actor, &asked.input))
    }

    /// When something has to happen next, in milliseconds since 1970: the next timer of the run.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        self.run.next_due()
    }

    /// A record: one that was made just now, or from the log.
    ///
    /// # Errors
    /// It is not there (any more).
    pub fn record(&self, seq: u64) -> Result<Record, Broken> {
        let recent = self.recent.iter().rev().find(|r| r.seq == seq);
        recent.cloned().map_or_else(|| self.stable.log.record(seq), Ok)
    }

    /// The records before this one are in the projection: they need not be held for it.
    pub fn forget_before(&mut self, seq: u64) {
        self.recent.retain(|r| r.seq >= seq);
    }

    /// The charter.
    #[must_use]
    pub fn charter(&self) -> &Charter {
        &self.charter
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The state of the run. There is one: an automaton whose start was refused is never made.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.run.snapshot()
    }

    /// Whether a turn is in flight.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        self.stable.view().turn.is_some()
    }
}
