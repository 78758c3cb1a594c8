//! The time of a live fork goes on when a host resumes it, however far its timers are.

use std::sync::{Arc, Mutex};

use charter_actors::{BoxFuture, Call, Executor, Fault, Outcome, VirtualClock};
use charter_journal::{MemoryStore, Store, fork};
use charter_kernel::{Millis, Timestamp};
use charter_runtime::{Options, ResumeRuns};
use serde_json::json;

use crate::common::{self, BEGIN, Host, block_on, charter, options};

const MINUTE: i64 = 60_000;

const CALLING: &str = "
charter: 1
id: calling
actors:
  job: {kind: job, idempotent: true}
states:
  a: {invoke: {src: job, timeout: 1h, onDone: ok, onError: bad}}
  ok: {type: final}
  bad: {type: final}
";

const WAITING: &str = "
charter: 1
id: waiting
states:
  waiting: {after: {1h: late}}
  late: {type: final}
";

/// Answers after 90 minutes. Notes how many records the fork had when it was called.
struct Slow(Arc<dyn Store>, Arc<Mutex<Vec<usize>>>);

impl Executor for Slow {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let records = self.0.records("f", 0, 9).unwrap().len();
        self.1.lock().unwrap().push(records);
        Box::pin(async move {
            call.clock().sleep_until(call.clock().now().saturating_add(Millis(90 * MINUTE))).await;
            Ok(Outcome::Done(json!(1)))
        })
    }
}

/// A fork of a run that has begun, 10 minutes later, before a host resumes it.
async fn forked(source: &str, resume: ResumeRuns) -> (Host, Arc<Mutex<Vec<usize>>>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let clock = VirtualClock::new(BEGIN);
    let with = |clock: &VirtualClock, resume, calls: &Arc<Mutex<Vec<usize>>>| {
        Options { resume, ..options(clock) }.executor("job", Slow(store.clone(), calls.clone()))
    };
    let h = common::open(store.clone(), clock.clone(), charter(source), with(&clock, resume, &Arc::default())).await;
    h.start("r", json!({})).await;
    let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
    fork(h.store.as_ref(), &machine, "r", 0, "f", false).unwrap();
    drop(h);
    let (clock, calls) = (VirtualClock::new(BEGIN + 10 * MINUTE), Arc::default());
    let options = with(&clock, resume, &calls);
    (common::open(store.clone(), clock, charter(source), options).await, calls)
}

/// The times of the records in minutes, and the last state.
fn records(h: &Host) -> (Vec<i64>, String) {
    let records = h.store.records("f", 0, 9).unwrap();
    (records.iter().map(|r| (r.at.0 - BEGIN) / MINUTE).collect(), records.last().unwrap().state.join(","))
}

#[test]
fn an_actor_of_a_fork_has_what_was_left_of_its_time_and_not_more() {
    for resume in [ResumeRuns::All, ResumeRuns::OnRequest] {
        block_on(async {
            let (h, calls) = forked(CALLING, resume).await;
            if resume == ResumeRuns::OnRequest {
                h.runtime.resume_timers().await.unwrap();
                let recovery = h.runtime.resume("f").await;
                assert_eq!((recovery.resumed, recovery.failed.len()), (vec!["f/0/0".to_owned()], 0));
            }
            h.clock.advance(59 * MINUTE).await;
            assert_eq!(records(&h), (vec![0, 0, 10], "a".to_owned()), "{:?}", h.story("f"));
            h.clock.advance(2 * MINUTE).await;
            assert_eq!(records(&h), (vec![0, 0, 10, 70], "bad".to_owned()), "{:?}", h.story("f"));
            assert!(calls.lock().unwrap().contains(&3), "the call of the fork came before its time went on");
        });
    }
}

#[test]
fn a_fork_without_actors_goes_on_too() {
    for resume in [ResumeRuns::All, ResumeRuns::OnRequest] {
        block_on(async {
            let (h, _) = forked(WAITING, resume).await;
            if resume == ResumeRuns::OnRequest {
                h.runtime.resume("f").await;
                h.runtime.resume_timers().await.unwrap();
            }
            h.clock.advance(61 * MINUTE).await;
            assert_eq!(records(&h), (vec![0, 0, 10, 70], "late".to_owned()), "{:?}", h.story("f"));
        });
    }
}

#[test]
fn the_time_of_a_fork_that_nobody_resumes_stands_still() {
    block_on(async {
        let (h, calls) = forked(CALLING, ResumeRuns::OnRequest).await;
        h.runtime.resume_timers().await.unwrap();
        h.clock.advance(600 * MINUTE).await;
        assert_eq!(records(&h), (vec![0], "a".to_owned()), "{:?}", h.story("f"));
        assert!(calls.lock().unwrap().is_empty());
        let timers = h.store.pending_timers(Timestamp::MAX, 9).unwrap();
        assert!(timers.iter().all(|timer| timer.run == "f"), "the other run goes on: {timers:?}");
    });
}

#[test]
fn a_fork_that_a_host_makes_stands_still_until_it_is_resumed() {
    block_on(async {
        for (resume, own) in [(ResumeRuns::OnRequest, 0), (ResumeRuns::All, 2)] {
            let (h, _) = forked(WAITING, resume).await;
            h.clock.advance(MINUTE).await;
            h.runtime.fork("r", 0, "g", true).await.unwrap();
            h.clock.advance(MINUTE).await;
            assert_eq!(h.store.records("g", 1, 9).unwrap().len(), own, "{resume:?}");
            h.runtime.resume("g").await;
            h.clock.advance(MINUTE).await;
            assert_eq!(h.store.records("g", 1, 9).unwrap().len(), 2, "{resume:?}");
        }
    });
}
