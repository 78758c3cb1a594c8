//! Tests of several processes that use one journal file: the holder serves the others.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::support::Scratch;
use crate::support::processes::{Process, Site, on_terminal, said, until};

/// A run whose actor works for `SECONDS` and counts its starts in the file `starts`.
const SLOW: &str = "
charter: 1
id: slow
roles: {boss: {}}
events: {GO: {by: boss}, NOTE: {by: boss}}
context: {notes: 0, answer: null, error: null}
actors:
  work: {kind: exec, command: [sh, -c, 'echo x >> starts; sleep SECONDS; echo 42']}
initial: idle
states:
  idle: {on: {GO: busy, NOTE: {actions: {assign: {notes: '= context.notes + 1'}}}}}
  busy:
    invoke:
      src: work
      timeout: 60s
      onDone: {target: done, actions: {assign: {answer: '= event.output'}}}
      onError: {target: failed, actions: {assign: {error: '= event.error'}}}
    on: {NOTE: {actions: {assign: {notes: '= context.notes + 1'}}}}
  done: {type: final}
  failed: {type: final}
";

/// A run that waits for a person.
const WAITING: &str = "
charter: 1
id: waiting
roles: {boss: {}}
events: {OK: {by: boss}}
actors:
  review: {kind: human, title: Read it, by: [boss]}
initial: open
states:
  open: {on: {OK: reviewed}}
  reviewed: {invoke: {src: review, timeout: 1h, onDone: done, onError: done}}
  done: {type: final}
";

/// A run that a timer ends after 300 ms, by an actor that takes a while.
const TIMED: &str = "
charter: 1
id: timed
roles: {boss: {}}
events: {NEVER: {by: boss}}
context: {error: null}
actors:
  work: {kind: exec, command: [sh, -c, 'echo x >> timed; sleep 0.4; echo 1']}
initial: open
states:
  open: {after: {300ms: busy}}
  busy:
    invoke: {src: work, timeout: 60s, onDone: done, onError: {target: failed, actions: {assign: {error: '= event.error'}}}}
  done: {type: final}
  failed: {type: final}
";

/// A folder with the charters; the actor of `slow.yaml` works for this time.
fn site(name: &str, seconds: &str) -> Site {
    let slow = SLOW.replace("SECONDS", seconds);
    Site::new(name, &[("slow.yaml", slow), ("waiting.yaml", WAITING.into()), ("timed.yaml", TIMED.into())])
}

fn word<'a>(record: &'a Json, key: &str) -> &'a str {
    record[key].as_str().unwrap()
}

#[test]
fn events_reach_a_run_while_another_process_carries_it_out() {
    let site = site("busy", "1.5");
    site.run("run slow.yaml --run a");
    let send = site.start("send a GO --role boss");
    site.wait_for_lines("starts", 1);
    let begin = Instant::now();
    let legal = site.run("legal a --role boss");
    assert!(legal.starts_with("NOTE"), "{legal}");
    let paused = site.run("send a charter.pause --role operator");
    assert!(paused.starts_with("2  accepted"), "{paused}");
    let (code, _, err) = site.any("send a NOTE --role boss");
    assert_eq!((code, err.contains("refused (paused)")), (1, true), "{err}");
    let resumed: Json =
        serde_json::from_str(&site.run("send a charter.cancel --role operator --json --id once")).unwrap();
    assert_eq!(resumed["verdict"], "accepted");
    assert!(begin.elapsed() < Duration::from_millis(1_400), "{:?}", begin.elapsed());
    let (code, out, err) = send.end();
    assert_eq!(code, 0, "{out}{err}");
    // The command has followed the run beyond the pause.
    assert!(out.contains("a: cancelled"), "{out}");
    assert!(site.run("show a").contains("cancelled"));
    let types: Vec<String> = site.records("a").iter().map(|r| word(&r["event"], "type").to_owned()).collect();
    assert_eq!(types, ["charter.start", "GO", "charter.pause", "NOTE", "charter.cancel"]);
    assert!(!site.path("charter.db-socket").exists() && !site.path("charter.db-lock").exists());
    // The same event, now without a holder.
    let (_, _, err) = site.any("send a charter.cancel --role operator --id once");
    assert!(err.contains("this event was sent before, as record 4"), "{err}");
    site.run("verify");
}

