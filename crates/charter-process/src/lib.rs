#![doc = include_str!("../README.md")]

use std::process::Command;

#[cfg(target_os = "linux")]
mod cgroup;
mod confine;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod hunt;
#[cfg(not(target_os = "linux"))]
#[path = "group.rs"]
mod hunt;
#[cfg(target_os = "linux")]
mod registry;
#[cfg(target_os = "linux")]
mod system_calls;
#[cfg(target_os = "linux")]
mod table;

pub use confine::{Confinement, Unconfined};

/// The variable that marks the processes of a tree, in the environment of its command. Its value is
/// of no use to the command.
pub const MARK: &str = "CHARTER_TREE";

/// A command and everything that it starts, directly or not. Dropping it kills all of it.
///
/// On Linux, these processes are members:
///
/// - those in the control group of the tree (version 2), if this process may make one;
/// - those that have the mark ([`MARK`]) of the tree in the environment with which they started;
/// - those in the process group of the command;
/// - the children of members;
/// - after [`adopt_orphans`]: children of this process that it did not start itself, if no other
///   running tree can have started them. If several can, they end with the last of these trees.
///
/// They are stopped until a search finds no more, then killed, until a search finds none. A process
/// whose id was reused is not touched: its start time differs.
///
/// Not promised: processes that this process may not signal (other users); what escapes the search
/// by forking faster than it, without a control group; an orphan without mark, without a control
/// group, in a program that does not call [`adopt_orphans`]; what somebody else (a service manager,
/// `at`) starts because the command asks for it.
///
/// If this process is killed by SIGKILL, the guard ([`use_guard`]) kills its trees; if there is no
/// guard, or it was killed, too, the next process that starts a tree does so before. The guard
/// knows what was started by control groups, marks, process groups and parents, the next process
/// only by control groups, marks and parents. An orphan without mark and without a control group
/// stays.
///
/// On other systems than Linux, only the process group of the command is killed, and nothing after
/// SIGKILL.
pub struct Tree(hunt::Tree);

impl Tree {
    /// Creates a tree without processes.
    #[must_use]
    pub fn new() -> Tree {
        Tree(hunt::Tree::new())
    }

    /// Prepares a command: a process group of its own, and the mark in its environment.
    pub fn prepare(&self, command: &mut Command) {
        self.0.prepare(command);
    }

    /// Starts the prepared command by calling `spawn`; `id` returns its process id. Call it once.
    ///
    /// # Errors
    /// Those of `spawn`.
    pub fn start<T>(
        &self,
        spawn: impl FnOnce() -> std::io::Result<T>,
        id: impl FnOnce(&T) -> Option<u32>,
    ) -> std::io::Result<T> {
        self.0.start(spawn, id)
    }

    /// Kills all processes of the tree, and waits until they have ended, for at most two seconds.
    /// The command itself stays for its owner to be waited for.
    pub fn kill(&self) {
        self.0.kill();
    }
}

impl Default for Tree {
    fn default() -> Tree {
        Tree::new()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.kill();
        self.0.forget();
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tree")
    }
}

/// From now on, orphans among the descendants of this process become its children (a "child
/// subreaper"), where they are found by [`Tree::kill`], and waited for when they end. Does nothing
/// on other systems than Linux.
///
/// This is for a program that starts all of its children through this crate: any other child is
/// taken for an orphan. Libraries do not call it.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    registry::adopt_orphans();
}

/// From now on, a second process watches this one: when it ends without having killed its trees,
/// the second one kills them. `command` starts it, with the first tree; it must call [`run_guard`]
/// and end. Does nothing on other systems than Linux.
pub fn use_guard(command: Command) {
    #[cfg(target_os = "linux")]
    guard::set(command);
    #[cfg(not(target_os = "linux"))]
    drop(command);
}

/// Is the guard of the process that has started this one ([`use_guard`]), until that one has ended.
pub fn run_guard() {
    #[cfg(target_os = "linux")]
    guard::run();
}

/// Starts a child that belongs to no tree and may outlive this process.
///
/// # Errors
/// Those of `spawn`.
pub fn start_apart(command: &mut Command) -> std::io::Result<std::process::Child> {
    #[cfg(target_os = "linux")]
    return registry::start_apart(|| command.spawn());
    #[cfg(not(target_os = "linux"))]
    command.spawn()
}

/// Kills all trees of this process, before it ends: the destructors of other threads do not run.
pub fn kill_all() {
    hunt::kill_all();
}
