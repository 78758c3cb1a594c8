//! The automaton: a run, its stable structures and its open invocations. Each step is written
//! before its effects are executed.

use std::collections::VecDeque;
use std::sync::Arc;

use charter_journal::Record;
use charter_kernel::{EffectId, EffectKind, Event, Principal, Snapshot};
use ic_stable_structures::Memory;
use serde_json::Value as Json;

use crate::charter::{Charter, built_in};
use crate::error::CanisterError;
use crate::log::Bounds;
use crate::run::{Run, Stepped};
use crate::stable::Stable;
use crate::work::{error_json, perform};

/// Upper limit of timers that fire before an event; the same as on the embedded host.
const MAX_TIMERS: usize = 64;

/// Number of records cached for the projection; older ones are read from the log.
const MAX_RECENT: usize = 256;

/// Something for the run to process.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Nothing but the passing of time: fire the timers that are due.
    Due,
    /// An event from a principal.
    Event {
        /// Type of the event.
        r#type: String,
        /// Its data.
        data: Json,
        /// The sender.
        by: Principal,
    },
    /// The answer to an invocation.
    Answer {
        /// The invocation.
        invocation: Arc<str>,
        /// The effect that requested it.
        effect: EffectId,
        /// The output, or the error.
        outcome: Result<Json, Json>,
    },
}

/// An invocation that the run requests.
#[derive(Debug, Clone, PartialEq)]
pub struct InvocationRequest {
    /// The effect that requests it; the idempotency key.
    pub effect: EffectId,
    /// The invocation to answer.
    pub invocation: Arc<str>,
    /// The entry of `actors`.
    pub actor: Arc<str>,
    /// Its input.
    pub input: Arc<Json>,
}

/// The automaton of a canister.
pub struct Automaton<M: Memory> {
    charter: Charter,
    run: Run,
    /// What survives an upgrade.
    pub stable: Stable<M>,
    pending: VecDeque<InvocationRequest>,
    recent: VecDeque<Record>,
}

impl<M: Memory + Clone> Automaton<M> {
    /// Creates an automaton; record 0 is its start. `memory` returns the memories of [`Stable`].
    ///
    /// # Errors
    /// The charter refuses to start, stable memory is not empty, or it is full.
    pub fn start(
        memory: impl Fn(u8) -> M,
        run: &str,
        bounds: Bounds,
        now: i64,
        input: Json,
        by: Principal,
    ) -> Result<Automaton<M>, CanisterError> {
        let mut stable = Stable::open(memory, bounds)?;
        if stable.charter()?.is_some() {
            return Err(CanisterError::Stable("it already holds an automaton".into()));
        }
        let charter = Charter::compile(built_in())?;
        stable.put_charter(&charter.stored)?;
        let mut automaton =
            Automaton { charter, run: Run::new(run), stable, pending: VecDeque::new(), recent: VecDeque::new() };
        let record = automaton.step(now, Event::Start { input }, by)?;
        match record.explanation(Some(&automaton.charter.machine)) {
            None => Ok(automaton),
            Some(why) => Err(CanisterError::Start(why.message)),
        }
    }

    /// Opens an automaton from stable memory, exactly as it was. Call [`Automaton::recover`] next.
    ///
    /// # Errors
    /// Stable memory is damaged.
    pub fn open(memory: impl Fn(u8) -> M) -> Result<Automaton<M>, CanisterError> {
        let stable = Stable::open(memory, Bounds::default())?;
        let missing = |what: &str| CanisterError::Stable(format!("{what} is missing"));
        let charter = stable.charter()?.ok_or_else(|| missing("the charter"))?;
        let charter = Charter::compile(charter)?;
        let last = stable.log.end().checked_sub(1);
        let last = stable.log.record(last.ok_or_else(|| missing("the log"))?)?;
        let snapshot = stable.snapshot()?.ok_or_else(|| missing("the snapshot"))?;
        let run = Run::restore(&charter.machine, &last, snapshot)?;
        Ok(Automaton { charter, run, stable, pending: VecDeque::new(), recent: VecDeque::new() })
    }

    /// Continues after a stop of the host: idempotent invocations are requested again, and the
    /// others are answered with an error whose code is `unknown`. Returns the new records.
    ///
    /// # Errors
    /// As [`Automaton::handle`].
    pub fn recover(&mut self, now: i64) -> Result<Vec<Record>, CanisterError> {
        let open = self.open_requests();
        let mut made = Vec::new();
        for request in open {
            let idempotent = self.charter.actor(&request.actor).is_none_or(|a| a.idempotent);
            if idempotent {
                self.pending.push_back(request);
                continue;
            }
            let message = format!(
                "the host stopped during a call of `{}`; whether the call took effect is unknown",
                request.actor
            );
            made.extend(self.handle(
                now,
                Input::Answer {
                    invocation: request.invocation,
                    effect: request.effect,
                    outcome: Err(error_json("unknown", &message)),
                },
            )?);
        }
        // The version before the upgrade may have written them in another way.
        if let Some(snapshot) = self.run.snapshot()
            && !self.stable.differences(snapshot).is_empty()
        {
            self.stable.rewrite(snapshot);
        }
        Ok(made)
    }

