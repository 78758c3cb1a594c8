//! Finds the processes of a tree, and kills them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::MARK;
use crate::cgroup::Cgroup;
use crate::guard;
use crate::host::Host;
use crate::registry::{self, Registry};
use crate::table::{self, Process, Row};

/// How long a tree is searched for processes that do not end.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of searches in which processes are only stopped.
const MAX_STOPS: usize = 32;
/// First and longest pause between two searches after processes were killed.
const PAUSE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));
/// Marks of programs above this one are passed on up to this size, in bytes.
const MAX_MARKS: usize = 1 << 10;

/// What tells the members of a tree, or of all trees of a host.
#[derive(Debug, Clone)]
pub(crate) struct Members {
    /// The mark of the tree, or the part that all marks of the host have.
    pub(crate) mark: Arc<str>,
    /// The command of a tree.
    pub(crate) command: Option<Process>,
    pub(crate) cgroup: Option<Arc<Cgroup>>,
}

/// A tree; see [`crate::Tree`].
pub(crate) struct Tree {
    mark: Arc<str>,
}

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree { mark: mark().into() }
    }

    pub(crate) fn prepare(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt as _;
        // This program may run in a tree itself.
        let above = std::env::var(MARK).ok().filter(|above| above.len() < MAX_MARKS);
        let marks = above.map_or_else(|| self.mark.to_string(), |above| format!("{above}:{}", self.mark));
        command.process_group(0).env(MARK, marks);
    }

    pub(crate) fn start<T>(
        &self,
        spawn: impl FnOnce() -> io::Result<T>,
        id: impl FnOnce(&T) -> Option<u32>,
    ) -> io::Result<T> {
        guard::prepare();
        let cgroup = Cgroup::create(&self.mark);
        let mut registry = registry::lock();
        let child = spawn()?;
        let Some(id) = id(&child) else {
            return Ok(child);
        };
        let pid = i32::try_from(id).unwrap_or_default();
        // Moving a process takes milliseconds, in which it could start others outside of the group.
        let signal = |signal| Pid::from_raw(pid).map(|pid| rustix::process::kill_process(pid, signal));
        let stopped = cgroup.is_some() && signal(Signal::STOP).is_some_and(|sent| sent.is_ok());
        let cgroup = cgroup.filter(|group| group.add(pid));
        // Without `/proc`, the command is known by its id only.
        let command = registry.list(id).unwrap_or(Process { pid, start: 0 });
        let members = Members { mark: self.mark.clone(), command: Some(command), cgroup: cgroup.map(Arc::new) };
        members.gather(&registry);
        if stopped {
            signal(Signal::CONT);
        }
        registry.trees.push(members);
        drop(registry);
        guard::started(&self.mark, command);
        Ok(child)
    }

    pub(crate) fn kill(&self) {
        let found = registry::lock().trees.iter().find(|members| members.mark == self.mark).cloned();
        if let Some(members) = found {
            members.kill();
        }
    }

    /// Removes the tree from the list of those that may have processes.
    pub(crate) fn forget(&self) {
        registry::lock().trees.retain(|members| members.mark != self.mark);
        guard::ended(&self.mark);
    }
}

/// Returns a mark that no other process has: this process, and a random number.
fn mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut random = [0; 16];
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}-{:032x}", Host::this(), u128::from_be_bytes(random))
}

/// See [`crate::kill_all`].
pub(crate) fn kill_all() {
    let all = registry::lock().trees.clone();
    for members in all {
        members.kill();
    }
}

impl Members {
    /// Moves what the command has started already into the control group.
    fn gather(&self, registry: &Registry) {
        let Some(group) = &self.cgroup else { return };
        for _ in 0..MAX_STOPS {
            let inside: BTreeSet<i32> = group.members().into_iter().collect();
            let found = self.find(registry, &table::rows());
            let outside: Vec<i32> = found.iter().map(|p| p.pid).filter(|pid| !inside.contains(pid)).collect();
            // A process that has ended meanwhile cannot be moved.
            if outside.is_empty() || !outside.into_iter().any(|pid| group.add(pid)) {
                return;
            }
        }
    }

