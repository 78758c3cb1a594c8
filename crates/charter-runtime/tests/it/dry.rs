//! Dry forks: no executor is called, by any host.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use charter_actors::{BoxFuture, Call, Executor, Fault, Outcome, VirtualClock};
use charter_journal::{MemoryStore, Store, fork, verify};
use charter_runtime::{Options, Receipt, RuntimeError, SendEvent};
use serde_json::json;

use crate::common::{self, BEGIN, Host, block_on, charter, host_with, options, who};

const CHARTER: &str = "
charter: 1
id: caller
roles: {user: {}}
events: {GO: {data: {type: object, required: [n], properties: {n: {type: integer}}}}, ASK: {}}
context: {got: null}
actors:
  work: {kind: work, idempotent: true, retry: {attempts: 3, backoff: 10ms}}
  person: {kind: human, by: user}
states:
  idle: {on: {GO: working, ASK: asking}}
  working:
    invoke:
      src: work
      input: {n: '= event.n'}
      timeout: 1h
      onDone: {target: idle, actions: {assign: {got: '= event.output'}}}
      onError: {target: idle, actions: {assign: {got: '= event.error.code'}}}
  asking:
    invoke: {src: person, onDone: {target: idle, actions: {assign: {got: '= event.output'}}}, onError: idle}
";

/// Counts its calls; answers with the number of the call, or fails if `n` is 0.
#[derive(Default, Clone)]
struct Work(Arc<AtomicUsize>);

impl Executor for Work {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let count = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move {
            match call.input["n"] == 0 {
                true => Err(Fault::new("no", "not zero").retryable()),
                false => Ok(Outcome::Done(json!(count))),
            }
        })
    }
}

fn with(work: &Work) -> impl FnOnce(Options) -> Options {
    let work = work.clone();
    move |options| options.executor("work", work)
}

async fn reopen(store: &Arc<dyn Store>, work: &Work) -> Host {
    let clock = VirtualClock::new(BEGIN + 60_000);
    let options = with(work)(options(&clock));
    common::open(store.clone(), clock, charter(CHARTER), options).await
}

/// A run with three answered calls (of 1, 0 and 1), and a fork of it.
async fn forked(work: &Work, at: u64, dry: bool) -> Host {
    let h = host_with(CHARTER, with(work)).await;
    h.start("r", json!({})).await;
    for n in [1, 0, 1] {
        h.send("r", "GO", json!({"n": n})).await;
        h.clock.advance(1_000).await;
    }
    assert_eq!(work.0.load(Ordering::SeqCst), 5, "{:?}", h.story("r"));
    let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
    fork(h.store.as_ref(), &machine, "r", at, "f", dry).unwrap();
    h
}

fn got(h: &Host) -> serde_json::Value {
    let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
    let snapshot = charter_journal::load(h.store.as_ref(), &machine, "f").unwrap().snapshot.unwrap();
    snapshot.actor("root").unwrap().variable("got").unwrap().clone()
}

#[test]
fn an_open_call_of_a_dry_fork_is_answered_from_the_past_when_the_journal_is_opened() {
    for (at, answer) in [(1, json!(1)), (3, json!("no"))] {
        let work = Work::default();
        block_on(async {
            let h = forked(&work, at, true).await;
            let h = reopen(&h.store, &work).await;
            h.runtime.idle().await;
            assert_eq!(got(&h), answer);
            assert_eq!(work.0.load(Ordering::SeqCst), 5);
        });
    }
    let work = Work::default();
    block_on(async {
        let h = forked(&work, 1, false).await;
        let h = reopen(&h.store, &work).await;
        h.runtime.idle().await;
        assert_eq!(work.0.load(Ordering::SeqCst), 6, "a live fork calls the actor");
    });
}

