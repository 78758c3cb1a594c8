//! One run with its records: inputs become records, actions and replies.

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_journal::{Chain, Loaded, Origin, Record};
use charter_kernel::{EffectId, Machine, Millis, Snapshot, Timestamp};
use serde_json::Value as Json;

use crate::fault::Fault;
use crate::handled::{Action, Handled, InvocationRequest, Reply};
use crate::handling::Handling;
use crate::input::{Input, Known};
use crate::position::{Position, RefusedTimers};
use crate::recent::{IdState, RecentIds};
use crate::retry::{History, NextAttempt, Resume};

/// Upper limit of the timers that fire before an input; the rest fires before the next one.
pub(crate) const MAX_TIMERS: usize = 64;

/// Maximum number of records that are read at a time.
pub(crate) const PAGE: usize = 256;

/// Limits of a host for one run; 0 means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of records. Beyond it, events from outside except `charter.cancel` are
    /// denied; beyond twice as many, answers and timers are denied too.
    pub records: u64,
    /// Maximum size of an event's data in bytes, in addition to the limit of the charter.
    pub data_bytes: u64,
}

/// What a host stores of a run between two inputs if it keeps nothing in memory. Everything else is
/// derived from it.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// The last record; `None` if the run has not started.
    pub last: Option<Record>,
    /// Canonical JSON of the snapshot after it; `None` if the start was refused.
    pub snapshot: Option<String>,
    /// Timers that this snapshot has refused.
    pub refused: RefusedTimers,
    /// The next attempts of open invocations after a failed one.
    pub attempts: BTreeMap<EffectId, NextAttempt>,
    /// Ids of recent events.
    pub recent: RecentIds,
}

/// Why a stored run cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// The snapshot is not that of the last record.
    #[error("the snapshot is not the one after record {seq}")]
    OtherSnapshot {
        /// The last record.
        seq: u64,
    },
    /// The snapshot is not JSON.
    #[error("the snapshot is not valid JSON: {0}")]
    NotJson(String),
    /// What is stored is not what [`Kept::json`] has written.
    #[error("not the stored state of a run: {0}")]
    NotKept(String),
    /// The kernel cannot restore the snapshot.
    #[error(transparent)]
    NotRestored(#[from] charter_kernel::RestoreError),
}

/// A run. It does no I/O and reads no clock; a host commits what it returns.
///
/// Handling an input advances the run at once. If the commit fails, the host drops the run and
/// restores it from what was committed.
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) position: Position,
    pub(crate) chain: Chain,
    pub(crate) attempts: Arc<BTreeMap<EffectId, NextAttempt>>,
    pub(crate) recent: RecentIds,
    /// Whether the run had so many records that its timers no longer fire, at the last input.
    full: bool,
    /// Whether it is a dry fork.
    pub(crate) dry: bool,
    /// The number of the last record that it shares with the run that it is a fork of.
    pub(crate) fork_point: Option<u64>,
    /// Whether the host has recorded that the time of the fork stood still.
    pub(crate) fork_begun: bool,
}

impl Run {
    /// Creates a run that has not started. `keep_every` is the number of records between two stored
    /// snapshots; with 0, a snapshot is stored only when the status changes.
    #[must_use]
    pub fn new(run: &str, keep_every: u64) -> Run {
        Run {
            position: Position::new(),
            chain: Chain::new(run).snapshot_every(keep_every),
            attempts: Arc::default(),
            recent: RecentIds::default(),
            full: false,
            dry: false,
            fork_point: None,
            fork_begun: false,
        }
    }

    /// Creates a run from what was loaded from a journal; `at` is the time of its last record. Call
    /// [`Run::note_refused`] and [`Run::note_attempts`] next.
    #[must_use]
    pub fn loaded(loaded: Loaded, at: Timestamp) -> Run {
        let Loaded { snapshot, chain } = loaded;
        let position = Position::resume(snapshot, chain.next_seq(), at, RefusedTimers::default());
        let id = chain.run().to_owned();
        Run { position, chain, recent: RecentIds::unknown(), ..Run::new(&id, 0) }
    }

