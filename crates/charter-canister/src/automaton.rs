//! The automaton: a run, its stable structures and its open invocations. Each step is written to
//! stable memory before its effects are executed.

use std::collections::VecDeque;

use charter_journal::Record;
use charter_kernel::{EffectId, Principal, Snapshot};
use charter_run::{Action, Input, InvocationRequest, Kept, Known, Reply, Resume, Run, after_restart};
use ic_stable_structures::Memory;
use serde_json::Value as Json;

use crate::charter::{Charter, built_in};
use crate::error::CanisterError;
use crate::log::Bounds;
use crate::stable::Stable;
use crate::work::perform;

/// Maximum number of records cached for the projection; older ones are read from the log.
const MAX_RECENT: usize = 256;

/// The host sets no limits of its own for the run.
const BOUNDS: charter_run::Bounds = charter_run::Bounds { records: 0, data_bytes: 0 };

/// Number of records between two stored snapshots: each snapshot is written to stable memory.
const KEEP_EVERY: u64 = 1;

/// The automaton of a canister.
pub struct Automaton<M: Memory> {
    charter: Charter,
    run: Run,
    /// The state that survives an upgrade.
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
        let mut automaton = Automaton {
            charter,
            run: Run::new(run, KEEP_EVERY),
            stable,
            pending: VecDeque::new(),
            recent: VecDeque::new(),
        };
        let made = automaton.handle(now, Input::Start { input, by })?;
        match made.last().and_then(|record| record.explanation(Some(&automaton.charter.machine))) {
            None => Ok(automaton),
            Some(why) => Err(CanisterError::Start(why.message)),
        }
    }

    /// Restores an automaton from stable memory. Call [`Automaton::recover`] next.
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
        let snapshot = stable.snapshot()?.ok_or_else(|| missing("the snapshot"))?.to_owned();
        let damaged = |e: charter_run::KeptError| CanisterError::Stable(e.to_string());
        let run = last.run.to_string();
        let kept = Kept { last: Some(last), snapshot: Some(snapshot), ..Kept::default() };
        let mut run = Run::restore(&charter.machine, &run, KEEP_EVERY, kept).map_err(damaged)?;
        // The records after the snapshot show which of its timers have been refused.
        let changed = run.snapshot().map_or(u64::MAX, Snapshot::seq);
        for seq in changed.saturating_add(1)..run.chain().next_seq() {
            // The log may have dropped the record.
            if let Ok(record) = stable.log.record(seq) {
                run.note_refused(&record);
            }
        }
        Ok(Automaton { charter, run, stable, pending: VecDeque::new(), recent: VecDeque::new() })
    }

    /// Continues after the host was interrupted: requests idempotent invocations again, and answers
    /// the others with an error whose code is `unknown`. Returns the new records.
    ///
    /// # Errors
    /// See [`Automaton::handle`].
    pub fn recover(&mut self, now: i64) -> Result<Vec<Record>, CanisterError> {
        let mut made = Vec::new();
        for request in self.run.open() {
            let idempotent = self.charter.actor(&request.src).is_none_or(|a| a.idempotent);
            let effect = request.effect;
            match after_restart(request, idempotent, now.into()) {
                Resume::Again(request) => self.pending.push_back(request),
                Resume::Unknown(fault) => made.extend(self.handle(now, Input::answer(effect, Err(fault.json())))?),
            }
        }
        // The version before the upgrade may have written the maps in a different form.
        if let Some(snapshot) = self.run.snapshot()
            && !self.stable.differences(snapshot).is_empty()
        {
            self.stable.rewrite(snapshot);
        }
        Ok(made)
    }

    /// Processes an input, after the timers that are due. Each record is written together with the
    /// state after it. Returns the records; the last one is the record of the input. For
    /// [`Input::Due`], returns no records if no timer is due.
    ///
    /// # Errors
    /// [`CanisterError::Denied`] means that the input has no record. On any other error, stable
    /// memory cannot be written, and the message must be rolled back.
    pub fn handle(&mut self, now: i64, input: Input) -> Result<Vec<Record>, CanisterError> {
        let mut before = self.run.snapshot().cloned();
        let handled = self.run.handle(&self.charter.machine, &BOUNDS, now.into(), input, Known::default());
        let mut made = Vec::new();
        for appended in handled.appended {
            self.stable.commit(before.as_ref(), &appended)?;
            before = appended.after;
            for action in appended.actions {
                match action {
                    Action::Invoke(request) => self.pending.push_back(request),
                    Action::Stop(effect) => self.pending.retain(|a| a.effect != effect),
                    // Emitted events and log lines are in the record, where readers find them.
                    _ => {}
                }
            }
            if self.recent.len() >= MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back(appended.append.record.clone());
            made.push(appended.append.record);
        }
        match handled.reply {
            Reply::Denied(denied) => Err(CanisterError::Denied(denied)),
            _ => Ok(made),
        }
    }

    /// Takes the next invocation request.
    pub fn take_request(&mut self) -> Option<InvocationRequest> {
        self.pending.pop_front()
    }

    /// Whether there is an invocation request that has not been taken.
    #[must_use]
    pub fn has_request(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Computes the answer to an open invocation; changes nothing. Returns `None` if the run does
    /// not wait for it.
    #[must_use]
    pub fn perform(&self, effect: EffectId) -> Option<Result<Json, Json>> {
        let request = self.run.open().into_iter().find(|a| a.effect == effect)?;
        Some(perform(&self.charter, &request.src, &request.input))
    }

    /// When the next timer of the run is due, in milliseconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        self.run.next_due().map(|due| due.0)
    }

    /// Returns a record from the cache or the log.
    ///
    /// # Errors
    /// The record was never stored or has been deleted.
    pub fn record(&self, seq: u64) -> Result<Record, CanisterError> {
        let recent = self.recent.iter().rev().find(|r| r.seq == seq);
        recent.cloned().map_or_else(|| self.stable.log.record(seq), Ok)
    }

    /// Drops the cached records before this one; the projection already contains them.
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
