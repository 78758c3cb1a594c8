//! A full disk: senders get an error, answers and timers wait, and everything continues when there
//! is space again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::altered::Altered;
use crate::common::*;
use charter_actors::VirtualClock;
use charter_journal::*;
use charter_runtime::RuntimeError;
use serde_json::json;

const SOURCE: &str = "
charter: 1
id: patient
events: {PING: {}}
context: {log: []}
actors:
  work: {kind: scripted, answers: [{after: 1h, output: work}]}
type: parallel
on: {PING: {actions: {assign: {log: '= context.log + [\"ping\"]'}}}}
states:
  works:
    initial: working
    states:
      working: {invoke: {src: work, onDone: {target: worked, actions: {assign: {log: '= context.log + [event.output]'}}}}}
      worked: {}
  waits:
    initial: waiting
    states:
      waiting: {after: {2h: {target: waited, actions: {assign: {log: '= context.log + [\"timer\"]'}}}}}
      waited: {}
";

#[test]
fn answers_and_timers_are_written_when_there_is_space() {
    block_on(async {
        let full = Arc::new(AtomicBool::new(false));
        let is_full = full.clone();
        let store = Altered::new(MemoryStore::new(), move |inside, batch, reply| {
            if is_full.load(Ordering::SeqCst) {
                return reply(Err(StoreError::NotWritten { reason: "the disk is full".into() }));
            }
            inside.submit(batch, reply);
        });
        let store = Arc::new(store);
        let clock = VirtualClock::new(BEGIN);
        let h = open(store, clock.clone(), charter(SOURCE), options(&clock)).await;
        h.start("r", json!({})).await;
        full.store(true, Ordering::SeqCst);
        let ping = || charter_runtime::SendEvent::new("r", "PING", json!({}), who("ana", &[])).id("p");
        let e = h.try_send(ping()).await.unwrap_err();
        assert!(matches!(e, RuntimeError::Store(StoreError::NotWritten { .. })), "{e}");
        // Neither the answer nor the timer can be written.
        h.clock.advance(3 * 3_600_000).await;
        assert_eq!(h.story("r").len(), 1);
        assert_eq!(h.runtime.view("r").await.unwrap().snapshot.actor("root").unwrap().context()["log"], json!([]));
        full.store(false, Ordering::SeqCst);
        h.clock.advance(1_000).await;
        // The sender got an error and retries.
        assert!(!h.try_send(ping()).await.unwrap().repeated);
        let view = h.runtime.view("r").await.unwrap();
        let mut log = view.snapshot.actor("root").unwrap().context()["log"].as_array().unwrap().clone();
        assert_eq!(log.pop(), Some(json!("ping")));
        log.sort_by_key(ToString::to_string);
        assert_eq!(log, [json!("timer"), json!("work")]);
        assert!(verify(h.store.as_ref(), None).unwrap().is_verified());
    });
}