#[test]
fn the_time_of_a_fork_stands_still_until_it_goes_on() {
    const DAY: i64 = 86_400_000;
    // The call had an hour; the fork goes on a day later.
    for (dry, answer, calls) in [(true, json!(1), 5), (false, json!(6), 6)] {
        let work = Work::default();
        block_on(async {
            let h = forked(&work, 1, dry).await;
            let clock = VirtualClock::new(BEGIN + DAY);
            let options = with(&work)(options(&clock));
            let h = common::open(h.store.clone(), clock, charter(CHARTER), options).await;
            h.runtime.idle().await;
            assert_eq!(got(&h), answer, "{:?}", h.story("f"));
            assert_eq!(work.0.load(Ordering::SeqCst), calls);
            let times: Vec<_> = h.store.records("f", 0, 9).unwrap().iter().map(|r| r.at.0).collect();
            assert_eq!(times, [BEGIN, BEGIN, BEGIN, BEGIN + DAY, BEGIN + DAY], "{:?}", h.story("f"));
            let report = verify(h.store.as_ref(), None).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        });
    }
    // A person, too, has what was left of the hour at the record.
    const WAITING: &str = "
charter: 1
id: waiting
roles: {user: {}}
events: {NOTE: {}, OTHER: {}}
states:
  waiting: {on: {NOTE: {}, OTHER: {}}, after: {1h: late}}
  late: {}
";
    block_on(async {
        let h = host_with(WAITING, |o| o).await;
        h.start("r", json!({})).await;
        h.clock.advance(600_000).await;
        h.send("r", "NOTE", json!({})).await;
        let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
        fork(h.store.as_ref(), &machine, "r", 1, "f", false).unwrap();
        let clock = VirtualClock::new(BEGIN + DAY);
        let options = options(&clock);
        let h = common::open(h.store.clone(), clock, charter(WAITING), options).await;
        h.send("f", "OTHER", json!({})).await;
        let due = |h: &Host| h.store.pending_timers(charter_kernel::Timestamp::MAX, 9).unwrap();
        let left: Vec<_> = due(&h).iter().filter(|t| t.run == "f").map(|t| t.due.0 - BEGIN - DAY).collect();
        assert_eq!(left, [3_000_000], "{:?}", h.story("f"));
        h.clock.advance(3_000_000).await;
        h.runtime.idle().await;
        let records = h.store.records("f", 0, 9).unwrap();
        assert_eq!(*records.last().unwrap().state, ["late"], "{:?}", h.story("f"));
    });
}

/// The records with which its time begins change nothing that a sender could have looked at.
#[test]
fn the_last_shared_record_of_a_fork_can_be_expected() {
    const WAITING: &str = "
charter: 1
id: waiting
roles: {user: {}}
ledger: {report: {}, pass: {}}
events: {NOTE: {}, ENTER: {}}
states:
  waiting:
    on:
      NOTE: {actions: [{open: {kind: report, key: r, due: 1h}}, {grant: {kind: pass, key: p, expires: 1h}}]}
      ENTER: {requires: {use: {kind: pass, key: p}}}
    after: {2h: waiting}
";
    const DAY: i64 = 86_400_000;
    let expecting = |kind: &str, seq| SendEvent {
        expected_seq: Some(seq),
        ..SendEvent::new("f", kind, json!({}), who("ana", &["user"]))
    };
    let code = |receipt: &Receipt| receipt.record.refusal.as_ref().map(|refusal| refusal.code.to_string());
    for begun in [false, true] {
        block_on(async {
            let h = host_with(WAITING, |o| o).await;
            h.start("r", json!({})).await;
            h.send("r", "NOTE", json!({})).await;
            let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
            fork(h.store.as_ref(), &machine, "r", 1, "f", true).unwrap();
            let at =
                |clock: &VirtualClock| common::open(h.store.clone(), clock.clone(), charter(WAITING), options(clock));
            let clock = VirtualClock::new(BEGIN + DAY);
            if begun {
                let first = at(&clock).await;
                first.clock.advance(1_000).await;
                first.runtime.idle().await;
                assert_eq!(h.store.run("f").unwrap().unwrap().seq, 3, "its time has begun");
            }
            let again = at(&clock).await;
            let expired = again.try_send(expecting("ENTER", 1)).await.unwrap();
            assert_eq!(code(&expired).as_deref(), Some("permit.expired"), "a fork extends no right");
            let view = again.runtime.view("f").await.unwrap();
            let due = view.snapshot.ledger().unwrap().entry("report", "r").unwrap().due.unwrap();
            assert_eq!(due.0, again.store.records("f", 3, 1).unwrap()[0].at.0 + 3_600_000, "what was left is left");
            let report = verify(h.store.as_ref(), None).unwrap();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
        });
    }
    // What has changed the fork since then is not seen.
    block_on(async {
        let h = host_with(&WAITING.replace("ENTER: {requires: {use: {kind: pass, key: p}}}", "ENTER: {}"), |o| o).await;
        h.start("r", json!({})).await;
        let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
        fork(h.store.as_ref(), &machine, "r", 0, "f", true).unwrap();
        h.clock.advance(1_000).await;
        let first = h.try_send(expecting("ENTER", 0)).await.unwrap();
        assert_eq!(code(&first), None);
        for seen in [0, 1, 2] {
            let second = h.try_send(expecting("ENTER", seen)).await.unwrap();
            assert_eq!(code(&second).as_deref(), Some("stale"), "{seen}");
        }
    });
}

