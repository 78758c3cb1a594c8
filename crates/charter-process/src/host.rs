//! The processes that start trees, as marks name them.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Once;

use crate::MARK;
use crate::hunt::Members;
use crate::table::{self, Process};

/// A process that starts trees. Ids of processes mean something in their namespace only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Host {
    process: Process,
    namespace: u64,
}

impl Host {
    /// This process.
    pub(crate) fn this() -> Host {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let process = table::row(pid).map_or(Process { pid, start: 0 }, |row| row.process);
        Host { process, namespace: namespace() }
    }

    /// Reads the part of a mark that names the host.
    pub(crate) fn of_mark(mark: &str) -> Option<Host> {
        let mut parts = mark.split('-');
        let process = Process { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? };
        Some(Host { process, namespace: parts.next()?.parse().ok()? })
    }

    /// Whether it has certainly ended.
    pub(crate) fn has_ended(self) -> bool {
        let is_known = self.process.start > 0 && self.namespace > 0 && self.namespace == namespace();
        is_known && table::row(self.process.pid).is_none_or(|row| row.ended || row.process != self.process)
    }

    /// All that the trees of this host have started.
    pub(crate) fn members(self) -> Members {
        Members { mark: self.to_string().into(), command: None, cgroup: None }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.process.pid, self.process.start, self.namespace)
    }
}

/// Whether the host of a mark has certainly ended.
pub(crate) fn is_abandoned(mark: &str) -> bool {
    Host::of_mark(mark).is_some_and(Host::has_ended)
}

/// What identifies the namespace of process ids; 0 if it cannot be found out.
fn namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// Kills, once in this process, what hosts have left behind that were killed: nothing that is
/// started now may meet an earlier start of the same command.
pub(crate) fn kill_abandoned() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let own = std::env::var(MARK).unwrap_or_default();
        let own: BTreeSet<Host> = own.split(':').filter_map(Host::of_mark).collect();
        let mut hosts = BTreeSet::new();
        for row in table::rows() {
            let marks = table::variable(row.process.pid, MARK).unwrap_or_default();
            hosts.extend(marks.split(':').filter_map(Host::of_mark));
        }
        // A host above that has ended has left this process behind, too.
        for host in hosts.difference(&own).filter(|host| host.has_ended()) {
            host.members().kill();
        }
    });
}
