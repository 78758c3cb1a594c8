//! sentinel in a Git repository.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::sentinel_host::{Host, sentinel};
use serde_json::{Value as Json, json};

fn git(host: &Host, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=ana", "-c", "user.email=ana@a.invalid", "-c", "core.hooksPath=/dev/null"]);
    command.args(arguments).current_dir(host.root.join("w"));
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A workspace in a repository with one commit, and hooks and a monitor that leave a trace.
async fn repository() -> Host {
    let host = sentinel().await;
    git(&host, &["init", "-q", "-b", "main"]);
    git(&host, &["add", "."]);
    git(&host, &["commit", "-qm", "first"]);
    let hooks = host.root.join("w/.git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let trace = format!("#!/bin/sh\ntouch '{}'\n", host.root.join("trace").display());
    for hook in ["pre-commit", "post-commit", "post-checkout", "reference-transaction", "post-index-change", "monitor"]
    {
        fs::write(hooks.join(hook), &trace).unwrap();
        fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
    }
    git(&host, &["config", "core.fsmonitor", hooks.join("monitor").to_str().unwrap()]);
    host
}

/// What Git knows, but for the time of looking.
fn state(host: &Host) -> [String; 4] {
    let head = fs::read_to_string(host.root.join("w/.git/HEAD")).unwrap();
    [head, git(host, &["for-each-ref"]), git(host, &["ls-files", "-s"]), git(host, &["reflog"])]
}

async fn cycle(host: &Host, run: &str, more: Json) {
    host.start(run, more).await;
    let proposal = host.to_proposal(run).await;
    host.approve(run, &proposal, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_option_nothing_of_git_is_touched_and_a_dirty_tree_is_said() {
    let host = repository().await;
    fs::write(host.root.join("w/other.txt"), "mine\n").unwrap();
    let (before, index) = (state(&host), fs::read(host.root.join("w/.git/index")).unwrap());
    fs::remove_file(host.root.join("trace")).ok();
    host.start("r", json!({})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    assert_eq!(host.var("r", "uncommitted").await, json!(["other.txt"]));
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    assert!(!host.root.join("trace").exists(), "a hook or the monitor has run");
    assert_eq!(fs::read(host.root.join("w/.git/index")).unwrap(), index);
    assert_eq!(state(&host), before);
    assert_eq!(host.var("r", "applied").await.get("git"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cycle_has_a_branch_with_a_commit_that_says_who_approved_what() {
    let host = repository().await;
    // What somebody has staged is not part of the commit.
    fs::write(host.root.join("w/other.txt"), "mine\n").unwrap();
    git(&host, &["add", "other.txt"]);
    fs::remove_file(host.root.join("trace")).ok();
    cycle(&host, "r", json!({"git": "branch"})).await;
    host.until("r", "IDLE").await;
    host.settled("r").await;
    assert!(!host.root.join("trace").exists(), "a hook or the monitor has run");
    assert_eq!(git(&host, &["branch", "--show-current"]), "sentinel/r/1");
    assert_eq!(git(&host, &["status", "--porcelain"]), "M  other.txt");
    assert_eq!(git(&host, &["diff", "--name-status", "main", "HEAD"]), "A\tgreeter.txt\nM\tgreeting.txt");
    assert_eq!(git(&host, &["show", "HEAD:greeting.txt"]), "Guten Tag, world");
    let (message, approval) = (git(&host, &["log", "-1", "--format=%B"]), host.var("r", "approval").await);
    assert!(message.starts_with("Greet in German, and say who greets\n\nCharter-Run: r/1/"), "{message}");
    let trailer = |name: &str| git(&host, &["log", "-1", &format!("--format=%(trailers:key={name},valueonly)")]);
    assert_eq!(json!(trailer("Approved-by").trim()), approval["by"]);
    assert_eq!(json!(trailer("Proposed-by").trim()), approval["proposer"]);
    assert_eq!(
        json!(trailer("Changeset").trim().trim_start_matches("sha256:")),
        json!(charter_kernel::Digest::of_json(&host.var("r", "changeset").await).hex())
    );
    assert_eq!(host.var("r", "applied").await["git"]["commit"], json!(git(&host, &["rev-parse", "HEAD"])));
    // Undone, the branch of before is checked out, and the commit is still there.
    host.send("r", "UNDO", json!({"reason": "no"})).await;
    host.settled("r").await;
    assert_eq!(host.var("r", "undo").await, "done");
    assert_eq!(git(&host, &["branch", "--show-current"]), "main");
    assert_eq!(git(&host, &["status", "--porcelain"]), "M  other.txt");
    assert_eq!(git(&host, &["show", "sentinel/r/1:greeting.txt"]), "Guten Tag, world");
    // The next cycle has a branch of its own.
    host.send("r", "START", json!({"goal": "again"})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    assert_eq!(git(&host, &["branch", "--show-current"]), "sentinel/r/2");
    assert_eq!(git(&host, &["rev-parse", "HEAD^"]), git(&host, &["rev-parse", "main"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_committed_is_not_made() {
    // No repository: known before the first question.
    let host = sentinel().await;
    host.start("r", json!({"git": "branch"})).await;
    let error = host.error("r").await;
    assert_eq!(error["state"], "CURATING_CONTEXT");
    assert!(error["message"].as_str().unwrap().contains("is in no Git repository; make one"), "{error}");

    // A file that would change is not committed.
    let host = repository().await;
    fs::write(host.root.join("w/greeting.txt"), "Hello, mine\n").unwrap();
    cycle(&host, "r", json!({"git": "branch"})).await;
    let error = host.error("r").await;
    assert!(
        error["message"].as_str().unwrap().contains("`greeting.txt` has changes that are not committed"),
        "{error}"
    );
    assert_eq!(host.file("greeting.txt"), "Hello, mine\n");
    assert_eq!(git(&host, &["branch", "--list"]), "* main");

    // The branch is somebody else's.
    let host = repository().await;
    git(&host, &["branch", "sentinel/r/1"]);
    cycle(&host, "r", json!({"git": "branch"})).await;
    let error = host.error("r").await;
    assert!(error["message"].as_str().unwrap().contains("the branch `sentinel/r/1` exists already"), "{error}");
    assert_eq!(host.files(), [".git", "greeting.txt", "other.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_whose_commit_fails_are_put_back() {
    let host = repository().await;
    // Git cannot make the branch `sentinel/r/1` beside it.
    git(&host, &["branch", "sentinel"]);
    let before = state(&host);
    cycle(&host, "r", json!({"git": "branch"})).await;
    let error = host.error("r").await;
    assert_eq!((&error["code"], &error["state"]), (&json!("git"), &json!("APPLYING_CHANGESET")));
    assert!(error["message"].as_str().unwrap().contains("'refs/heads/sentinel' exists"), "{error}");
    assert_eq!(host.settled("r").await, "done");
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 3));
    assert_eq!(state(&host), before);
    assert_eq!(git(&host, &["status", "--porcelain"]), "");
}
