//! sentinel: what is too much is said before anybody is asked, as far as it is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::time::Duration;

use crate::sentinel_host::edited;
use charter_models::{Model, Models, Request, Response, Transport, TransportError};
use serde_json::json;

/// Nobody asks it.
struct Unasked;

impl Transport for Unasked {
    fn send(&self, _: &Request, _: Duration, _: &mut dyn FnMut(&str) -> bool) -> Result<Response, TransportError> {
        panic!("the model was asked")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_above_the_budget_of_the_plan_ends_the_cycle_before_the_first_question() {
    let models = || Models::asking(Model::parse("openai:m").unwrap(), Unasked);
    // 60,000 tokens, of about four bytes each.
    for (size, fits) in [(100_000, true), (250_000, false)] {
        let host = edited(|source| source, models()).await;
        fs::write(host.root.join("w/long.txt"), "word ".repeat(size / 5)).unwrap();
        host.start("r", json!({})).await;
        if fits {
            host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
            continue;
        }
        let error = host.error("r").await;
        assert_eq!((&error["code"], &error["state"]), (&json!("too-large"), &json!("CURATING_CONTEXT")));
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("with the 3 files, the question to `plan` takes about 6"), "{message}");
        assert!(message.contains("is 60000 (`budget.tokens`)") && message.contains("with `patterns`"), "{message}");
        host.settled("r").await;
        // Fewer files are few enough.
        host.start("s", json!({"patterns": ["!long.txt"]})).await;
        host.until("s", "AWAITING_CONTEXT_APPROVAL").await;
    }
    // Without a model, there is no budget to exceed.
    let host = edited(|source| source, Models::offline()).await;
    fs::write(host.root.join("w/long.txt"), "word ".repeat(50_000)).unwrap();
    host.start("r", json!({})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_changes_than_a_cycle_may_have_are_not_proposed() {
    let limited = |source: String| source.replace("    do: propose\n", "    do: propose\n    maxChanges: 1\n");
    let host = edited(limited, Models::offline()).await;
    host.start("r", json!({})).await;
    host.until("r", "AWAITING_CONTEXT_APPROVAL").await;
    let digest = charter_kernel::Digest::of_json(&host.var("r", "bundle").await).hex();
    host.send("r", "APPROVE_CONTEXT", json!({"digest": digest})).await;
    let error = host.error("r").await;
    let expected = "the changeset has 2 changes; the limit of a cycle is 1; propose a first part, and leave the rest to further cycles";
    assert_eq!(error["message"], expected);
}
