//! `charter verify` of an exported file.
#![allow(clippy::unwrap_used, missing_docs)]

use crate::support::{Scratch, charter};

#[test]
fn an_exported_run_is_verified() {
    let scratch = Scratch::new("exported");
    let place = |name: &str| scratch.0.join(name).to_str().unwrap().to_owned();
    let (db, file) = (place("charter.db"), place("run.jsonl"));
    let input = r#"{"wake": "Sign this", "loop": false}"#;
    let ran = charter(&["run", "automaton", "--run", "one", "--db", &db, "--input", input]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(charter(&["export", "one", "--db", &db, "-o", &file]).code, 0);
    let journal = charter(&["verify", &db]);
    let verified = charter(&["verify", &file]);
    // An exported run has no head of a journal.
    assert_eq!((verified.code, journal.code), (0, 0));
    let head = journal.out.strip_prefix(&verified.out).unwrap_or_default();
    assert!(head.starts_with("the head of the journal, after 6 entries: sha256:"), "{}", journal.out);
    assert!(verified.out.starts_with("verified: 6 records of 1 run, last hash sha256:"), "{}", verified.out);
    // Try a wrong anchor, another run and a changed record.
    let wrong = format!("one/3=sha256:{}", "0".repeat(64));
    let ran = charter(&["verify", &file, "--anchor", &wrong]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("anchor: run `one`, record 3: its hash is"), "{}", ran.out);
    let ran = charter(&["verify", &file, "other"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("run `other` not found in this file"), "{}", ran.err);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replacen("Sign this", "Sign that", 1)).unwrap();
    let ran = charter(&["verify", &file]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("its content does not match its hash"), "{}", ran.out);
}
