//! `charter guard init` with the bundled charter `coder`: from nothing to a commit.

use std::process::{Command, Output};

use serde_json::{Value as Json, json};

use crate::agents::{call, decision, denied, hook, site};
use crate::support::processes::{Site, until};

fn git(site: &Site, args: &[&str]) -> String {
    let output = Command::new("git").args(args).current_dir(site.path("")).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a person approves in an event, by its digest.
fn approve(site: &Site, event: &str) {
    let legal = site.run("legal coder --as ana --role approver --json");
    let offers: Vec<Json> = legal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let offer = offers.iter().find(|offer| offer["type"] == event).unwrap_or_else(|| panic!("{event}: {legal}"));
    let digest = offer["approves"]["digest"].as_str().or(offer["demands"]["approves"]["digest"].as_str());
    let digest = digest.unwrap_or_else(|| panic!("{offer}"));
    let mut command = site.command(&format!("send coder {event} --as ana --role approver"));
    let output = command.arg(json!({"digest": digest}).to_string()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn an_agent_goes_from_a_plan_to_a_commit_and_no_shorter_way() {
    let site = site("coder");
    git(&site, &["init", "-q"]);
    let asked = |id: &str, tool: &str, input: Json| -> Output {
        hook(&site, "coder --client claude", &call(&site, id, tool, input))
    };
    let legal = |output: Output| assert_eq!(decision(&output), json!({}));
    let happened = |id: &str, tool: &str, input: Json, response: Json| {
        let mut result = call(&site, id, tool, input);
        (result["hook_event_name"], result["tool_response"]) = (json!("PostToolUse"), response);
        legal(hook(&site, "coder --client claude", &result));
    };
    let bash = |command: &str| json!({"command": command});
    let file = json!({"file_path": site.path("").canonicalize().unwrap().join("b.txt"), "content": "x"});
    let commit = "git add -A && git commit -m b";

    let dry = site.run("guard init claude --dry-run");
    assert!(dry.contains("new file") && dry.lines().count() < 120 && !site.path("charters").exists(), "{dry}");
    let mut init = site.command("guard init claude --test");
    let output = init.arg("make test").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // The journal changes with each call: it must not be among the files that are reviewed.
    assert!(!git(&site, &["status", "--porcelain"]).contains("charter.db"));

    legal(asked("r1", "Read", json!({"file_path": site.path("guarded.yaml")})));
    assert!(denied(&asked("w1", "Write", file.clone())).contains("plan.propose"));
    let mcp = std::fs::read_to_string(site.path(".mcp.json")).unwrap();
    assert!(mcp.contains("--role") && mcp.contains("\"agent\""), "{mcp}");
    let mut propose = site.command("send coder plan.propose --as bot --role agent");
    assert!(propose.arg(r#"{"plan": "Write b.txt"}"#).output().unwrap().status.success());
    let own = site.any("send coder plan.approve --as bot --role approver --role agent").0;
    assert_ne!(own, 0, "who proposes does not approve");
    approve(&site, "plan.approve");

    legal(asked("w2", "Write", file.clone()));
    std::fs::write(site.path("b.txt"), "x").unwrap();
    happened("w2", "Write", file.clone(), json!({"filePath": "b.txt"}));
    assert!(denied(&asked("c1", "Bash", bash(commit))).contains("make test"));
    // A result of a call that nobody has made counts nothing.
    happened("t0", "Bash", bash("make test"), json!({"stdout": "ok", "stderr": "", "interrupted": false}));
    assert!(denied(&asked("c0", "Bash", bash(commit))).contains("make test"));
    legal(asked("t1", "Bash", bash("make test")));
    // A result of another input is refused, and does not take the place of the true one.
    happened("t1", "Bash", bash("make tests"), json!({"stdout": "ok", "stderr": "", "interrupted": false}));
    assert!(denied(&asked("c0", "Bash", bash("git commit --allow-empty -m b"))).contains("make test"));
    happened("t1", "Bash", bash("make test"), json!({"stdout": "ok", "stderr": "", "interrupted": false}));
    let waits = denied(&asked("c2", "Bash", bash(commit)));
    assert!(waits.contains("waits for approval"), "{waits}");
    approve(&site, "review.approve");

    // Other files than those that were reviewed.
    std::fs::write(site.path("c.txt"), "y").unwrap();
    assert!(denied(&asked("c3", "Bash", bash(commit))).contains("not those that were reviewed"));
    std::fs::remove_file(site.path("c.txt")).unwrap();
    let push = denied(&asked("p1", "Bash", bash("git push --force origin a:main")));
    assert!(push.contains(r#"{"kind": "push", "scope": "git push --force origin a:main", "reason": "..."}"#), "{push}");
    legal(asked("c4", "Bash", bash(commit)));
    git(&site, &["add", "-A"]);
    let added = git(&site, &["diff", "--cached", "--name-only"]);
    assert!(added.contains("b.txt") && !added.contains("charter.db"), "{added}");
    assert_eq!(site.any("verify").0, 0);
}

#[test]
fn the_tests_that_the_host_runs_need_no_word_of_the_agent() {
    let site = site("host-tests");
    git(&site, &["init", "-q"]);
    let asked = |id: &str, line: &str| -> Output {
        let request = call(&site, id, "Bash", json!({"command": line}));
        crate::agents::hook_with(site.command("hook coder --client claude"), request.to_string().as_bytes())
    };
    let sent = |event: &str, data: Json| {
        let mut send = site.command(&format!("send coder {event} --as bot --role agent"));
        let output = send.arg(data.to_string()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let commit = "git add -A && git commit -m b";
    let init = site.command("guard init claude --host-tests --test").arg("grep -q good b.txt").output().unwrap();
    assert!(init.status.success(), "{init:?}");
    sent("plan.propose", json!({"plan": "Write b.txt"}));
    approve(&site, "plan.approve");

    std::fs::write(site.path("b.txt"), "bad").unwrap();
    // The agent's own tests are a command like others: what it says of them counts nothing.
    assert_eq!(decision(&asked("t1", "grep -q good b.txt")), json!({}));
    let mut result = call(&site, "t1", "Bash", json!({"command": "grep -q good b.txt"}));
    (result["hook_event_name"], result["tool_response"]) = (json!("PostToolUse"), json!({"stdout": "", "stderr": ""}));
    assert_eq!(decision(&hook(&site, "coder --client claude", &result)), json!({}));
    assert!(denied(&asked("c1", commit)).contains("tests.run"));

    sent("tests.run", json!({}));
    until("failed", || denied(&asked("c2", commit)).contains("grep -q good b.txt`: exit status: 1"));
    std::fs::write(site.path("b.txt"), "good").unwrap();
    sent("tests.run", json!({}));
    until("passed", || denied(&asked("c3", commit)).contains("waits for approval"));
    approve(&site, "review.approve");
    assert_eq!(decision(&asked("c4", commit)), json!({}));
    assert_eq!(site.any("verify").0, 0);
}
