//! Runs that are started over HTTP work in the folder of the charter that the server offers.

use std::fs;
use std::path::Path;

use charter_runtime::Charter;
use serde_json::json;

use crate::site::Site;

const WORK: &str = "
charter: 1
id: work
roles: {boss: {}}
events: {GO: {by: boss}}
actors: {work: {kind: exec, command: [sh, work.sh]}}
initial: idle
states:
  idle: {on: {GO: working}}
  working: {invoke: {src: work, timeout: 1h, onDone: done, onError: failed}}
  done: {type: final}
  failed: {type: final}
";

fn lines(folder: &Path) -> usize {
    fs::read_to_string(folder.join("ran")).unwrap_or_default().lines().count()
}

#[test]
fn a_copy_of_a_charter_that_is_added_elsewhere_moves_no_run() {
    let all = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| all.path().join(name));
    for folder in [&a, &b] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("charter.yaml"), WORK).unwrap();
        fs::write(folder.join("work.sh"), "echo x >> ran; echo 1").unwrap();
    }
    let site = Site::new();
    let charter = Charter::load(&a).unwrap();
    let digest = charter.digest().to_string();
    site.put(charter);
    let ana = site.person("ana", &["work/boss"]);
    assert_eq!(ana.start("work", "before").status, 201);
    // Somebody on this machine starts a copy.
    site.wait(site.host.add(Charter::load(&b).unwrap())).unwrap();
    assert_eq!(ana.start("work", "after").status, 201);
    assert_eq!(ana.start(&digest, "by-digest").status, 201);
    for run in ["before", "after", "by-digest"] {
        let sent = ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "GO"}));
        assert_eq!(sent.status, 200, "{sent:?}");
        site.wait(site.host.ended(run)).unwrap();
    }
    assert_eq!((lines(&a), lines(&b)), (3, 0));
}
