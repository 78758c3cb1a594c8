//! The path of a newcomer: what `charter new` makes works as it is, and so does what is printed.

use crate::support::{Scratch, charter, charter_with};

/// Creates a charter, and returns its folder.
fn created(scratch: &Scratch) -> String {
    let folder = scratch.0.join("demo").display().to_string();
    let ran = charter(&["new", &folder]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for command in ["check", "test", "run"] {
        assert!(ran.out.contains(&format!("\n  charter {command} {folder}\n")), "{}", ran.out);
    }
    folder
}

#[test]
fn a_new_charter_has_no_findings_and_its_scenarios_pass() {
    let scratch = Scratch::new("new-check");
    let folder = created(&scratch);
    let checked = charter(&["check", &folder]);
    assert_eq!(checked.code, 0, "{}", checked.out);
    assert!(checked.out.contains(": no findings; explored "), "{}", checked.out);
    assert!(!checked.out.contains("warning") && !checked.out.contains("error"), "{}", checked.out);
    let tested = charter(&["test", "--cover", &folder]);
    assert_eq!(tested.code, 0, "{}", tested.out);
    assert!(tested.out.contains("8 of 8 transitions taken"), "{}", tested.out);
}

#[test]
fn a_new_charter_runs_offline_to_its_end_with_an_approval() {
    let scratch = Scratch::new("new-run");
    let (folder, db) = (created(&scratch), scratch.0.join("charter.db").display().to_string());
    let ran = charter(&["run", &folder, "--run", "r1", "--yes", "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.starts_with("r1: done in sent, "), "{}", ran.out);
    let log = charter(&["log", "r1", "--db", &db]);
    assert!(log.out.contains("APPROVE"), "{}", log.out);

    // The author may not approve; the printed command of another reviewer does.
    let input = r#"{"author": "ana"}"#;
    let ran = charter(&["run", &folder, "--run", "r2", "--input", input, "--as", "rob", "--db", &db]);
    let line =
        ran.out.lines().find(|line| line.contains("charter send r2 APPROVE")).unwrap_or_else(|| panic!("{}", ran.out));
    let (_, data) = line.split_once(" APPROVE '").unwrap();
    let (data, _) = data.split_once('\'').unwrap();
    let send = |who: &str| charter(&["send", "r2", "APPROVE", data, "--as", who, "--role", "reviewer", "--db", &db]);
    let refused = send("ana");
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("refused (authority"), "{}", refused.err);
    let sent = send("rob");
    assert_eq!(sent.code, 0, "{}{}", sent.out, sent.err);
    assert!(sent.out.contains("r2: done in sent, "), "{}", sent.out);
}

#[test]
fn the_events_of_the_readme_are_accepted() {
    let scratch = Scratch::new("new-step");
    let folder = created(&scratch);
    let readme = std::fs::read_to_string(scratch.0.join("demo/README.md")).unwrap();
    let lines = readme.lines().filter_map(|line| line.strip_prefix("    {"));
    let events: String = lines.map(|line| format!("{{{line}\n")).collect();
    let ran = charter_with(&["step", &folder, "--events", "-"], &events);
    assert_eq!((ran.code, ran.out.matches("\"verdict\":\"accepted\"").count()), (0, 2), "{}", ran.out);
}

#[test]
fn yes_and_no_invent_no_data() {
    let scratch = Scratch::new("yes-data");
    let file = scratch.file(
        "paying.yaml",
        "
charter: 1
id: paying
roles: {boss: {}}
events:
  APPROVE: {by: boss, data: {type: object, required: [paid], properties: {paid: {type: boolean}}}}
  REJECT: {by: boss, data: {type: object, required: [cause], properties: {cause: {enum: [late, wrong]}}}}
states:
  open: {on: {APPROVE: done, REJECT: done}}
  done: {type: final}
",
    );
    let db = scratch.0.join("charter.db").display().to_string();
    for (run, flag) in [("r1", "--yes"), ("r2", "--no")] {
        let ran = charter(&["run", &file, "--run", run, flag, "--db", &db]);
        assert!(ran.err.contains(&format!("`{flag}` gives no answer that needs data")), "{}", ran.err);
        assert!(ran.out.starts_with(&format!("{run}: active in open, 1 record\n")), "{}", ran.out);
        assert!(ran.out.contains(&format!("charter send {run} APPROVE")), "{}", ran.out);
    }
}
