//! Attempts of actors: failures, retries, time limits, cancellation, restarts.

use crate::actors::{one, result};
use crate::common::*;
use charter_actors::{BoxFuture, Call, Executor, Fault, Outcome, VirtualClock};
use charter_kernel::{Millis, Status};
use charter_runtime::{FaultInjection, Options, RuntimeEvent, SendEvent};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn failures_are_retried_and_every_attempt_is_recorded() {
    let actor = "{kind: scripted, retry: {attempts: 4, backoff: 10s, factor: 3, max: 1m, jitter: 0}, answers: [{attempts: [{error: {code: busy}}, {error: {code: busy}}, {output: 7}]}]}";
    block_on(async {
        let h = host(&one(actor)).await;
        let mut news = h.runtime.subscribe(Some("r"));
        h.start("r", json!({})).await;
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!(7)));
        assert_eq!(
            h.story("r"),
            [
                "0 charter.start accepted working",
                "0 charter.attempt ignored working",
                "10000 charter.attempt ignored working",
                "40000 done.invoke.work accepted done",
            ]
        );
        let second = h.store.records("r", 2, 1).unwrap().remove(0);
        assert_eq!(
            *second.event.data,
            json!({"attempt": 2, "error": {"code": "busy", "message": "scripted failure", "retryable": true}, "retryAt": BEGIN + 40_000})
        );
        assert_eq!(
            (second.source.effect.as_deref(), second.snapshot),
            (Some("r/0/0"), h.store.records("r", 0, 1).unwrap()[0].snapshot)
        );
        let mut began = Vec::new();
        while let Some(event) = news.try_next() {
            if let RuntimeEvent::Began(w) = event {
                began.push((w.attempt, w.since.0 - BEGIN));
            }
        }
        assert_eq!(began, [(1, 0), (2, 10_000), (3, 40_000)]);
        assert!(charter_journal::verify(h.store.as_ref(), None).unwrap().is_verified());
    });
}

#[test]
fn no_retry_after_the_last_attempt_or_a_permanent_failure() {
    block_on(async {
        let busy =
            "{kind: scripted, retry: {attempts: 2, backoff: 1s}, answers: [{error: {code: busy, message: 'no time'}}]}";
        let h = host(&one(busy)).await;
        h.start("r", json!({})).await;
        h.clock.run(3_600_000).await;
        let error = json!({"code": "busy", "message": "no time", "retryable": true, "attempts": 2});
        assert_eq!(result(&h, "r").await, (Status::Failed, error));
        let hopeless = "{kind: scripted, retry: {attempts: 5}, answers: [{error: {code: never, retryable: false}}]}";
        let h = host(&one(hopeless)).await;
        h.start("r", json!({})).await;
        assert_eq!(result(&h, "r").await.1["code"], json!("never"));
        assert_eq!(h.story("r").len(), 2);
    });
}

#[test]
fn an_answer_that_does_not_match_its_schema_is_retried() {
    let actor = "{kind: scripted, output: {type: object, required: [n]}, retry: {attempts: 2}, answers: [{attempts: [{output: {m: 1}}, {output: {n: 1}}]}]}";
    block_on(async {
        let h = host(&one(actor)).await;
        h.start("r", json!({})).await;
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!({"n": 1})));
        let told = h.data("r", "charter.attempt");
        assert_eq!(told["error"]["code"], json!("schema"));
        assert!(told["error"]["message"].as_str().unwrap().contains("\"n\" is a required property"), "{told}");
        let h = host(&one(&actor.replace("attempts: 2", "attempts: 1"))).await;
        h.start("r", json!({})).await;
        assert_eq!(result(&h, "r").await.1["code"], json!("schema"));
    });
}

#[test]
fn time_limits_of_an_attempt_and_of_the_invocation() {
    block_on(async {
        let slow = "{kind: scripted, timeout: 5m, attemptTimeout: 2m, retry: {attempts: 9, backoff: 30s, factor: 1, jitter: 0}, answers: [{never: true}]}";
        let h = host(&one(slow)).await;
        h.start("r", json!({})).await;
        h.clock.run(86_400_000).await;
        let (status, error) = result(&h, "r").await;
        assert_eq!((status, &error["code"]), (Status::Failed, &json!("timeout")));
        assert_eq!(
            h.story("r"),
            [
                "0 charter.start accepted working",
                "120000 charter.attempt ignored working",
                "270000 charter.attempt ignored working",
                "300000 error.invoke.work accepted failed",
            ]
        );
    });
}

#[test]
fn calls_that_the_run_no_longer_waits_for_are_stopped() {
    block_on(async {
        let h = host(&one("{kind: scripted, answers: [{after: 1h, output: 1}]}")).await;
        let mut news = h.runtime.subscribe(None);
        h.start("r", json!({})).await;
        h.clock.advance(60_000).await;
        assert_eq!(h.runtime.view("r").await.unwrap().working[0].effect.as_ref(), "r/0/0");
        h.send("r", "STOP", json!({})).await;
        h.clock.run(86_400_000).await;
        assert_eq!(h.story("r"), ["0 charter.start accepted working", "60000 STOP accepted stopped"]);
        let mut stopped = 0;
        while let Some(event) = news.try_next() {
            stopped += u32::from(matches!(event, RuntimeEvent::Stopped(_)));
        }
        assert_eq!(stopped, 1);
    });
}

