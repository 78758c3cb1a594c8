//! The guard: a second process that kills the trees of this one if this one was killed by SIGKILL.
//! It reads what was started from a pipe, which ends with the host.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cgroup::Cgroup;
use crate::host::{self, Host};
use crate::hunt::Members;
use crate::registry;
use crate::table::Process;

/// Longest line that the guard reads, in bytes.
const MAX_LINE: u64 = 4_096;
/// How long the guard waits for the end of a host that is being killed, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(2);

/// The guard of this process.
struct Guard {
    /// Starts it; `None` if this program has none.
    command: Option<Command>,
    pipe: Option<ChildStdin>,
    /// The trees that it has to know, by mark.
    trees: BTreeMap<Arc<str>, Process>,
}

static GUARD: Mutex<Guard> = Mutex::new(Guard { command: None, pipe: None, trees: BTreeMap::new() });

fn lock() -> MutexGuard<'static, Guard> {
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See [`crate::use_guard`].
pub(crate) fn set(mut command: Command) {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    lock().command = Some(command);
}

/// Before a tree is started: makes sure that there is a guard, and that nothing is left of earlier
/// hosts.
pub(crate) fn prepare() {
    host::kill_abandoned();
    lock().start();
}

/// Tells the guard of a tree.
pub(crate) fn started(mark: &Arc<str>, command: Process) {
    let mut guard = lock();
    if guard.command.is_some() {
        guard.trees.insert(mark.clone(), command);
        guard.tell(&format!("{mark} {} {}\n", command.pid, command.start));
    }
}

/// Tells the guard that nothing is left of a tree.
pub(crate) fn ended(mark: &str) {
    let mut guard = lock();
    if guard.trees.remove(mark).is_some() {
        guard.tell(&format!("{mark}\n"));
    }
}

impl Guard {
    /// Starts the guard, unless it runs. Without one, trees are killed by the next host.
    fn start(&mut self) {
        let (Some(command), None) = (&mut self.command, &self.pipe) else {
            return;
        };
        let Ok(mut child) = registry::start_apart(|| command.spawn()) else {
            return;
        };
        self.pipe = child.stdin.take();
        if let Some(pipe) = &self.pipe {
            // A guard that does not read must not stop this process.
            let _ = rustix::io::ioctl_fionbio(pipe, true);
        }
        self.tell(&format!("{}\n", Host::this()));
        for (mark, Process { pid, start }) in self.trees.clone() {
            self.tell(&format!("{mark} {pid} {start}\n"));
        }
    }

    /// Writes a line to the guard. If it has ended, another one is started with the next tree.
    fn tell(&mut self, line: &str) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        // A line is written whole or not at all. What the guard was not told it finds by its mark.
        let written = pipe.write_all(line.as_bytes());
        if written.is_err_and(|e| e.kind() != std::io::ErrorKind::WouldBlock) {
            self.pipe = None;
        }
    }
}

/// See [`crate::run_guard`].
pub(crate) fn run() {
    // Signals of the terminal are for the host.
    let _ = rustix::process::setsid();
    let (mut host, mut trees) = (None, BTreeMap::new());
    let mut lines = BufReader::new(std::io::stdin().lock());
    let mut line = String::new();
    while lines.by_ref().take(MAX_LINE).read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), host) {
            ([mark], None) => host = Host::of_mark(mark),
            ([mark], Some(_)) => drop(trees.remove(*mark)),
            ([mark, pid, start], _) => {
                if let (Ok(pid), Ok(start)) = (pid.parse(), start.parse()) {
                    trees.insert((*mark).to_owned(), Process { pid, start });
                }
            }
            _ => {}
        }
        line.clear();
    }
    let Some(host) = host.filter(|host| ends(*host)) else {
        return;
    };
    // Those that have a mark first, so that they start nothing while the others are searched for.
    host.members().kill();
    for (mark, command) in trees {
        let cgroup = Cgroup::open(&mark).map(Arc::new);
        Members { mark: mark.into(), command: Some(command), cgroup }.kill();
    }
}

/// Waits until a host has ended whose end of the pipe is closed. Returns whether it has.
fn ends(host: Host) -> bool {
    let begin = Instant::now();
    while !host.has_ended() {
        if begin.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}
