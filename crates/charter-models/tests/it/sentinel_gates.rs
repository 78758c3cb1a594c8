//! sentinel: what people can say at its gates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;

use crate::sentinel_host::sentinel;
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
