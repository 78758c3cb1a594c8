//! Tests that a client does what the host itself does.

use std::sync::Arc;
use std::time::Duration;

use charter_journal::{RunFilter, SqliteStore, Store as _};
use charter_kernel::{Auth, PrincipalKind, Status, Timestamp};
use charter_runtime::backend::{Backend, TaskAnswer, Update};
use charter_runtime::{RuntimeError, SendEvent, Start};
use serde_json::json;

use crate::common::*;

fn event(kind: &str, id: &str) -> SendEvent {
    SendEvent::new("r", kind, json!({}), boss()).id(id)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_gives_the_result_of_the_host() {
    let site = Site::new().await;
    let client = site.client().await;
    assert_eq!((client.pid(), client.about()), (std::process::id(), &json!({"models": "none"})));
    start(&client, "r").await;
    let mut updates = client.updates(Some("r".into())).await.unwrap();
    let first = client.send(event("GO", "one")).await.unwrap();
    let again = client.send(event("GO", "one")).await.unwrap();
    assert_eq!((first.repeated, again.repeated), (false, true));
    assert_eq!(first.record, again.record);
    assert!(client.send(event("charter.resume", "two")).await.unwrap().is_refused());
    client.send(event("SAY", "three")).await.unwrap();
    client.send(event("ASK", "four")).await.unwrap();
    let near: &dyn Backend = &site.runtime;
    let (a, b) = (near.view("r".into()).await.unwrap(), client.view("r".into()).await.unwrap());
    assert_eq!((a.snapshot.clone(), &a.tasks), (b.snapshot, &b.tasks));
    assert_eq!(b.charter.stored(), a.charter.stored());
    let tasks = client.tasks(boss(), 10).await.unwrap();
    assert_eq!(tasks, near.tasks(boss(), 10).await.unwrap());
    let legal = client.legal("r".into(), boss()).await.unwrap();
    assert_eq!(legal, near.legal("r".into(), boss()).await.unwrap());
    let answered = client.answer(tasks[0].effect.clone(), TaskAnswer::Output(json!({})), boss()).await.unwrap();
    assert_eq!(answered.record.event.r#type, "done.invoke.review");
    let late = client.answer(tasks[0].effect.clone(), TaskAnswer::Output(json!({})), boss()).await;
    assert!(matches!(late, Err(RuntimeError::NoTask { .. } | RuntimeError::NotAwaited(_))), "{late:?}");
    assert_eq!(client.run("r".into()).await.unwrap(), site.store.run("r").unwrap());
    assert_eq!(client.runs(RunFilter::default()).await.unwrap(), site.store.runs(&RunFilter::default()).unwrap());
    let records = client.records("r".into(), 1, 99).await.unwrap();
    assert_eq!(records, site.store.records("r", 1, 99).unwrap());
    let by = &records[0].by;
    assert_eq!((by.kind(), by.auth(), by.id.as_str()), (PrincipalKind::Person, Auth::Local, "ana"));
    let mut seen = Vec::new();
    while seen.len() < records.len() {
        match tokio::time::timeout(Duration::from_secs(5), updates.next()).await.unwrap().unwrap() {
            Update::Recorded(record) => seen.push(record),
            Update::Emitted { data, .. } => assert_eq!(data, json!({"n": 1})),
            _ => {}
        }
    }
    assert_eq!(seen, records);
    assert!(matches!(client.view("x".into()).await, Err(RuntimeError::UnknownRun(run)) if run == "x"));
    let other = Start { charter: b.charter.digest(), run: Some("r".into()), input: json!({"a": 1}), by: boss() };
    assert!(matches!(client.start(other).await, Err(RuntimeError::RunExists(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_is_maintained_through_the_holder() {
    let site = Site::new().await;
    let client = site.client().await;
    start(&client, "r").await;
    client.send(event("GO", "one")).await.unwrap();
    client.fork("r".into(), 0, "f".into(), true).await.unwrap();
    assert_eq!(client.run("f".into()).await.unwrap().unwrap().seq, 0);
    assert!(client.fork("r".into(), 0, "f".into(), true).await.is_err());
    assert!(client.fork("r".into(), 9, "g".into(), true).await.is_err());
    client.rebuild().await.unwrap();
    // The fork takes part from now on.
    client.send(SendEvent::new("f", "GO", json!({}), boss())).await.unwrap();
    let file = site.folder.path().join("r.jsonl");
    charter_journal::export(site.store.as_ref(), "r", &mut std::fs::File::create(&file).unwrap()).unwrap();
    assert!(client.import(&file).await.unwrap_err().to_string().contains('r'));
    let other = Site::new().await;
    let imported = other.client().await.import(&file).await.unwrap();
    assert_eq!((imported.run.as_str(), imported.seq), ("r", 1));
    other.client().await.send(event("GO", "two")).await.unwrap();
    assert!(client.import(&site.folder.path().join("absent")).await.unwrap_err().to_string().contains("cannot read"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_left_keeps_the_holder_for_its_timers() {
    let site = Site::new().await;
    let client = site.client().await;
    start(&client, "r").await;
    let now = site.store.run("r").unwrap().unwrap().updated;
    assert!(!site.service.waits_for_timers(now).await);
    client.keep("r", false).await.unwrap();
    // The timer is due in an hour.
    assert!(!site.service.waits_for_timers(now).await);
    assert!(site.service.waits_for_timers(Timestamp(now.0 + 3_590_000)).await);
    client.keep("r", true).await.unwrap();
    assert!(site.service.waits_for_timers(now).await);
    let cancelled = client.send(event("charter.cancel", "one")).await.unwrap();
    assert!(!cancelled.is_refused(), "{}", cancelled.record.text());
    assert_eq!(client.view("r".into()).await.unwrap().snapshot.status(), Status::Cancelled);
    assert!(!site.service.waits_for_timers(now).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_holder_is_reported_as_a_lost_connection() {
    let mut site = Site::new().await;
    let client = site.client().await;
    start(&client, "r").await;
    let mut updates = client.updates(None).await.unwrap();
    let address = site.address();
    site.server.take().unwrap().close(Duration::from_secs(2)).await;
    assert!(!address.exists());
    assert!(matches!(client.send(event("GO", "one")).await, Err(RuntimeError::Lost { .. })));
    assert!(updates.next().await.is_none());
    assert!(matches!(client.view("r".into()).await, Err(RuntimeError::Lost { .. })));
    assert_eq!(site.store.run("r").unwrap().unwrap().seq, 0);
    // A host that shuts down, too.
    site.runtime.shutdown(Duration::ZERO).await;
    let path = site.folder.path().join("journal.db");
    let server = charter_local::Server::open(&path, &[], site.service.clone(), json!({})).unwrap();
    site.server = Some(server);
    assert!(matches!(site.client().await.send(event("GO", "one")).await, Err(RuntimeError::Lost { .. })));
    drop((site.server.take(), site.service, site.runtime));
    drop(Arc::<SqliteStore>::into_inner(site.store));
}
