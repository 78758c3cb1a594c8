//! Hints and results that users rely on: suggested commands work as printed.
#![allow(clippy::unwrap_used, missing_docs)]

use crate::support::{Ran, Scratch, charter, charter_typed};

const GATE: &str = "
charter: 1
id: gate
roles: {reader: {}, boss: {}, clerk: {}}
events:
  SIGN: {by: boss}
  NOTE: {by: boss, data: {type: object, required: [text], properties: {text: {type: string, minLength: 1}}}}
  STOP: {by: [boss, clerk]}
initial: open
states:
  open: {on: {SIGN: signed, NOTE: {actions: []}, STOP: stopped}}
  signed: {type: final}
  stopped: {type: final}
";

struct Desk {
    scratch: Scratch,
    charter: String,
    db: String,
}

impl Desk {
    fn new() -> Desk {
        let scratch = Scratch::new("hints");
        let charter = scratch.file("gate.yaml", GATE);
        let db = scratch.0.join("p.db").display().to_string();
        Desk { scratch, charter, db }
    }

    fn begin(&self, more: &[&str]) -> Ran {
        charter(&[&["run", &self.charter, "--run", "g", "--db", &self.db], more].concat())
    }
}

#[test]
fn suggested_commands_name_the_file_the_sender_and_the_least_role() {
    let desk = Desk::new();
    let ran = desk.begin(&["--as", "ana"]);
    let option = format!(" --db {}", desk.db);
    assert!(ran.out.contains(&format!("charter send g STOP --as ana --role clerk{option}")), "{}", ran.out);
    assert!(ran.out.contains(&format!("charter send g SIGN --as ana --role boss{option}")), "{}", ran.out);
    let ran = charter(&["fork", "g", "--at", "0", "--db", &desk.db]);
    assert!(ran.err.contains(&format!("`charter run --resume g.fork1{option}`")), "{}", ran.err);
    let ran = charter_typed(&["run", "--resume", "g", "--db", &desk.db], "q\n", None);
    assert!(ran.err.contains(&format!("`charter run --resume g{option}`")), "{}", ran.err);
}

#[test]
fn a_missing_file_is_explained_in_the_terms_of_the_command() {
    let desk = Desk::new();
    let help = |args: &[&str], right: &str| {
        let ran = charter(args);
        assert!(ran.code == 2 && ran.err.contains(right), "{args:?}: {}", ran.err);
        assert_eq!(ran.err.contains("--db"), right.contains("--db"), "{}", ran.err);
    };
    help(&["verify", &desk.db], "`charter verify DB [RUN]`");
    help(&["rebuild", &desk.db], "`charter rebuild DB`");
    help(&["sql", &desk.db, "SELECT 1"], "`charter sql DB \"SELECT ...\"`");
    help(&["runs", "--db", &desk.db], "`--db FILE`");
    let broken = desk.scratch.0.join("broken.db");
    desk.begin(&[]);
    std::fs::write(&broken, &std::fs::read(&desk.db).unwrap()[..100]).unwrap();
    let ran = charter(&["verify", broken.to_str().unwrap()]);
    assert!(ran.err.starts_with(&format!("error: cannot open `{}`", broken.display())), "{}", ran.err);
}

#[test]
fn what_exists_or_has_ended_is_not_started() {
    let desk = Desk::new();
    assert!(desk.begin(&[]).err.starts_with("g started: "));
    let ran = desk.begin(&[]);
    assert!(ran.err.starts_with("g already exists; continued after record 0: "), "{}", ran.err);
    charter(&["send", "g", "STOP", "--role", "clerk", "--db", &desk.db]);
    let ran = charter(&["run", "--resume", "g", "--db", &desk.db]);
    assert!(ran.err.starts_with("g has already ended: "), "{}", ran.err);
    assert!(ran.out.starts_with("g: done in stopped"), "{}", ran.out);
}

#[test]
fn nothing_found_and_nobody_there_are_said() {
    let desk = Desk::new();
    desk.begin(&[]);
    let ran = charter(&["log", "g", "--event", "NONE", "--db", &desk.db]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "no matching records\n"));
    let ran = charter(&["send", "g", "SIGN", "--to", "nobody", "--role", "boss", "--db", &desk.db]);
    assert!(ran.out.starts_with("1  refused  nobody\n"), "{}", ran.out);
    let ran = charter(&["send", "g", "NOTE", "{", "--db", &desk.db]);
    assert!(ran.err.contains("e.g. `charter send RUN TYPE '{\"name\": \"ana\"}'`"), "{}", ran.err);
    let ran = charter(&["test", &desk.charter]);
    assert!(ran.code == 1 && ran.out.contains("no scenarios found"), "{}", ran.out);
}

#[test]
fn sql_only_reads_one_statement() {
    let desk = Desk::new();
    desk.begin(&[]);
    let error = |query: &str| charter(&["sql", &desk.db, query]).err;
    assert_eq!(error("delete from runs"), "error: `charter sql` is read-only: only queries (`SELECT`) are allowed\n");
    assert_eq!(error("select 1; select 2"), "error: only one statement at a time is allowed\n");
    assert!(error("select * from turns").contains("docs/sql.md describes the tables"));
}

