//! A command that is interrupted stops the programs that it has started.

use std::process::Command;

use crate::support::processes::{Site, until};

const SLOW: &str = "
charter: 1
id: slow
events: {GO: {}}
actors: {work: {kind: exec, command: [sh, -c, 'echo $$ >> started; sleep 30; echo 1']}}
initial: idle
states:
  idle: {on: {GO: busy}}
  busy: {invoke: {src: work, onDone: done, onError: failed}}
  done: {type: final}
  failed: {type: final}
";

#[test]
fn an_interrupted_command_stops_its_programs_first() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let site = Site::new("interrupted", &[("slow.yaml", SLOW.to_owned())]);
        site.run("run slow.yaml --run a");
        let sending = site.start("send a GO");
        let pid = sending.0.as_ref().unwrap().id();
        site.wait_for_lines("started", 1);
        let started = std::fs::read_to_string(site.path("started")).unwrap();
        Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
        let (ended, _, err) = sending.end();
        assert_eq!(ended, code, "{err}");
        assert!(err.contains("interrupted: stopping running actors\nto continue: "), "{err}");
        assert!(err.contains("charter run --resume a\n") && !err.contains("has shut down"), "{err}");
        until("end of the program", || !std::path::Path::new(&format!("/proc/{}", started.trim())).exists());
        // The actor is not idempotent: its outcome is unknown, and it is not repeated.
        let (code, out, err) = site.any("run --resume a");
        assert_eq!(code, 0, "{out}{err}");
        assert!(out.contains("a: done in failed"), "{out}{err}");
        assert_eq!(site.lines("started"), 1);
        let records = site.records("a");
        assert_eq!(records.last().unwrap()["event"]["data"]["error"]["code"], "unknown");
    }
}

/// Leaves a process without the environment, the session and the parent of the command.
#[cfg(target_os = "linux")]
const LEAVES: &str = "
charter: 1
id: leaves
events: {GO: {}, STOP: {}}
actors:
  work: {kind: exec, command: [sh, leave.sh, '30'], attemptTimeout: 600ms, retry: {attempts: 1}}
  quick: {kind: exec, command: [sh, leave.sh, '0']}
initial: idle
states:
  idle: {on: {GO: {target: busy}, STOP: quick}}
  busy: {invoke: {src: work, onDone: idle, onError: idle}, on: {STOP: idle}}
  quick: {invoke: {src: quick, onDone: idle, onError: idle}}
";

#[cfg(target_os = "linux")]
const LEAVE: &str =
    "(env -i /usr/bin/setsid /bin/sh -c 'trap \"\" TERM INT HUP; echo $$ >> started; exec sleep 60' >/dev/null 2>&1 &)
while [ ! -s started ]; do sleep 0.01; done; sleep $1; echo 1";

#[cfg(target_os = "linux")]
#[test]
fn programs_end_with_everything_they_started() {
    let site = Site::new("everything", &[("leaves.yaml", LEAVES.to_owned()), ("leave.sh", LEAVE.to_owned())]);
    site.run("run leaves.yaml --run a");
    let ended = || {
        let started = std::fs::read_to_string(site.path("started")).unwrap();
        std::fs::remove_file(site.path("started")).unwrap();
        assert!(!std::path::Path::new(&format!("/proc/{}", started.trim())).exists());
    };
    // The command ends by itself.
    site.run("send a STOP");
    ended();
    // It exceeds its time.
    let out = site.run("send a GO");
    assert!(out.contains("idle"), "{out}");
    ended();
    // The run no longer waits for it.
    let sending = site.start("send a GO");
    site.wait_for_lines("started", 1);
    site.run("send a STOP");
    sending.end();
    ended();
    // The host ends.
    for signal in ["INT", "TERM"] {
        let sending = site.start("send a GO");
        let pid = sending.0.as_ref().unwrap().id();
        site.wait_for_lines("started", 1);
        Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().unwrap();
        sending.end();
        ended();
        site.run("run --resume a");
    }
}

