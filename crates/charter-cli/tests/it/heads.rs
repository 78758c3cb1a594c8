//! The head of a journal on the command line: printed, compared with an anchor, and accepted.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use serde_json::Value as Json;

use crate::support::{Scratch, charter};

const CHARTER: &str =
    "charter: 1\nid: lamp\nevents: {FLIP: {}}\nstates: {off: {on: {FLIP: on}}, on: {on: {FLIP: off}}}\n";

#[test]
fn commands_print_the_head_and_a_missing_record_needs_a_reason() {
    let scratch = Scratch::new("heads");
    let place = |name: &str| scratch.0.join(name).to_str().unwrap().to_owned();
    let (db, lamp, old) = (place("charter.db"), place("lamp.yaml"), place("old.db"));
    std::fs::write(&lamp, CHARTER).unwrap();
    let entries = |args: &[&str]| -> (u64, String) {
        let ran = charter(&[args, &["--db", &db, "--json"]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        let json: Json = serde_json::from_str(&ran.out).unwrap();
        (json["journal"]["entries"].as_u64().unwrap(), json["journal"]["hash"].as_str().unwrap().to_owned())
    };
    assert_eq!(entries(&["run", &lamp, "--run", "a"]).0, 1);
    let (count, anchor) = entries(&["send", "a", "FLIP"]);
    assert_eq!(count, 2);
    std::fs::copy(&db, &old).unwrap();
    assert_eq!(entries(&["fork", "a", "--at", "0", "--run", "b"]).0, 3);
    let (anchor, wrong) = (format!("2={anchor}"), format!("1={anchor}"));
    let ran = charter(&["verify", &db, "--anchor", &anchor]);
    assert!(ran.code == 0 && ran.out.contains("the head of the journal, after 3 entries: sha256:"), "{}", ran.out);
    let ran = charter(&["verify", &db, "--anchor", &wrong]);
    assert!(ran.code == 1 && ran.out.contains("head of the journal: the head after 1 entries is not"), "{}", ran.out);
    let ran = charter(&["verify", &db, "--anchor", "2=sha256:12"]);
    assert!(ran.code == 2 && ran.err.contains("expected `RUN/SEQ=sha256:...` or `ENTRIES=sha256:...`"), "{}", ran.err);

    std::fs::copy(&old, &db).unwrap();
    let ran = charter(&["send", "a", "FLIP", "--db", &db]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("missing: record 0 of run `b`"), "{}", ran.err);
    assert!(ran.err.contains(&format!("`charter rebuild {db} --accept-head REASON`")), "{}", ran.err);
    let ran = charter(&["verify", &db]);
    assert!(ran.code == 1 && ran.out.contains("missing: record 0 of run `b`"), "{}", ran.out);
    assert_eq!(charter(&["rebuild", &db, "--accept-head", ""]).code, 2);
    let ran = charter(&["rebuild", &db, "--accept-head", "the backup of Monday", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: Json = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&json["journal"]["records"], &json["journal"]["entries"]), (&2.into(), &3.into()));
    let ran = charter(&["verify", &db]);
    assert!(ran.code == 0 && ran.out.contains("was accepted: the backup of Monday"), "{}", ran.out);
    assert_eq!(entries(&["send", "a", "FLIP"]).0, 4);
}
