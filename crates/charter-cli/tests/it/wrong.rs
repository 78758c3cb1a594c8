//! Invalid input: the message says what is wrong and what to do, and no file is left behind.

use crate::support::{Scratch, charter};

/// Returns a charter whose only actor is `actor`.
fn with_actor(actor: &str) -> String {
    format!(
        "charter: 1\nid: x\nactors:\n  worker: {actor}\ninitial: a\nstates:\n  a:\n    invoke: {{src: worker, onDone: b, onError: b}}\n  b: {{type: final}}\n"
    )
}

/// Lists the files in a folder.
fn files(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(&scratch.0).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_refused_command_creates_no_journal() {
    let scratch = Scratch::new("wrong-run");
    let gold = scratch.file("gold.yaml", with_actor("{kind: automaton, part: actions, signer: gold}"));
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let before = files(&scratch);
    let db = scratch.0.join("charter.db").display().to_string();
    let said = scratch.0.join("said.jsonl").display().to_string();
    let there = scratch.file("there.jsonl", "");
    let models = ["--model", "openai:some", "--model-url", "http://127.0.0.1:9/v1"];
    for (args, expected) in [
        (vec![gold.as_str()], "signer"),
        ([&[gold.as_str(), "--record-models", &said], &models[..]].concat(), "signer"),
        ([&[fine.as_str(), "--record-models", &there], &models[..]].concat(), "there.jsonl"),
        (vec![&fine, "--model", "nobody:x"], "nobody"),
        (vec![&fine, "--run", "a/b"], "`a/b`"),
    ] {
        let ran = charter(&[&["run", "--db", &db], args.as_slice()].concat());
        assert!(ran.err.contains(expected), "{args:?}: {}{}", ran.out, ran.err);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        std::fs::remove_file(&there).unwrap();
        assert_eq!(files(&scratch), before, "{args:?}");
        std::fs::write(&there, "").unwrap();
    }
}

#[test]
fn an_invalid_assign_location_is_underlined_in_its_key() {
    let scratch = Scratch::new("wrong-assign");
    let check = |path: &str| {
        let text = format!(
            "charter: 1\nid: x\ncontext: {{l: [1, 2], m: {{}}}}\nstates:\n  a:\n    entry:\n      - assign: {{{path}: 12345678}}\n"
        );
        let ran = charter(&["check", &scratch.file("x.yaml", text)]);
        assert_eq!(ran.code, 1, "{}", ran.out);
        let lines: Vec<&str> = ran.out.lines().skip(3).take(2).collect();
        // Find the underlined text.
        let (text, marks) = (lines[0], lines[1]);
        let from = marks.find('^').unwrap();
        let to = marks.rfind('^').unwrap() + 1;
        text[from..to].to_owned()
    };
    assert_eq!(check("\"l[nope]\""), "nope");
    assert_eq!(check("'l[0][nope]'"), "nope");
    assert_eq!(check("\"m.x[ 1 + ]\""), "]");
    assert_eq!(check("\"m x\""), "\"m x\"");
}

#[test]
fn a_journal_without_its_option_gets_a_tip() {
    let scratch = Scratch::new("wrong-db");
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let db = scratch.0.join("x.db").display().to_string();
    let ran = charter(&["run", &fine, "--db", &db, "--run", "one"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let tip = |args: &[&str], right: &str| {
        let ran = charter(args);
        assert!(ran.err.contains(right), "{args:?}: {}", ran.err);
        assert_eq!(ran.code, 2);
    };
    tip(&["runs", "some.db"], "tip: pass a journal file with `--db`: `charter runs --db some.db`");
    tip(&["--json", "show", "one", "some.db"], "`charter --json show one --db some.db`");
    tip(&["runs", "a b.db"], "pass a journal file with `--db a b.db`");
    for command in ["show", "log", "legal", "replay", "export"] {
        tip(
            &[command, &db, "--db", &db],
            &format!("pass a journal file with `--db`: `charter runs --db {db}` lists its runs"),
        );
    }
    // There is no tip for commands that take no journal file, or if `--db` is given.
    for args in [&["check", "a", "some.db"][..], &["runs", "some.db", "--db", &db], &["runs", "what"]] {
        let ran = charter(args);
        assert!(!ran.err.contains("tip"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn check_reports_actors_that_run_would_refuse() {
    let scratch = Scratch::new("wrong-actor");
    let check = |actor: &str| {
        let file = scratch.file("x.yaml", with_actor(actor));
        let ran = charter(&["check", &file, "--json"]);
        let all: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let mut found = String::new();
        let severities: Vec<_> = all["findings"].as_array().unwrap().iter().map(|f| f["severity"].clone()).collect();
        assert_eq!(ran.code, u8::from(severities.contains(&"error".into())), "{}{}", ran.out, ran.err);
        for f in all["findings"].as_array().unwrap() {
            let code = f["code"].as_str().unwrap();
            if code.starts_with("actor-") {
                found.push_str(&format!(
                    "{} {code} {}:{} {} {} ({})",
                    f["severity"].as_str().unwrap(),
                    f["line"],
                    f["column"],
                    f["path"].as_str().unwrap(),
                    f["message"].as_str().unwrap(),
                    f["help"].as_str().unwrap(),
                ));
            }
        }
        found
    };
    assert_eq!(
        check("{kind: automaton, part: actions, signer: gold}"),
        "error actor-config 4:52 actors.worker.signer actor `worker`: invalid `signer` `\"gold\"`: expected one of mock, stub (correct the configuration: `charter run` refuses this charter)"
    );
    let nothing = check("{kind: automaton, part: null}");
    assert!(nothing.contains("actors.worker.part"), "{nothing}");
    assert_eq!(
        check("{kind: scriptd}"),
        "warning actor-kind 4:18 actors.worker.kind actor `worker`: `charter run` has no executor for the kind `scriptd` (did you mean `scripted`?)"
    );
    let own = check("{kind: ourbank}");
    assert!(own.starts_with("info actor-kind"), "{own}");
    // Problems that depend on the machine are not reported.
    let prompt = "{kind: model, prompt: hello.md}";
    assert!(check(prompt).contains("no file `hello.md` beside the charter"), "{}", check(prompt));
    scratch.file("hello.md", "Hello");
    assert_eq!(check(prompt), "");
    assert_eq!(check("{kind: human}"), "");
    for (refused, why) in [
        ("{kind: human, title: '= context.x'}", "is not evaluated"),
        ("{kind: model, prompt: hello.md, rounds: 0, tools: [NOPE]}", "rounds"),
        ("{kind: model, prompt: hello.md, tools: [NOPE]}", "does not declare the event `NOPE`"),
        ("{kind: model, prompt: hello.md, budget: {tokns: 3}}", "did you mean `budget.tokens`?"),
        ("{kind: model, prompt: hello.md, attachments: [{file: no.pdf}]}", "no file `no.pdf`"),
    ] {
        let found = check(refused);
        assert!(found.starts_with("error actor-config") && found.contains(why), "{refused}: {found}");
    }
    // What is missing on this machine only is a warning.
    let absent = check("{kind: exec, command: [./no-such.sh]}");
    assert!(absent.is_empty() || absent.starts_with("warning actor-config"), "{absent}");
    if cfg!(not(feature = "tools")) {
        let tool = check("{kind: tool, server: [x], tool: y}");
        assert!(tool.starts_with("warning actor-kind") && tool.contains("build it with `--features tools`"), "{tool}");
    }
}

/// Returns the message of a command that cannot run.
fn failure(args: &[&str]) -> String {
    let ran = charter(args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
    ran.err
}

#[test]
fn messages_about_numbers_names_and_options() {
    for (args, expected) in [
        (&["fork", "one", "--at", "-1"][..], "invalid value '-1' for '--at <SEQ>': expected a whole number, 0 or more"),
        (&["explain", "one", "x"], "expected a whole number"),
        (&["check", "x", "--max-states", "99999999999999999999999"], "the number is too large"),
        (&["send", "one", "GO", "--as", ""], "invalid value '' for '--as <ID>': a value is required"),
        (&["run", "feijoa", "--role", ""], "invalid value '' for '--role <ROLE>': a value is required"),
        (
            &["run", "omen", "--replay-models", "no-such-file"],
            "cannot read `no-such-file`: no such file or directory\n",
        ),
    ] {
        let err = failure(args);
        assert!(err.contains(expected), "{args:?}: {err}");
    }
    assert!(!failure(&["replay", "one", "--at", "3"]).contains("tip"));
    assert!(failure(&["export", "one", "--out", "x"]).contains("'--output'"));
}

#[test]
fn an_empty_file_is_not_a_journal() {
    let scratch = Scratch::new("wrong-empty");
    let empty = scratch.file("empty.db", "");
    let before = files(&scratch);
    for args in [
        &["rebuild", &empty][..],
        &["send", "one", "GO", "--db", &empty],
        &["runs", "--db", &empty],
        &["run", "--resume", "one", "--db", &empty],
    ] {
        let err = failure(args);
        assert!(err.contains("empty.db` is not a journal file: it is empty"), "{args:?}: {err}");
        assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
        assert_eq!(files(&scratch), before);
    }
}

#[test]
fn messages_about_records_that_do_not_exist() {
    let scratch = Scratch::new("wrong-expect");
    let door = "charter: 1\nid: door\nevents: {OPEN: {data: {type: object}}}\nstates: {closed: {on: {OPEN: closed}}}\n";
    let door = scratch.file("door.yaml", door);
    let db = scratch.0.join("x.db").display().to_string();
    charter(&["run", &door, "--db", &db, "--run", "one"]);
    let ran = charter(&["send", "one", "OPEN", "--expect", "9", "--db", &db]);
    let expected = "the sender expects record 9 to be the last one, but the last one is 0";
    assert!(ran.out.contains(expected) || ran.err.contains(expected), "{}{}", ran.out, ran.err);
    assert_eq!(ran.code, 1);
    for nothing in [" ", "-- nothing", ";"] {
        let err = failure(&["sql", &db, nothing]);
        assert!(err.contains("empty SQL statement"), "{err}");
    }
    let line = scratch.file("null.jsonl", "null\n");
    let err = failure(&["import", &line, "--db", &db]);
    assert!(err.contains("expected an object with `journal`"), "{err}");
}

#[test]
fn a_failed_import_creates_no_journal_and_fork_ids_are_checked() {
    let scratch = Scratch::new("wrong-import");
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let at = |name: &str| scratch.0.join(name).display().to_string();
    let (db, new, run) = (at("x.db"), at("new.db"), at("one.run"));
    charter(&["run", &fine, "--db", &db, "--run", "one"]);
    charter(&["export", "one", "--db", &db, "-o", &run]);
    let text = std::fs::read_to_string(&run).unwrap();
    let other = scratch.file("other.run", text.replace("\"one\"", "\"two\""));
    let before = files(&scratch);
    for (file, code) in [(&other, 1), (&fine, 2)] {
        let ran = charter(&["import", file, "--db", &new]);
        assert_eq!(ran.code, code, "{}", ran.err);
        assert_eq!(files(&scratch), before);
    }
    let ran = charter(&["import", &run, "--db", &new]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "one\n"), "{}", ran.err);
    for id in ["", "a b"] {
        let err = failure(&["fork", "one", "--at", "0", "--as", id, "--db", &db]);
        assert!(err.contains("invalid run id"), "{err}");
    }
}

#[test]
fn journals_are_not_overwritten_and_other_files_not_changed() {
    let scratch = Scratch::new("wrong-output");
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let db = scratch.0.join("x.db").display().to_string();
    charter(&["run", &fine, "--db", &db, "--run", "one"]);
    for args in [&["export", "one", "--db", &db, "-o", &db][..], &["graph", &fine, "-o", &db]] {
        let err = failure(args);
        assert!(err.contains("it is a journal file or another SQLite file"), "{err}");
    }
    let ran = charter(&["verify", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let before = files(&scratch);
    for args in [&["run", &fine, "--db", &fine][..], &["rebuild", &fine], &["send", "one", "GO", "--db", &fine]] {
        let err = failure(args);
        assert!(err.contains("it is not a SQLite file"), "{args:?}: {err}");
    }
    assert_eq!(files(&scratch), before);
}

#[test]
fn a_tab_is_reported_at_its_position() {
    let scratch = Scratch::new("wrong-tab");
    let file = scratch.file("x.yaml", "title: a\tb\n\tid: x\n");
    let ran = charter(&["check", &file]);
    assert!(ran.out.contains("x.yaml:2:1"), "{}", ran.out);
    assert!(ran.out.contains("tab used for indentation"), "{}", ran.out);
}

#[test]
fn data_of_eval_has_the_limits_of_events() {
    let ran = charter(&["eval", "event.x", "--with", "{\"event\":{\"x\":9007199254740993}}"]);
    assert_eq!(ran.code, 2, "{}", ran.out);
    assert!(ran.err.contains("9007199254740993 is beyond") && ran.err.contains("`/event/x`"), "{}", ran.err);
    assert_eq!(
        charter(&["eval", "event.x", "--with", "{\"event\":{\"x\":9007199254740991}}"]).out,
        "9007199254740991\n"
    );
}

#[cfg(unix)]
#[test]
fn an_import_is_a_regular_file() {
    let scratch = Scratch::new("wrong-fifo");
    let fifo = scratch.0.join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let path = scratch.file("c.yaml", "{charter: 1, id: c, statechart: {import: fifo, format: xstate}}");
    let ran = charter(&["check", &path]);
    assert!(ran.code != 0 && (ran.out + &ran.err).contains("not a regular file"));
}

#[test]
fn a_new_charter_is_listed_as_json() {
    let scratch = Scratch::new("wrong-new");
    let folder = scratch.0.join("q1").display().to_string();
    let ran = charter(&["--json", "new", &folder]);
    let made: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(made["charter"], "q1");
    assert_eq!(made["files"][0], format!("{folder}/charter.yaml"));
}

#[test]
fn the_list_of_codes_has_whole_sentences() {
    let list = charter(&["explain"]).out;
    for line in list.lines() {
        assert!(line.ends_with('.'), "{line}");
    }
}

#[test]
fn a_name_that_is_too_long_for_the_files_beside_the_journal_leaves_no_file() {
    let scratch = Scratch::new("wrong-name");
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let before = files(&scratch);
    let ran = charter(&["run", &fine, "--db", &scratch.0.join("x".repeat(250)).display().to_string()]);
    assert!(ran.code == 2 && ran.err.contains("its name has 250 bytes; choose one of at most 247"), "{}", ran.err);
    assert_eq!(files(&scratch), before);
}
