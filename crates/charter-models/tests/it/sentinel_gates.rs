//! sentinel: what people can say at its gates, and afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;

use crate::sentinel_host::sentinel;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cycle_is_undone_while_nobody_has_changed_its_files() {
    let host = sentinel().await;
    let cycle = async || {
        let proposal = host.to_proposal("r").await;
        host.approve("r", &proposal, None).await;
        host.until("r", "IDLE").await;
        assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Guten Tag, world\n", 3));
    };
    host.start("r", json!({})).await;
    cycle().await;
    host.send("r", "UNDO", json!({"reason": "not what I meant"})).await;
    assert_eq!(host.settled("r").await, "done");
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 2));
    host.send("r", "RESET", json!({})).await;
    // A file that somebody has changed stays, and so do the others.
    host.send("r", "START", json!({"goal": "Greet in German"})).await;
    cycle().await;
    fs::write(host.root.join("w/greeter.txt"), "mine\n").unwrap();
    host.send("r", "UNDO", json!({"reason": "not what I meant"})).await;
    assert_eq!(host.settled("r").await, "failed");
    assert_eq!(
        (host.file("greeting.txt").as_str(), host.file("greeter.txt").as_str()),
        ("Guten Tag, world\n", "mine\n")
    );
    assert_eq!(host.var("r", "dirty").await, json!(null));
    // Back as it was left, it is undone.
    host.send("r", "RESET", json!({})).await;
    let content = "The greeting was written by sentinel.\nGoal: Greet in German\n";
    fs::write(host.root.join("w/greeter.txt"), content).unwrap();
    host.send("r", "UNDO", json!({"reason": "not what I meant"})).await;
    assert_eq!(host.settled("r").await, "done");
    assert_eq!((host.file("greeting.txt").as_str(), host.files().len()), ("Hello, world\n", 2));
}

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
