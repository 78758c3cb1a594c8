//! What runs is what was started: attacks with another folder and with a forged export.

use std::fs;

use serde_json::Value as Json;

use crate::support::charter_typed;
use crate::support::processes::Site;

/// A run whose command runs once somebody has approved it.
pub(crate) const CHARTER: &str = "
charter: 1
id: pay
roles: {boss: {}}
events: {OK: {by: boss}}
context: {error: null}
actors:
  pay: {kind: exec, command: [sh, pay.sh]}
initial: waiting
states:
  waiting: {on: {OK: paying}}
  paying:
    invoke:
      src: pay
      timeout: 2h
      onDone: done
      onError: {target: failed, actions: {assign: {error: '= event.error'}}}
  done: {type: final}
  failed: {type: final}
";

/// A folder with the charter, and a script that leaves a file `ran`.
fn folder(name: &str) -> Site {
    let script = format!("echo {name} > ran; echo 1");
    Site::new(name, &[("charter.yaml", CHARTER.to_owned()), ("pay.sh", script)])
}

#[test]
fn the_script_of_another_folder_does_not_run() {
    let (ours, theirs) = (folder("ours"), folder("theirs"));
    let db = ours.path("charter.db").display().to_string();
    ours.run("run charter.yaml --run r");
    // The same relative names lead to other files here.
    let out = theirs.run(&format!("send r OK --role boss --db {db}"));
    assert!(out.contains("r: done"), "{out}");
    assert_eq!((ours.path("ran").exists(), theirs.path("ran").exists()), (true, false));
    ours.run("verify");
}

#[test]
fn a_script_that_was_changed_after_the_start_does_not_run() {
    let site = folder("original");
    site.run("run charter.yaml --run r");
    fs::write(site.path("pay.sh"), "echo changed > ran; echo 1").unwrap();
    let (_, out, _) = site.any("send r OK --role boss");
    assert!(out.contains("r: done in failed") && !site.path("ran").exists(), "{out}");
    let error = site.records("r")[2]["event"]["data"]["error"].clone();
    assert_eq!((&error["code"], &error["file"]), (&"actor-changed".into(), &"pay.sh".into()));
}

#[test]
fn the_name_and_the_source_of_an_export_lead_nowhere() {
    let (ours, theirs) = (folder("from"), folder("to"));
    ours.run("run charter.yaml --run r");
    let exported = ours.run("export r");
    let (first, rest) = exported.split_once('\n').unwrap();
    let mut header: Json = serde_json::from_str(first).unwrap();
    assert_eq!(header["charter"]["name"], "charter.yaml");
    let place = theirs.path("charter.yaml").display().to_string();
    header["charter"]["name"] = place.into();
    let forged = format!("{header}\n{rest}");
    header["charter"]["source"] = CHARTER.replace("boss", "anybody").into();
    let reads_well = format!("{header}\n{rest}");
    header["charter"]["source"] = "another source".into();
    let importer = Site::new(
        "importer",
        &[("forged.jsonl", forged), ("source.jsonl", format!("{header}\n{rest}")), ("roles.jsonl", reads_well)],
    );
    // People read the source, so it has to be that of the definition.
    for (file, why) in [("source.jsonl", "it cannot be read"), ("roles.jsonl", "it gives the definition sha256:")] {
        let (code, _, err) = importer.any(&format!("import {file}"));
        assert!(code == 2 && err.contains("the `source` of the charter is not that of its definition"), "{err}");
        assert!(err.contains(why), "{err}");
        let (code, out, err) = importer.any(&format!("verify {file}"));
        assert!(code == 1 && format!("{out}{err}").contains("the `source` of the charter"), "{out}{err}");
    }
    importer.run("import forged.jsonl");
    importer.run("verify");
    let (_, out, err) = importer.any("send r OK --role boss");
    assert!(err.contains("`charter trust r --show`"), "{out}{err}");
    assert_eq!(importer.records("r").len(), 2, "the actor did not run");
    // Its script has no folder here: nothing is allowed that would only fail.
    let (code, out, err) = importer.any("trust r --yes");
    assert!(code == 2 && err.contains("`charter trust r --charter FILE`"), "{out}{err}");
    assert_eq!(importer.records("r").len(), 2);
    assert!(!theirs.path("ran").exists() && !ours.path("ran").exists());
}