#[test]
fn an_empty_answer_is_asked_for_again_and_not_sent() {
    let desk = Desk::new();
    desk.begin(&[]);
    let args = ["run", "--resume", "g", "--db", &desk.db, "--role", "boss"];
    let ran = charter_typed(&args, "9\nNOTE\n\nfine\nSTOP\n", None);
    assert!(ran.err.contains("enter a number from 1 to 3 or q"), "{}", ran.err);
    assert!(ran.err.contains("  must not be empty; Ctrl-D goes back to the choices\n"), "{}", ran.err);
    assert!(ran.out.starts_with("g: done in stopped, 3 records"), "{}", ran.out);
}

#[test]
fn a_tampered_charter_in_an_export_is_a_finding() {
    let desk = Desk::new();
    desk.begin(&[]);
    let file = desk.scratch.0.join("g.jsonl").display().to_string();
    assert_eq!(charter(&["export", "g", "--db", &desk.db, "-o", &file]).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("clerk", "clerc", 1)).unwrap();
    let ran = charter(&["verify", &file]);
    assert!(ran.code == 1 && ran.out.starts_with("charter: run `g`: charter sha256:"), "{}{}", ran.out, ran.err);
    assert!(ran.out.ends_with("not verified: 1 finding; 0 records of 1 run verified\n"), "{}", ran.out);
    let ran = charter(&["import", &file, "--db", &desk.scratch.0.join("other.db").display().to_string()]);
    assert!(ran.code == 1 && ran.err.starts_with("not verified: run `g`"), "{}", ran.err);
    // Insert a line that is not UTF-8.
    let cut = text.lines().next().unwrap().len() + 1;
    std::fs::write(&file, [&text.as_bytes()[..cut], b"\xff\n"].concat()).unwrap();
    let ran = charter(&["verify", &file]);
    assert!(ran.code == 1 && ran.out.contains("record 0: the line of this record is not UTF-8"), "{}", ran.out);
}

#[test]
fn a_missing_input_is_explained_with_a_command_that_starts_the_run() {
    let scratch = Scratch::new("hints-input");
    let chart = "charter: 1\nid: c\ninput: {type: object, required: [amount, who], properties: {amount: {type: number, minimum: 1}, who: {enum: [it's, b]}}}\nstates: {a: {}}\n";
    let (file, db) = (scratch.file("c.yaml", chart), scratch.0.join("p.db").display().to_string());
    let ran = charter(&["run", &file, "--db", &db, "--run", "r"]);
    assert_eq!(ran.code, 2);
    let help = ran.err.split_once("\nhelp: ").unwrap().1;
    let (needs, command) = help.trim_end().split_once("\n").unwrap();
    assert_eq!(needs, "the charter needs `amount` (number), `who` (one of [\"it's\",\"b\"])");
    let expected = format!("e.g. charter run {file} --input '{{\"amount\":1,\"who\":\"it'\\''s\"}}' --run r --db {db}");
    assert_eq!(command.trim_start(), expected);
    let command = command.trim_start().strip_prefix("e.g. charter").unwrap();
    let shell = format!("{}{command}", env!("CARGO_BIN_EXE_charter"));
    let output = std::process::Command::new("sh").args(["-c", &shell]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // An example of the charter has precedence.
    let ran = charter(&["run", "fred", "--db", &db]);
    assert!(ran.err.contains("e.g. charter run fred --input '{\"message\":\"Should we raise prices?\""), "{}", ran.err);
}

#[test]
fn a_run_that_was_deleted_is_called_that() {
    let desk = Desk::new();
    desk.begin(&[]);
    assert_eq!(charter(&["send", "g", "STOP", "--role", "boss", "--db", &desk.db]).code, 0);
    assert_eq!(charter(&["delete", "g", "--yes", "--reason", "a test", "--db", &desk.db]).code, 0);
    let commands: [&[&str]; 4] =
        [&["send", "g", "STOP"], &["show", "g"], &["run", "--resume", "g"], &["answer", "g", "1"]];
    for command in commands {
        let ran = charter(&[command, &["--db", &desk.db]].concat());
        assert_eq!(ran.code, 2);
        let said = ran.err.lines().next().unwrap();
        assert!(said.starts_with("error: run `g` was deleted on 20") && said.ends_with(" UTC by me: a test"), "{said}");
    }
    // Its id stays reserved.
    let ran = desk.begin(&[]);
    assert!(ran.code == 2 && ran.err.contains("its id stays reserved"), "{}", ran.err);
    assert!(ran.err.contains("choose another one, for example `g-2`"), "{}", ran.err);
}

#[test]
fn a_view_of_a_bundled_charter_is_explained_to_a_journal_without_one() {
    let desk = Desk::new();
    desk.begin(&[]);
    let ran = charter(&["sql", &desk.db, "SELECT outcome FROM insights"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("`insights` is a view of the bundled charter `sentinel`"), "{}", ran.err);
    assert!(charter(&["sql", &desk.db, "SELECT * FROM nowhere"]).err.contains("help: docs/sql.md describes"));
}