    /// Restores a run that a host has stored. `keep_every` is as in [`Run::new`].
    ///
    /// # Errors
    /// The parts of `kept` do not match each other or the charter.
    pub fn restore(machine: &Machine, run: &str, keep_every: u64, kept: Kept) -> Result<Run, KeptError> {
        let Some(last) = kept.last else {
            return Ok(Run { recent: kept.recent, ..Run::new(run, keep_every) });
        };
        let snapshot = match &kept.snapshot {
            None => None,
            Some(text) => Some(snapshot_of(machine, &last, text)?),
        };
        let position = Position::resume(snapshot, last.seq.saturating_add(1), last.at, kept.refused);
        let chain = Chain::after(&last).snapshot_every(keep_every);
        let (attempts, recent) = (Arc::new(kept.attempts), kept.recent);
        Ok(Run { position, chain, attempts, recent, ..Run::new(run, keep_every) })
    }

    /// Counts the failed attempts of the open invocations of a restored run. `read` is as in
    /// [`Run::note_refused`].
    ///
    /// # Errors
    /// Those of `read`.
    pub fn note_attempts<E>(
        &mut self,
        machine: &Machine,
        mut read: impl FnMut(u64, usize) -> Result<Vec<Record>, E>,
    ) -> Result<(), E> {
        let actors = &machine.definition().actors;
        let repeated = |src: &str| actors.get(src).is_some_and(|decl| decl.config.contains_key("retry"));
        let open = self.requests().filter(|request| repeated(&request.src)).map(|request| request.effect.seq);
        let Some(mut from) = open.min() else {
            return Ok(());
        };
        let mut history = History::default();
        while from < self.chain.next_seq() {
            let page = read(from, PAGE)?;
            let Some(last) = page.last() else {
                break;
            };
            from = last.seq.saturating_add(1);
            page.iter().for_each(|record| history.note(self.id(), record));
        }
        self.attempts = Arc::new(history.attempts);
        self.forget_attempts();
        Ok(())
    }

    /// Returns what a host must store to restore the run ([`Run::restore`]); `last` is its last
    /// record.
    #[must_use]
    pub fn kept(&self, machine: &Machine, last: Option<Record>) -> Kept {
        Kept {
            last,
            snapshot: self.snapshot().map(|s| machine.snapshot_text(s)),
            refused: self.position.refused().clone(),
            attempts: self.attempts(),
            recent: self.recent.clone(),
        }
    }

    /// Sets the origin of a run that is a fork.
    #[must_use]
    pub fn with_origin(self, origin: Option<&Origin<'_>>) -> Run {
        Run { dry: origin.is_some_and(|origin| origin.dry), fork_point: origin.map(|origin| origin.seq), ..self }
    }

    /// Whether the run is a dry fork: the host calls no actor for it, and persons may answer all of
    /// its invocations.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        self.dry
    }

    /// The id of the run.
    #[must_use]
    pub fn id(&self) -> &str {
        self.chain.run()
    }

    /// The snapshot; `None` if the run has not started or its start was refused.
    #[must_use]
    pub fn snapshot(&self) -> Option<&Snapshot> {
        self.position.snapshot()
    }

    /// The end of the chain of its records.
    #[must_use]
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The time of its last record.
    #[must_use]
    pub fn last(&self) -> Timestamp {
        self.position.last()
    }

    /// Whether it has a record.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.chain.next_seq() > 0
    }

    /// When its next timer is due; `None` if there is none, or if the last input has found that the
    /// run has too many records for more ([`Bounds::records`]). Of a fork whose time stands still,
    /// the time after its last record, so that a host handles it at once.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let (stands_still, begins) = (self.stands_still(), self.last().saturating_add(Millis(1)));
        self.position.timer().filter(|_| !self.full).map(|t| if stands_still { begins } else { t.due })
    }

    /// Returns what is known about an event's id.
    #[must_use]
    pub fn id_state(&self, id: &str) -> IdState {
        self.recent.state(id)
    }

    /// Returns the open invocations of services that have no answer yet, each with its next
    /// attempt. (A run that is paused holds answers.)
    #[must_use]
    pub fn open(&self) -> Vec<InvocationRequest> {
        let held = |effect| self.snapshot().is_some_and(|s| s.holds_answer(effect));
        self.requests().filter(|request| !held(request.effect)).collect()
    }

    /// Returns the next attempt of an open invocation of a service.
    #[must_use]
    pub fn request(&self, effect: EffectId) -> Option<InvocationRequest> {
        self.requests().find(|r| r.effect == effect)
    }

    fn requests(&self) -> impl Iterator<Item = InvocationRequest> {
        let services = self.snapshot().into_iter().flat_map(Snapshot::invocations).filter(|(_, i)| !i.is_machine());
        services.map(|(_, i)| {
            let next = self.attempts.get(&i.effect);
            let (attempt, not_before) = next.map_or((1, Timestamp::MIN), |n| (n.attempt, n.earliest()));
            InvocationRequest {
                effect: i.effect,
                invocation: i.id.clone(),
                src: i.src.clone(),
                input: i.input.clone(),
                attempt,
                not_before,
            }
        })
    }

    /// The next attempts, for [`Kept::attempts`].
    #[must_use]
    pub fn attempts(&self) -> BTreeMap<EffectId, NextAttempt> {
        (*self.attempts).clone()
    }

    /// Whether the run waits for the answer to an effect.
    #[must_use]
    pub fn waits_for(&self, effect: EffectId) -> bool {
        self.snapshot().is_some_and(|s| !s.status().is_finished() && s.invocations().any(|(_, i)| i.effect == effect))
    }

    /// Handles an input that arrives `now`, after the timers that are due. In a dry fork, an answer
    /// from the past takes no time, so it comes before the timers.
    pub fn handle(
        &mut self,
        machine: &Machine,
        bounds: &Bounds,
        now: Timestamp,
        input: Input,
        known: Known,
    ) -> Handled {
        let mut out = Handling { run: self, machine, bounds, now, appended: Vec::new(), troubles: Vec::new() };
        out.begin_fork();
        if !(out.run.dry && matches!(input, Input::Outcome { .. })) {
            out.fire();
        }
        let reply = match out.input(input, known) {
            Ok(reply) => reply,
            Err(denied) => Reply::Denied(denied),
        };
        let full = out.is_full(2);
        let handled = Handled { appended: out.appended, reply, troubles: out.troubles };
        self.full = full;
        handled
    }
}

