//! A run stays in the folder in which it was started: commands that were approved in one folder do
//! not run in another one.

use std::fs;

use crate::identity::CHARTER;
use crate::support::processes::{Site, on_terminal};

/// A folder with the charter and its script. All folders have the same.
fn folder(name: &str) -> Site {
    Site::new(name, &[("charter.yaml", CHARTER.to_owned()), ("pay.sh", "echo x >> ran; echo 1".to_owned())])
}

/// A folder `a` with the journal, and a folder `b`; the name of the journal.
fn folders(name: &str) -> (Site, Site, String) {
    let (a, b) = (folder(&format!("{name}-a")), folder(&format!("{name}-b")));
    let db = a.path("charter.db").display().to_string();
    (a, b, db)
}

#[test]
fn what_was_approved_in_one_folder_does_not_run_in_another_one() {
    let (a, b, db) = folders("folders");
    a.run("run charter.yaml --run a");
    a.run("run charter.yaml --run forked");
    b.run(&format!("run charter.yaml --run b --db {db}"));
    assert_eq!(a.run("fork forked --at 0 --live"), "forked.fork1\n");
    // Each command is another host, so all of this is after a restart.
    b.run(&format!("send a OK --role boss --db {db}"));
    assert_eq!((a.lines("ran"), b.lines("ran")), (1, 0));
    a.run("send forked.fork1 OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran")), (2, 0));
    a.run("run charter.yaml --run a2");
    a.run("send b OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran")), (2, 1));
    a.run("verify");
}

#[test]
fn a_host_that_stays_keeps_the_folders_apart() {
    let (a, b, db) = folders("folders-held");
    let _prompt = on_terminal(&a, "run charter.yaml --run held");
    a.holder();
    a.run("run charter.yaml --run a");
    b.run(&format!("run charter.yaml --run b --db {db}"));
    a.run("fork a --at 0 --live");
    for run in ["a", "a.fork1"] {
        b.run(&format!("send {run} OK --role boss --db {db}"));
    }
    assert_eq!((a.lines("ran"), b.lines("ran")), (2, 0));
    a.run("send b OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran")), (2, 1));
}

#[test]
fn a_run_moves_only_if_somebody_says_so() {
    let (a, b, db) = folders("folders-moved");
    a.run("run charter.yaml --run r");
    a.run("run charter.yaml --run s");
    let (code, _, err) = b.any(&format!("run charter.yaml --run r --db {db}"));
    assert!(code == 2 && err.contains("run `r` already exists, in `") && err.contains("folders-moved-a"), "{err}");
    let (code, _, err) = b.any(&format!("run charter.yaml --resume r --db {db}"));
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
    a.run("run charter.yaml --run r");
    b.0.file("other.yaml", CHARTER.replace("id: pay", "id: other"));
    let (code, _, err) = b.any(&format!("run --resume r --charter other.yaml --db {db}"));
    assert!(code == 2 && err.contains("`other.yaml` is another charter than that of run `r`"), "{err}");
    b.0.file("pay.sh", "echo evil");
    let (code, _, err) = b.any(&format!("run --resume r --charter charter.yaml --db {db}"));
    assert!(code == 2 && err.contains("`pay.sh` has changed since the run started"), "{err}");
    b.0.file("pay.sh", "echo x >> ran; echo 1");
    // None of them has moved it.
    fs::rename(a.path("pay.sh"), a.path("kept.sh")).unwrap();
    b.run(&format!("run --resume r --charter charter.yaml --db {db}"));
    a.run("send r OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran")), (0, 1));
    fs::rename(a.path("kept.sh"), a.path("pay.sh")).unwrap();
    a.run("send s OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran")), (1, 1));
}

#[test]
fn a_held_run_moves_too() {
    let (a, b, db) = folders("folders-held-moved");
    let _prompt = on_terminal(&a, "run charter.yaml --run held");
    a.holder();
    a.run("run charter.yaml --run r");
    b.run(&format!("run --resume r --charter charter.yaml --db {db}"));
    a.run("send r OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran")), (0, 1));
}

#[test]
fn an_imported_run_works_in_the_folder_that_was_allowed() {
    let (a, b, db) = folders("folders-import");
    let other = folder("folders-import-from");
    other.run("run charter.yaml --run r");
    other.run("export r -o r.jsonl");
    let exported = other.path("r.jsonl").display().to_string();
    assert!(!fs::read_to_string(&exported).unwrap().contains("folders-import-from"));
    a.run(&format!("import {exported}"));
    b.run(&format!("run charter.yaml --run b --db {db}"));
    let (code, out, err) = a.any("trust r --charter charter.yaml --yes");
    assert!(code == 0 && err.contains("  in the folder \"") && err.contains("folders-import-a"), "{out}{err}");
    b.run(&format!("run charter.yaml --run b2 --db {db}"));
    a.run("send r OK --role boss");
    assert_eq!((a.lines("ran"), b.lines("ran"), other.lines("ran")), (1, 0, 0));
    a.run("verify");
}

#[test]
fn a_folder_that_is_gone_is_what_is_reported() {
    let site = Site::new("folders-gone", &[]);
    fs::create_dir(site.path("old")).unwrap();
    let charter = CHARTER.replace("[sh, pay.sh]", "[sh, -c, 'echo x >> ran; echo 1']");
    fs::write(site.path("old/charter.yaml"), charter).unwrap();
    for run in ["r", "s"] {
        site.run(&format!("run old/charter.yaml --run {run}"));
    }
    fs::rename(site.path("old"), site.path("new")).unwrap();
    let (_, out, err) = site.any("send r OK --role boss");
    assert!(err.contains("cannot start `sh`: the folder of the run does not exist"), "{out}{err}");
    assert!(!site.run("export r").contains(&site.path("old").display().to_string()));
    site.run("run --resume s --charter new/charter.yaml");
    site.run("send s OK --role boss");
    assert_eq!(site.lines("new/ran"), 1);
}