#[test]
fn an_imported_run_does_nothing_before_somebody_allows_it() {
    let ours = folder("exporter");
    ours.run("run charter.yaml --run r");
    // What was allowed in another journal does not count.
    let shown: Json = serde_json::from_str(&ours.run("trust r --show --json")).unwrap();
    let trust = format!("send r charter.trust {{\"manifest\":{}}} --role operator", shown["manifest"]);
    ours.run("export r -o r.jsonl");
    // A run of the same charter was started there, so that its folder is known.
    let other = folder("other");
    other.run("run charter.yaml --run first");
    other.run(&format!("import {}", ours.path("r.jsonl").display()));
    other.run(&format!("{trust} --id t"));
    other.run("export r -o r.jsonl");
    // There is nothing to allow any more, or where the run was started; a repetition is one.
    for site in [&ours, &other] {
        let (code, _, err) = site.any(&trust);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains("nothing to allow: run `r` was started in this journal, or is allowed"), "{err}");
    }
    assert!(other.any(&format!("{trust} --id t")).2.contains("this event was sent before, as record 1"));
    assert_eq!((ours.records("r").len(), other.records("r").len()), (1, 2));
    let here = folder("here");
    here.run(&format!("import {}", other.path("r.jsonl").display()));
    here.run("fork r --at 1 --live");
    for run in ["r", "r.fork1"] {
        let (_, out, err) = here.any(&format!("send {run} OK --role boss"));
        assert!(err.contains(&format!("`charter trust {run} --show`")), "{out}{err}");
        // Neither does another manifest, nor a sender without the role.
        let (_, shown, _) = here.any(&format!("trust {run} --show --json"));
        let shown: Json = serde_json::from_str(&shown).unwrap();
        let manifest = shown["manifest"].as_str().unwrap();
        for other in ["{\"manifest\":\"x\"}", "{\"manifest\":1}", "{}"] {
            let (code, out, err) = here.any(&format!("send {run} charter.trust {other} --role operator"));
            assert_eq!(code, 2, "{out}{err}");
            assert!(err.contains(&format!("the run has the manifest {manifest}, not ")), "{err}");
        }
        let (code, ..) = here.any(&format!("send {run} charter.trust {{\"manifest\":\"{manifest}\"}} --role boss"));
        assert_eq!(code, 1);
        let (_, out, err) = here.any(&format!("run --resume {run}"));
        assert!(err.contains("untrusted") && !here.path("ran").exists(), "{out}{err}");
        let (code, ..) = here.any(&format!("trust {run} --manifest sha256:0"));
        assert_eq!(code, 2);
        assert!(!here.path("ran").exists());
    }
    // The script of this folder has another content; that of the exporter was allowed.
    let (_, out, err) = here.any("trust r --charter charter.yaml --yes");
    assert!(out.contains("r: done in failed") && err.contains("`pay.sh` has changed"), "{out}{err}");
    assert!(!here.path("ran").exists());
    fs::copy(ours.path("pay.sh"), here.path("pay.sh")).unwrap();
    let (_, out, err) = here.any("trust r.fork1 --charter charter.yaml --yes");
    assert!(out.contains("r.fork1: done in done") && here.path("ran").exists(), "{out}{err}");
    here.run("verify");
}

#[test]
fn what_is_printed_about_an_untrusted_run_leads_to_that_run_and_shows_before_it_grants() {
    let ours = folder("sender");
    ours.run("run charter.yaml --run r");
    ours.run("export r -o r.jsonl");
    let here = folder("receiver");
    // Another run of this name is in the default journal.
    here.run("run charter.yaml --run r");
    here.run(&format!("import {} --db p.db", ours.path("r.jsonl").display()));
    let (_, out, err) = here.any("send r OK --role boss --db p.db");
    let command = "charter trust r --show --db p.db";
    assert_eq!(err.matches("came from another journal").count(), 1, "once: {err}");
    assert!(err.contains(&format!("`{command}`")), "{err}");
    assert!(out.contains("  for permission: ") && !out.contains("to resume"), "{out}");
    let shown = here.run("show r --db p.db");
    assert!(shown.contains("not running: nobody has allowed it") && shown.contains(command), "{shown}");
    assert!(!shown.contains("--resume"), "{shown}");
    let (_, legal, _) = here.any("legal r --db p.db");
    assert!(legal.contains(command) && legal.contains("waiting for somebody to allow"), "{legal}");
    // Without a terminal, nothing is granted before somebody has said so.
    let (code, _, err) = here.any("trust r --charter charter.yaml --db p.db");
    assert!(code == 2 && err.contains("only after a confirmation") && err.contains(command), "{err}");
    let (code, _, err) = here.any("trust r --yes");
    assert!(code == 2 && err.contains("was started in this journal"), "{err}");
    assert_eq!(here.records("r").len(), 1);
    let (file, db) = (here.path("charter.yaml").display().to_string(), here.path("p.db").display().to_string());
    let ran = charter_typed(&["trust", "r", "--charter", &file, "--db", &db], "\n", None);
    assert!(ran.err.contains("  actor pay: exec ") && ran.err.ends_with("to do this? [y/N] "), "{}", ran.err);
    assert!(ran.code == 1 && !here.path("ran").exists(), "{}", ran.err);
    fs::copy(ours.path("pay.sh"), here.path("pay.sh")).unwrap();
    here.run("trust r --charter charter.yaml --yes --db p.db");
    assert!(here.path("ran").exists());
    assert!(!here.run("show r --db p.db").contains("untrusted"));
}
