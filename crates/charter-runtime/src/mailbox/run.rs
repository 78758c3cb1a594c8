//! A run in memory: its mailbox and its state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use charter_actors::ActivityGuard;
use charter_journal::Chain;
use charter_kernel::{Snapshot, Status, Timer, Timestamp};
use rustc_hash::FxHashSet;

use crate::charter::Charter;
use crate::request::Input;
use crate::sync::lock;

/// An entry of a mailbox. It is an activity until it is handled.
pub(crate) struct Queued {
    pub(super) input: Input,
    pub(super) activity: ActivityGuard,
}

impl Queued {
    pub(crate) fn new(input: Input, activity: ActivityGuard) -> Queued {
        Queued { input, activity }
    }
}

/// The mailbox of a run, and the run itself while it is in memory.
#[derive(Default)]
pub(crate) struct Run {
    pub(super) mailbox: Mutex<Mailbox>,
}

#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) queue: VecDeque<Queued>,
    /// A task handles the queue.
    pub(super) draining: bool,
    /// The run, while no task handles the queue.
    pub(super) state: Option<Box<RunState>>,
    /// What readers see: the run after its last durable record.
    pub(super) view: Option<(Arc<Charter>, Snapshot)>,
}

impl Run {
    pub(crate) fn view(&self) -> Option<(Arc<Charter>, Snapshot)> {
        lock(&self.mailbox).view.clone()
    }
}

/// A run after its last durable record.
#[derive(Clone)]
pub(crate) struct RunState {
    pub(crate) charter: Arc<Charter>,
    /// None: its start was refused.
    pub(crate) snapshot: Option<Snapshot>,
    pub(crate) chain: Chain,
    /// Time of its last record: within a run, time does not go back.
    pub(crate) last: Timestamp,
    /// Timers whose event was refused by the snapshot with this number: tried again when the
    /// snapshot has changed.
    pub(super) refused: (u64, FxHashSet<(Arc<str>, u64)>),
}

impl RunState {
    pub(crate) fn new(charter: Arc<Charter>, snapshot: Option<Snapshot>, chain: Chain, last: Timestamp) -> RunState {
        RunState { charter, snapshot, chain, last, refused: Default::default() }
    }

    /// The next timer that may fire.
    pub(super) fn timer(&self) -> Option<&Timer> {
        let snapshot = self.snapshot.as_ref().filter(|s| s.status() == Status::Active)?;
        let (at, refused) = &self.refused;
        let untried = |t: &&Timer| *at != snapshot.seq() || !refused.contains(&(t.id.clone(), t.generation));
        snapshot.timers().iter().map(AsRef::as_ref).find(untried)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.timer().map(|t| t.due)
    }
}
