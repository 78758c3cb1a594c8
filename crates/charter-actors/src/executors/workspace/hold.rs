//! Tracks which run holds which workspace, across processes: from the run's first call until it is
//! idle (no timer, no open invocation) or ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use charter_kernel::{Snapshot, Status};
use charter_workspace::{Error, Store, Watch, Workspace};

use crate::call::Call;
use crate::host::{RunUpdate, RunUpdates};
use crate::lock;

/// The workspaces that runs hold.
#[derive(Debug, Default)]
pub(super) struct Holds {
    held: Mutex<BTreeMap<PathBuf, Held>>,
}

#[derive(Debug)]
struct Held {
    run: Arc<str>,
    workspace: Arc<Mutex<Workspace>>,
}

impl Holds {
    /// Opens the workspace for the run of the call, unless another run holds it.
    pub(super) fn take(
        self: &Arc<Self>,
        path: &Path,
        store: &Path,
        call: &Call,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Mutex<Workspace>>, Error> {
        let shown = path.display().to_string();
        let path = path
            .canonicalize()
            .map_err(|source| Error::Io { doing: format!("open the workspace `{shown}`"), source })?;
        // A run that was started by another process and has made no call in this one may hold it.
        let before = Workspace::last_holder(&path, &Store::open(store)?);
        if let Some(other) = before.filter(|other| **other != *call.run)
            && self.is_busy(&other, call)
        {
            return Err(Error::Locked { path: shown, holder: Some(other) });
        }
        loop {
            // The workspace is opened under the lock, so that two calls of one run do not lock each
            // other out.
            let mut held = lock(&self.held);
            let other = match held.get(&path) {
                None => return self.open(&mut held, path, store, call, watch),
                Some(other) if other.run == call.run => return Ok(other.workspace.clone()),
                Some(other) => other.run.clone(),
            };
            drop(held);
            // The other run may have just become idle, before its update arrived.
            if self.is_busy(&other, call) {
                return Err(Error::Locked { path: shown, holder: Some(other.to_string()) });
            }
            self.release(&path, &other);
        }
    }

    /// Whether a run is not idle.
    fn is_busy(&self, run: &str, call: &Call) -> bool {
        call.host().snapshot(run).is_ok_and(|snapshot| !is_idle(&snapshot))
    }

    fn open(
        self: &Arc<Self>,
        held: &mut BTreeMap<PathBuf, Held>,
        path: PathBuf,
        store: &Path,
        call: &Call,
        watch: &mut dyn Watch,
    ) -> Result<Arc<Mutex<Workspace>>, Error> {
        let workspace = Workspace::open(&path, &Store::open(store)?, &call.run, watch)?;
        let workspace = Arc::new(Mutex::new(workspace));
        held.insert(path.clone(), Held { run: call.run.clone(), workspace: workspace.clone() });
        let release = release_when_idle(Arc::clone(self), path, call.run.clone(), call.updates());
        tokio::runtime::Handle::current().spawn(release);
        Ok(workspace)
    }

    fn release(&self, path: &Path, run: &str) {
        let mut held = lock(&self.held);
        if held.get(path).is_some_and(|h| &*h.run == run) {
            held.remove(path);
        }
    }
}

async fn release_when_idle(holds: Arc<Holds>, path: PathBuf, run: Arc<str>, mut updates: Box<dyn RunUpdates>) {
    while let Some(update) = updates.next().await {
        if let RunUpdate::Recorded(snapshot) = update
            && snapshot.as_ref().is_none_or(is_idle)
        {
            break;
        }
    }
    holds.release(&path, &run);
}

/// Whether only events from outside can change the run.
fn is_idle(snapshot: &Snapshot) -> bool {
    match snapshot.status() {
        Status::Active => snapshot.timers().is_empty() && !snapshot.invocations().any(|(_, i)| !i.is_machine()),
        Status::Paused => false,
        _ => true,
    }
}