impl Run {
    /// Since when the run is paused.
    pub(crate) fn paused_at(&self) -> Option<Timestamp> {
        self.snapshot().and_then(Snapshot::paused_at)
    }

    /// Decides what a host does with an open invocation after a restart. `idempotent` means that an
    /// interrupted attempt may be repeated. While the run is paused, no attempt begins; what then
    /// waits belongs to [`Kept::attempts`].
    pub fn after_restart(&mut self, request: InvocationRequest, idempotent: bool, now: Timestamp) -> Resume {
        // No attempt was running during the pause between two attempts.
        let waits = request.attempt > 1 && request.not_before > now;
        if !idempotent && !waits {
            return Resume::Unknown(Fault::unknown(&request.src));
        }
        if self.paused_at().is_none() {
            return Resume::Again(request);
        }
        let attempts = Arc::make_mut(&mut self.attempts);
        let next = NextAttempt { attempt: request.attempt, not_before: now, held_since: Some(now) };
        let next = attempts.entry(request.effect).or_insert(next);
        next.held_since = next.held_since.or(Some(now));
        Resume::Held
    }

    /// Holds the attempts that have not begun when the run is paused, and lets them begin when it
    /// is resumed. Returns what the host does about it.
    pub(crate) fn hold_attempts(&mut self, was_paused: bool, now: Timestamp) -> Vec<Action> {
        let paused = self.paused_at().is_some();
        if paused == was_paused || self.attempts.is_empty() {
            return Vec::new();
        }
        let attempts = Arc::make_mut(&mut self.attempts);
        let changed: Vec<EffectId> = attempts
            .iter_mut()
            .filter_map(|(effect, next)| if paused { next.hold(now) } else { next.release(now) }.then_some(*effect))
            .collect();
        match paused {
            true => changed.into_iter().map(Action::Hold).collect(),
            false => changed.into_iter().filter_map(|effect| self.request(effect)).map(Action::Invoke).collect(),
        }
    }

    /// Drops the attempts of invocations that are no longer open.
    pub(crate) fn forget_attempts(&mut self) {
        let obsolete: Vec<EffectId> = self.attempts.keys().copied().filter(|e| !self.waits_for(*e)).collect();
        for effect in obsolete {
            Arc::make_mut(&mut self.attempts).remove(&effect);
        }
    }
}

fn snapshot_of(machine: &Machine, last: &Record, text: &str) -> Result<Snapshot, KeptError> {
    if charter_kernel::Digest::of_bytes(text.as_bytes()) != last.snapshot {
        return Err(KeptError::OtherSnapshot { seq: last.seq });
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let json: Json = serde::Deserialize::deserialize(&mut reader).map_err(|e| KeptError::NotJson(e.to_string()))?;
    Ok(machine.restore(&json)?)
}
