//! `charter run sentinel` for a person: what it shows, what it asks, and how the folder changes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;

use crate::support::{Ran, Scratch, charter, charter_typed};

/// A workspace with a journal file next to it.
struct Desk {
    scratch: Scratch,
    db: String,
}

impl Desk {
    fn new() -> Desk {
        let scratch = Scratch::new("sentinel");
        fs::create_dir(scratch.0.join("w")).unwrap();
        scratch.file("w/greeting.txt", "Hello, world\n");
        scratch.file("w/other.txt", "other\n");
        let db = scratch.0.join("runs.db").display().to_string();
        Desk { scratch, db }
    }

    fn input(&self, more: &str) -> String {
        let folder = self.scratch.0.join("w");
        format!(r#"{{"workspace": {folder:?}, "goal": "Greet in German"{more}}}"#)
    }

    /// Runs `charter run sentinel` on a terminal, with these lines typed.
    fn typed(&self, more: &str, lines: &[&str]) -> Ran {
        let typed: String = lines.iter().map(|l| format!("{l}\n")).collect();
        let input = self.input(more);
        let args = ["run", "sentinel", "--run", "r", "--db", &self.db, "--input", &input];
        charter_typed(&args, &typed, None)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.scratch.0.join("w").join(name)).unwrap_or_else(|_| "(none)".into())
    }

    fn send(&self, kind: &str, data: &str) -> Ran {
        let args =
            ["send", "r", kind, data, "--as", "ana", "--role", "approver", "--role", "operator", "--db", &self.db];
        charter(&args)
    }
}

/// Asserts that the text contains the parts, in this order.
fn in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        assert!(at.is_some(), "`{part}` is missing (in order) in:\n{text}");
        rest = &rest[at.unwrap() + part.len()..];
    }
}

