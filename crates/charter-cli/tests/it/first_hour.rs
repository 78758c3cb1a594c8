//! What a user meets in the first hour: reports say what is true, in words that say what to do.

use std::fs;

use crate::support::processes::{Site, until};

fn site(name: &str, charter: &str) -> Site {
    Site::new(name, &[("c.yaml", charter.to_owned())])
}

#[test]
fn the_report_counts_records_that_change_nothing() {
    let site = site("hour-count", "{charter: 1, id: c, strict: false, events: {GO: {}}, states: {a: {on: {GO: a}}}}");
    site.run("run c.yaml --run ok");
    for number in 2..5 {
        let out = site.run("send ok YYY");
        assert!(out.contains(&format!("ok: active in a, {number} records")), "{out}");
        assert!(out.contains(&format!("charter explain ok {}", number - 1)), "{out}");
        assert!(out.contains("\nWaiting\n"), "{out}");
    }
}

const WORK: &str = "
charter: 1
id: c
events: {GO: {}, LOOK: {}}
context: {got: null}
actors: {work: {kind: exec, command: [sh, -c, 'echo x >> started; until [ -e ready ]; do sleep 0.1; done; echo 1']}}
initial: idle
states:
  idle: {on: {GO: busy}}
  busy:
    on: {LOOK: {actions: {log: seen}}}
    invoke: {src: work, onDone: {target: done, actions: {assign: {got: '= event.output'}}}}
  done: {type: final}
";

#[test]
fn send_waits_only_for_what_its_event_has_started() {
    let site = site("hour-wait", WORK);
    site.run("run c.yaml --run r");
    let sending = site.start("send r GO");
    site.wait_for_lines("started", 1);
    site.holder();
    // The actor is running: `send` would wait for it for ever.
    let out = site.run("send r LOOK");
    assert!(out.contains("r: active in busy, 3 records"), "{out}");
    fs::write(site.path("ready"), "").unwrap();
    let (code, out, err) = sending.end();
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("r: done in done"), "{out}{err}");
}

#[test]
fn an_answer_that_a_paused_run_holds_is_called_held() {
    let site = site("hour-held", WORK);
    site.run("run c.yaml --run r");
    let sending = site.start("send r GO");
    site.wait_for_lines("started", 1);
    site.holder();
    site.run("send r charter.pause --as op --role operator");
    fs::write(site.path("ready"), "").unwrap();
    until("an answer", || site.records("r").len() == 4);
    let shown = site.run("show r");
    assert!(shown.contains("answered work since record 1; the answer is held until the run is resumed"), "{shown}");
    let told = site.run("explain r 3");
    assert!(told.contains("the run is paused, so the answer is held until the run is resumed"), "{told}");
    let (_, out, err) = sending.end();
    assert!(out.contains(" records\n"), "{out}{err}");
    site.run("send r charter.resume --as op --role operator");
    let log = site.run("log r");
    assert!(log.contains("held until the run is resumed\n"), "{log}");
    assert!(log.contains("delivers what was held: done.invoke.work (record 3)\n"), "{log}");
    let told = site.run("explain r 4");
    assert!(told.contains("delivers what was held: done.invoke.work (record 3)"), "{told}");
    assert!(!site.run("explain r 1").contains("held"));
}

#[test]
fn a_failed_attempt_is_noted_and_not_repeated_while_the_run_is_paused() {
    let charter = WORK.replace("echo 1']", "exit 1'], retry: {attempts: 3, backoff: 1s, jitter: 0}");
    let site = site("hour-attempt", &charter);
    fs::write(site.path("ready"), "").unwrap();
    site.run("run c.yaml --run r");
    let sending = site.start("send r GO");
    until("a failed attempt", || site.records("r").len() == 3);
    site.run("send r charter.pause --as op --role operator");
    let (_, _, err) = sending.end();
    assert_eq!(site.lines("started"), 1, "{err}");
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(site.lines("started"), 1, "{err}");
    let log = site.run("log r");
    // What the lines call it can be asked for.
    assert!(site.run("log r --verdict noted").contains("charter.attempt"));
    assert!(log.contains("noted     charter.attempt") && log.contains("attempt 1 failed: "), "{log}");
    let shown = site.run("show r");
    assert!(shown.contains("; attempt 2 begins ") && shown.contains(" s after the run is resumed"), "{shown}");
    site.any("send r charter.resume --as op --role operator");
    assert_eq!(site.lines("started"), 3);
}

#[test]
fn yes_says_why_it_does_not_send_an_event() {
    let charter = "
charter: 1
id: c
roles: {clerk: {}}
events: {PAY: {by: clerk, data: {type: object, required: [n], properties: {n: {type: integer}}}}, APPROVE: {by: clerk}}
context: {payment: null, clerk: null}
initial: open
states:
  open: {on: {PAY: {target: review, actions: {assign: {payment: '= event.n', clerk: '= by.id'}}}}}
  review: {on: {APPROVE: {target: paid, approves: {value: context.payment, not_by: context.clerk}}}}
  paid: {type: final}
";
    let site = site("hour-yes", charter);
    site.run("run c.yaml --run r");
    site.run("send r PAY {\"n\":1} --as ana --role clerk");
    let (_, _, err) = site.any("run --resume r --yes --as ana");
    assert!(err.contains("`--yes` does not send APPROVE: not by ana") && !err.contains("needs data"), "{err}");
    let (code, out, err) = site.any("run --resume r --yes --as bea");
    assert!(code == 0 && out.contains("r: done in paid"), "{out}{err}");
}

