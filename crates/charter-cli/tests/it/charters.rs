//! The bundled charters: each compiles, and its scenarios pass.

use std::path::PathBuf;

use crate::support::charter;
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
