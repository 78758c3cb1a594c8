//! A run in memory: its mailbox and its state.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use charter_actors::ActivityGuard;
use charter_kernel::Snapshot;

use crate::charter::Charter;
use crate::error::RuntimeError;
use crate::request::Input;
use crate::sync::lock;

/// An entry of a mailbox. It counts as an activity until it has been processed.
pub(crate) struct Queued {
    pub(super) input: Input,
    pub(super) activity: ActivityGuard,
}

/// The mailbox of a run, and the run itself while it is in memory.
#[derive(Default)]
pub(crate) struct Run {
    pub(super) mailbox: Mutex<Mailbox>,
}

#[derive(Default)]
pub(super) struct Mailbox {
    pub(super) queue: VecDeque<Queued>,
    /// Whether a task is processing the queue.
    pub(super) draining: bool,
    /// The run, while no task is processing the queue.
    pub(super) state: Option<Box<RunState>>,
    /// What readers see: the state after the last durable record.
    pub(super) view: Option<(Arc<Charter>, Snapshot)>,
}

impl Run {
    pub(crate) fn view(&self) -> Option<(Arc<Charter>, Snapshot)> {
        lock(&self.mailbox).view.clone()
    }
}

/// The state of a run after its last durable record.
#[derive(Clone)]
pub(crate) struct RunState {
    pub(crate) charter: Arc<Charter>,
    pub(crate) run: charter_run::Run,
}

impl RunState {
    /// The snapshot of a run that has started.
    pub(crate) fn started(&self) -> Result<Snapshot, RuntimeError> {
        self.run.snapshot().cloned().ok_or_else(|| RuntimeError::NeverStarted(self.run.id().into()))
    }
}
