//! No byte of a workspace changes without an approval of exactly that changeset by a person with
//! the role who is not its proposer: sentinel on a real folder under hostile event streams, checked
//! against the folder and the journal.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sentinel_host::{Host, sentinel};
use charter_journal::Verdict;
use charter_kernel::{Digest, Principal};
use charter_runtime::SendEvent;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

const PEOPLE: [&str; 3] = ["ana", "bo", "eve"];
const ROLES: [&[&str]; 4] = [&["approver"], &["operator"], &["operator", "approver"], &[]];
const EVENTS: [&str; 11] = [
    "START",
    "APPROVE_CONTEXT",
    "REVISE_CONTEXT",
    "REJECT_CONTEXT",
    "APPROVE_PROPOSAL",
    "EDIT_PROPOSAL",
    "REJECT_PROPOSAL",
    "ABORT",
    "RESET",
    "charter.pause",
    "charter.resume",
];

/// An event of a hostile stream.
#[derive(Debug, Clone)]
struct Try {
    /// Index into `EVENTS`; a greater index means the event that a regular cycle would send.
    event: usize,
    /// Index into `PEOPLE`; a greater index means the proposer.
    who: usize,
    roles: usize,
    /// Selects the digest: of the proposal, of a part, of an older proposal, of the context, or
    /// none.
    digest: usize,
    /// The part that the event claims to accept.
    accepted: usize,
}

/// Events sent concurrently, and whether a file is changed before they are sent.
type Burst = (Vec<Try>, bool);

fn stream() -> impl Strategy<Value = (Vec<Burst>, usize)> {
    let event = prop_oneof![2 => 0..EVENTS.len(), 5 => Just(99usize)];
    let attempt =
        (event, 0..5usize, 0..ROLES.len(), 0..9usize, 0..6usize).prop_map(|(event, who, roles, digest, accepted)| {
            Try { event, who, roles: if event == 99 { 2 } else { roles }, digest, accepted }
        });
    let burst = (prop::collection::vec(attempt, 1..3), prop::bool::weighted(0.1));
    (prop::collection::vec(burst, 4..22), 0..4usize)
}

type Image = BTreeMap<String, Vec<u8>>;

fn image(folder: &Path) -> Image {
    let mut all = Image::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let bytes = fs::read(entry.path()).unwrap_or_else(|_| b"(a folder)".to_vec());
        all.insert(name, bytes);
    }
    all
}

/// Returns the content of the folder after a changeset was applied, as digests.
fn after(before: &Image, changeset: &Json) -> BTreeMap<String, String> {
    let mut all = digests(before);
    for change in changeset["changes"].as_array().unwrap() {
        let path = change["file_path"].as_str().unwrap().to_owned();
        match change["new_sha256"].as_str() {
            Some(digest) => drop(all.insert(path, digest.to_owned())),
            None => drop(all.remove(&path)),
        }
    }
    all
}

fn digests(image: &Image) -> BTreeMap<String, String> {
    let one = |(name, bytes): (&String, &Vec<u8>)| (name.clone(), Digest::of_bytes(bytes).hex());
    image.iter().map(one).collect()
}

/// Known proposals by digest, each with its parts and its proposer.
type Known = BTreeMap<String, (Json, String)>;

async fn look(host: &Host, known: &mut Known) {
    let (proposal, proposer) = (host.var("r", "proposal").await, host.var("r", "proposer").await);
    let Some(changes) = proposal["changes"].as_array() else {
        return;
    };
    for mask in 1..1u32 << changes.len() {
        let kept = (0u32..).zip(changes).filter(|(i, _)| mask & (1 << i) != 0);
        let changes: Vec<&Json> = kept.map(|(_, c)| c).collect();
        let part = json!({"summary": proposal["summary"], "changes": changes});
        let by = proposer.as_str().unwrap_or_default().to_owned();
        known.insert(Digest::of_json(&part).hex(), (part, by));
    }
}

