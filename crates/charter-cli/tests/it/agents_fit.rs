//! What `charter guard init`, `doctor` and `charter hook install` say about a setup that cannot
//! work as it is meant.

use std::fs;

use charter_guard::client::Client;
use serde_json::Value as Json;

use crate::agents::{hook, read, site};
use crate::support::processes::{Site, said};

const DOCS: &str = include_str!("../../../../docs/agents.md");

/// Runs a command with a home folder of its own.
fn at_home(site: &Site, args: &[&str]) -> (i32, String, String) {
    let mut command = site.command("");
    command.env("HOME", site.path("home")).args(args);
    said(command.output().unwrap())
}

/// Runs a command that a message suggests, between backticks.
fn pasted(site: &Site, text: &str, start: &str) -> (i32, String, String) {
    let begin = text.find(start).unwrap_or_else(|| panic!("{start}: {text}"));
    let line = text[begin..].split('`').next().unwrap();
    let mut shell = std::process::Command::new("/bin/sh");
    let program = line.replacen("charter", env!("CARGO_BIN_EXE_charter"), 1);
    said(shell.args(["-c", &program]).current_dir(site.path("")).env("HOME", site.path("home")).output().unwrap())
}

#[test]
fn codex_gets_a_run_of_its_own_where_the_agent_runs_the_tests() {
    let site = site("codex-second");
    assert_eq!(at_home(&site, &["guard", "init", "claude", "--test", "make test"]).0, 0);
    for more in [&[][..], &["--host-tests"]] {
        let (code, _, err) = at_home(&site, &[&["guard", "init", "codex", "--test", "make test"], more].concat());
        assert!(code == 1 && err.contains("left to do: in the run `coder` the agent runs the tests"), "{err}");
    }
    let (code, out, err) = at_home(&site, &["guard", "doctor", "codex"]);
    assert!(code == 1 && out.contains("broken, because in the run `coder`"), "{out}{err}");
    let (code, out, _) = at_home(&site, &["guard", "doctor", "codex", "--json"]);
    let line: Json = serde_json::from_str(out.trim()).unwrap();
    assert!(code == 1 && line["control"] == "broken" && line["broken"].is_string(), "{line}");
    let (_, out, _) = at_home(&site, &["guard", "doctor", "codex"]);
    let (code, out, err) = pasted(&site, &out, "charter guard init codex");
    assert_eq!(code, 0, "{out}{err}");
    assert_eq!(site.records("coder-codex")[0]["event"]["data"]["testsBy"], "host");
    assert_eq!(site.records("coder-codex")[0]["event"]["data"]["test"], "make test");
    let (code, out, err) = at_home(&site, &["guard", "doctor", "codex"]);
    assert!(code == 0 && !out.contains("broken"), "{out}{err}");
    // For another client it is in vain, too.
    let (code, _, err) = at_home(&site, &["guard", "init", "gemini", "--host-tests"]);
    assert!(code == 1 && err.contains("`--host-tests` needs another one"), "{err}");
    assert_eq!(at_home(&site, &["guard", "init", "gemini"]).0, 0);
}

#[test]
fn what_a_run_cannot_do_is_said_when_it_starts() {
    let site = site("init-limits");
    let (code, _, err) = at_home(&site, &["guard", "init", "claude", "--run", "a"]);
    assert!(code == 0 && err.contains("names no test command, so nothing can be committed"), "{err}");
    let (code, _, err) = at_home(&site, &["guard", "init", "claude", "--run", "b", "--test", "make test"]);
    assert!(code == 0 && !err.contains("nothing can be committed"), "{err}");
    let (code, _, err) =
        at_home(&site, &["guard", "init", "claude", "--run", "c", "--input", r#"{"protcted": ["a"]}"#]);
    assert!(code == 2 && err.contains("protcted"), "{err}");
    let (_, help, _) = at_home(&site, &["guard", "init", "--help"]);
    assert!(help.contains("--db") && !help.contains("--server") && !help.contains("--key"), "{help}");
}

#[test]
fn the_commands_that_init_suggests_are_for_its_folder() {
    let site = site("init-dir");
    fs::create_dir(site.path("part")).unwrap();
    let (code, _, err) = at_home(&site, &["guard", "init", "claude", "--dir", "part", "--test", "make test"]);
    assert_eq!(code, 0, "{err}");
    let line = err.lines().find(|line| line.starts_with("charter guard doctor")).unwrap();
    let (code, out, err) = pasted(&site, line, "charter guard doctor");
    assert!(code == 0 && out.contains("the hook refuses"), "{line}: {out}{err}");
}

#[test]
fn a_hook_whose_journal_is_not_there_for_all_says_so() {
    let site = site("install-blocked");
    let (code, _, err) = at_home(&site, &["hook", "install", "claude", "--managed", "--dry-run"]);
    assert!(code == 0 && err.contains("all other users is blocked"), "{err}");
    assert!(err.contains("`charter hook install claude --managed --run coder --server URL`"), "{err}");
    let server = ["hook", "install", "claude", "--managed", "--dry-run", "--server", "http://127.0.0.1:1"];
    let (code, _, err) = at_home(&site, &server);
    assert!(code == 0 && !err.contains("warning"), "{err}");
    for client in Client::ALL {
        let install = ["hook", "install", client.name(), "--user", "--dry-run"];
        let (code, _, err) = at_home(&site, &install);
        assert!(code == 0 && !err.contains("warning"), "{err}");
        let (code, _, err) = at_home(&site, &[&install[..], &["--db", "none.db"]].concat());
        assert!(code == 0 && err.contains("warning: there is no journal `") && err.contains("none.db"), "{err}");
    }
}

#[test]
fn the_doctor_looks_at_hooks_over_http() {
    let site = site("doctor-http");
    let json = DOCS.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    fs::create_dir(site.path(".claude")).unwrap();
    let doctor = |text: &str| {
        fs::write(site.path(".claude/settings.json"), text).unwrap();
        at_home(&site, &["guard", "doctor"])
    };
    let (code, out, err) = doctor(json);
    assert!(code == 0 && out.contains("was not tried") && !out.contains("broken"), "{out}{err}");
    assert!(out.contains("2.1.197") && out.contains("2.1.332"), "{out}");
    let (code, out, _) = doctor(&json.replace(r#", "onFailure": "block""#, ""));
    assert!(code == 1 && out.contains("lets calls through: without an answer"), "{out}");
    let mut before: Json = serde_json::from_str(json).unwrap();
    before["hooks"].as_object_mut().unwrap().retain(|event, _| event == "PreToolUse");
    let (code, out, _) = doctor(&before.to_string());
    assert!(code == 1 && out.contains("`PostToolUse` and `PostToolUseFailure`"), "{out}");
    before["disableAllHooks"] = Json::Bool(true);
    let (code, out, _) = doctor(&before.to_string());
    assert!(code == 1 && out.contains("hooks are switched off now"), "{out}");
}

#[test]
fn a_journal_that_another_program_locks_is_open_in_an_unknown_process() {
    let site = site("flock");
    let file = fs::File::open(site.path("charter.db")).unwrap();
    file.lock().unwrap();
    let output = hook(&site, "r --client claude", &read(&site, "a"));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && err.contains("unknown process has it open"), "{err}");
}
