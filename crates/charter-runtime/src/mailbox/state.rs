//! What a host holds of a run while there is mail for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use charter_actors::ActivityGuard;
use charter_journal::Chain;
use charter_kernel::{Snapshot, Status};
use rustc_hash::FxHashSet;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::runtime::{Inner, Input, blocking, lock};

/// Input, and the sign that somebody has work to do with it.
pub(crate) struct Queued {
    pub(super) mail: Input,
    pub(super) _work: ActivityGuard,
}

impl Queued {
    pub(crate) fn new(mail: Input, work: ActivityGuard) -> Queued {
        Queued { mail, _work: work }
    }
}

/// The mailbox of a run, and the run itself while it is in memory.
#[derive(Default)]
pub(crate) struct Run {
    pub(super) inside: Mutex<Inside>,
}

#[derive(Default)]
pub(super) struct Inside {
    pub(super) queue: VecDeque<Queued>,
    pub(super) draining: bool,
    /// Here while nobody drains.
    pub(super) state: Option<Box<RunState>>,
    /// What others may look at.
    pub(super) view: Option<(Arc<Charter>, Snapshot)>,
}

impl Run {
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
    pub(super) refused: (u64, FxHashSet<(Arc<str>, u64)>),
}

impl RunState {
    pub(crate) fn new(charter: Arc<Charter>, snapshot: Option<Snapshot>, chain: Chain, last: i64) -> RunState {
        RunState { charter, snapshot, chain, last, refused: Default::default() }
    }

    /// The next timer that may fire.
    pub(super) fn timer(&self) -> Option<&charter_kernel::Timer> {
        let snapshot = self.snapshot.as_ref().filter(|s| s.status() == Status::Active)?;
        let (at, refused) = &self.refused;
        let fresh =
            |t: &&charter_kernel::Timer| *at != snapshot.seq() || !refused.contains(&(t.id.clone(), t.generation));
        snapshot.timers().iter().map(AsRef::as_ref).find(fresh)
    }

    pub(crate) fn next_due(&self) -> Option<i64> {
        self.timer().map(|t| t.due.0)
    }
}

impl Inner {
    /// Reads a run from the journal.
    pub(crate) async fn load(self: &Arc<Self>, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let (inner, run) = (self.clone(), run.to_owned());
        blocking(move || inner.load_now(&run)).await?
    }

    /// Reads a run from the journal, on a thread that may wait for it.
    pub(crate) fn load_now(&self, run: &str) -> Result<Box<RunState>, RuntimeError> {
        let info = self.store.run(run)?.ok_or_else(|| RuntimeError::UnknownRun(run.to_owned()))?;
        let charter = self.charter(info.charter)?;
        let loaded = charter_journal::load(self.store.as_ref(), &charter.machine, run)?;
        Ok(Box::new(RunState::new(charter, loaded.snapshot, loaded.chain, info.updated)))
    }
}