#[test]
fn another_name_of_a_journal_in_use_is_called_that() {
    let site = site("hour-link", WORK);
    site.run("run c.yaml --run r");
    let mut sending = site.start("send r GO");
    site.wait_for_lines("started", 1);
    site.holder();
    fs::hard_link(site.path("charter.db"), site.path("other.db")).unwrap();
    let (code, _, err) = site.any("send r LOOK --db other.db");
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("`other.db` is another name of a journal file that is in use"), "{err}");
    assert!(err.contains("under the name by which it has opened the file: `charter.db`"), "{err}");
    sending.kill();
}

const REVIEW: &str = "
charter: 1
id: c
roles: {clerk: {}}
actors: {check: {kind: human, by: [clerk], output: {type: object}}}
states:
  a: {invoke: {src: check, onDone: b}}
  b: {invoke: {src: check, onDone: c}}
  c: {on: {GO: c}}
events: {GO: {by: clerk}}
";

#[test]
fn a_late_answer_by_the_run_names_the_record_that_ended_the_last_task() {
    let site = site("hour-late", REVIEW);
    site.run("run c.yaml --run r");
    for wrong in ["r/00/0", "r/0/00", "r/+0/0", "r/0"] {
        let (code, _, err) = site.any(&format!("answer {wrong} {{}} --as ana --role clerk"));
        assert!(code == 2 && err.contains(&format!("invalid task `{wrong}`")), "{err}");
    }
    site.run("answer r {} --as ana --role clerk");
    let (code, _, err) = site.any("answer r/0/0 {} --as bea --role clerk");
    assert!(code == 2 && err.contains("task `r/0/0` is no longer waited for: "), "{err}");
    site.run("answer r {} --as bea --role clerk");
    let (code, _, err) = site.any("answer r {} --as cai --role clerk");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("task `r/1/0` is no longer waited for: `done.invoke.check` by bea ended it in record 2"),
        "{err}"
    );
    assert!(err.contains("`charter explain r 2` shows the record"), "{err}");
    let (_, _, err) = site.any("answer r {x --as cai --role clerk");
    assert!(err.contains("`charter answer TASK '{") && !err.contains("charter send"), "{err}");
}

#[test]
fn a_role_that_the_charter_does_not_have_gets_a_suggestion() {
    let site = site("hour-role", REVIEW);
    site.run("run c.yaml --run r");
    let hint = "the charter has no role `clrk`; did you mean `clerk`?";
    let (code, _, err) = site.any("answer r {} --as ana --role clrk");
    assert!(code == 1 && err.contains(hint), "{err}");
    site.run("answer r {} --as ana --role clerk");
    site.run("answer r {} --as ana --role clerk");
    let (code, _, err) = site.any("send r GO --as ana --role clrk");
    assert!(code == 1 && err.contains(hint), "{err}");
    let (code, out, _) = site.any("legal r --as ana --role clrk");
    assert!(code == 1 && out.contains(hint), "{out}");
    let (_, _, err) = site.any("send r GO --as ana --role auditor");
    assert!(!err.contains("did you mean"), "{err}");
}

#[test]
fn legal_lists_the_tasks_of_persons_beside_the_events() {
    let charter = "
charter: 1
id: c
roles: {clerk: {}, boss: {}}
actors:
  check: {kind: human, title: Check it, by: [clerk], output: {type: object}}
  sign: {kind: human, title: Sign it, by: [boss], output: {type: object}}
events: {GO: {by: clerk}}
type: parallel
states:
  a: {initial: x, states: {x: {invoke: {src: check, onDone: y}}, y: {}}}
  b: {initial: x, states: {x: {invoke: {src: sign, onDone: y}}, y: {}}}
  c: {initial: x, states: {x: {on: {GO: x}}}}
";
    let site = site("hour-tasks", charter);
    site.run("run c.yaml --run r");
    let (check, sign) =
        ("task Check it by clerk: `charter answer r/0/0 ", "task Sign it by boss: `charter answer r/0/1 ");
    let out = site.run("legal r");
    assert!(out.contains("GO by clerk") && out.contains(check) && out.contains(sign), "{out}");
    let out = site.run("legal r --as ana --role clerk");
    assert!(out.contains("GO") && out.contains(check) && !out.contains("Sign it"), "{out}");
    let (code, out, _) = site.any("legal r --as bea --role boss");
    assert!(code == 1 && out.contains("waiting for persons, with 2 tasks") && out.contains(sign), "{out}");
    let (code, out, _) = site.any("legal r --as eve --role guest");
    assert!(code == 1 && out.contains("waiting for a person: Check it by clerk; `charter answer r/0/0 "), "{out}");
    let lines = site.run("legal r --json");
    let last: serde_json::Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["task"], &last["by"]), (&"r/0/1".into(), &serde_json::json!(["boss"])), "{lines}");
    // What is printed works.
    let command = last["answer"].as_str().unwrap().trim_start_matches("charter ");
    site.run(command);
}