    /// The open invocations of the run.
    #[must_use]
    pub fn open_requests(&self) -> Vec<InvocationRequest> {
        let Some(snapshot) = self.run.snapshot() else {
            return Vec::new();
        };
        let services = snapshot.invocations().filter(|(_, i)| !i.is_machine());
        let requests = services.map(|(_, i)| InvocationRequest {
            effect: i.effect,
            invocation: i.id.clone(),
            actor: i.src.clone(),
            input: i.input.clone(),
        });
        requests.collect()
    }

    /// Processes an input, after the timers that are due. Each record is written together with the
    /// state after it. Returns the records, the input's last (none for [`Input::Due`] if no timer
    /// is due).
    ///
    /// # Errors
    /// Stable memory cannot be written. The message must be rolled back then.
    pub fn handle(&mut self, now: i64, input: Input) -> Result<Vec<Record>, CanisterError> {
        let mut made = Vec::new();
        for _ in 0..MAX_TIMERS {
            let Some(event) = self.run.due(now) else {
                break;
            };
            made.push(self.step(now, event, Principal::system())?);
        }
        match input {
            Input::Due => {}
            Input::Event { r#type, data, by } => {
                made.push(self.step(now, Event::External { r#type, data }, by)?);
            }
            Input::Answer { invocation, effect, outcome } => {
                let failed = outcome.is_err();
                let answer = |outcome| Event::answer(&*invocation, effect, outcome);
                let record = self.step(now, answer(outcome), Principal::system())?;
                let refused = record.explanation(None).map(|why| {
                    let why = format!("{} ({})", why.message, why.code);
                    error_json("refused", &format!("the run refuses the answer: {why}"))
                });
                made.push(record);
                // An answer that the run refuses becomes an error, so that the charter can handle
                // it.
                if let Some(error) = refused.filter(|_| !failed) {
                    made.push(self.step(now, answer(Err(error)), Principal::system())?);
                }
            }
        }
        Ok(made)
    }

    /// One step of the kernel, written to stable memory.
    fn step(&mut self, now: i64, event: Event, by: Principal) -> Result<Record, CanisterError> {
        let stepped = self.run.step(&self.charter.machine, now, event, by);
        self.stable.commit(&stepped, self.run.snapshot())?;
        let Stepped { record, effects, .. } = stepped;
        for effect in effects {
            match effect.kind {
                EffectKind::Invoke { invocation, src, input, .. } => {
                    self.pending.push_back(InvocationRequest { effect: effect.id, invocation, actor: src, input })
                }
                EffectKind::Cancel { effect, .. } => self.pending.retain(|a| a.effect != effect),
                // Both are in the record, where readers find them.
                EffectKind::Emit { .. } | EffectKind::Log { .. } => {}
            }
        }
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(record.clone());
        Ok(record)
    }

    /// Takes the next requested invocation.
    pub fn take_request(&mut self) -> Option<InvocationRequest> {
        self.pending.pop_front()
    }

    /// Whether an invocation is requested and not taken yet.
    #[must_use]
    pub fn has_request(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Computes the answer to an open invocation; changes nothing. None if the run does not wait
    /// for it.
    #[must_use]
    pub fn perform(&self, effect: EffectId) -> Option<Result<Json, Json>> {
        let request = self.open_requests().into_iter().find(|a| a.effect == effect)?;
        Some(perform(&self.charter, &request.actor, &request.input))
    }

    /// When the next timer of the run is due, in milliseconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        self.run.next_due()
    }

    /// A record, from the cache or the log.
    ///
    /// # Errors
    /// It is not stored, or no longer.
    pub fn record(&self, seq: u64) -> Result<Record, CanisterError> {
        let recent = self.recent.iter().rev().find(|r| r.seq == seq);
        recent.cloned().map_or_else(|| self.stable.log.record(seq), Ok)
    }

    /// Drops cached records before this one: the projection has them.
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

    /// The snapshot of the run. An automaton always has one, because a refused start creates none.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.run.snapshot()
    }

    /// Whether a turn is in progress.
    #[must_use]
    pub fn in_turn(&self) -> bool {
        self.stable.view().turn.is_some()
    }
}