#[test]
fn the_whole_cycle_at_the_terminal() {
    let desk = Desk::new();
    let verify = r#", "verify": ["/bin/sh", "-c", "echo looks good; grep -q Guten greeting.txt"]"#;
    let ran = desk.typed(verify, &["1", "APPROVE_PROPOSAL", "all", "q"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    in_order(
        &ran.err,
        &[
            "2 files, 19 B in ",
            "  greeting.txt       13 B\n",
            "  other.txt           6 B\n",
            "What next?\n  1  APPROVE_CONTEXT  The agent may read exactly these files.\n",
            "timer AWAITING_CONTEXT_APPROVAL/after/contextReview is due ",
            "> ",
            "Greet in German, and say who greets\n2 changes in ",
            "  1  MODIFY  greeting.txt  +1 -1\n  2  CREATE  greeter.txt   +2 -0\n",
            "--- a/greeting.txt\n+++ b/greeting.txt\n@@ -1 +1 @@\n-Hello, world\n+Guten Tag, world\n",
            "--- /dev/null\n+++ b/greeter.txt\n",
            "What next?\n  1  APPROVE_PROPOSAL",
            "which changes?",
            "APPLYING_CHANGESET → REFLECTING  apply done\n",
            "    MODIFY  greeting.txt\n",
            "    verified: it exited with code 0\n      looks good\n",
            "learned (success, change): Applied: Greet in German, and say who greets\n",
            "What next?\n  1  START",
        ],
    );
    assert!(!ran.err.contains("fsm:transition"), "{}", ran.err);
    assert!(ran.out.starts_with("r: active in IDLE"), "{}", ran.out);
    assert_eq!(desk.file("greeting.txt"), "Guten Tag, world\n");
}

#[test]
fn feedback_a_second_look_and_a_part() {
    let desk = Desk::new();
    let lines = ["1", "2", "Also say who greets", "d 2", "1", "3", "1 1-x", "greeter.txt", "q"];
    let ran = desk.typed("", &lines);
    in_order(
        &ran.err,
        &[
            "-Hello, world",
            "  feedback (text): ",
            "EDIT_PROPOSAL by me",
            // The same proposal again: the list, without the diffs.
            "  2  CREATE  greeter.txt   +2 -0\n\nWhat next?",
            "> \n--- /dev/null\n+++ b/greeter.txt\n",
            "no change `3`: enter numbers from 1 to 2",
            "no change `1-x`",
            "accepting greeter.txt, without 1 change; approves exactly sha256:",
            "    CREATE  greeter.txt\n",
        ],
    );
    assert_eq!(desk.file("greeting.txt"), "Hello, world\n");
    assert!(desk.file("greeter.txt").contains("Goal: Greet in German"));
    let sql = charter(&["sql", &desk.db, "SELECT by, count(*) AS n FROM approvals GROUP BY by", "--json"]);
    assert!(sql.out.contains('2'), "{}", sql.out);
}

#[test]
fn a_rejection_leaves_everything_as_it_was() {
    let desk = Desk::new();
    let ran = desk.typed("", &["1", "REJECT_PROPOSAL", "too friendly", "q"]);
    in_order(&ran.err, &["  reason (text): ", "→ IDLE  REJECT_PROPOSAL by me"]);
    assert_eq!(desk.file("greeting.txt"), "Hello, world\n");
    assert_eq!(desk.file("greeter.txt"), "(none)");
}

#[test]
fn a_failed_verification_is_shown_and_changes_nothing() {
    let desk = Desk::new();
    let verify = r#", "verify": ["/bin/sh", "-c", "echo three tests fail; exit 3"]"#;
    let ended = desk.typed(verify, &["1", "1", "all", "q"]);
    assert_eq!(ended.code, 1, "a cycle that ends in ERROR: {}", ended.out);
    assert_eq!(desk.file("greeting.txt"), "Hello, world\n");
    let desk = Desk::new();
    let ran = desk.typed(verify, &["1", "1", "all", "1", "q"]);
    assert_eq!(ran.code, 0, "after RESET: {}", ran.out);
    in_order(
        &ran.err,
        &[
            "apply failed: verification failed: it exited with code 3\n      three tests fail\n",
            "learned (failed, verify): the reason above",
            "What next?\n  1  RESET",
            "ERROR → IDLE  RESET by me",
        ],
    );
    assert_eq!(desk.file("greeting.txt"), "Hello, world\n");
}

#[test]
fn a_file_that_changed_meanwhile_is_refused_and_noted_in_the_diff() {
    let desk = Desk::new();
    let ran = desk.typed("", &["1"]);
    assert!(ran.out.starts_with("r: active in AWAITING_PROPOSAL_APPROVAL"), "{}", ran.out);
    desk.scratch.file("w/greeting.txt", "Hello, you\n");
    let again = charter_typed(&["run", "--resume", "r", "--db", &desk.db], "1\nall\nq\n", None);
    in_order(
        &again.err,
        &[
            "  1  MODIFY  greeting.txt\n",
            "(the file has changed since this was proposed: applying this will fail with a conflict)",
            "apply failed: `greeting.txt` has changed",
        ],
    );
    assert_eq!(desk.file("greeting.txt"), "Hello, you\n");
}

#[test]
fn long_changes_are_paged() {
    let desk = Desk::new();
    let long: String = (0..60).map(|n| format!("Hello {n}\n")).collect();
    desk.scratch.file("w/greeting.txt", long);
    let input = desk.input("");
    let args = ["run", "sentinel", "--run", "r", "--db", &desk.db, "--input", &input];
    let ran = charter_typed(&args, "1\n\nn\nq\n", Some((80, 24)));
    in_order(
        &ran.err,
        &[
            "-- 1",
            "more lines of this file. Enter: continue, n: next file, q: skip the rest -- ",
            "-Hello",
            "-- ",
            "+++ b/greeter.txt",
            "What next?",
        ],
    );
    assert!(!ran.err.contains("+Guten Tag 59"), "the rest of the first file was skipped");
    let ran = charter_typed(&["run", "--resume", "r", "--db", &desk.db], "q\nq\n", Some((80, 24)));
    assert!(!ran.err.contains("+++ b/greeter.txt"), "{}", ran.err);
    in_order(&ran.err, &["skip the rest -- ", "What next?"]);
}

#[test]
fn without_a_terminal_every_answer_is_a_command() {
    let desk = Desk::new();
    let input = desk.input("");
    let mut ran = charter(&["run", "sentinel", "--run", "r", "--db", &desk.db, "--input", &input]);
    for (event, next) in [("APPROVE_CONTEXT", "AWAITING_PROPOSAL_APPROVAL"), ("APPROVE_PROPOSAL", "IDLE")] {
        // Split the printed command into arguments.
        let line = ran.out.lines().find(|l| l.contains(&format!("charter send r {event} '"))).unwrap();
        let data = line.split('\'').nth(1).unwrap();
        assert!(line.ends_with(&format!(" --role approver --db {}", desk.db)), "{line}");
        ran = desk.send(event, data);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains(next), "{}", ran.err);
    }
    assert_eq!(desk.file("greeting.txt"), "Guten Tag, world\n");
}

#[test]
fn hostile_names_and_texts_cannot_write_to_the_terminal() {
    let desk = Desk::new();
    desk.scratch.file("w/greeting.txt", "Hello \u{1b}[2Jworld\u{202e}\r\n");
    let ran = desk.typed("", &["1", "q"]);
    in_order(&ran.err, &["-Hello \\u{1b}[2Jworld\\u{202e}\\r"]);
    assert!(!ran.err.contains("\u{1b}[2J") && !ran.err.contains('\u{202e}'));
}

#[test]
fn insights_are_used_for_planning_and_found_with_sql() {
    let desk = Desk::new();
    let failing = r#", "verify": ["false"]"#;
    desk.typed(failing, &["1", "1", "all", "1", "START", "Greet in German", "1", "q"]);
    let shown = charter(&["show", "r", "--db", &desk.db, "--json"]);
    assert!(shown.out.contains("Earlier cycles taught: verification failed: it exited with code 1"), "{}", shown.out);
    // Run the queries in the charter's README.
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/sentinel/README.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```sql").nth(1).unwrap().split("```").next().unwrap();
    let queries: Vec<&str> = block.split(';').map(str::trim).filter(|q| !q.is_empty()).collect();
    assert_eq!(queries.len(), 6);
    let expected = ["failed   verify    1", "greeting.txt  1", "", "APPLYING_CHANGESET  1", "  me  sha256:", ""];
    for (query, expected) in queries.iter().zip(expected) {
        let ran = charter(&["sql", &desk.db, "--", query]);
        assert_eq!(ran.code, 0, "{query}: {}", ran.err);
        assert!(ran.out.contains(expected), "{query}: {}", ran.out);
    }
}

#[test]
fn a_run_without_a_possible_event_is_reported_as_stuck() {
    let desk = Desk::new();
    let charter_file = desk
        .scratch
        .file("stuck.yaml", "charter: 1\nid: stuck\nevents: {GO: {data: {}}}\nstates: {a: {on: {GO: b}}, b: {}}\n");
    let ran = charter(&["run", &charter_file, "--run", "s", "--db", &desk.db]);
    assert!(!ran.out.contains("stuck:"), "{}", ran.out);
    let ran = charter(&["send", "s", "GO", "--db", &desk.db]);
    assert!(ran.out.contains("stuck: no timer"), "{}", ran.out);
}

#[test]
fn a_journal_in_the_folder_stays_out_of_it() {
    let desk = Desk::new();
    fs::create_dir_all(desk.scratch.0.join("w/.git")).unwrap();
    let db = desk.scratch.0.join("w/charter.db").display().to_string();
    let input =
        desk.input(r#", "verify": ["/bin/sh", "-c", "ls -a; test ! -e charter.db && test ! -e charter.db-files"]"#);
    let args = ["run", "sentinel", "--run", "r", "--db", &db, "--input", &input];
    let ran = charter_typed(&args, "1\n1\nall\nq\n", None);
    assert_eq!(ran.code, 0, "{}", ran.err);
    in_order(
        &ran.err,
        &[
            "charter.db is inside the folder: it is left out of what the agent sees, and out of git (.git/info/exclude)\n",
            "2 files, 19 B in ",
            "    verified: it exited with code 0\n",
        ],
    );
    assert_eq!(desk.file("greeting.txt"), "Guten Tag, world\n");
    assert_eq!(desk.file(".git/info/exclude"), "/charter.db\n/charter.db-*\n");
    assert_eq!(charter(&["verify", &db]).code, 0);
}
