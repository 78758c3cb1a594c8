//! A control group (version 2) for one tree. Its members cannot leave it without rights over the
//! group above, and are killed by the kernel in one go.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host;

/// Prefix of the names of our groups; the process id of their maker follows.
const PREFIX: &str = "charter-";
/// How often, and how many times, an empty group is removed again: its last process ends later.
const PAUSE: Duration = Duration::from_millis(5);
const TRIES: usize = 20;

/// A control group. Dropping it removes it, if it is empty.
#[derive(Debug)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates a group below the one of this process, if that is possible.
    pub(crate) fn create(name: &str) -> Option<Cgroup> {
        let above = own()?;
        remove_abandoned(&above);
        let group = Cgroup(above.join(format!("{PREFIX}{name}")));
        fs::create_dir(&group.0).ok()?;
        // Linux 5.14 or later.
        group.0.join("cgroup.kill").exists().then_some(group)
    }

    /// The group that the host of this process has created.
    pub(crate) fn open(name: &str) -> Option<Cgroup> {
        let group = own()?.join(format!("{PREFIX}{name}"));
        group.is_dir().then_some(Cgroup(group))
    }

    /// Moves a process into the group. Returns whether that was possible.
    pub(crate) fn add(&self, pid: i32) -> bool {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).is_ok()
    }

    /// The ids of the processes in the group.
    pub(crate) fn members(&self) -> Vec<i32> {
        let list = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Kills all processes in the group.
    pub(crate) fn kill(&self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.0) {
                Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
                _ => return,
            }
        }
    }
}

/// The folder of this process's own group.
fn own() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    // ID PARENT DEVICE ROOT MOUNT-POINT OPTIONS ... - TYPE SOURCE OPTIONS
    let (root, point) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        right.starts_with("cgroup2 ").then(|| Some((left.next()?, left.next()?)))?
    })?;
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let below = Path::new(group).strip_prefix(root).ok()?;
    let folder = Path::new(point).join(below);
    folder.is_dir().then_some(folder)
}

/// Removes groups whose maker has ended without removing them, and kills their processes.
fn remove_abandoned(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(|n| n.strip_prefix(PREFIX)).is_some_and(host::is_abandoned) {
            let group = Cgroup(entry.path());
            group.kill();
        }
    }
}