/// The guard of a process.
#[cfg(target_os = "linux")]
fn guard(pid: u32) -> String {
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children")).unwrap();
    let children: String = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|t| of(t.unwrap())).collect();
    let name = |pid: &&str| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    children.split_whitespace().find(|pid| name(pid).starts_with("charter-guard")).unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn programs_of_a_process_that_was_killed_do_not_meet_their_repetition() {
    const WORK: &str =
        "setsid sh -c 'echo $$ >> started; exec sleep 60' >/dev/null 2>&1 &\necho $$ >> started; sleep 60";
    let again = SLOW.replace("[sh, -c, 'echo $$ >> started; sleep 30; echo 1']", "[sh, work.sh], idempotent: true");
    let site = Site::new("killed", &[("again.yaml", again), ("work.sh", WORK.to_owned())]);
    let alive = || {
        let started = std::fs::read_to_string(site.path("started")).unwrap();
        let status = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        // `Z`: it has ended, and nobody has waited for it yet.
        started.lines().map(status).filter(|status| !status.is_empty() && !status.contains("State:\tZ")).count()
    };
    site.run("run again.yaml --run a");
    let mut sending = site.start("send a GO");
    site.wait_for_lines("started", 2);
    sending.kill();
    until("end of the programs", || alive() == 0);
    // Without its guard, the next process does it, before it starts the command again.
    let mut resuming = site.start("run --resume a");
    site.wait_for_lines("started", 4);
    Command::new("kill").args(["-KILL", &guard(resuming.0.as_ref().unwrap().id())]).status().unwrap();
    resuming.kill();
    assert_eq!(alive(), 2);
    let mut resuming = site.start("run --resume a");
    site.wait_for_lines("started", 6);
    assert_eq!(alive(), 2);
    resuming.kill();
    until("end of the programs", || alive() == 0);
}

#[test]
fn a_command_does_not_wait_for_a_refused_timer() {
    const GATE: &str = "
charter: 1
id: gate
context: {ok: false}
events: {OPEN: {}}
interlocks: [{id: gate, assert: \"!('late' in actors.root.state) || actors.root.context.ok\"}]
states:
  w: {on: {OPEN: {actions: {assign: {ok: true}}}}, after: {100ms: late}}
  late: {type: final}
";
    let site = Site::new("refused-timer", &[("gate.yaml", GATE.to_owned())]);
    let (code, out, err) = site.any("run gate.yaml --run a");
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("a: active in w"), "{out}{err}");
    assert_eq!(site.records("a").len(), 2);
}

#[test]
fn no_sender_is_the_host() {
    let site = Site::new("no-host", &[("slow.yaml", SLOW.to_owned())]);
    site.run("run slow.yaml --run a");
    for option in ["--role system", "--as system"] {
        let (code, _, err) = site.any(&format!("send a GO {option}"));
        assert_eq!(code, 2);
        assert!(err.contains("`system` is the host itself"), "{err}");
    }
    assert_eq!(site.records("a").len(), 1);
}

#[test]
fn a_paused_run_says_how_to_resume_it() {
    let site = Site::new("paused", &[("slow.yaml", SLOW.to_owned())]);
    site.run("run slow.yaml --run a");
    let paused = site.run("send a charter.pause --role operator");
    assert!(paused.contains("send a charter.resume --as me --role operator"), "{paused}");
    let (code, out, _) = site.any("legal a");
    assert_eq!(code, 1);
    assert!(out.contains("the run is paused"), "{out}");
    site.run("send a charter.resume --as me --role operator");
    assert_eq!(site.any("legal a").0, 0);
}

#[test]
fn show_says_what_becomes_of_work_that_no_process_does() {
    let site = Site::new("interrupted-open", &[]);
    let slow = "charter: 1\nid: slow\nactors: {nap: {kind: exec, command: [sleep, '30']}}\ninitial: a\nstates: {a: {invoke: {src: nap, onDone: b}}, b: {type: final}}\n";
    site.0.file("slow.yaml", slow);
    let mut process = site.start("run slow.yaml --run s");
    site.holder();
    until("running", || site.any("show s").1.contains("\nrunning  nap since record 0\n"));
    process.kill();
    site.wait_for_no_holder();
    let shown = site.any("show s").1;
    assert!(shown.contains("\nopen     nap since record 0; not running: no process has this journal open; `charter run --resume s` reports it as `unknown`, because it is not idempotent"), "{shown}");
    site.any("send s charter.pause --as op --role operator");
    let shown = site.any("show s").1;
    assert!(
        shown.contains("; once the run is resumed, it is reported as `unknown`, because it is not idempotent"),
        "{shown}"
    );
    let slow = slow.replace("id: slow", "id: again").replace("kind: exec", "kind: exec, idempotent: true");
    site.0.file("again.yaml", &slow);
    let mut process = site.start("run again.yaml --run a");
    site.holder();
    until("running", || site.any("show a").1.contains("\nrunning  nap since record 0\n"));
    process.kill();
    site.wait_for_no_holder();
    let shown = site.any("show a").1;
    assert!(shown.contains("no process has this journal open; `charter run --resume a` runs it"), "{shown}");
    site.any("send a charter.pause --as op --role operator");
    let shown = site.any("show a").1;
    assert!(shown.contains("not running: it begins once the run is resumed"), "{shown}");
}
