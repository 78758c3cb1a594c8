//! `charter backup` beside a running server, and the restored copy.
#![cfg(all(unix, feature = "serve"))]

use std::fs;

use serde_json::Value as Json;

use crate::serve::Served;
use crate::support::{Scratch, charter};

const LAMP: &str = "charter: 1\nid: lamp\nevents: {FLIP: {}}\nstates: {off: {on: {FLIP: on}}, on: {on: {FLIP: off}}}\n";

#[test]
fn a_backup_is_made_while_a_server_runs_and_restored_elsewhere() {
    let scratch = Scratch::new("backup");
    let place = |name: &str| scratch.0.join(name).display().to_string();
    let (db, copy, lamp) = (place("charter.db"), place("copy.db"), scratch.file("lamp.yaml", LAMP));
    let ok = |args: &[&str]| {
        let ran = charter(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        ran
    };
    let missing = charter(&["backup", "-o", &copy, "--db", &db]);
    assert!(missing.code == 2 && missing.err.contains("not found"), "{}", missing.err);
    let served = Served::start(&scratch.0);
    ok(&["run", &lamp, "--run", "a", "--db", &db]);
    // The contents of workspaces, and what a crash left of one.
    let objects = scratch.0.join("charter.db-files/objects/ab");
    fs::create_dir_all(&objects).unwrap();
    fs::write(objects.join("cd"), "content").unwrap();

    let made = ok(&["backup", "-o", &copy, "--db", &db, "--json"]);
    let made: Json = serde_json::from_str(&made.out).unwrap();
    assert_eq!(made["file"], Json::from(copy.as_str()));
    assert_eq!(made["journal"]["runs"], 2);
    ok(&["send", "a", "FLIP", "--db", &db]);
    let again = charter(&["backup", "-o", &copy, "--db", &db]);
    assert!(again.code == 2 && again.err.contains("exists; a backup does not write over it"), "{}", again.err);
    let second = ok(&["backup", "-o", &place("second.db"), "--db", &db]);
    assert!(second.err.contains("records of 2 runs copied to"), "{}", second.err);
    let far = charter(&["backup", "-o", &place("far.db"), "--server", &served.url]);
    assert!(far.code == 2 && far.err.contains("works on a journal file"), "{}", far.err);
    drop(served);

    let verified = ok(&["verify", &copy]);
    assert!(verified.out.contains("verified") && !verified.out.contains("note:"), "{}", verified.out);
    assert_eq!(fs::read(scratch.0.join("copy.db-files/objects/ab/cd")).unwrap(), b"content");
    // Opened for writing without a question: nothing is missing in it.
    ok(&["send", "a", "FLIP", "--db", &copy]);
    // A folder in the place of the copied files is not replaced.
    fs::create_dir(scratch.0.join("third.db-files")).unwrap();
    let third = charter(&["backup", "-o", &place("third.db"), "--db", &copy]);
    assert!(third.code == 2 && third.err.contains("third.db-files` exists"), "{}", third.err);
    assert!(!scratch.0.join("third.db").exists());
}
