//! `charter trust` and the folder of an imported run: an actor that is allowed can start.

use std::fs;

use crate::support::processes::{Site, on_terminal};

const CHARTER: &str = "
charter: 1
id: late
roles: {op: {}}
events: {GO: {by: op}}
actors:
  job: {kind: exec, command: COMMAND}
states:
  w: {on: {GO: a}}
  a: {invoke: {src: job, onDone: ok, onError: {target: bad}}}
  ok: {type: final}
  bad: {type: final, tags: [failed]}
";

const PROGRAM: &str = "#!/bin/sh\necho x >> ran\necho 1\n";

/// A folder with the charter and its program.
fn folder(name: &str, command: &str) -> Site {
    let site = Site::new(name, &[("late.yaml", CHARTER.replace("COMMAND", command)), ("p.sh", PROGRAM.to_owned())]);
    #[cfg(unix)]
    fs::set_permissions(site.path("p.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    site
}

/// A journal without the folder, with an imported run whose actor waits for permission; the folder.
fn imported(name: &str, command: &str) -> (Site, Site) {
    let (from, here) = (folder(&format!("{name}-from"), command), Site::new(name, &[]));
    from.run("run late.yaml --run r");
    from.run("export r -o r.jsonl");
    here.run(&format!("import {}", from.path("r.jsonl").display()));
    here.run("send r GO --as a --role op");
    (from, here)
}

/// The digest of the manifest of the run.
fn manifest(site: &Site) -> String {
    let shown: serde_json::Value = serde_json::from_str(&site.run("trust r --show --json")).unwrap();
    shown["manifest"].as_str().unwrap().to_owned()
}

#[test]
fn an_actor_that_needs_a_folder_is_not_allowed_without_one() {
    for (name, command) in
        [("trust-program", "[./p.sh]"), ("trust-argument", "[sh, p.sh]"), ("trust-inside", "[sh, -c, 'sh p.sh']")]
    {
        let (from, here) = imported(name, command);
        let manifest = manifest(&here);
        let (_, _, err) = here.any("trust r --show");
        assert!(err.contains("in no folder that is known here") && err.contains("`--charter FILE`"), "{err}");
        let exact = format!("--manifest {manifest}");
        for (how, next) in [("", String::new()), ("--yes", String::new()), (exact.as_str(), format!(" {exact}"))] {
            let (code, out, err) = here.any(&format!("trust r {how}"));
            assert!(code == 2 && err.contains(&format!("`charter trust r --charter FILE{next}`")), "{out}{err}");
            assert_eq!(here.records("r").len(), 2, "{how}");
        }
        // What is printed with the file can be used as it is.
        let file = from.path("late.yaml").display().to_string();
        let (code, _, err) = here.any(&format!("trust r --charter {file}"));
        let command = format!("trust r --charter {file} --manifest {manifest}");
        assert!(code == 2 && err.contains(&format!("`charter {command}` allows exactly that")), "{err}");
        let out = here.run(&command);
        assert!(out.contains("r: done in ok"), "{out}");
        assert_eq!(from.lines("ran"), 1);
    }
}

#[test]
fn a_holder_is_not_asked_to_allow_what_could_not_start() {
    let (from, here) = imported("trust-held", "[./p.sh]");
    fs::write(here.path("wait.yaml"), CHARTER.replace("COMMAND", "['true']").replace("id: late", "id: wait")).unwrap();
    let _prompt = on_terminal(&here, "run wait.yaml --run w");
    here.holder();
    let (code, out, err) = here.any("trust r --yes");
    assert!(code == 2 && err.contains("`charter trust r --charter FILE`"), "{out}{err}");
    let out = here.run(&format!("trust r --yes --charter {}", from.path("late.yaml").display()));
    assert!(out.contains("r: done in ok"), "{out}");
}

#[test]
fn the_folder_is_shown_before_it_is_used() {
    let (from, here) = imported("trust-shown", "[./p.sh]");
    let file = from.path("late.yaml").display().to_string();
    let (code, _, err) = here.any(&format!("trust r --show --charter {file}"));
    assert!(code == 0 && err.contains("in the folder \"") && err.contains("trust-shown-from"), "{err}");
    assert!(!err.contains("not as it was") && !err.contains("--charter FILE"), "{err}");
    fs::write(from.path("p.sh"), "echo 2").unwrap();
    let (code, _, err) = here.any(&format!("trust r --show --charter {file}"));
    assert!(code == 0 && err.contains("not as it was: `p.sh` has changed since the run started"), "{err}");
    let shown = here.run(&format!("trust r --show --charter {file} --json"));
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["folder"].as_str().unwrap().contains("trust-shown-from"), "{shown}");
    assert!(shown["changes"][0].as_str().unwrap().starts_with("`p.sh` has changed"), "{shown}");
    // Looking has recorded nothing and moved nothing.
    assert_eq!(here.records("r").len(), 2);
    assert!(here.any("trust r --yes").2.contains("--charter FILE"));
}

#[test]
fn a_folder_that_is_gone_is_none() {
    let (from, here) = imported("trust-gone", "['true']");
    fs::create_dir(here.path("old")).unwrap();
    fs::copy(from.path("late.yaml"), here.path("old/late.yaml")).unwrap();
    here.run("run old/late.yaml --run other");
    fs::rename(here.path("old"), here.path("new")).unwrap();
    let (code, out, err) = here.any("trust r --yes");
    assert!(code == 2 && err.contains("`charter trust r --charter FILE`"), "{out}{err}");
    let out = here.run("trust r --yes --charter new/late.yaml");
    assert!(out.contains("r: done in ok"), "{out}");
}

#[test]
fn a_run_that_was_allowed_without_a_folder_can_be_given_one() {
    // Its actor needs no folder.
    let person = CHARTER.replace("kind: exec, command: COMMAND", "kind: human");
    let site = |name: &str| Site::new(name, &[("late.yaml", person.clone())]);
    let (from, here, elsewhere) = (site("trust-given-from"), Site::new("trust-given", &[]), site("trust-given-other"));
    from.run("run late.yaml --run r");
    from.run("export r -o r.jsonl");
    here.run(&format!("import {}", from.path("r.jsonl").display()));
    here.run("trust r --yes");
    let file = from.path("late.yaml").display().to_string();
    let (code, _, err) = here.any(&format!("trust r --charter {file}"));
    assert!(code == 0 && err.contains("run `r` was allowed without a folder; from now on, it works in"), "{err}");
    let (code, _, err) = here.any(&format!("trust r --charter {file}"));
    assert!(code == 2 && err.contains("nothing to allow"), "{err}");
    let other = elsewhere.path("late.yaml").display().to_string();
    let (code, _, err) = here.any(&format!("trust r --charter {other}"));
    assert!(code == 2 && err.contains(&format!("`charter run --resume r --charter {other}` moves it")), "{err}");
}

/// One rule for `charter trust` and for the event that it sends.
#[test]
fn the_event_allows_nothing_that_could_not_start() {
    let (from, here) = imported("trust-event", "[./p.sh]");
    let send = |role: &str| format!("send r charter.trust {{\"manifest\":\"{}\"}} --role {role}", manifest(&here));
    let (code, out, err) = here.any(&send("operator"));
    assert!(
        code == 2 && err.contains("they use `p.sh`, and the folder of the charter is not known here"),
        "{out}{err}"
    );
    assert_eq!(here.records("r").len(), 2);
    // Who may allow nothing is refused, as always.
    assert_eq!(here.any(&send("op")).0, 1);
    from.run(&format!("run late.yaml --run other --db {}", here.path("charter.db").display()));
    let out = here.run(&send("operator"));
    assert!(out.contains("r: done in ok"), "{out}");
    assert_eq!(from.lines("ran"), 1);
}

#[test]
fn nothing_is_recorded_about_a_run_that_has_ended() {
    let (from, here) = imported("trust-ended", "['true']");
    here.any("send r charter.cancel --as o --role operator");
    let records = here.records("r").len();
    for how in ["--yes", "--yes --charter late.yaml", ""] {
        fs::copy(from.path("late.yaml"), here.path("late.yaml")).unwrap();
        let (code, out, err) = here.any(&format!("trust r {how}"));
        assert!(code == 2 && err.contains("run `r` has ended, so nothing of this will be carried out"), "{out}{err}");
    }
    assert!(here.any("trust r --show").2.contains("the run has ended"));
    assert_eq!(here.records("r").len(), records);
}
