//! Commands that try to leave something behind, in a host that is a process of its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg(target_os = "linux")]

mod confine;
mod host;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

/// What a command can do to leave a process behind. The processes write their ids to the file
/// `pids`.
const ATTACKS: [(&str, &str); 6] = [
    ("a session of its own", "setsid sh -c 'echo $$ >> pids; exec sleep 60' &"),
    ("a double fork", "(nohup sh -c 'echo $$ >> pids; exec sleep 60' >/dev/null 2>&1 &)"),
    ("an empty environment", "(/usr/bin/env -i /usr/bin/setsid /bin/sh -c 'echo $$ >> pids; exec /bin/sleep 60' &)"),
    (
        "a slow fork loop",
        r#"echo 'echo $$ >> pids; sleep 0.03; [ $1 = 300 ] || setsid sh loop $(($1 + 1)) & exit' > loop; sh loop 0"#,
    ),
    ("a stopped child", "setsid sh -c 'echo $$ >> pids; kill -STOP $$; sleep 60' &"),
    ("ignored signals", "setsid sh -c 'trap \"\" TERM INT HUP; (echo $$ >> pids; sleep 60 & echo $! >> pids; wait)' &"),
];

/// How a host is run.
#[derive(Clone, Copy, PartialEq)]
enum Rights {
    /// It may make control groups, if these tests may.
    All,
    /// It may not: it has only the process table.
    None,
}

/// Runs a test of the module `host` in a process of its own, as a host with a script. `None` if the
/// rights of these tests do not suffice.
fn run(rights: Rights, name: &str, script: &str, folder: &Path) -> Option<Output> {
    let mut command = match rights {
        Rights::All => Command::new(std::env::current_exe().unwrap()),
        Rights::None => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
            command.arg(std::env::current_exe().unwrap());
            command
        }
    };
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    command.args(["--ignored", "--exact", "--nocapture", "--test-threads=1", &format!("host::{name}")]);
    command.env("SCRIPT", script).current_dir(folder);
    let out = match command.output() {
        Ok(out) => out,
        Err(e) => {
            eprintln!("skipped: cannot run `setpriv`: {e}");
            return None;
        }
    };
    let err = String::from_utf8_lossy(&out.stderr);
    if rights == Rights::None && err.contains("setpriv") {
        eprintln!("skipped: {err}");
        return None;
    }
    Some(out)
}

/// Each host also kills what killed ones have left: those that are to be killed run alone.
static ALONE: RwLock<()> = RwLock::new(());

/// The same for a host that must succeed.
fn host(rights: Rights, name: &str, script: &str, folder: &Path) -> Option<String> {
    let _others = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    succeeds(rights, name, script, folder)
}

fn succeeds(rights: Rights, name: &str, script: &str, folder: &Path) -> Option<String> {
    let out = run(rights, name, script, folder)?;
    let (out, err) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.contains("1 passed"), "{out}\n{err}");
    Some(out.into_owned())
}

/// The processes in the file `pids` that have not ended.
fn alive(folder: &Path) -> Vec<String> {
    let pids = std::fs::read_to_string(folder.join("pids")).unwrap();
    assert!(!pids.is_empty());
    let is_alive = |pid: &&str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("\nState:\tZ")
    };
    pids.lines().filter(is_alive).map(str::to_owned).collect()
}

fn check(rights: Rights, name: &str, script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let _others = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    let begin = Instant::now();
    if succeeds(rights, name, script, folder.path()).is_some() {
        assert_eq!(alive(folder.path()), Vec::<String>::new(), "{script}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    for rights in [Rights::All, Rights::None] {
        for (attack, script) in ATTACKS {
            eprintln!("{attack}");
            // The command ends when its children have begun.
            check(rights, "ends_normally", &format!("{script}\nwhile [ ! -s pids ]; do sleep 0.01; done"));
        }
    }
}

#[test]
fn a_command_is_killed_with_everything_it_started() {
    for rights in [Rights::All, Rights::None] {
        for (attack, script) in ATTACKS {
            eprintln!("{attack}");
            check(rights, "kills", &format!("{script}\nsleep 60"));
        }
    }
}

#[test]
fn a_host_that_ends_kills_all_trees() {
    for rights in [Rights::All, Rights::None] {
        for (attack, script) in ATTACKS {
            eprintln!("{attack}");
            check(rights, "exits", &format!("{script}\nsleep 60"));
        }
    }
}

#[test]
fn a_library_finds_what_has_the_mark_or_a_living_parent() {
    for rights in [Rights::All, Rights::None] {
        for (attack, script) in ATTACKS {
            if rights == Rights::All || attack != "an empty environment" {
                // The command has been moved into its control group.
                check(rights, "kills_without_adopting", &format!("sleep 0.1; {script}\nsleep 60"));
            }
        }
    }
    // The parent of the process without the mark is alive.
    let script = "env -i /usr/bin/setsid /bin/sh -c 'echo $$ >> pids; exec /bin/sleep 60' & wait";
    check(Rights::None, "kills_without_adopting", script);
}

#[test]
fn other_processes_are_not_killed() {
    let folder = tempfile::tempdir().unwrap();
    for rights in [Rights::All, Rights::None] {
        host(rights, "keeps_others", "true", folder.path());
    }
}

#[test]
fn orphans_of_a_long_command_are_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    for rights in [Rights::All, Rights::None] {
        host(rights, "reaps", "for i in 1 2 3 4 5; do (sleep 0.1 &) ; done; sleep 60", folder.path());
    }
}

/// Runs a host that is killed by SIGKILL. Returns whether it can be run.
fn killed(rights: Rights, name: &str, script: &str, folder: &Path) -> bool {
    let Some(out) = run(rights, name, script, folder) else {
        return false;
    };
    assert_eq!(out.status.signal(), Some(9), "{}", String::from_utf8_lossy(&out.stdout));
    true
}

#[test]
fn the_guard_of_a_host_that_was_killed_kills_its_trees() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let check = |rights, script: &str| {
        let folder = tempfile::tempdir().unwrap();
        if killed(rights, "is_killed_with_a_guard", script, folder.path()) {
            let begin = Instant::now();
            while !alive(folder.path()).is_empty() {
                assert!(begin.elapsed() < Duration::from_secs(10), "{script}: {:?}", alive(folder.path()));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    };
    for rights in [Rights::All, Rights::None] {
        for (attack, script) in ATTACKS {
            // Without a mark and a control group, an orphan is not found.
            if rights == Rights::All || attack != "an empty environment" {
                check(rights, &format!("sleep 0.1; {script}\nsleep 60"));
            }
        }
    }
    // A command without mark is known by its group.
    check(Rights::None, "sleep 60 & echo $! >> pids; echo $$ >> pids; exec /usr/bin/env -i /bin/sleep 60");
}

#[test]
fn the_next_host_kills_what_a_killed_one_has_left() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    for rights in [Rights::All, Rights::None] {
        let folder = tempfile::tempdir().unwrap();
        // The output of the host ends with it.
        let script = "exec >/dev/null 2>&1; setsid sh -c 'echo $$ >> pids; exec sleep 60' & echo $$ >> pids; sleep 60";
        if killed(rights, "is_killed", script, folder.path()) {
            assert!(!alive(folder.path()).is_empty(), "without a guard, nothing kills them");
            succeeds(rights, "comes_later", "", folder.path());
            assert_eq!(alive(folder.path()), Vec::<String>::new());
        }
    }
}