#[test]
fn executing_every_effect_twice_changes_nothing() {
    block_on(async {
        let source = one("{kind: scripted, answers: [{output: 1}]}");
        let once = host(&source).await;
        let twice = host_with(&source, |o| Options { inject: FaultInjection { twice: true }, ..o }).await;
        for h in [&once, &twice] {
            h.start("r", json!({})).await;
            assert_eq!(result(h, "r").await, (Status::Done, json!(1)));
            h.clock.settle().await;
        }
        let head = |h: &Host| h.store.run("r").unwrap().map(|r| (r.seq, r.hash));
        assert_eq!(head(&twice), head(&once));
        assert!(charter_journal::verify(twice.store.as_ref(), None).unwrap().is_verified());
    });
}

/// Counts its calls, and waits for a signal.
struct Slow(Arc<AtomicU32>);

impl Executor for Slow {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            call.clock().sleep_until(call.clock().now().saturating_add(Millis(600_000))).await;
            Ok(Outcome::Done(json!(call.effect.as_ref())))
        })
    }
}

#[test]
fn after_a_crash_idempotent_calls_are_repeated_and_others_are_unknown() {
    block_on(async {
        for (config, expected) in
            [("{kind: slow, idempotent: true}", json!("r/0/0")), ("{kind: slow}", json!("unknown"))]
        {
            let count = Arc::new(AtomicU32::new(0));
            let slow = |o: Options| o.executor("slow", Slow(count.clone()));
            let source = one(config);
            let h = host_with(&source, slow).await;
            h.start("r", json!({})).await;
            h.clock.advance(300_000).await;
            let h = h.crash(charter(&source), slow).await;
            h.clock.run(86_400_000).await;
            let (status, got) = result(&h, "r").await;
            if status == Status::Done {
                assert_eq!((got, count.load(Ordering::SeqCst)), (expected, 2));
                assert_eq!(h.story("r")[1], "900000 done.invoke.work accepted done");
                assert_eq!(h.recovery.resumed, ["r/0/0"]);
            } else {
                assert_eq!((&got["code"], count.load(Ordering::SeqCst)), (&expected, 1));
                assert_eq!(h.recovery.unknown, ["r/0/0"]);
            }
        }
    });
}

#[test]
fn a_pause_between_attempts_survives_a_crash() {
    struct Fails;
    impl Executor for Fails {
        fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
            Box::pin(async move {
                if call.attempt < 3 {
                    Err(Fault::new("busy", "later").retryable())
                } else {
                    Ok(Outcome::Done(json!(call.attempt)))
                }
            })
        }
    }
    block_on(async {
        let source = one("{kind: fails, retry: {attempts: 3, backoff: 1h, factor: 1, jitter: 0, max: 2h}}");
        let set = |o: Options| o.executor("fails", Fails);
        let h = host_with(&source, set).await;
        h.start("r", json!({})).await;
        h.clock.advance(600_000).await;
        let h = h.crash(charter(&source), set).await;
        assert_eq!(h.recovery.resumed, ["r/0/0"]);
        h.clock.run(86_400_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!(3)));
        assert_eq!(
            h.story("r")[1..],
            [
                "0 charter.attempt ignored working",
                "3600000 charter.attempt ignored working",
                "7200000 done.invoke.work accepted done"
            ]
        );
    });
}

/// An executor whose first attempts fail; counts them.
#[derive(Clone)]
struct FailsTwice(Arc<AtomicU32>);

impl Executor for FailsTwice {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match call.attempt {
                1 | 2 => Err(Fault::new("busy", "later").retryable()),
                attempt => Ok(Outcome::Done(json!(attempt))),
            }
        })
    }
}

/// Pauses a run, or resumes it.
async fn control(h: &Host, kind: &str) {
    let op = who("op", &["operator"]);
    assert!(!h.try_send(SendEvent::new("r", kind, json!({}), op)).await.unwrap().is_refused());
}

#[test]
fn a_paused_run_starts_no_attempt() {
    block_on(async {
        let source = one("{kind: fails, retry: {attempts: 3, backoff: 10s, factor: 1, jitter: 0}}");
        for restarts in [false, true] {
            let count = Arc::new(AtomicU32::new(0));
            let set = |o: Options| o.executor("fails", FailsTwice(count.clone()));
            let mut h = host_with(&source, set).await;
            h.start("r", json!({})).await;
            h.clock.advance(4_000).await;
            control(&h, "charter.pause").await;
            h.clock.advance(3_600_000).await;
            assert_eq!(count.load(Ordering::SeqCst), 1);
            if restarts {
                h = h.crash(charter(&source), set).await;
                assert_eq!((&h.recovery.held[..], h.recovery.resumed.len()), (&["r/0/0".to_string()][..], 0));
                h.clock.advance(1_000_000).await;
                assert_eq!(count.load(Ordering::SeqCst), 1);
            }
            control(&h, "charter.resume").await;
            // The rest of the pause between the attempts: 6 s.
            h.clock.advance(5_999).await;
            assert_eq!(count.load(Ordering::SeqCst), 1);
            h.clock.run(3_600_000).await;
            assert_eq!(result(&h, "r").await, (Status::Done, json!(3)));
            assert_eq!(count.load(Ordering::SeqCst), 3);
            assert!(charter_journal::verify(h.store.as_ref(), None).unwrap().is_verified());
        }
    });
}