#[test]
fn legal_as_json_says_why_nothing_is_legal() {
    let site = site("hour-legal", REVIEW);
    site.run("run c.yaml --run r");
    let none = |args: &str| {
        let (code, out, err) = site.any(args);
        assert_eq!(code, 1, "{out}{err}");
        serde_json::from_str::<serde_json::Value>(out.lines().last().unwrap()).unwrap()
    };
    let waiting = none("legal r --json");
    assert_eq!(waiting["legal"], false);
    assert!(waiting["reason"].as_str().unwrap().contains("waiting for a person"), "{waiting}");
    site.run("answer r {} --as ana --role clerk");
    site.run("answer r {} --as ana --role clerk");
    let others = none("legal r --as bea --role auditor --json");
    assert_eq!(
        (&others["not"][0]["type"], &others["not"][0]["reason"]),
        (&"GO".into(), &"needs the role clerk".into())
    );
    site.run("send r charter.pause --as op --role operator");
    assert_eq!(none("legal r --json")["status"], "paused");
    site.run("send r charter.cancel --as op --role operator");
    assert_eq!(none("legal r --json")["reason"], "no events accepted: the run is cancelled");
}

#[test]
fn a_vote_is_explained_with_the_number_of_votes() {
    let charter = "
charter: 1
id: c
roles: {director: {}}
events: {AGREE: {by: director}}
states: {a: {on: {AGREE: {target: b, quorum: {count: 2, of: director}}}}, b: {type: final}}
";
    let site = site("hour-vote", charter);
    site.run("run c.yaml --run r");
    site.run("send r AGREE --as ana --role director");
    let told = site.run("explain r 1");
    assert!(told.contains("vote: counted, but the quorum is not reached yet"), "{told}");
    assert!(told.contains("1 of 2 votes (ana)"), "{told}");
}

#[test]
fn votes_for_a_value_that_has_changed_are_not_counted_in_what_is_printed() {
    let charter = "
charter: 1
id: c
roles: {lead: {}, author: {}}
context: {text: one}
events:
  SIGN: {by: lead, data: {type: object, required: [digest], properties: {digest: {type: string}}}}
  EDIT: {by: author, data: {type: object, required: [text], properties: {text: {type: string}}}}
initial: open
states:
  open:
    on:
      EDIT: {actions: {assign: {text: = event.text}}}
      SIGN: {target: signed, approves: context.text, quorum: {count: 2, of: lead}}
  signed: {type: final}
";
    let site = site("hour-stale-vote", charter);
    let digest = |out: &str| {
        let at = out.find("{\"digest\":\"sha256:").unwrap_or_else(|| panic!("{out}"));
        out[at..].split('}').next().unwrap().to_owned() + "}"
    };
    let vote = |digest: &str, by: &str| {
        let args = ["send", "r", "SIGN", digest, "--as", by, "--role", "lead"];
        site.command("").args(args).output().unwrap().status.code()
    };
    let first = digest(&site.run("run c.yaml --run r"));
    assert_eq!(vote(&first, "l1"), Some(0));
    assert!(site.run("legal r").contains("1 of 2 votes (l1)"));
    let edited = site.run("send r EDIT {\"text\":\"two\"} --as au --role author");
    let second = digest(&edited);
    assert!(first != second && !edited.contains("l1"), "{edited}");
    assert!(!site.run("legal r").contains("l1") && !site.run("show r").contains("(l1)"));
    assert_eq!(vote(&second, "l2"), Some(0));
    let legal = site.run("legal r");
    assert!(legal.contains("1 of 2 votes (l2)") && !legal.contains("l1"), "{legal}");
    assert_eq!(vote(&second, "l1"), Some(0));
    assert!(site.run("show r").contains("done"));
}

#[test]
fn what_is_too_large_for_the_run_is_called_that_before_another_process_is_asked() {
    let charter = REVIEW
        .replace("{check: ", "{hold: {kind: exec, command: [sh, -c, 'echo x >> started; sleep 20']}, check: ")
        .replace("a: {invoke: {src: check, onDone: b}}", "a: {invoke: [{src: check, onDone: b}, {src: hold}]}");
    let site = site("hour-large", &charter);
    let mut holding = site.start("run c.yaml --run r");
    site.wait_for_lines("started", 1);
    site.holder();
    fs::write(site.path("large.json"), format!("{{\"x\":\"{}\"}}", "x".repeat(9 << 20))).unwrap();
    let (code, out, err) = site.any("answer r @large.json --as ana --role clerk");
    assert!(code == 1 && err.contains("refused (too-large): the answer is larger than "), "{out}{err}");
    let (code, out, err) = site.any("send r GO @large.json --as ana --role clerk");
    assert!(code == 2 && err.contains("the data of `GO` is too large: the limit `data_bytes`"), "{out}{err}");
    holding.kill();
}
