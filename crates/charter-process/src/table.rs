//! The process table, from `/proc`.

use rustix::process::{Pid, PidfdFlags, Signal};

/// Largest environment that is searched, in bytes. The system allows about 6 MiB.
const MAX_ENVIRONMENT_BYTES: u64 = 8 << 20;

/// A process: ids are reused, but not with the same start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    /// Start time in clock ticks since the system started.
    pub(crate) start: u64,
}

/// A process as the table has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) process: Process,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// Whether it has ended, and its parent has not waited for it yet.
    pub(crate) ended: bool,
}

/// Returns all processes; none if there is no `/proc`.
pub(crate) fn rows() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(row).collect()
}

/// Returns the row of a process.
pub(crate) fn row(pid: i32) -> Option<Row> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything, also parentheses.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end.checked_add(1)?..)?).ok()?;
    let words: Vec<&str> = rest.split_ascii_whitespace().take(20).collect();
    let start = words.get(19)?.parse().ok()?;
    Some(Row {
        process: Process { pid, start },
        parent: words.get(1)?.parse().ok()?,
        group: words.get(2)?.parse().ok()?,
        ended: matches!(*words.first()?, "Z" | "X" | "x"),
    })
}

/// Returns the value of a variable in the environment with which a process started its program.
pub(crate) fn variable(pid: i32, name: &str) -> Option<String> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut bytes).ok()?;
    let value = bytes.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        std::str::from_utf8(value).ok()
    });
    value.map(str::to_owned)
}

/// Sends a signal to exactly this process.
pub(crate) fn signal(process: Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else {
        return;
    };
    // What has been opened is either this process or a later one with its id; the start time tells.
    let opened = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    if row(process.pid).is_none_or(|row| row.process != process) {
        return;
    }
    let _ = match opened {
        Ok(opened) => rustix::process::pidfd_send_signal(opened, signal),
        // Before Linux 5.3.
        Err(rustix::io::Errno::NOSYS) => rustix::process::kill_process(pid, signal),
        Err(e) => Err(e),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_process_with_the_same_id_gets_no_signal() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let process = row(i32::try_from(child.id()).unwrap()).unwrap().process;
        signal(Process { start: process.start - 1, ..process }, Signal::KILL);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(child.try_wait().unwrap().is_none());
        signal(process, Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_columns() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(") S 1 (");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(program).arg("60").spawn().unwrap();
        let found = row(i32::try_from(child.id()).unwrap()).unwrap();
        assert_eq!(found.parent, i32::try_from(std::process::id()).unwrap());
        assert!(!found.ended && found.process.start > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
