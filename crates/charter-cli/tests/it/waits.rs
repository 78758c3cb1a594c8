//! What a command waits for, and what it says before and after: open calls that it takes over, the
//! deadlines of persons, and models that another process calls.

use std::time::{Duration, Instant};

use crate::support::processes::{Site, until};

/// An actor that takes a second, beside an event that is legal only meanwhile.
const CALL: &str = "
charter: 1
id: ex
roles: {c: {}}
events: {PING: {by: c}, OK: {by: c}}
context: {pings: 0}
actors:
  job: {kind: exec, command: [sh, -c, 'echo x >> starts; sleep 1; echo 1'], idempotent: true}
initial: a
states:
  a:
    invoke: {src: job, timeout: 4m, onDone: ok}
    on: {PING: {actions: {assign: {pings: '= context.pings + 1'}}}}
  ok: {on: {OK: end}}
  end: {type: final}
";

#[test]
fn a_send_that_takes_over_an_open_call_reports_after_its_end() {
    let site = Site::new("takes-over", &[("ex.yaml", CALL.to_owned())]);
    site.run("run ex.yaml --run x --detach");
    site.wait_for_lines("starts", 1);
    let pid = site.holder().to_string();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    site.wait_for_no_holder();
    let (code, out, err) = site.any("send x PING --as a --role c");
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("a → ok  job done"), "{out}{err}");
    assert!(out.contains("x: active in ok, 3 records") && out.contains("for OK"), "{out}{err}");
    assert!(!out.contains("for PING"), "{out}{err}");
}

/// A person has half a minute to answer; `beat` fires all the time.
const PERSON: &str = "
charter: 1
id: slow
actors:
  ask: {kind: human, title: Read it, output: {type: boolean}}
type: parallel
states:
  work:
    initial: waiting
    states:
      waiting: {invoke: {src: ask, timeout: TIME, onDone: done, onError: failed}}
      done: {}
      failed: {}
  heart:
    initial: beat
    states: {beat: {after: {3s: beat}}}
";

fn person(name: &str, time: &str) -> Site {
    Site::new(name, &[("slow.yaml", PERSON.replace("TIME", time))])
}

#[test]
fn without_a_terminal_the_deadline_of_a_person_is_not_waited_for() {
    let site = person("deadline", "30s");
    let begin = Instant::now();
    let (code, out, err) = site.any("run slow.yaml --run s");
    assert!(code == 0 && begin.elapsed() < Duration::from_secs(20), "{out}{err}");
    assert!(out.contains("for a person: Read it  charter answer s/0/0 "), "{out}{err}");
    assert!(out.contains("\n    until 2"), "{out}{err}");
    assert!(out.contains("for the timer heart.beat/after/3s, due"), "{out}{err}");
}

#[test]
fn an_answer_is_given_before_its_deadline() {
    let site = Site::new("agreeing", &[("slow.yaml", PERSON.replace("TIME", "30s").replace("3s", "1h"))]);
    let begin = Instant::now();
    let (_, out, err) = site.any("run slow.yaml --run s --no");
    assert!(err.contains("ask failed") && begin.elapsed() < Duration::from_secs(20), "{out}{err}");
}

#[test]
fn who_waits_beside_a_task_is_told_how_to_answer_it() {
    let site = person("told", "1s");
    let mut waiting = site.start("run slow.yaml --run s --wait");
    until("a timeout", || site.path("charter.db").exists() && site.any("show s").1.contains("failed"));
    waiting.0.as_mut().unwrap().kill().unwrap();
    let (_, _, err) = waiting.end();
    assert!(err.contains("to answer ask: charter answer s/0/0 "), "{err}");
}

/// An approval with half a minute.
const APPROVAL: &str = "
charter: 1
id: approval
roles: {boss: {}}
context: {plan: a}
events: {APPROVE: {by: boss}}
initial: review
states:
  review: {on: {APPROVE: {target: done, approves: context.plan}}, after: {30s: late}}
  done: {type: final}
  late: {type: final}
";

#[test]
fn an_approval_is_asked_for_before_its_deadline() {
    let site = Site::new("approval-deadline", &[("a.yaml", APPROVAL.to_owned())]);
    let begin = Instant::now();
    let out = site.run("run a.yaml --run a");
    assert!(out.contains("for APPROVE") && out.contains("for the timer review/after/30s, due"), "{out}");
    let out = site.run("run a.yaml --run b --yes");
    assert!(out.contains("b: done in done"), "{out}");
    assert!(begin.elapsed() < Duration::from_secs(25));
}