async fn event(host: &Host, attempt: &Try, known: &Known) -> SendEvent {
    let straight = match host.runtime.view("r").await.unwrap().snapshot.actor("root").unwrap().state().next().unwrap() {
        "AWAITING_CONTEXT_APPROVAL" => "APPROVE_CONTEXT",
        "AWAITING_PROPOSAL_APPROVAL" => "APPROVE_PROPOSAL",
        "ERROR" => "RESET",
        _ => "START",
    };
    let kind = EVENTS.get(attempt.event).copied().unwrap_or(straight);
    let proposal = host.var("r", "proposal").await;
    let data = match kind {
        "START" => json!({"goal": "Greet in German"}),
        "APPROVE_CONTEXT" | "APPROVE_PROPOSAL" => {
            let of = if kind == "APPROVE_CONTEXT" { "bundle" } else { "proposal" };
            let right = Digest::of_json(&host.var("r", of).await).hex();
            let digest = match attempt.digest {
                0 => known.keys().next().cloned().unwrap_or(right),
                1 => known.keys().last().cloned().unwrap_or(right),
                2 => Digest::of_json(&host.var("r", "bundle").await).hex(),
                3 => Digest::of_bytes(b"").hex(),
                _ => right,
            };
            let mut data = json!({"digest": digest});
            let path = |i: usize| proposal["changes"][i]["file_path"].clone();
            let accepted = match attempt.accepted {
                0 => json!([path(0)]),
                1 => json!([path(1)]),
                2 => json!(["../outside"]),
                _ => Json::Null,
            };
            if kind == "APPROVE_PROPOSAL" && accepted.as_array().is_some_and(|a| a[0].is_string()) {
                // Sometimes with the matching digest.
                if attempt.digest > 5 {
                    let mut part = proposal.clone();
                    if let Some(changes) = part["changes"].as_array_mut() {
                        changes.retain(|c| accepted[0] == c["file_path"]);
                    }
                    data["digest"] = Digest::of_json(&part).hex().into();
                }
                data["accepted"] = accepted;
            }
            data
        }
        "REVISE_CONTEXT" | "EDIT_PROPOSAL" => json!({"feedback": "other"}),
        "RESET" | "charter.pause" | "charter.resume" => json!({}),
        _ => json!({"reason": "because"}),
    };
    let proposer = host.var("r", "proposer").await;
    let who = PEOPLE.get(attempt.who).copied().or(proposer.as_str()).unwrap_or("ana");
    SendEvent::new("r", kind, data, Principal::new(who, ROLES[attempt.roles]))
}

async fn settle(host: &Host) {
    let paused = |s: &charter_kernel::Snapshot| s.status() == charter_kernel::Status::Paused;
    let settled = host.runtime.until("r", |s| paused(s) || !s.invocations().any(|(_, i)| !i.is_machine()));
    tokio::time::timeout(std::time::Duration::from_secs(30), settled).await.unwrap().unwrap();
    // Actors of a paused run still answer.
    for _ in 0..3_000 {
        if host.runtime.view("r").await.unwrap().working.is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it does not settle");
}

async fn judge(bursts: Vec<Burst>, verify: usize, applied: &Cell<u32>) {
    let host = sentinel().await;
    let folder = host.root.join("w");
    let verify = match verify {
        0 => json!({"verify": ["/bin/sh", "-c", "exit 1"]}),
        1 => {
            json!({"verify": ["/bin/sh", "-c", "echo hostile > made-by-verify; rm -f greeting.txt; exit 0"]})
        }
        _ => json!({}),
    };
    host.start("r", verify).await;
    settle(&host).await;
    let (mut known, mut seen) = (Known::new(), 0);
    // The folder before the last approved changes, and whether the cycle was aborted since: then
    // they may be undone, also in a later burst, if the run was paused meanwhile.
    let (mut undone, mut aborted) = (None, false);
    for (events, disturbed) in bursts {
        look(&host, &mut known).await;
        if disturbed {
            fs::write(folder.join("greeting.txt"), "Hello again\n").unwrap();
        }
        let before = image(&folder);
        let mut sends = Vec::new();
        for attempt in &events {
            sends.push(event(&host, attempt, &known).await);
        }
        for send in sends {
            // A refusal is an acceptable result.
            let _ = host.runtime.send(send).await.unwrap();
        }
        settle(&host).await;
        look(&host, &mut known).await;
        let now = image(&folder);
        let records = host.journal.records("r", seen, 1_000).unwrap();
        seen = records.last().map_or(seen, |r| r.seq + 1);
        let mut possible = vec![digests(&before)];
        for record in &records {
            let kind: &str = &record.event.r#type;
            aborted |= record.verdict == Verdict::Accepted && kind == "ABORT";
            if record.verdict != Verdict::Accepted || kind != "APPROVE_PROPOSAL" {
                continue;
            }
            let digest = record.event.data["digest"].as_str().unwrap();
            let digest = digest.trim_start_matches("sha256:");
            let (changeset, proposer) = known.get(digest).expect("an approval of something that was proposed");
            assert!(record.by.roles.iter().any(|r| r == "approver"), "{:?}", record.by);
            assert_ne!(&record.by.id, proposer, "the proposer's own approval");
            possible.push(after(&before, changeset));
        }
        let now_digests = digests(&now);
        let is_undone = aborted && undone.as_ref() == Some(&now_digests);
        assert!(
            is_undone || possible.contains(&now_digests),
            "the folder is neither as before nor as approved: {:?} → {:?}",
            before.keys(),
            now.keys()
        );
        if digests(&before) != now_digests {
            applied.set(applied.get() + 1);
            (undone, aborted) = (Some(digests(&before)), false);
        }
    }
    host.runtime.shutdown(std::time::Duration::ZERO).await;
}

#[test]
fn no_byte_changes_without_an_approval() {
    let applied = Cell::new(0);
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 24,
        max_shrink_iters: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&stream(), |(bursts, verify)| {
            threads.block_on(judge(bursts, verify, &applied));
            Ok(())
        })
        .unwrap();
    assert!(applied.get() > 5, "the streams got far enough {} times", applied.get());
    eprintln!("{} changesets were applied", applied.get());
}
