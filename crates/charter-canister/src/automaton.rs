//! The automaton: a run, its stable structures and its open invocations. Each step is written to
//! stable memory before its effects are executed.

use std::collections::VecDeque;
use std::convert::Infallible;

use charter_journal::{Record, StoredCharter};
use charter_kernel::{EffectId, Principal, Snapshot, Timestamp};
use charter_run::{
    Action, EventInput, Fault, Input, InvocationRequest, Kept, Known, RecentIds, Reply, Resume, Run, Task,
};
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
const UNLIMITED: charter_run::Bounds = charter_run::Bounds { records: 0, data_bytes: 0 };

/// Number of records between two stored snapshots: each snapshot is written to stable memory.
const KEEP_EVERY: u64 = 1;

/// The result of an input.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The new records, in order: those of the timers that were due, then those of the input.
    pub records: Vec<Record>,
    /// The record that is the result of the input; for a repeated event, that of the first one.
    pub result: Option<Record>,
    /// Whether the event was recorded earlier under the same id.
    pub repeated: bool,
}

/// The automaton of a canister.
pub struct Automaton<M: Memory> {
    charter: Charter,
    run: Run,
    limits: charter_run::Bounds,
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
        let mut automaton = Automaton::create(built_in(), memory, run, bounds)?;
        let made = automaton.handle(now, Input::start(input, by))?;
        match made.result.and_then(|record| record.explanation(Some(&automaton.charter.machine))) {
            None => Ok(automaton),
            Some(why) => Err(CanisterError::Start(why.message)),
        }
    }

    /// Creates an automaton that follows any charter and has no record yet; its first input is
    /// [`Input::Start`].
    ///
    /// # Errors
    /// The charter is invalid, or stable memory is not empty.
    pub fn create(
        charter: StoredCharter,
        memory: impl Fn(u8) -> M,
        run: &str,
        bounds: Bounds,
    ) -> Result<Automaton<M>, CanisterError> {
        let mut stable = Stable::open(memory, bounds)?;
        if stable.charter()?.is_some() {
            return Err(CanisterError::Stable("it already holds an automaton".into()));
        }
        let charter = Charter::compile(charter)?;
        stable.put_charter(&charter.stored)?;
        Ok(Automaton::of(charter, Run::new(run, KEEP_EVERY), stable))
    }

    fn of(charter: Charter, run: Run, stable: Stable<M>) -> Automaton<M> {
        let (pending, recent) = (VecDeque::new(), VecDeque::new());
        Automaton { charter, run, limits: UNLIMITED, stable, pending, recent }
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
        let recent = RecentIds::unknown();
        let kept = Kept { last: Some(last), snapshot: Some(snapshot), recent, ..Kept::default() };
        let mut run = Run::restore(&charter.machine, &run, KEEP_EVERY, kept).map_err(damaged)?;
        // Records show which timers have been refused, and those since the first open invocation
        // which attempts have failed. Some may have been dropped.
        let (first, end) = (stable.log.first(), run.chain().next_seq());
        let records = |from: u64, limit: usize| -> Result<Vec<Record>, Infallible> {
            Ok((from.max(first)..end).filter_map(|seq| stable.log.record(seq).ok()).take(limit).collect())
        };
        let Ok(()) = run.note_refused(records);
        let Ok(()) = run.note_attempts(&charter.machine, records);
        Ok(Automaton::of(charter, run, stable))
    }

    /// Sets limits for the run; by default, there are none but those of the charter.
    pub fn limit(&mut self, limits: charter_run::Bounds) {
        self.limits = limits;
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
            match self.run.after_restart(request, idempotent, now.into()) {
                // The answer to another invocation may have ended this one.
                Resume::Again(request) if self.run.waits_for(effect) => self.request(request),
                Resume::Again(_) | Resume::Held => {}
                Resume::Unknown(fault) => {
                    made.extend(self.handle(now, Input::answer(effect, Err(fault.json())))?.records);
                }
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
    /// state after it.
    ///
    /// # Errors
    /// [`CanisterError::Denied`] means that the input has no record. On any other error, stable
    /// memory cannot be written, and the message must be rolled back.
    pub fn handle(&mut self, now: i64, input: Input) -> Result<Committed, CanisterError> {
        let known = self.known(&input)?;
        let mut before = self.run.snapshot().cloned();
        let handled = self.run.handle(&self.charter.machine, &self.limits, now.into(), input, known);
        let mut made = Vec::new();
        for appended in handled.appended {
            self.stable.commit(before.as_ref(), &appended)?;
            before = appended.after;
            for action in appended.actions {
                match action {
                    Action::Invoke(request) => self.request(request),
                    Action::Hold(effect) | Action::Stop(effect) => self.pending.retain(|a| a.effect != effect),
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
            Reply::Repeated(record) => Ok(Committed { records: made, result: Some(*record), repeated: true }),
            Reply::Made(index) => Ok(Committed { result: made.get(index).cloned(), records: made, repeated: false }),
            _ => Ok(Committed { records: made, result: None, repeated: false }),
        }
    }

    /// Looks up what is known about an input.
    fn known(&self, input: &Input) -> Result<Known, CanisterError> {
        match input {
            Input::Event(EventInput { id: Some(id), .. }) => {
                let found = self.stable.ids.find(id).filter(|seq| *seq >= self.stable.log.first());
                let same = found.map(|seq| self.record(seq)).transpose()?;
                Ok(Known { same, ..Known::default() })
            }
            Input::Start { .. } if self.run.exists() => {
                // The log may have dropped the record; then the start is denied.
                Ok(Known { first: self.record(0).ok(), ..Known::default() })
            }
            _ => Ok(Known::default()),
        }
    }

    /// Processes the end of an attempt.
    ///
    /// # Errors
    /// See [`Automaton::handle`].
    pub fn attempted(
        &mut self,
        now: i64,
        request: &InvocationRequest,
        result: Result<Json, Fault>,
    ) -> Result<Committed, CanisterError> {
        let input = Input::attempted(&self.charter.machine, self.run.id(), request, result, now.into());
        self.handle(now, input)
    }

    /// Takes the next invocation request that may start.
    pub fn take_request(&mut self, now: i64) -> Option<InvocationRequest> {
        let place = self.pending.iter().position(|r| r.not_before.0 <= now)?;
        self.pending.remove(place)
    }

    /// Whether there is an invocation request that may start.
    #[must_use]
    pub fn has_request(&self, now: i64) -> bool {
        self.pending.iter().any(|r| r.not_before.0 <= now)
    }

    /// Returns the open tasks of people.
    #[must_use]
    pub fn tasks(&self) -> Vec<Task> {
        self.snapshot().map(|s| charter_run::tasks(&self.charter.machine, s, false)).unwrap_or_default()
    }

    /// Adds a request, unless it is for a person.
    fn request(&mut self, request: InvocationRequest) {
        if self.charter.actor(&request.src).is_none_or(|actor| actor.decl.kind != "human") {
            self.pending.push_back(request);
        }
    }

    /// Computes the answer to an open invocation; changes nothing. Returns `None` if the run does
    /// not wait for it.
    #[must_use]
    pub fn perform(&self, effect: EffectId) -> Option<Result<Json, Fault>> {
        let request = self.run.request(effect)?;
        Some(perform(&self.charter, &request.src, &request.input))
    }

    /// When the next timer of the run or the next attempt after a failed one is due, in
    /// milliseconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> Option<i64> {
        // Others may begin at once ([`Automaton::has_request`]).
        let attempts = self.pending.iter().map(|request| request.not_before).filter(|at| *at > Timestamp::MIN);
        self.run.next_due().into_iter().chain(attempts).min().map(|due| due.0)
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
