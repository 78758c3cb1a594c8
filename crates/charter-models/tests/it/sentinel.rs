//! sentinel on real folders, offline; and actors of kind `workspace` on their own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crate::sentinel_host::{again, sentinel, with};
use charter_actors::{Folder, Workspaces};
use charter_journal::MemoryStore;
use charter_kernel::{Digest, Principal, PrincipalKind};
use charter_runtime::{Charter, Options, Runtime, SendEvent};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_goal_to_applied_changes() {
    let host = sentinel().await;
    host.start("r", json!({"verify": ["/bin/sh", "-c", "grep -q 'Guten Tag' greeting.txt"]})).await;
    let proposal = host.to_proposal("r").await;
    assert_eq!(proposal["changes"][0]["operation"], "MODIFY");
    assert_eq!(proposal["changes"][0]["old_sha256"], Digest::of_bytes(b"Hello, world\n").hex());
    assert_eq!(host.file("greeting.txt"), "Hello, world\n", "nothing happens before the approval");
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    host.settled("r").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");
    assert_eq!(host.files(), ["greeter.txt", "greeting.txt", "other.txt"]);
    assert_eq!(host.var("r", "applied").await["verification"]["accepted"], true);
    // Another run on the same folder sees the insights (the first one is idle: it holds nothing).
    host.start("s", json!({})).await;
    host.until("s", "AWAITING_CONTEXT_APPROVAL").await;
    assert_eq!(host.var("s", "insights").await[0]["description"], "Applied: Greet in German, and say who greets");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_approved_part_is_applied() {
    let host = sentinel().await;
    host.start("r", json!({})).await;
    let proposal = host.to_proposal("r").await;
    let part = json!({"summary": proposal["summary"], "changes": [proposal["changes"][1]]});
    host.approve("r", &part, Some(json!(["greeter.txt"]))).await;
    host.until("r", "IDLE").await;
    assert_eq!(host.file("greeting.txt"), "Hello, world\n");
    assert!(host.file("greeter.txt").contains("Goal: Greet in German"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_changed_since_the_proposal_are_refused_and_proposed_again() {
    let host = sentinel().await;
    host.start("r", json!({})).await;
    let proposal = host.to_proposal("r").await;
    fs::write(host.root.join("w/greeting.txt"), "Hello, you\n").unwrap();
    host.approve("r", &proposal, None).await;
    let error = host.error("r").await;
    assert_eq!((&error["code"], &error["state"]), (&json!("conflict"), &json!("APPLYING_CHANGESET")));
    assert_eq!(host.settled("r").await, "done");
    assert_eq!(host.files(), ["greeting.txt", "other.txt"]);
    host.send("r", "RESET", json!({})).await;
    host.send("r", "START", json!({"goal": "Greet in German"})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, you\n");
    // A file that has changed since its approval is not read.
    host.send("r", "START", json!({"goal": "again"})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    let digest = Digest::of_json(&host.var("r", "bundle").await).hex();
    fs::write(host.root.join("w/other.txt"), "changed\n").unwrap();
    host.send("r", "APPROVE_CONTEXT", json!({"digest": digest})).await;
    assert_eq!(host.error("r").await["code"], "conflict");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_that_fails_changes_nothing() {
    let host = sentinel().await;
    host.start("r", json!({"verify": ["/bin/sh", "-c", "echo three tests fail; exit 1"]})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    let error = host.error("r").await;
    assert_eq!(error["message"], "verification failed: it exited with code 1");
    assert_eq!(host.settled("r").await, "done");
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_during_the_apply_restores_the_folder() {
    let host = sentinel().await;
    host.start("r", json!({"verify": ["/bin/sleep", "20"]})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    host.send("r", "ABORT", json!({"reason": "too slow"})).await;
    assert_eq!(host.settled("r").await, "done");
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_runs_on_one_workspace() {
    let host = sentinel().await;
    host.start("r", json!({})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    host.start("s", json!({})).await;
    let error = host.error("s").await;
    assert_eq!(error["code"], "locked");
    assert!(error["message"].as_str().unwrap().contains("in use by `r`"), "{error}");
    // After the cycle of the first run, the second run may start one.
    host.send("r", "REJECT_CONTEXT", json!({"reason": "later"})).await;
    host.settled("r").await;
    host.settled("s").await;
    host.send("s", "RESET", json!({})).await;
    host.send("s", "START", json!({"goal": "g"})).await;
    host.until("s", "AWAITING_CONTEXT_APPROVAL").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_keeps_its_workspace_while_no_host_is_running() {
    let host = sentinel().await;
    host.start("r", json!({})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    let host = again(host).await;
    host.start("s", json!({})).await;
    let error = host.error("s").await;
    assert_eq!(error["code"], "locked");
    assert!(error["message"].as_str().unwrap().contains("in use by `r`"), "{error}");
    host.send("r", "ABORT", json!({"reason": "later"})).await;
    host.settled("r").await;
    host.settled("s").await;
    let host = again(host).await;
    host.send("s", "RESET", json!({})).await;
    host.send("s", "START", json!({"goal": "g"})).await;
    host.until("s", "AWAITING_CONTEXT_APPROVAL").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_that_a_crash_interrupts_continues_after_the_restart() {
    let host = sentinel().await;
    // The command writes into its copy only, which this test finds beside the journal.
    let slow = format!("touch began; test -e {}/again || sleep 20", host.root.display());
    host.start("r", json!({"verify": ["/bin/sh", "-c", slow]})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    while !host.began() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fs::write(host.root.join("again"), "").unwrap();
    let host = again(host).await;
    host.until("r", "IDLE").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");
}

/// After a failed restore the workspace is dirty, and no cycle starts until a person has inspected
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dirty_workspace_waits_for_a_person() {
    let host = sentinel().await;
    host.start("r", json!({})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    host.send("r", "ABORT", json!({"reason": "first"})).await;
    // Write the mark that a failed restore leaves.
    let known = fs::read_dir(host.root.join("store/workspaces")).unwrap();
    let known = known.map(|e| e.unwrap().path()).next().unwrap();
    let mark = json!({"reason": "`greeting.txt` cannot be put back"});
    fs::write(known.join("dirty.json"), mark.to_string()).unwrap();
    let start = json!({"goal": "g"});
    host.send("r", "START", start.clone()).await;
    let error = host.error("r").await;
    assert_eq!(error["code"], "dirty", "{error}");
    host.settled("r").await;
    let dirty = host.var("r", "dirty").await;
    assert!(dirty.as_str().unwrap().contains("cannot be put back"), "{dirty}");
    // Another run is locked out as well.
    host.start("s", json!({})).await;
    assert_eq!(host.error("s").await["code"], "dirty");
    host.settled("s").await;
    // A service may not reset it; a person may.
    let service = Principal::new("cron", &[]).of_kind(PrincipalKind::Service);
    let service = SendEvent::new("r", "RESET", json!({}), service);
    assert!(host.runtime.send(service).await.unwrap().is_refused());
    host.send("r", "RESET", json!({})).await;
    host.send("r", "START", start).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    assert_eq!(host.file("greeting.txt"), "Hello, world\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_is_copied_for_the_run() {
    let host = sentinel().await;
    host.start("r", json!({"workspace": "scratch:example"})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    let copy = host.root.join("store-scratch/r/greeting.txt");
    assert!(fs::read_to_string(copy).unwrap().starts_with("Guten Tag"));
    assert_eq!(host.files(), ["greeting.txt", "other.txt"]);
}

/// The attack: what was approved in one cycle runs as `verify` in the next, leaves a process
/// behind, and looks for ways to answer the gates or to change the folder itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_reaches_neither_the_folder_nor_the_journal() {
    let host = sentinel().await;
    let root = host.root.display();
    fs::write(host.root.join("store-key"), "secret").unwrap();
    let script = format!(
        "! echo x > {root}/w/other.txt && ! ls {root}/store && ! cat {root}/store-key && ! touch {root}/w/new && \
         setsid sh -c 'sleep 1; echo late > {root}/w/late' & sleep 0.1; echo mine > made; grep -q Tag greeting.txt"
    );
    host.start("r", json!({"verify": [["/bin/sh", "-c", script], ["test", "-e", "made"]], "verifyTimeout": "1m"}))
        .await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    tokio::time::sleep(Duration::from_millis(1_300)).await;
    assert_eq!(host.files(), ["greeter.txt", "greeting.txt", "other.txt"]);
    assert_eq!(host.file("other.txt"), "other\n");
}

/// Known before the first gate, not after both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_that_cannot_run_is_refused_before_the_first_question() {
    let host = sentinel().await;
    for (run, input, expected) in [
        ("r", json!({"verify": ["no-such-program"]}), "the program `no-such-program` of the `verify` command"),
        ("s", json!({"verify": ["true"], "verifyEnv": ["CHARTER_KEY"]}), "verifyEnv"),
    ] {
        host.start(run, input).await;
        let error = host.error(run).await;
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        assert_eq!(error["state"], "CURATING_CONTEXT");
    }
}

/// Without a confinement the command could approve by itself, as far as this machine can tell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unconfined_verification_needs_an_approval_with_a_key() {
    let host = sentinel().await;
    host.start("r", json!({"verify": ["true"], "unconfined": true})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    let error = host.error("r").await;
    assert_eq!(error["code"], "unapproved", "{error}");
    assert_eq!(host.files(), ["greeting.txt", "other.txt"]);
}

/// The proposer's own approval, written in another way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_id_of_the_proposer_cannot_approve_however_it_is_written() {
    for id in ["propose", "Propose", "model:propose"] {
        let host = sentinel().await;
        host.start("r", json!({})).await;
        let proposal = host.to_proposal("r").await;
        let by = Principal::new(id, &["approver"]);
        let digest = json!({"digest": Digest::of_json(&proposal).hex()});
        let receipt = host.runtime.send(SendEvent::new("r", "APPROVE_PROPOSAL", digest, by)).await.unwrap();
        if !receipt.is_refused() {
            assert_eq!(host.error("r").await["code"], "unapproved", "{id}");
        }
        host.runtime.shutdown(Duration::ZERO).await;
        assert_eq!(host.files(), ["greeting.txt", "other.txt"], "{id}");
    }
}

/// A run of another journal with the same id: the notes of the first are not its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_journal_with_the_same_run_applies_again() {
    let mut host = sentinel().await;
    for _ in 0..2 {
        host.start("r", json!({})).await;
        let proposal = host.to_proposal("r").await;
        host.approve("r", &proposal, None).await;
        host.until("r", "IDLE").await;
        assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");
        fs::write(host.root.join("w/greeting.txt"), "Hello, world\n").unwrap();
        fs::remove_file(host.root.join("w/greeter.txt")).unwrap();
        host.journal = Arc::new(MemoryStore::new());
        host = again(host).await;
    }
}

/// The attack: the folder is replaced by a link, or by another folder, after it was approved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_replaced_after_the_approval_is_not_changed() {
    for link in [true, false] {
        let host = sentinel().await;
        let other = host.root.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("greeting.txt"), "Hello, world\n").unwrap();
        host.start("r", json!({})).await;
        let proposal = host.to_proposal("r").await;
        let place = host.var("r", "bundle").await["workspace"].clone();
        assert_eq!(place["path"], json!(host.root.join("w").canonicalize().unwrap()));
        fs::rename(host.root.join("w"), host.root.join("old")).unwrap();
        if link {
            std::os::unix::fs::symlink(&other, host.root.join("w")).unwrap();
        } else {
            fs::rename(&other, host.root.join("w")).unwrap();
        }
        host.approve("r", &proposal, None).await;
        let error = host.error("r").await;
        assert_eq!(error["code"], "replaced", "{error}");
        assert_eq!(host.files().len(), 1);
        assert_eq!(host.file("greeting.txt"), "Hello, world\n");
        let old = fs::read_to_string(host.root.join("old/greeting.txt")).unwrap();
        assert_eq!(old, "Hello, world\n");
    }
}

/// A charter that requests an apply without an approval, or with the approval of something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charter_cannot_apply_without_an_approval() {
    let source = "
charter: 1
id: rogue
roles: {operator: {}, approver: {}}
input: {type: object}
events: {GO: {by: operator, data: {}}, APPROVE: {by: approver, data: {}}}
context: {changeset: '= input.changeset', error: null}
actors: {apply: {kind: workspace, do: apply}}
states:
  a:
    on:
      GO: b
      APPROVE: {target: b, approves: input.other}
  b:
    invoke:
      src: apply
      input: {workspace: '= input.workspace', cycle: 1, changeset: '= context.changeset', approval: {by: ana, digest: '= digest(context.changeset)', proposer: x}}
      onDone: c
      onError: {target: c, actions: {assign: {error: '= event.error'}}}
  c: {}
";
    let document = charter_format::read(source, "rogue.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let host = with(Charter::new(&document, Folder::None).unwrap()).await;
    let other = json!({"x": 1});
    let changeset = json!({"summary": "s", "changes": [{"operation": "DELETE", "file_path": "greeting.txt"}]});
    for (run, event, data) in
        [("r", "GO", json!({})), ("s", "APPROVE", json!({"digest": Digest::of_json(&other).hex()}))]
    {
        host.start(run, json!({"changeset": changeset, "other": other})).await;
        host.send(run, event, data).await;
        host.until(run, "c").await;
        let error = host.var(run, "error").await;
        assert_eq!(error["code"], "unapproved", "{error}");
    }
    assert_eq!(host.file("greeting.txt"), "Hello, world\n");
}

#[test]
fn invalid_configurations_are_rejected_at_the_start() {
    let check = |actor: &str| {
        let source = format!(
            "charter: 1\nid: t\nactors: {{x: {{kind: workspace, {actor}}}}}\nstates: {{a: {{invoke: {{src: x}}}}}}\n"
        );
        let document = charter_format::read(&source, "t.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
        let charter = Charter::new(&document, Folder::None).unwrap();
        let temporary = tempfile::tempdir().unwrap();
        let options = Options::default().executor("workspace", Workspaces::new(temporary.path()));
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), options).await.unwrap();
            runtime.add(charter).await.map(drop).map_err(|e| e.to_string())
        })
    };
    check("do: curate").unwrap();
    for (actor, expected) in [
        ("do: dance", "invalid `do`: expected one of `curate`, `plan`"),
        ("do: propose", "missing key `by`"),
        ("do: plan, by: scripted", "missing key `answers`"),
        ("do: curate, maxFile: 1", "unknown key `maxFile`; did you mean `maxFiles`?"),
        ("do: apply, verify: 3", "`verify`"),
    ] {
        let error = check(actor).expect_err(actor);
        assert!(error.contains(expected), "{actor}: {error}");
    }
}
