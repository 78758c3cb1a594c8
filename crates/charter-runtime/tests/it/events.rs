//! Starting runs and sending events: ids, limits, legal events, timers.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::common::*;
use charter_journal::{MemoryStore, RunFilter};
use charter_kernel::Status;
use charter_runtime::{Limits, Options, RuntimeError, SendEvent, Start};
use serde_json::json;

const DOOR: &str = "
charter: 1
id: door
roles: {user: {}}
input: {type: object, properties: {key: {type: string}}}
events: {OPEN: {by: user}, CLOSE: {by: user, data: {type: object, required: [why]}}}
context: {count: 0}
states:
  closed: {on: {OPEN: {target: opened, actions: {assign: {count: '= context.count + 1'}}}}}
  opened: {on: {CLOSE: closed}, after: {1h: closed}}
";

#[test]
fn an_event_is_recorded_and_answered() {
    block_on(async {
        let h = host(DOOR).await;
        h.start("a", json!({})).await;
        let opened = h.send("a", "OPEN", json!({})).await;
        assert_eq!((opened.record.seq, opened.record.state[0].as_ref()), (1, "opened"));
        let again = h.send("a", "OPEN", json!({})).await;
        assert_eq!(again.refusal().unwrap().code.word(), "unhandled");
        assert_eq!(again.refusal().unwrap().legal, ["CLOSE"]);
        let legal = h.runtime.legal("a", &who("ana", &["user"])).await.unwrap();
        assert_eq!(legal.iter().map(|l| l.r#type.as_str()).collect::<Vec<_>>(), ["CLOSE"]);
        assert!(h.runtime.legal("a", &who("eve", &[])).await.unwrap().is_empty());
        assert_eq!(
            h.story("a"),
            ["0 charter.start accepted closed", "0 OPEN accepted opened", "0 OPEN refused unhandled opened"]
        );
        assert_eq!(h.runtime.runs(RunFilter::default()).await.unwrap().len(), 1);
    });
}

#[test]
fn an_id_belongs_to_one_event() {
    block_on(async {
        let h = host(DOOR).await;
        h.start("a", json!({})).await;
        let by = || who("ana", &["user"]);
        let open = || SendEvent::new("a", "OPEN", json!({}), by()).id("k1");
        // Send the same event concurrently, and again later.
        let (one, two) = tokio::join!(h.try_send(open()), h.try_send(open()));
        let three = h.try_send(open()).await.unwrap();
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_eq!((one.repeated, two.repeated, three.repeated), (false, true, true));
        assert_eq!((&one.record, &one.record), (&two.record, &three.record));
        let other = h.try_send(SendEvent::new("a", "CLOSE", json!({"why": 1}), by()).id("k1")).await.unwrap_err();
        assert_eq!(other, RuntimeError::IdTaken { run: "a".into(), id: "k1".into(), seq: 1 });
        assert_eq!(h.story("a").len(), 2);
    });
}

#[test]
fn a_run_is_started_once() {
    block_on(async {
        let h = host(DOOR).await;
        let first = h.start("a", json!({"key": "x"})).await;
        let again = h.start("a", json!({"key": "x"})).await;
        assert_eq!((first.repeated, again.repeated, &first.record), (false, true, &again.record));
        let start = |run: Option<&str>, input| Start {
            charter: h.charter,
            run: run.map(Into::into),
            input,
            by: who("starter", &[]),
        };
        let other = h.runtime.start(start(Some("a"), json!({"key": "y"}))).await.unwrap_err();
        assert_eq!(other, RuntimeError::RunExists("a".into()));
        let made = h.runtime.start(start(None, json!({}))).await.unwrap();
        assert_eq!(made.record.run, "r1");
        for id in ["a/b", "-a", "--help"] {
            let bad = h.runtime.start(start(Some(id), json!({}))).await.unwrap_err();
            let expected = "expected 1 to 128 letters, digits, `-`, `_`, `.` or `:`, and no `-` at the beginning";
            assert_eq!(bad.to_string(), format!("invalid run id `{id}`: {expected}"));
        }
        // A refused start is recorded; the run does not exist.
        let refused = h.start("b", json!({"key": 7})).await;
        assert_eq!(refused.refusal().unwrap().code.word(), "schema");
        let e = h.try_send(SendEvent::new("b", "OPEN", json!({}), who("ana", &["user"]))).await.unwrap_err();
        assert_eq!(e, RuntimeError::NeverStarted("b".into()));
        let e = h.try_send(SendEvent::new("c", "OPEN", json!({}), who("ana", &["user"]))).await.unwrap_err();
        assert_eq!(e.to_string(), "no run `c` in this journal");
    });
}

#[test]
fn a_full_run_recognizes_a_repeated_event_also_after_a_restart() {
    block_on(async {
        let limited = |options: Options| Options { limits: Limits { records_per_run: 2, ..options.limits }, ..options };
        let h = host_with(DOOR, limited).await;
        h.start("a", json!({})).await;
        let open = || SendEvent::new("a", "OPEN", json!({}), who("ana", &["user"])).id("k");
        let first = h.try_send(open()).await.unwrap();
        let h = h.crash(charter(DOOR), limited).await;
        let again = h.try_send(open()).await.unwrap();
        assert_eq!((again.repeated, again.record), (true, first.record));
        let other = SendEvent { id: Some("other".into()), ..open() };
        let e = h.try_send(other).await.unwrap_err();
        assert!(matches!(e, RuntimeError::Limit { limit: "records_per_run", .. }), "{e}");
    });
}

#[test]
fn timers_fire_at_their_time_also_after_a_restart_and_never_twice() {
    block_on(async {
        let h = host(DOOR).await;
        h.start("a", json!({})).await;
        h.send("a", "OPEN", json!({})).await;
        h.clock.advance(3_599_999).await;
        assert_eq!(h.story("a").len(), 2);
        let h = h.crash(charter(DOOR), |o| o).await;
        assert_eq!(h.recovery.timers, 1);
        h.clock.advance(1).await;
        assert_eq!(h.story("a").last().unwrap(), "3600000 after.1h.opened accepted closed");
        h.send("a", "OPEN", json!({})).await;
        // The timer was due while the host was down: it fires when the host is opened.
        let h = h.crash(charter(DOOR), |o| o).await;
        h.clock.advance(10_000_000).await;
        assert_eq!(h.story("a").last().unwrap(), "7200000 after.1h.opened accepted closed");
        h.clock.advance(10_000_000).await;
        assert_eq!(h.story("a").len(), 5);
    });
}

#[test]
fn due_timers_fire_before_later_events() {
    block_on(async {
        let h = host(DOOR).await;
        h.start("a", json!({})).await;
        h.send("a", "OPEN", json!({})).await;
        let Host { runtime, clock, store, .. } = h;
        drop(runtime);
        clock.settle().await;
        clock.advance(5_000_000).await;
        let h = open(store, clock.clone(), charter(DOOR), options(&clock)).await;
        // The timer fires on time, even if an event arrives first.
        let late = h.send("a", "CLOSE", json!({"why": "late"})).await;
        assert_eq!(late.refusal().unwrap().code.word(), "unhandled");
        assert_eq!(h.story("a").get(2).unwrap(), "5000000 after.1h.opened accepted closed");
    });
}

#[test]
fn opening_outside_a_tokio_runtime_is_an_error() {
    let mut opening = std::pin::pin!(charter_runtime::Runtime::open(Arc::new(MemoryStore::new()), Options::default()));
    let mut context = Context::from_waker(Waker::noop());
    match opening.as_mut().poll(&mut context) {
        Poll::Ready(Err(e)) => assert_eq!(e, RuntimeError::NoTokio),
        other => panic!("{:?}", other.map(|r| r.map(|(_, recovery)| recovery))),
    }
}

#[test]
fn errors_name_the_limit() {
    block_on(async {
        let limits = Limits { events_per_second: 2, records_per_run: 3, data_bytes: 40, ..Limits::default() };
        let h = host_with(DOOR, |o| charter_runtime::Options { limits, ..o }).await;
        h.start("a", json!({})).await;
        let by = |id: &str| who(id, &["user"]);
        let large = SendEvent::new("a", "CLOSE", json!({"why": "x".repeat(50)}), by("zoe"));
        assert_eq!(
            h.try_send(large).await.unwrap_err().to_string(),
            "the data of `CLOSE` is too large: the limit `data_bytes` of this host is 40"
        );
        h.send("a", "OPEN", json!({})).await;
        h.send("a", "OPEN", json!({})).await;
        let full = h.try_send(SendEvent::new("a", "OPEN", json!({}), by("bob"))).await.unwrap_err();
        assert_eq!(
            full.to_string(),
            "run `a` has too many records; `charter.cancel` still ends it: the limit `records_per_run` of this host is 3"
        );
        // The timer still fires: effects that the run has requested are not lost.
        h.clock.advance(3_600_000).await;
        assert_eq!(h.story("a").len(), 4);
        let cancel =
            h.try_send(SendEvent::new("a", "charter.cancel", json!({}), who("op", &["operator"]))).await.unwrap();
        assert_eq!(cancel.snapshot.unwrap().status(), Status::Cancelled);
        for _ in 0..4 {
            let _ = h.try_send(SendEvent::new("a", "OPEN", json!({}), by("eve"))).await;
        }
        let many = h.try_send(SendEvent::new("a", "OPEN", json!({}), by("eve"))).await.unwrap_err();
        assert_eq!(
            many.to_string(),
            "`eve` sends too many events; the next one is accepted in 501 ms: the limit `events_per_second` of this host is 2"
        );
        let greedy = format!("{DOOR}limits: {{actors: 20000}}\n");
        let e = h.runtime.add(charter(&greedy)).await.unwrap_err();
        assert_eq!(
            e.to_string(),
            "the charter `door` requests `limits.actors: 20000`: the limit `actors_per_run` of this host is 10000"
        );
    });
}

#[test]
fn a_paused_run_keeps_its_timers() {
    block_on(async {
        let h = host(DOOR).await;
        h.start("a", json!({})).await;
        h.send("a", "OPEN", json!({})).await;
        let op = |t: &str| SendEvent::new("a", t, json!({}), who("op", &["operator"]));
        h.clock.advance(600_000).await;
        h.try_send(op("charter.pause")).await.unwrap();
        h.clock.advance(86_400_000).await;
        assert_eq!(h.story("a").len(), 3);
        h.try_send(op("charter.resume")).await.unwrap();
        h.clock.advance(3_000_000).await;
        assert_eq!(h.story("a").last().unwrap(), "90000000 after.1h.opened accepted closed");
    });
}

#[test]
fn more_runs_than_fit_in_memory() {
    block_on(async {
        let limits = Limits { runs_in_memory: 3, events_per_second: 0, ..Limits::default() };
        let h = host_with(DOOR, |o| charter_runtime::Options { limits, ..o }).await;
        for i in 0..20 {
            h.start(&format!("r{i}"), json!({})).await;
        }
        for i in 0..20 {
            assert!(!h.send(&format!("r{i}"), "OPEN", json!({})).await.is_refused());
        }
        h.clock.advance(3_600_000).await;
        for i in 0..20 {
            assert_eq!(h.story(&format!("r{i}")).last().unwrap(), "3600000 after.1h.opened accepted closed");
        }
    });
}

#[test]
fn no_event_is_accepted_after_shutdown() {
    block_on(async {
        let h = host(DOOR).await;
        h.start("a", json!({})).await;
        h.runtime.shutdown(std::time::Duration::from_secs(1)).await;
        let e = h.try_send(SendEvent::new("a", "OPEN", json!({}), who("ana", &["user"]))).await.unwrap_err();
        assert_eq!(e, RuntimeError::Closing);
    });
}