    pub(crate) fn kill(&self) {
        if let Some(group) = &self.cgroup {
            group.kill();
        }
        let end = Instant::now().checked_add(PATIENCE);
        let (mut stopped, mut stops, mut pause) = (BTreeSet::new(), 0, PAUSE.0);
        loop {
            let registry = registry::lock();
            let rows = table::rows();
            if rows.is_empty() {
                return self.kill_group();
            }
            registry.reap(&rows);
            let found = self.find(&registry, &rows);
            if found.is_empty() || end.is_none_or(|end| Instant::now() >= end) {
                return;
            }
            // A process that is stopped starts no other one, and its children keep their parent.
            let new: Vec<Process> = found.iter().filter(|process| stopped.insert(**process)).copied().collect();
            if !new.is_empty() && stops < MAX_STOPS {
                stops = stops.saturating_add(1);
                new.into_iter().for_each(|process| table::signal(process, Signal::STOP));
                continue;
            }
            found.into_iter().for_each(|process| table::signal(process, Signal::KILL));
            drop(registry);
            std::thread::sleep(pause);
            pause = pause.saturating_mul(2).min(PAUSE.1);
        }
    }

    /// Kills the process group, which is all that is known without `/proc`.
    fn kill_group(&self) {
        if let Some(group) = self.command.and_then(|command| Pid::from_raw(command.pid)) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }

    /// The members of the tree that have not ended.
    fn find(&self, registry: &Registry, rows: &[Row]) -> Vec<Process> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let in_cgroup: BTreeSet<i32> = self.cgroup.iter().flat_map(|group| group.members()).collect();
        // The id of the group is free for others once the command and its group have ended.
        let of_id = |row: &Row| self.command.is_some_and(|command| row.process.pid == command.pid);
        let is_reused = rows.iter().any(|row| of_id(row) && Some(row.process) != self.command);
        let start = self.command.map_or(0, |command| command.start);
        let group = self.command.filter(|_| !is_reused).map(|command| command.pid);
        let mut members = BTreeSet::new();
        let mut below: BTreeMap<i32, Vec<&Row>> = BTreeMap::new();
        let mut left = Vec::new();
        for row in rows.iter().filter(|row| row.process.start >= start && row.process.pid != own) {
            below.entry(row.parent).or_default().push(row);
            let is_member = Some(row.process) == self.command
                || Some(row.group) == group
                || in_cgroup.contains(&row.process.pid)
                || (!row.ended && self.is_marked(registry, row));
            if is_member {
                left.push(row);
            }
        }
        while let Some(row) = left.pop() {
            if members.insert(row.process) {
                let children = below.get(&row.process.pid).into_iter().flatten();
                left.extend(children.filter(|child| child.process.start >= row.process.start));
            }
        }
        let ended: BTreeSet<Process> = rows.iter().filter(|row| row.ended).map(|row| row.process).collect();
        members.difference(&ended).copied().collect()
    }

    /// Whether a process belongs to this tree by its mark; or, if it is an orphan without mark,
    /// because no other tree can have started it.
    fn is_marked(&self, registry: &Registry, row: &Row) -> bool {
        let marks = table::variable(row.process.pid, MARK).unwrap_or_default();
        let is_of =
            |one: &str, mark: &str| one.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        let has = |mark: &str| marks.split(':').any(|one| is_of(one, mark));
        if has(&self.mark) {
            return true;
        }
        let could_be_of = |other: &Members| {
            other.mark != self.mark
                && (has(&other.mark) || other.command.is_none_or(|command| row.process.start >= command.start))
        };
        registry.is_orphan(row) && !registry.trees.iter().any(could_be_of)
    }
}