#[test]
fn calls_are_matched_in_order_and_new_ones_wait_for_a_person() {
    let work = Work::default();
    block_on(async {
        let h = forked(&work, 0, true).await;
        let h = reopen(&h.store, &work).await;
        // The calls of `r` are 1, 0 (three attempts) and 1.
        for (n, answer) in [(0, json!("no")), (1, json!(1)), (1, json!(5))] {
            h.send("f", "GO", json!({"n": n})).await;
            h.runtime.idle().await;
            assert_eq!(got(&h), answer, "{:?}", h.story("f"));
        }
        h.send("f", "GO", json!({"n": 1})).await;
        h.runtime.idle().await;
        let view = h.runtime.view("f").await.unwrap();
        let [task] = &view.tasks[..] else { panic!("{:?}", view.tasks) };
        assert!(view.dry && task.dry && view.working.is_empty());
        // Not even after another start, nor by an agent.
        let h = reopen(&h.store, &work).await;
        h.runtime.idle().await;
        let agent = who("bot", &[]).of_kind(charter_kernel::PrincipalKind::Agent);
        let by_agent = h.runtime.complete(&task.effect, json!(7), agent).await;
        assert!(matches!(by_agent, Err(RuntimeError::PersonsOnly { .. })));
        h.runtime.complete(&task.effect, json!(7), who("ana", &[])).await.unwrap();
        assert_eq!(got(&h), json!(7));
        // What a person has decided is not repeated.
        h.send("f", "ASK", json!({})).await;
        let view = h.runtime.view("f").await.unwrap();
        assert!(!view.tasks[0].dry);
        // An invocation that nobody answers exceeds its time.
        h.runtime.decline(&view.tasks[0].effect, "no", who("ana", &["user"])).await.unwrap();
        h.send("f", "GO", json!({"n": 9})).await;
        h.clock.advance(7_200_000).await;
        h.runtime.idle().await;
        assert_eq!(got(&h), json!("timeout"), "{:?}", h.story("f"));
        assert_eq!(work.0.load(Ordering::SeqCst), 5);
        let report = verify(h.store.as_ref(), None).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    });
}

#[test]
fn without_the_other_run_all_calls_wait() {
    let work = Work::default();
    block_on(async {
        let h = forked(&work, 1, true).await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut text = Vec::new();
        charter_journal::export(h.store.as_ref(), "f", &mut text).unwrap();
        charter_journal::import(store.as_ref(), &mut text.as_slice()).unwrap();
        let h = reopen(&store, &work).await;
        h.runtime.idle().await;
        let view = h.runtime.view("f").await.unwrap();
        assert!(view.dry && view.tasks.len() == 1);
        assert_eq!(work.0.load(Ordering::SeqCst), 5);
    });
}

#[test]
fn the_memory_of_runs_counts_what_forks_share_once() {
    const MEMORY: &str = "
charter: 1
id: memory
events: {GO: {data: {type: object, required: [n], properties: {n: {type: integer}}}}, LOOK: {}}
context: {seen: null}
actors: {memory: {kind: journal, emitted: SAID}}
states:
  idle:
    on:
      GO: {actions: {emit: {type: SAID, data: {n: '= event.n'}}}}
      LOOK: looking
  looking: {invoke: {src: memory, onDone: {target: idle, actions: {assign: {seen: '= event.output'}}}}}
";
    block_on(async {
        let h = host_with(MEMORY, |o| o).await;
        h.start("r", json!({})).await;
        h.send("r", "GO", json!({"n": 1})).await;
        let machine = charter_journal::machine(h.store.as_ref(), h.charter).unwrap();
        for (new, dry) in [("live", false), ("dry", true)] {
            fork(h.store.as_ref(), &machine, "r", 1, new, dry).unwrap();
        }
        h.send("live", "GO", json!({"n": 2})).await;
        h.send("dry", "GO", json!({"n": 3})).await;
        h.send("r", "LOOK", json!({})).await;
        h.runtime.idle().await;
        let view = h.runtime.view("r").await.unwrap();
        assert_eq!(view.snapshot.actor("root").unwrap().variable("seen"), Some(&json!([{"n": 2}, {"n": 1}])));
    });
}
