//! Which run has which workspace: from its first work on it until it rests (no timer, nothing at work) or ends; whichever process
//! works for it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use charter_kernel::{Snapshot, Status};
use charter_workspace::{Error, Store, Watch, Workspace};

use crate::call::Call;
use crate::publish::{RuntimeEvent, Subscription};
use crate::runtime::lock;

/// Workspaces that are held.
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
    /// The workspace, opened for the run of the call if it is not held by another one.
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
        // A run of this journal may have it that no process has worked for since this one was started.
        let before = Workspace::last_holder(&path, &Store::open(store)?);
        if let Some(other) = before.filter(|other| **other != *call.run)
            && self.is_busy(&other, call)
        {
            return Err(Error::Locked { path: shown, holder: Some(other) });
        }
        loop {
            // Opened under the lock: two calls of one run must not refuse each other.
            let mut held = lock(&self.held);
            let other = match held.get(&path) {
                None => return self.open(&mut held, path, store, call, watch),
                Some(other) if other.run == call.run => return Ok(other.workspace.clone()),
                Some(other) => other.run.clone(),
            };
            drop(held);
            // It may have come to rest a moment ago, and nobody has told us yet.
            if self.is_busy(&other, call) {
                return Err(Error::Locked { path: shown, holder: Some(other.to_string()) });
            }
            self.release(&path, &other);
        }
    }

    /// Whether that run has not come to rest.
    fn is_busy(&self, run: &str, call: &Call) -> bool {
        let view = call.inner.handle.block_on(call.inner.look(run));
        view.is_ok_and(|(_, snapshot)| !at_rest(&snapshot))
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
        call.inner.handle.spawn(release_at_rest(Arc::clone(self), path, call.run.clone(), call.subscribe()));
        Ok(workspace)
    }

    fn release(&self, path: &Path, run: &str) {
        let mut held = lock(&self.held);
        if held.get(path).is_some_and(|h| &*h.run == run) {
            held.remove(path);
        }
    }
}

async fn release_at_rest(holds: Arc<Holds>, path: PathBuf, run: Arc<str>, mut news: Subscription) {
    while let Some(happening) = news.next().await {
        if let RuntimeEvent::Recorded(recorded) = happening
            && recorded.snapshot.as_ref().is_none_or(at_rest)
        {
            break;
        }
    }
    holds.release(&path, &run);
}

/// Nothing is at work, and nothing will happen by itself.
fn at_rest(snapshot: &Snapshot) -> bool {
    match snapshot.status() {
        Status::Active => snapshot.timers().is_empty() && !snapshot.invocations().any(|(_, i)| !i.is_machine()),
        Status::Paused => false,
        _ => true,
    }
}
