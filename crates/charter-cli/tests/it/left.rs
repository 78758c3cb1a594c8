//! Work that a command leaves to a process that another command runs in the foreground.

use std::process::Command;

use crate::support::processes::{Process, Site, until};

/// The actor works until there is the file `stop`; then a timer ends the run.
const SLOW: &str = "
charter: 1
id: slow
events: {GO: {}}
actors:
  work: {kind: exec, command: [sh, -c, 'echo x >> starts; while [ ! -e stop ]; do sleep 0.02; done; echo 42']}
initial: idle
states:
  idle: {on: {GO: busy}}
  busy: {invoke: {src: work, onDone: later, onError: failed}}
  later: {after: {600ms: done}}
  done: {type: final}
  failed: {type: final}
";

/// Two runs, `a` and `b`, and a command that waits for an actor of `a`.
fn site(name: &str) -> (Site, Process) {
    let site = Site::new(name, &[("slow.yaml", SLOW.to_owned())]);
    site.run("run slow.yaml --run a");
    site.run("run slow.yaml --run b");
    let holder = site.start("send a GO");
    site.wait_for_lines("starts", 1);
    (site, holder)
}

fn signal(process: &Process, name: &str) {
    let pid = process.0.as_ref().unwrap().id().to_string();
    Command::new("kill").args([name, &pid]).status().unwrap();
}

fn last(site: &Site, run: &str) -> String {
    site.records(run).last().unwrap()["event"]["type"].as_str().unwrap().to_owned()
}

#[test]
fn a_signal_to_a_command_does_not_end_what_others_have_left_to_it() {
    for name in ["-INT", "-TERM"] {
        let (site, mut holder) = site("left");
        let pid = site.holder();
        site.run("send b GO --detach");
        site.wait_for_lines("starts", 2);
        signal(&holder, name);
        std::thread::sleep(std::time::Duration::from_millis(400));
        assert!(holder.is_running() && last(&site, "b") == "GO");
        std::fs::write(site.path("stop"), "").unwrap();
        let (code, _, err) = holder.end();
        assert_eq!(code, if name == "-INT" { 130 } else { 143 });
        assert!(err.contains("interrupted: stopping running actors\nto continue: "), "{err}");
        assert!(err.contains("run --resume a\nwaiting for 1 running actor of `b`, which another"), "{err}");
        // Another process waits for the timer, and does not resume what was interrupted.
        assert_ne!(site.holder(), pid);
        until("end of the run", || last(&site, "b") == "after.600ms.later");
        assert_eq!((last(&site, "a"), site.lines("starts")), ("GO".to_owned(), 2));
        site.wait_for_no_holder();
        assert!(site.run("run --resume a").contains("a: done in failed"));
    }
}

#[test]
fn a_second_signal_ends_it() {
    let (site, holder) = site("left-twice");
    site.run("send b GO --detach");
    site.wait_for_lines("starts", 2);
    signal(&holder, "-INT");
    std::thread::sleep(std::time::Duration::from_millis(200));
    signal(&holder, "-INT");
    let (code, _, err) = holder.end();
    assert_eq!(code, 130);
    assert!(err.contains("Ctrl-C again stops it\nstopping running actors\nto continue: "), "{err}");
    assert!(err.ends_with("run --resume b\n"), "{err}");
    site.wait_for_no_holder();
    assert!(site.run("run --resume b").contains("b: done in failed"));
}

#[test]
fn a_command_does_not_wait_for_timers_that_were_left_to_it() {
    let (site, holder) = site("left-timers");
    let pid = site.holder();
    site.0.file("hour.yaml", "{charter: 1, id: hour, states: {a: {after: {1h: b}}, b: {type: final}}}");
    site.run("run hour.yaml --run h --detach --wait");
    std::fs::write(site.path("stop"), "").unwrap();
    let (code, out, err) = holder.end();
    assert_eq!(code, 0, "{out}{err}");
    assert_ne!(site.holder(), pid);
    site.run("send h charter.cancel --role operator");
    site.wait_for_no_holder();
}

/// Starts at once, and its actor may be repeated.
const AGAIN: &str = "
charter: 1
id: again
actors:
  work: {kind: exec, idempotent: true, command: [sh, -c, 'echo x >> starts; while [ ! -e stop ]; do sleep 0.02; done; echo 42']}
states:
  busy: {invoke: {src: work, onDone: later}}
  later: {after: {100ms: done}}
  done: {type: final}
";

#[test]
fn a_command_follows_a_run_that_others_have_paused_and_resumed() {
    for (waiting, reported) in [("send a GO", "a: active in later"), ("run again.yaml --run c", "c: done in done")] {
        let site = Site::new("left-paused", &[("slow.yaml", SLOW.to_owned()), ("again.yaml", AGAIN.to_owned())]);
        site.run("run slow.yaml --run a");
        let run = if waiting.starts_with("send") { "a" } else { "c" };
        let holder = site.start(waiting);
        site.wait_for_lines("starts", 1);
        site.run(&format!("send {run} charter.pause --role operator"));
        std::thread::sleep(std::time::Duration::from_millis(500));
        let resuming = site.start(&format!("send {run} charter.resume --role operator"));
        until("resumed", || last(&site, run) == "charter.resume");
        std::fs::write(site.path("stop"), "").unwrap();
        let (_, out, err) = holder.end();
        assert!(out.contains(reported) && !out.contains("paused"), "{out}{err}");
        assert!(err.contains("paused; its actors go on here"), "{err}");
        resuming.end();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_to_a_command_that_hosts_nothing_says_that_the_run_goes_on() {
    let (site, mut holder) = site("left-elsewhere");
    let pid = site.holder();
    let following = site.start("run --resume a");
    let status = format!("/proc/{}/status", following.0.as_ref().unwrap().id());
    until("handler of the signal", || {
        let status = std::fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 2 != 0
    });
    signal(&following, "-INT");
    let (code, _, err) = following.end();
    assert_eq!(code, 130, "{err}");
    assert!(err.contains(&format!("run `a` goes on in process {pid}\n")), "{err}");
    assert!(err.contains("send a charter.cancel --role operator\n"), "{err}");
    assert!(holder.is_running());
}

#[test]
fn a_timer_that_is_long_overdue_is_fired_by_who_resumes_the_run() {
    let late = "charter: 1\nid: late\nevents: {GO: {}}\nstates:\n  idle: {on: {GO: later}}\n  \
        later: {after: {1s: done}}\n  done: {type: final}\n";
    let site = Site::new("overdue", &[("late.yaml", late.to_owned())]);
    site.run("run late.yaml --run r");
    site.run("send r GO");
    std::thread::sleep(std::time::Duration::from_millis(3_600));
    assert!(site.run("show r").contains("overdue"));
    let out = site.run("run --resume r");
    assert!(out.contains("done") && !out.contains("active in later"), "{out}");
    assert_eq!(site.records("r").last().unwrap()["event"]["type"], "after.1s.later");
}