#[test]
fn a_prompt_does_not_keep_others_out() {
    let site = site("prompt", "1");
    let mut prompt = on_terminal(&site, "run waiting.yaml --run w");
    let pid = site.holder();
    // A second run in the same journal, with a charter that the holder does not know.
    let out = site.run("run slow.yaml --run s");
    assert!(out.starts_with("s: active in idle"), "{out}");
    assert!(site.run("send s NOTE --role boss").contains("accepted"));
    // Another process moves the run of the prompt on, but not to its end.
    site.run("send w OK --role boss");
    assert_eq!(site.holder(), pid);
    let forked = site.run("fork s --at 0");
    assert_eq!(forked, "s.fork1\n");
    site.run("export s --output s.jsonl");
    let (code, _, err) = site.any("import s.jsonl");
    assert_eq!((code, err.contains("run `s` already exists")), (2, true), "{err}");
    let renamed = fs::read_to_string(site.path("s.jsonl")).unwrap().replace("\"s\"", "\"t\"");
    fs::write(site.path("t.jsonl"), renamed).unwrap();
    let (code, _, err) = site.any("import t.jsonl");
    assert_eq!((code, err.contains("not verified")), (1, true), "{err}");
    site.run("rebuild");
    site.run("verify");
    assert!(prompt.is_running());
    // Its task is answered by another process, so the prompt has nothing more to ask.
    let typed = prompt.0.as_mut().unwrap().stdin.take();
    let out = site.run("run --resume w --yes --role boss");
    assert!(out.starts_with("w: done"), "{out}");
    let (_, out, _) = prompt.end();
    drop(typed);
    assert!(out.contains("w: done"), "{out}");
    let by = &site.records("w")[1]["by"];
    assert_eq!((word(by, "id"), by["auth"].as_str().unwrap_or("local")), ("me", "local"));
}

#[test]
fn an_import_and_its_run_are_carried_out_by_the_holder() {
    let (site, other) = (site("import", "0.1"), site("import-from", "0.1"));
    other.run("run slow.yaml --run x");
    let exported = other.run("export x");
    let _prompt = on_terminal(&site, "run waiting.yaml --run w");
    site.holder();
    let mut import = site.command("import -").stdin(Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(exported.as_bytes()).unwrap();
    let (code, out, err) = said(import.wait_with_output().unwrap());
    assert_eq!((code, out.as_str()), (0, "x\n"), "{err}");
    assert!(!fs::read_dir(&site.0.0).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().contains("import.")));
    // A run that came from elsewhere has no folder, and nobody has allowed its actors to work.
    site.run("trust x --charter slow.yaml --yes");
    let out = site.run("send x GO --role boss");
    assert!(out.contains("x: done"), "{out}");
    assert_eq!(site.lines("starts"), 1);
}

#[test]
fn detached_work_is_done_once_by_a_process_that_stays() {
    let site = site("detach", "1");
    site.run("run slow.yaml --run a");
    let begin = Instant::now();
    let out = site.run("send a GO --role boss --detach");
    assert!(out.contains("accepted"), "{out}");
    assert!(begin.elapsed() < Duration::from_millis(950), "{:?}", begin.elapsed());
    site.holder();
    // Another process can follow the run meanwhile.
    let out = site.run("run --resume a");
    assert!(out.starts_with("a: done"), "{out}");
    site.wait_for_no_holder();
    let records = site.records("a");
    let last = records.last().unwrap();
    assert_eq!((word(&last["event"], "type"), &last["event"]["data"]["output"]), ("done.invoke.work", &42.into()));
    assert_eq!((records.len(), site.lines("starts")), (3, 1));
}

#[test]
fn a_detached_run_waits_for_timers_if_asked_to() {
    let site = site("detach-run", "1");
    let out = site.run("run timed.yaml --run t --detach --wait");
    assert_eq!(out, "t\n");
    site.wait_for_no_holder();
    assert!(site.run("show t").contains("done"));
    assert_eq!(site.lines("timed"), 1);
}

#[test]
fn a_refused_event_starts_no_actor_of_another_run() {
    let site = site("refused", "1");
    site.run("run slow.yaml --run s");
    // A due timer, whose actor would be killed at the end of a short command.
    let mut run = site.start("run timed.yaml --run t");
    site.holder();
    until("a run", || site.any("show t").0 == 0);
    run.kill();
    drop(run);
    std::thread::sleep(Duration::from_millis(350));
    let (code, _, _) = site.any("send s GO");
    assert_eq!(code, 1);
    assert_eq!((site.records("t").len(), site.lines("timed")), (1, 0));
    // A process that stays carries it out, although it follows another run.
    let out = site.run("send s GO --role boss");
    assert!(out.contains("s: done"), "{out}");
    assert!(site.run("show t").contains("done"));
    assert_eq!(site.lines("timed"), 1);
}

