//! What a later host knows about the calls of actors that must not be repeated: whether an attempt
//! has begun survives the host.

use std::sync::{Arc, Mutex};

use charter_actors::{BoxFuture, Call, Clock as _, Executor, Fault, Outcome};
use charter_journal::waiting_attempts;
use charter_kernel::{Millis, Status};
use charter_runtime::Options;
use serde_json::json;

use crate::actors::{one, result};
use crate::common::*;

const MINUTE: i64 = 60_000;

/// Its first attempt fails at once, the next one answers after 10 minutes. Notes its attempts.
#[derive(Clone, Default)]
struct FailsOnce(Arc<Mutex<Vec<(String, u32)>>>);

impl Executor for FailsOnce {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        self.0.lock().unwrap().push((call.effect.to_string(), call.attempt));
        Box::pin(async move {
            if call.attempt == 1 {
                return Err(Fault::new("busy", "later").retryable());
            }
            call.clock().sleep_until(call.clock().now().saturating_add(Millis(10 * MINUTE))).await;
            Ok(Outcome::Done(json!(call.attempt)))
        })
    }
}

impl FailsOnce {
    fn calls(&self) -> Vec<(String, u32)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

const RETRIED: &str = "{kind: job, retry: {attempts: 3, backoff: 1h, factor: 1, jitter: 0, max: 2h}}";

/// Ends a host and opens the journal again some time later.
async fn later(h: Host, source: &str, millis: i64, set: impl FnOnce(Options) -> Options) -> Host {
    let Host { runtime, clock, store, .. } = h;
    drop(runtime);
    clock.settle().await;
    clock.advance(millis).await;
    let options = set(options(&clock));
    open(store, clock, charter(source), options).await
}

#[test]
fn an_attempt_begins_late_if_no_host_was_there_after_the_pause() {
    block_on(async {
        let (job, source) = (FailsOnce::default(), one(RETRIED));
        let set = |o: Options| o.executor("job", job.clone());
        let h = host_with(&source, set).await;
        h.start("r", json!({})).await;
        h.clock.advance(MINUTE).await;
        let h = later(h, &source, 600 * MINUTE, set).await;
        assert_eq!((&h.recovery.resumed[..], h.recovery.unknown.len()), (&["r/0/0".to_owned()][..], 0));
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await, (Status::Done, json!(2)));
        assert_eq!(job.calls(), [("r/0/0".to_owned(), 1), ("r/0/0".to_owned(), 2)]);
        assert!(waiting_attempts(h.store.as_ref(), "r").unwrap().is_empty());
    });
}

#[test]
fn an_attempt_that_has_begun_is_not_repeated_whenever_the_host_ends() {
    block_on(async {
        let (job, source) = (FailsOnce::default(), one(RETRIED));
        let set = |o: Options| o.executor("job", job.clone());
        let h = host_with(&source, set).await;
        h.start("r", json!({})).await;
        // In the middle of the second attempt.
        h.clock.advance(65 * MINUTE).await;
        let h = later(h, &source, MINUTE, set).await;
        assert_eq!((h.recovery.resumed.len(), &h.recovery.unknown[..]), (0, &["r/0/0".to_owned()][..]));
        h.clock.run(3_600_000).await;
        assert_eq!(result(&h, "r").await.1["code"], json!("unknown"));
        assert_eq!(job.calls().len(), 2);
    });
}

#[test]
fn a_live_fork_begins_the_open_calls_of_its_run() {
    block_on(async {
        for (at, fails, attempt) in [(0, true, 1), (1, false, 2)] {
            let (job, source) = (FailsOnce::default(), one(RETRIED));
            let set = |o: Options| o.executor("job", job.clone());
            let h = host_with(&source, set).await;
            h.start("r", json!({})).await;
            h.clock.advance(65 * MINUTE).await;
            h.runtime.fork("r", at, "f", false).await.unwrap();
            job.calls();
            let recovery = h.runtime.resume("f").await;
            assert_eq!((&recovery.resumed[..], recovery.unknown.len()), (&["f/0/0".to_owned()][..], 0), "at {at}");
            h.clock.advance(MINUTE).await;
            assert_eq!(job.calls(), [("f/0/0".to_owned(), attempt)], "at {at}");
            assert_eq!(waiting_attempts(h.store.as_ref(), "f").unwrap().len(), usize::from(fails));
            // Now it has begun, so another host does not repeat it.
            let h = later(h, &source, MINUTE, set).await;
            match fails {
                true => assert!(h.recovery.resumed.contains(&"f/0/0".to_owned()), "its next attempt waits"),
                false => assert!(h.recovery.unknown.contains(&"f/0/0".to_owned()), "{:?}", h.recovery),
            }
        }
    });
}

#[test]
fn what_is_noted_of_a_run_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(charter_journal::SqliteStore::open(&folder.path().join("journal.db")).unwrap());
    block_on(async {
        let (job, source) = (FailsOnce::default(), one(RETRIED));
        let clock = charter_actors::VirtualClock::new(BEGIN);
        let options = options(&clock).executor("job", job.clone());
        let h = open(store.clone(), clock, charter(&source), options).await;
        h.start("r", json!({})).await;
        while waiting_attempts(h.store.as_ref(), "r").unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        h.send("r", "STOP", json!({})).await;
        let by = "op".into();
        let deletion = charter_journal::Deletion { run: "r".into(), by, reason: String::new(), at: h.clock.now() };
        store.delete(deletion).unwrap();
        assert!(waiting_attempts(h.store.as_ref(), "r").unwrap().is_empty());
    });
}