#[test]
fn an_attempt_that_fails_in_a_paused_run_is_repeated_once_it_is_resumed() {
    block_on(async {
        let source = one(
            "{kind: scripted, retry: {attempts: 2, backoff: 10s, jitter: 0}, answers: [{attempts: [{after: 5s, error: {code: busy}}, {after: 5s, output: 7}]}]}",
        );
        let h = host(&source).await;
        h.start("r", json!({})).await;
        h.clock.advance(1_000).await;
        control(&h, "charter.pause").await;
        h.clock.advance(3_600_000).await;
        assert_eq!(h.story("r").last().unwrap(), "5000 charter.attempt ignored working");
        control(&h, "charter.resume").await;
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!(7)));
        // 10 s between the attempts, and 5 s for the second one.
        assert_eq!(h.story("r").last().unwrap(), "3616000 done.invoke.work accepted done");
    });
}

#[test]
fn an_interrupted_attempt_of_a_paused_run_is_repeated_once_the_run_is_resumed() {
    block_on(async {
        let source = one("{kind: slow, idempotent: true}");
        let count = Arc::new(AtomicU32::new(0));
        let set = |o: Options| o.executor("slow", Slow(count.clone()));
        let h = host_with(&source, set).await;
        h.start("r", json!({})).await;
        h.clock.advance(1_000).await;
        control(&h, "charter.pause").await;
        let h = h.crash(charter(&source), set).await;
        h.clock.advance(86_400_000).await;
        assert_eq!(count.load(Ordering::SeqCst), 1);
        control(&h, "charter.resume").await;
        h.clock.run(86_400_000).await;
        assert_eq!((result(&h, "r").await.0, count.load(Ordering::SeqCst)), (Status::Done, 2));
    });
}

#[test]
fn a_run_that_cannot_be_resumed_does_not_affect_the_others() {
    block_on(async {
        let source = one("{kind: scripted, answers: [{after: 1h, output: 1}]}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal.db");
        let sqlite = || Arc::new(charter_journal::SqliteStore::open(&file).unwrap());
        let clock = VirtualClock::new(BEGIN);
        let h = open(sqlite(), clock.clone(), charter(&source), options(&clock)).await;
        for run in ["a", "b", "c"] {
            h.start(run, json!({})).await;
        }
        clock.settle().await;
        let Host { runtime, store, .. } = h;
        runtime.shutdown(std::time::Duration::ZERO).await;
        drop((runtime, store));
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.execute_batch("UPDATE records SET json = '{}' WHERE run = 'b'; DELETE FROM snapshots").unwrap();
        drop(connection);
        let h = open(sqlite(), clock.clone(), charter(&source), options(&clock)).await;
        assert_eq!(h.recovery.failed.iter().map(|(run, _)| run.as_str()).collect::<Vec<_>>(), ["b"]);
        h.clock.run(86_400_000).await;
        for run in ["a", "c"] {
            assert_eq!(h.story(run).last().unwrap(), "3600000 done.invoke.work accepted done");
        }
    });
}

#[test]
fn a_run_in_the_journal_without_an_executor_gets_an_error() {
    block_on(async {
        let source = one("{kind: slow, idempotent: true}");
        let count = Arc::new(AtomicU32::new(0));
        let h = host_with(&source, |o| o.executor("slow", Slow(count))).await;
        h.start("r", json!({})).await;
        let Host { runtime, clock, store, .. } = h;
        drop(runtime);
        clock.settle().await;
        let (runtime, _) = charter_runtime::Runtime::open(store, options(&clock)).await.unwrap();
        let view = runtime.ended("r").await.unwrap();
        assert_eq!(view.snapshot.output().unwrap()["code"], json!("no-executor"));
        let e = runtime.send(SendEvent::new("r", "STOP", json!({}), who("ana", &["user"]))).await.unwrap();
        assert_eq!(e.refusal().unwrap().code.word(), "finished");
    });
}

#[test]
fn a_call_that_has_answered_is_not_reported_as_stopped() {
    block_on(async {
        let h = host(&one("{kind: scripted, answers: [{after: 1m, output: 1}]}")).await;
        let mut news = h.runtime.subscribe(None);
        h.start("r", json!({})).await;
        h.clock.run(86_400_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!(1)));
        while let Some(event) = news.try_next() {
            assert!(!matches!(event, RuntimeEvent::Stopped(_)), "{event:?}");
        }
    });
}
