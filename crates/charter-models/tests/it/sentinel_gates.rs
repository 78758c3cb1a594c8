//! sentinel: what people can say at its gates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;

use crate::sentinel_host::{Host, edited, sentinel, with};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_left_out_unless_named_and_people_choose_the_files() {
    let host = sentinel().await;
    fs::create_dir(host.root.join("w/keys")).unwrap();
    for name in [".env", "keys/server.pem", ".env.example", "notes.md"] {
        fs::write(host.root.join("w").join(name), "TOKEN=1\n").unwrap();
    }
    host.start("r", json!({})).await;
    let files = async || {
        host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
        let bundle = host.var("r", "bundle").await;
        let paths = bundle["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap().to_owned());
        paths.collect::<Vec<_>>()
    };
    assert_eq!(files().await, [".env.example", "greeting.txt", "notes.md", "other.txt"]);
    let left = host.var("r", "passedOver").await;
    assert_eq!((&left[0]["path"], &left[1]["path"]), (&json!(".env"), &json!("keys/server.pem")));
    assert!(left[0]["why"].as_str().unwrap().contains("secret"), "{left}");
    host.send("r", "REVISE_CONTEXT", json!({"feedback": "leave notes.md out"})).await;
    assert_eq!(files().await, [".env.example", "greeting.txt", "other.txt"]);
    let lists = json!({"feedback": "this", "without": ["other.txt"], "with": [".env"]});
    host.send("r", "REVISE_CONTEXT", lists).await;
    assert_eq!(files().await, [".env", ".env.example", "greeting.txt"]);
    let left = host.var("r", "passedOver").await;
    assert!(left.to_string().contains("a person has left it out"), "{left}");
}

async fn applied(host: &Host) {
    host.start("r", json!({})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_cycle_is_undone() {
    let host = sentinel().await;
    applied(&host).await;
    host.until("r", "IDLE").await;
    host.settled("r").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");
    host.send("r", "UNDO", json!({"reason": "English, please"})).await;
    host.settled("r").await;
    assert_eq!(host.var("r", "undo").await, "done");
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 2));
    // The next cycle starts from there.
    host.send("r", "START", json!({"goal": "Greet in German"})).await;
    let proposal = host.to_proposal("r").await;
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");
}

/// Nobody's work is overwritten, and nothing is put back in part.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_undone_if_somebody_has_changed_a_file_since() {
    let host = sentinel().await;
    applied(&host).await;
    host.until("r", "IDLE").await;
    host.settled("r").await;
    fs::write(host.root.join("w/greeting.txt"), "mine\n").unwrap();
    host.send("r", "UNDO", json!({"reason": "wrong"})).await;
    host.settled("r").await;
    assert_eq!(host.var("r", "undo").await, "failed");
    let error = host.var("r", "undoError").await;
    assert!(error["message"].as_str().unwrap().contains("`greeting.txt` has changed since it was applied"), "{error}");
    assert_eq!(host.file("greeting.txt"), "mine\n");
    assert!(host.file("greeter.txt").contains("Goal"), "nothing was put back");
    // Nothing is dirty, and the next cycle goes on.
    host.send("r", "START", json!({"goal": "again"})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_while_it_reflects_puts_back_what_was_changed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters/sentinel");
    let source = fs::read_to_string(folder.join("charter.yaml")).unwrap();
    // A reflection that takes its time.
    let (before, reflect) = source.split_once("    do: reflect\n").unwrap();
    let (_, after) = reflect.split_once("    input: ").unwrap();
    let source = format!("{before}    do: reflect\n    by: exec\n    command: [sleep, '20']\n    input: {after}");
    let document = charter_format::read(&source, "charter.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let host = with(charter_runtime::Charter::new(&document, charter_actors::Folder::Dir(folder)).unwrap()).await;
    applied(&host).await;
    host.until("r", "REFLECTING").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");
    host.send("r", "ABORT", json!({"reason": "no"})).await;
    host.settled("r").await;
    host.until("r", "IDLE").await;
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 2));
}

/// A model that writes paths from the root of the workspace, and what people see of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_assumed_about_a_proposal_is_shown() {
    let edit = |source: String| source.replacen("'file_path': 'greeter.txt'", "'file_path': '/greeter.txt'", 1);
    let host = edited(edit, charter_models::Models::offline()).await;
    host.start("r", json!({})).await;
    let proposal = host.to_proposal("r").await;
    assert_eq!(proposal["changes"][1]["file_path"], "greeter.txt");
    assert_eq!(host.var("r", "assumed").await, json!(["`/greeter.txt` is `greeter.txt` in the workspace"]));
}

/// Edits are a way to write a change: the approval is of the resulting content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_are_approved_as_the_content_that_they_make() {
    let whole = "'content': input.files.filter(f, f.path == 'greeting.txt')[0].content.replace('Hello', 'Guten Tag')";
    let host_with = async |search: &str| {
        let edits = format!("'edits': [{{'search': '{search}', 'replace': 'Guten Tag'}}]");
        let edit = |source: String| {
            assert!(source.contains(whole));
            source.replacen(whole, &edits, 1)
        };
        let host = edited(edit, charter_models::Models::offline()).await;
        host.start("r", json!({})).await;
        host
    };
    let host = host_with("Hello").await;
    let proposal = host.to_proposal("r").await;
    let new = charter_kernel::Digest::of_bytes(b"Guten Tag, world\n").hex();
    assert_eq!((&proposal["changes"][0]["new_sha256"], &proposal["changes"][0]["size"]), (&json!(new), &json!(17)));
    host.approve("r", &proposal, None).await;
    host.until("r", "IDLE").await;
    assert_eq!(host.file("greeting.txt"), "Guten Tag, world\n");

    let host = host_with("o").await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    let digest = charter_kernel::Digest::of_json(&host.var("r", "bundle").await).hex();
    host.send("r", "APPROVE_CONTEXT", json!({"digest": digest})).await;
    let error = host.error("r").await;
    let expected = "change 1 (`greeting.txt`): edit 1 (`o`): its old text is in the file 2 times";
    assert!(error["message"].as_str().unwrap().starts_with(expected), "{error}");
    assert_eq!(host.files(), ["greeting.txt", "other.txt"]);
}
