//! What this process has started: its trees, and its other children.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, WaitOptions};

use crate::hunt::Members;
use crate::table::{self, Process, Row};

/// How often orphans that have ended are waited for.
const REAP: Duration = Duration::from_secs(1);

/// The state of the process, under one lock. It is held while a child is started: until the child
/// is listed here, it must not be taken for an orphan.
#[derive(Default)]
pub(crate) struct Registry {
    /// Whether orphans become children of this process.
    pub(crate) adopts: bool,
    /// The trees that may have processes.
    pub(crate) trees: Vec<Members>,
    /// Children that others wait for: those of trees, and those started apart.
    pub(crate) children: BTreeSet<Process>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { adopts: false, trees: Vec::new(), children: BTreeSet::new() });

/// Locks the registry.
pub(crate) fn lock() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See [`crate::adopt_orphans`].
pub(crate) fn adopt_orphans() {
    if rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_err() {
        return;
    }
    if std::mem::replace(&mut lock().adopts, true) {
        return;
    }
    // If no thread can be started, orphans are waited for when a tree ends.
    drop(std::thread::Builder::new().name("orphans".into()).spawn(|| {
        loop {
            std::thread::sleep(REAP);
            let registry = lock();
            if !registry.trees.is_empty() {
                registry.reap(&table::rows());
            }
        }
    }));
}

/// See [`crate::start_apart`].
pub(crate) fn start_apart(
    spawn: impl FnOnce() -> std::io::Result<std::process::Child>,
) -> std::io::Result<std::process::Child> {
    let mut registry = lock();
    let child = spawn()?;
    registry.list(child.id());
    Ok(child)
}

impl Registry {
    /// Lists a child of this process. Children whose ids are free again are removed.
    pub(crate) fn list(&mut self, id: u32) -> Option<Process> {
        self.children.retain(|child| table::row(child.pid).is_some_and(|row| row.process == *child));
        let child = table::row(i32::try_from(id).ok()?)?.process;
        self.children.insert(child);
        Some(child)
    }

    /// Whether this is a child of this process that it did not start.
    pub(crate) fn is_orphan(&self, row: &Row) -> bool {
        self.adopts
            && row.parent == rustix::process::getpid().as_raw_nonzero().get()
            && !self.children.contains(&row.process)
    }

    /// Waits for orphans that have ended.
    pub(crate) fn reap(&self, rows: &[Row]) {
        for row in rows.iter().filter(|row| row.ended && self.is_orphan(row)) {
            let _ = rustix::process::waitpid(Pid::from_raw(row.process.pid), WaitOptions::NOHANG);
        }
    }
}
