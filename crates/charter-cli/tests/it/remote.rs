//! Commands on a server: the key says who sends them, and what is printed works there.
#![cfg(all(unix, feature = "serve"))]

use crate::serve::Served;
use crate::support::{Ran, Scratch, charter};

const GATE: &str = "
charter: 1
id: gate
version: 1.0.0
roles: {boss: {}, clerk: {}}
events: {SIGN: {by: boss}, NOTE: {by: clerk}}
actors: {work: {kind: exec, command: [sh, -c, 'sleep 0.2; echo 1']}}
initial: working
states:
  working: {invoke: {src: work, onDone: open, onError: open}}
  open: {on: {SIGN: signed, NOTE: {actions: []}}}
  signed: {type: final}
";

struct Place {
    scratch: Scratch,
    served: Served,
    db: String,
}

impl Place {
    fn new() -> Place {
        let scratch = Scratch::new("remote");
        let db = scratch.0.join("charter.db").display().to_string();
        std::fs::create_dir(scratch.0.join("charters")).unwrap();
        scratch.file("charters/gate.yaml", GATE);
        let served = Served::start_with(&scratch.0, &["--offer", "gate"]);
        Place { scratch, served, db }
    }

    fn key(&self, id: &str, roles: &[&str]) -> String {
        let mut args = vec!["key", "add", id, "--db", &self.db];
        roles.iter().for_each(|role| args.extend(["--role", role]));
        charter(&args).out.trim().to_owned()
    }

    fn ask(&self, key: &str, args: &[&str]) -> Ran {
        charter(&[args, &["--server", &self.served.url, "--key", key]].concat())
    }
}

#[test]
fn hints_are_for_the_roles_of_the_key() {
    let place = Place::new();
    let gate = place.scratch.0.join("charters/gate.yaml").display().to_string();
    let ana = place.key("ana", &["gate/clerk"]);
    let ran = place.ask(&ana, &["run", &gate, "--run", "g"]);
    assert!(ran.err.contains("work done"), "{}", ran.err);
    assert!(!ran.err.contains("cancelled"), "{}", ran.err);
    let url = &place.served.url;
    assert!(
        ran.out.contains("  for SIGN by boss  (needs the key of somebody else with the role boss)\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains(&format!("  for NOTE by clerk  charter send g NOTE --server {url}\n")), "{}", ran.out);
    assert!(!ran.out.contains("charter verify"), "{}", ran.out);
    assert_eq!(place.ask(&ana, &["send", "g", "NOTE"]).code, 0);

    // A role in another charter is none here.
    let eve = place.key("eve", &["reader", "other/clerk"]);
    let legal = place.ask(&eve, &["legal", "g"]);
    assert_eq!(legal.code, 1, "{}", legal.out);
    assert!(legal.out.contains("not NOTE: needs the role clerk"), "{}", legal.out);
    let bob = place.key("bob", &["gate/g/boss"]);
    let legal = place.ask(&bob, &["legal", "g"]);
    assert!(legal.out.starts_with("SIGN\n") && legal.out.contains("not NOTE: needs the role clerk"), "{}", legal.out);
}

#[test]
fn a_run_of_a_charter_with_files_is_exported_where_they_are() {
    let place = Place::new();
    place.scratch.file("answers.yaml", "[{output: 1}]");
    let with_file =
        GATE.replace("kind: exec, command: [sh, -c, 'sleep 0.2; echo 1']", "kind: scripted, answers: answers.yaml");
    let gate = place.scratch.file("gate.yaml", with_file);
    let ran = charter(&["run", &gate, "--run", "f", "--db", &place.db]);
    assert!(ran.out.contains("f: active in open"), "{} {}", ran.out, ran.err);
    let root = place.key("root", &["admin"]);
    let to = place.scratch.0.join("f.jsonl");
    let ran = place.ask(&root, &["export", "f", "-o", to.to_str().unwrap()]);
    assert!(ran.code == 2 && ran.err.contains("on the machine of the server"), "{} {}", ran.code, ran.err);
    assert!(!ran.err.contains("damaged") && !to.exists(), "{}", ran.err);
    // An export that fails leaves what was there, and nothing beside it.
    std::fs::write(&to, "an older one").unwrap();
    let ran = place.ask(&root, &["export", "f", "-o", to.to_str().unwrap()]);
    assert!(ran.code == 2 && std::fs::read(&to).unwrap() == b"an older one", "{}", ran.err);
    let names = std::fs::read_dir(&place.scratch.0).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("f.jsonl")).count(), 1);
    let ran = charter(&["export", "f", "-o", to.to_str().unwrap(), "--db", &place.db]);
    assert!(ran.code == 0 && to.exists(), "{}", ran.err);
}

#[test]
fn a_charter_that_only_the_server_has_is_started_by_its_id() {
    let place = Place::new();
    let ana = place.key("ana", &["gate/clerk"]);
    let ran = place.ask(&ana, &["run", "gate", "--run", "g"]);
    assert!(ran.out.contains("g: active in open"), "{} {}", ran.out, ran.err);
    let ran = place.ask(&ana, &["run", "gete"]);
    assert!(ran.code == 2 && ran.err.contains("no file or bundled charter is named `gete`"), "{}", ran.err);
    assert!(ran.err.contains(&place.served.url), "{}", ran.err);
}
