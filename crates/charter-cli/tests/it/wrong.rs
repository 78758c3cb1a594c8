//! Wrong input, as a stranger gives it: it is told what is wrong and what would be right, and nothing is left behind.

use crate::support::{Scratch, charter};

/// A charter whose only actor is given.
fn with_actor(actor: &str) -> String {
    format!(
        "charter: 1\nid: x\nactors:\n  worker: {actor}\ninitial: a\nstates:\n  a:\n    invoke: {{src: worker, onDone: b, onError: b}}\n  b: {{type: final}}\n"
    )
}

/// What lies in a folder.
fn files(scratch: &Scratch) -> Vec<String> {
    let entries = std::fs::read_dir(&scratch.0).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_refused_leaves_no_journal() {
    let scratch = Scratch::new("wrong-run");
    let gold = scratch.file("gold.yaml", with_actor("{kind: automaton, part: actions, signer: gold}"));
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let before = files(&scratch);
    let db = scratch.0.join("charter.db").display().to_string();
    let said = scratch.0.join("said.jsonl").display().to_string();
    let there = scratch.file("there.jsonl", "");
    let models = ["--model", "openai:some", "--model-url", "http://127.0.0.1:9/v1"];
    for (args, told) in [
        (vec![gold.as_str()], "signer"),
        ([&[gold.as_str(), "--record-models", &said], &models[..]].concat(), "signer"),
        ([&[fine.as_str(), "--record-models", &there], &models[..]].concat(), "there.jsonl"),
        (vec![&fine, "--model", "nobody:x"], "nobody"),
        (vec![&fine, "--run", "a/b"], "`a/b`"),
    ] {
        let ran = charter(&[&["run", "--db", &db], args.as_slice()].concat());
        assert!(ran.err.contains(told), "{args:?}: {}{}", ran.out, ran.err);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        std::fs::remove_file(&there).unwrap();
        assert_eq!(files(&scratch), before, "{args:?}");
        std::fs::write(&there, "").unwrap();
    }
}

#[test]
fn a_wrong_place_of_an_assign_is_shown_in_its_key() {
    let scratch = Scratch::new("wrong-assign");
    let check = |path: &str| {
        let text = format!(
            "charter: 1\nid: x\ncontext: {{l: [1, 2], m: {{}}}}\nstates:\n  a:\n    entry:\n      - assign: {{{path}: 12345678}}\n"
        );
        let ran = charter(&["check", &scratch.file("x.yaml", text)]);
        assert_eq!(ran.code, 1, "{}", ran.out);
        let lines: Vec<&str> = ran.out.lines().skip(3).take(2).collect();
        // What is underlined.
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
fn a_journal_without_its_flag_is_told_with_it() {
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
    tip(&["runs", "some.db"], "tip: a journal is given with `--db`: `charter runs --db some.db`");
    tip(&["--json", "show", "one", "some.db"], "`charter --json show one --db some.db`");
    tip(&["runs", "a b.db"], "is given with `--db a b.db`");
    for command in ["show", "log", "legal", "replay", "export"] {
        tip(
            &[command, &db, "--db", &db],
            &format!("a journal is given with `--db`: `charter runs --db {db}` lists its runs"),
        );
    }
    // It is no tip for what takes no journal, and none where there is one.
    for args in [&["check", "a", "some.db"][..], &["runs", "some.db", "--db", &db], &["runs", "what"]] {
        let ran = charter(args);
        assert!(!ran.err.contains("tip"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn check_tells_what_run_would_refuse_of_an_actor() {
    let scratch = Scratch::new("wrong-actor");
    let check = |actor: &str| {
        let file = scratch.file("x.yaml", with_actor(actor));
        let ran = charter(&["check", &file, "--json"]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let all: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
        let mut told = String::new();
        for f in all["findings"].as_array().unwrap() {
            let code = f["code"].as_str().unwrap();
            if code.starts_with("actor-") {
                told.push_str(&format!(
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
        told
    };
    assert_eq!(
        check("{kind: automaton, part: actions, signer: gold}"),
        "warning actor-config 4:52 actors.worker.signer actor `worker`: invalid `signer` `\"gold\"`: expected one of mock, stub (`charter run` refuses the charter as it is)"
    );
    let nothing = check("{kind: automaton, part: null}");
    assert!(nothing.contains("actors.worker.part"), "{nothing}");
    assert_eq!(
        check("{kind: scriptd}"),
        "warning actor-kind 4:18 actors.worker.kind actor `worker`: `charter run` has no executor for the kind `scriptd` (did you mean `scripted`?)"
    );
    let own = check("{kind: ourbank}");
    assert!(own.starts_with("info actor-kind"), "{own}");
    // What only the machine can say is not told.
    let prompt = "{kind: model, prompt: hello.md}";
    assert!(check(prompt).contains("there is no file `hello.md` beside the charter"), "{}", check(prompt));
    scratch.file("hello.md", "Hello");
    assert_eq!(check(prompt), "");
    assert_eq!(check("{kind: human}"), "");
}

/// What a command says when it cannot do what was asked.
fn refused(args: &[&str]) -> String {
    let ran = charter(args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
    ran.err
}

#[test]
fn numbers_names_and_flags_are_told_in_words() {
    for (args, told) in [
        (
            &["fork", "one", "--at", "-1"][..],
            "invalid value '-1' for '--at <SEQ>': a whole number is needed, 0 or more",
        ),
        (&["explain", "one", "x"], "a whole number is needed"),
        (&["check", "x", "--max-states", "99999999999999999999999"], "the number is too large"),
        (&["send", "one", "GO", "--as", ""], "a value is required for '--as <ID>'"),
        (&["run", "feijoa", "--role", ""], "a value is required for '--role <ROLE>'"),
        (
            &["run", "omen", "--replay-models", "no-such-file"],
            "cannot read `no-such-file`: no such file or directory\n",
        ),
    ] {
        let err = refused(args);
        assert!(err.contains(told), "{args:?}: {err}");
    }
    assert!(!refused(&["replay", "one", "--at", "3"]).contains("tip"));
    assert!(refused(&["export", "one", "--out", "x"]).contains("'--output'"));
}

#[test]
fn an_empty_file_is_no_journal() {
    let scratch = Scratch::new("wrong-empty");
    let empty = scratch.file("empty.db", "");
    let before = files(&scratch);
    for args in [
        &["rebuild", &empty][..],
        &["send", "one", "GO", "--db", &empty],
        &["runs", "--db", &empty],
        &["run", "--resume", "one", "--db", &empty],
    ] {
        let err = refused(args);
        assert!(err.contains("empty.db` is not a journal: it is empty"), "{args:?}: {err}");
        assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
        assert_eq!(files(&scratch), before);
    }
}

#[test]
fn a_record_that_is_not_there_yet_is_told_as_that() {
    let scratch = Scratch::new("wrong-expect");
    let door = "charter: 1\nid: door\nevents: {OPEN: {data: {type: object}}}\nstates: {closed: {on: {OPEN: closed}}}\n";
    let door = scratch.file("door.yaml", door);
    let db = scratch.0.join("x.db").display().to_string();
    charter(&["run", &door, "--db", &db, "--run", "one"]);
    let ran = charter(&["send", "one", "OPEN", "--expect", "9", "--db", &db]);
    let told = "the sender expects record 9 to be the last one, but the last one is 0";
    assert!(ran.out.contains(told) || ran.err.contains(told), "{}{}", ran.out, ran.err);
    assert_eq!(ran.code, 1);
    for nothing in [" ", "-- nothing", ";"] {
        let err = refused(&["sql", &db, nothing]);
        assert!(err.contains("there is no question"), "{err}");
    }
    let line = scratch.file("null.jsonl", "null\n");
    let err = refused(&["import", &line, "--db", &db]);
    assert!(err.contains("expected an object with `journal`"), "{err}");
}

#[test]
fn a_run_that_is_not_taken_in_makes_no_journal_and_a_fork_has_an_id() {
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
        let err = refused(&["fork", "one", "--at", "0", "--as", id, "--db", &db]);
        assert!(err.contains("invalid run id"), "{err}");
    }
}

#[test]
fn a_journal_is_not_written_over_and_another_file_is_left_alone() {
    let scratch = Scratch::new("wrong-output");
    let fine = scratch.file("fine.yaml", with_actor("{kind: human, timeout: 1s}"));
    let db = scratch.0.join("x.db").display().to_string();
    charter(&["run", &fine, "--db", &db, "--run", "one"]);
    for args in [&["export", "one", "--db", &db, "-o", &db][..], &["graph", &fine, "-o", &db]] {
        let err = refused(args);
        assert!(err.contains("is a journal (or another SQLite file), and is not written over"), "{err}");
    }
    let ran = charter(&["verify", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let before = files(&scratch);
    for args in [&["run", &fine, "--db", &fine][..], &["rebuild", &fine], &["send", "one", "GO", "--db", &fine]] {
        let err = refused(args);
        assert!(err.contains("it is not a SQLite file"), "{args:?}: {err}");
    }
    assert_eq!(files(&scratch), before);
}

#[test]
fn a_tab_is_shown_where_it_stands() {
    let scratch = Scratch::new("wrong-tab");
    let file = scratch.file("x.yaml", "title: a\tb\n\tid: x\n");
    let ran = charter(&["check", &file]);
    assert!(ran.out.contains("x.yaml:2:1"), "{}", ran.out);
    assert!(ran.out.contains("tab used for indentation"), "{}", ran.out);
}
