//! Other systems than Linux: a tree is the process group of its command.

use std::io;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The process groups of running trees.
static GROUPS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// A tree; see [`crate::Tree`].
pub(crate) struct Tree(Mutex<Option<i32>>);

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree(Mutex::new(None))
    }

    pub(crate) fn prepare(&self, command: &mut Command) {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        #[cfg(not(unix))]
        let _ = command;
    }

    pub(crate) fn start<T>(
        &self,
        spawn: impl FnOnce() -> io::Result<T>,
        id: impl FnOnce(&T) -> Option<u32>,
    ) -> io::Result<T> {
        let child = spawn()?;
        let id = id(&child).and_then(|id| i32::try_from(id).ok());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = id;
        GROUPS.lock().unwrap_or_else(PoisonError::into_inner).extend(id);
        Ok(child)
    }

    /// Kills the process group, once: its id may be reused later.
    pub(crate) fn kill(&self) {
        let id = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(id) = id {
            GROUPS.lock().unwrap_or_else(PoisonError::into_inner).retain(|group| *group != id);
            kill_group(id);
        }
    }

    pub(crate) fn forget(&self) {}
}

/// See [`crate::kill_all`].
pub(crate) fn kill_all() {
    let groups = std::mem::take(&mut *GROUPS.lock().unwrap_or_else(PoisonError::into_inner));
    groups.into_iter().for_each(kill_group);
}

fn kill_group(id: i32) {
    #[cfg(unix)]
    if let Some(id) = rustix::process::Pid::from_raw(id) {
        let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = id;
}