/// Pays with a deadline.
const PAY: &str = "
charter: 1
id: order
events: {PAY: {data: {type: object, required: [n], properties: {n: {type: integer}}}}}
actors:
  pay: {kind: exec, command: [sh, -c, 'echo 1'], idempotent: true}
initial: open
states:
  open: {on: {PAY: paying}}
  paying: {invoke: {src: pay, timeout: 50s, input: {n: '= event.n'}, onDone: open, onError: failed}}
  failed: {type: final}
";

#[test]
fn a_call_of_a_dry_fork_that_nobody_has_made_before_is_not_waited_for() {
    let site = Site::new("dry-deadline", &[("pay.yaml", PAY.to_owned())]);
    site.run("run pay.yaml --run x");
    site.run("fork x --at 0 --run f");
    site.run("send f PAY {\"n\":1}");
    let begin = Instant::now();
    let (_, out, err) = site.any("run --resume f");
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert!(out.contains("f: active in paying, 2 records"), "{out}{err}");
    assert!(out.contains("  dry: pay not started; answer with  charter answer f/1/0 '{}'"), "{out}{err}");
    assert!(out.contains("\n    until 2"), "{out}{err}");
}

/// One actor that asks a model, and has rules.
const MODEL: &str = "
charter: 1
id: m
actors:
  think: {kind: model, prompt: think, output: {type: string}, offline: 'x'}
initial: a
states:
  a: {invoke: {src: think, onDone: b, onError: b}}
  b: {type: final}
";

#[test]
fn options_about_models_are_not_ignored_silently_if_another_process_calls_them() {
    let files = [
        ("ex.yaml", CALL.to_owned()),
        ("m.yaml", MODEL.to_owned()),
        ("hold.yaml", CALL.replace("sleep 1", "sleep 60")),
    ];
    let site = Site::new("models-elsewhere", &files);
    site.0.file("think", "Think.");
    site.run("run ex.yaml --run x");
    let _holder = site.start("run hold.yaml --run h");
    let pid = site.holder();
    for file in ["--record-models", "--record-missing", "--replay-models"] {
        for command in ["run m.yaml --run m", "run --resume x", "send x OK --as a --role c"] {
            let (code, out, err) = site.any(&format!("{command} {file} c.jsonl"));
            assert_eq!(code, 2, "{command} {file}: {out}{err}");
            let why = format!("error: `{file}` has no effect: process {pid} has the journal open");
            assert!(err.starts_with(&why), "{command} {file}: {err}");
        }
    }
    assert!(!site.path("c.jsonl").exists());
    assert!(site.any("show m").0 == 2 && site.records("x").len() == 2);
    let warning = format!("warning: process {pid} has the journal open and calls the models of its runs: ");
    let (code, out, err) = site.any("run m.yaml --run m --model openai:gpt-5-mini");
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains(&warning) && err.contains("offline:") && !err.contains("pass `--model`"), "{err}");
    let (_, _, err) = site.any("run m.yaml --run m2");
    assert!(!err.contains(&warning) && !err.contains("pass `--model`"), "{err}");
    assert!(err.contains(&format!("process {pid} chooses the models")), "{err}");
    // No actor asks a model.
    let (_, _, err) = site.any("run ex.yaml --run x2 --model openai:gpt-5-mini");
    assert!(!err.contains(&warning), "{err}");
}

#[test]
fn show_names_the_attempt_that_a_call_waits_for() {
    let charter = CALL.replace("sleep 1; echo 1']", "exit 1'], retry: {attempts: 3, backoff: 30s, jitter: 0}");
    let site = Site::new("backoff", &[("ex.yaml", charter)]);
    let _running = site.start("run ex.yaml --run x");
    let mut shown = String::new();
    until("a pause between attempts", || {
        shown = site.any("show x").1;
        shown.contains("attempt 2")
    });
    assert!(shown.contains("waiting  job since record 0; attempt 2 begins 2"), "{shown}");
}

#[test]
fn diff_writes_digests_as_they_are_sent() {
    let site =
        Site::new("diff-digest", &[("a.yaml", APPROVAL.to_owned()), ("b.yaml", APPROVAL.replace("done, ", "late, "))]);
    for form in ["", "--markdown"] {
        let (_, out, err) = site.any(&format!("diff a.yaml b.yaml {form}"));
        assert!(out.contains("\"digest\":\"sha256:"), "{out}{err}");
    }
}