#[test]
fn timers_that_nobody_fires_are_overdue() {
    let site = site("overdue", "1");
    let mut run = site.start("run timed.yaml --run t");
    site.holder();
    until("a run", || site.any("show t").0 == 0);
    run.kill();
    drop(run);
    std::thread::sleep(Duration::from_millis(350));
    for command in ["runs", "show t"] {
        let out = site.run(command);
        assert!(out.contains("overdue since"), "{out}");
        let json: Json = serde_json::from_str(&site.run(&format!("{command} --json"))).unwrap();
        assert!(json["overdue"].as_str().unwrap().starts_with("20"), "{json}");
    }
    let _prompt = on_terminal(&site, "run waiting.yaml --run w");
    until("a timer", || site.run("show t").contains("done"));
    assert!(!site.run("runs").contains("overdue"));
}

#[test]
fn a_killed_holder_loses_no_event_and_repeats_none() {
    let site = site("killed", "30");
    site.run("run slow.yaml --run a");
    let events = 12;
    let senders: Vec<_> = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            for _ in 0..4 {
                let mut holder = on_holder(&site);
                std::thread::sleep(Duration::from_millis(120));
                holder.kill();
                drop(holder);
            }
        });
        let sends: Vec<_> = (0..3)
            .map(|sender| {
                let site = &site;
                scope.spawn(move || {
                    (0..events / 3)
                        .map(|n| site.any(&format!("send a NOTE --role boss --id {sender}-{n}")))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        killer.join().unwrap();
        sends.into_iter().flat_map(|s| s.join().unwrap()).collect()
    });
    for (code, out, err) in &senders {
        assert_eq!(*code, 0, "{out}{err}");
    }
    let records = site.records("a");
    let mut ids: Vec<&str> = records.iter().skip(1).map(|r| word(r, "id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((records.len(), ids.len()), (events + 1, events));
    site.run("verify");
}

/// A process that holds the journal without an actor, started as `--detach` does.
fn on_holder(site: &Site) -> Process {
    site.start("host")
}

#[test]
fn a_client_continues_where_a_killed_holder_was() {
    let site = site("continue", "0.1");
    site.run("run slow.yaml --run a");
    let mut holder = site.start("host");
    site.holder();
    let mut follower = on_terminal(&site, "run --resume a --role boss");
    std::thread::sleep(Duration::from_millis(400));
    holder.kill();
    drop(holder);
    follower.0.as_mut().unwrap().stdin.as_mut().unwrap().write_all(b"GO\n").unwrap();
    let (code, out, err) = follower.end();
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("a: done in done, 3 records"), "{out}");
    assert_eq!(site.lines("starts"), 1);
}

#[test]
fn a_holder_that_does_not_answer_is_named() {
    let site = site("silent", "0.1");
    site.run("run slow.yaml --run a");
    let holder = site.start("host");
    let pid = site.holder();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
    signal("-STOP");
    let (code, _, err) = site.any("send a NOTE --role boss");
    signal("-CONT");
    assert_eq!(code, 2);
    assert!(err.contains(&format!("process {pid} holds the journal, but does not answer")), "{err}");
    drop(holder);
}

#[test]
fn options_about_models_have_no_effect_if_another_process_calls_them() {
    let site = site("models", "0.1");
    site.run("run slow.yaml --run a");
    let _holder = site.start("host");
    let pid = site.holder();
    let (_, _, err) = site.any("send a NOTE --role boss --model offline");
    let warning = format!(
        "warning: process {pid} has the journal open and calls the models of its runs: the options about models have no effect"
    );
    assert!(err.contains(&warning), "{err}");
}

#[test]
fn a_name_that_means_something_to_sqlite_is_a_file_like_any_other() {
    let scratch = Scratch::new("sqlite-names");
    let chart = scratch.file("c.yaml", "{charter: 1, id: c, events: {E: {}}, states: {a: {on: {E: b}}, b: {}}}\n");
    // Another name of `charter.db` to SQLite, and a database in memory.
    for name in ["charter.db", "file:charter.db", ":memory:", "file:x?mode=memory"] {
        let started = Command::new(env!("CARGO_BIN_EXE_charter"))
            .args(["run", &chart, "--run", "r", "--db", name])
            .current_dir(&scratch.0)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&started.stdout);
        assert!(said.starts_with("r: active in a, 1 record\n"), "{name}: {said}{started:?}");
        assert!(scratch.0.join(name).metadata().unwrap().len() > 0, "{name}");
    }
}
