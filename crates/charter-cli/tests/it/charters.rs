//! The bundled charters: each compiles, and its scenarios pass.

use std::path::PathBuf;

use crate::support::{Scratch, charter};
use serde_json::Value as Json;

#[test]
fn every_scenario_of_every_charter_passes() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../charters");
    let ran = charter(&["test", &folder.display().to_string(), "--json"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let all: Json = serde_json::from_str(&ran.out).unwrap();
    assert!(all["passed"].as_u64().unwrap() > 0);
}

#[test]
fn all_charters_of_the_folder_are_bundled() {
    for bundled in charter_cli::bundled::ALL {
        let ran = charter(&["test", bundled.name]);
        assert_eq!(ran.code, 0, "{}: {}{}", bundled.name, ran.out, ran.err);
        assert!(!bundled.scenarios.is_empty(), "{} has no scenarios", bundled.name);
    }
    assert!(charter_cli::bundled::find("feijoa").is_some());
}

#[test]
fn the_effort_of_a_check_decides_what_is_proved() {
    let scratch = Scratch::new("effort");
    let chart = "
charter: 1
id: c
context: {n: 0}
events: {ADD: {data: {type: object, required: [k], properties: {k: {type: integer}}}}}
guards: {ok: event.k > 0}
states: {a: {on: {ADD: {guard: ok, actions: {assign: {n: '= event.k'}}}}}}
properties: [{id: positive, always: context.n >= 0}]
";
    let file = scratch.file("c.yaml", chart);
    let check = |more: &[&str]| charter(&[&["check", &file, "--require-proof"], more].concat());
    let ran = check(&[]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    let ran = check(&["--effort", "1"]);
    assert!(ran.code == 1 && ran.out.contains("property-undecided"), "{}", ran.out);
}
