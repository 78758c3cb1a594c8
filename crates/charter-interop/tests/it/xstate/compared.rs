//! Compares the kernel with XState itself on random configs and events.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use charter_format::{ReadOptions, read};
use charter_interop::import;
use charter_kernel::Definition;
use serde_json::{Value as Json, json};

use super::Run;
use crate::xstate_cases;

/// Runs random configs and event streams in XState and in the kernel. The test is skipped unless
/// `XSTATE_DIR` is a folder in which `npm install xstate@5` was run. `XSTATE_CASES` is the number
/// of cases (default 500), and `XSTATE_SEED` is the first seed.
#[test]
fn the_kernel_behaves_as_xstate() {
    let Some(dir) = std::env::var_os("XSTATE_DIR") else {
        eprintln!("skipped: XSTATE_DIR is not set");
        return;
    };
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (count, seed) = (number("XSTATE_CASES", 500), number("XSTATE_SEED", 1));
    let cases: Vec<xstate_cases::Case> = (seed..seed + count).map(xstate_cases::case).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xstate/oracle.cjs");
    let mut node = Command::new("node")
        .arg(script)
        .env("XSTATE_DIR", dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines: String = cases.iter().map(|c| format!("{}\n", c.line())).collect();
    let mut stdin = node.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    let output = node.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers: Vec<Json> =
        String::from_utf8(output.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(answers.len(), cases.len(), "XState did not answer every case");
    let mut around = read(&xstate_cases::around(), "around.yaml", &ReadOptions::default()).unwrap().definition;
    around.root = Definition::default().root;
    let (mut compared, mut refused, mut broken) = (0, 0, 0);
    for (case, answer) in cases.iter().zip(&answers) {
        // Skip cases that XState cannot run: a refused config, an endless loop.
        let Some(expected) = answer.as_array().filter(|seen| seen.iter().all(|s| s["status"] != "error")) else {
            refused += 1;
            continue;
        };
        let document = import::xstate(&case.config, "case.json", &around)
            .unwrap_or_else(|e| panic!("seed {}: {e}\n{}", case.seed, case.config));
        if std::env::var_os("XSTATE_SHOW").is_some() {
            eprintln!("seed {} {}", case.seed, case.line());
        }
        let mut run = Run::start(document.definition);
        for (at, expected) in expected.iter().enumerate() {
            if expected["status"] == "broken" {
                broken += 1;
                break;
            }
            if at > 0 && !run.snapshot.status().is_finished() {
                match &case.events[at - 1] {
                    xstate_cases::RuntimeEvent::Event(kind) => drop(run.send(kind)),
                    xstate_cases::RuntimeEvent::Wait(ms) => drop(run.wait(*ms)),
                    xstate_cases::RuntimeEvent::Done(n) => run.answer(*n, true),
                    xstate_cases::RuntimeEvent::Failed(n) => run.answer(*n, false),
                }
            }
            let log = run.snapshot.actor("root").unwrap().variable("log").cloned().unwrap_or_default();
            let found = json!({"states": run.states(), "log": log, "status": if run.snapshot.status().is_finished() { "done" } else { "active" }, "waits": run.pending()});
            assert_eq!(&found, expected, "seed {}, after {:?}\n{}", case.seed, &case.events[..at], case.config);
        }
        compared += 1;
    }
    eprintln!(
        "{compared} configs compared with XState ({broken} until it lost its configuration), {refused} that it cannot run"
    );
    assert!(compared * 10 > count * 6, "too few were compared: {compared} of {count}");
}
