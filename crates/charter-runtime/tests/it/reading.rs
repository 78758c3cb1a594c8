//! What readers see while records are written.

use std::sync::Arc;
use std::time::Duration;

use crate::altered::Altered;
use crate::common::*;
use charter_actors::VirtualClock;
use charter_journal::*;
use charter_runtime::SendEvent;
use charter_runtime::backend::Backend as _;
use serde_json::json;

const COUNT: &str = "
charter: 1
id: count
events: {ADD: {}}
context: {n: 0}
on: {ADD: {actions: {assign: {n: '= context.n + 1'}}}}
initial: on
states: {on: {}}
";

/// Who has read a record sees the run as it was after it, or later: also if the store says only
/// after a while that the record is written.
#[test]
fn a_run_is_never_older_than_its_records() {
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    threads.block_on(async {
        let store = Altered::new(MemoryStore::new(), |inside, batch, reply| {
            let late = move |result| {
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(50));
                    reply(result);
                });
            };
            inside.submit(batch, Box::new(late));
        });
        let clock = VirtualClock::new(BEGIN);
        let h = open(Arc::new(store), clock.clone(), charter(COUNT), options(&clock)).await;
        h.start("r", json!({})).await;
        for seq in 1..=4 {
            let (runtime, event) = (h.runtime.clone(), SendEvent::new("r", "ADD", json!({}), who("ana", &[])));
            let sent = tokio::spawn(async move { runtime.send(event).await.unwrap() });
            let records = async || match seq % 2 {
                0 => h.runtime.records("r".into(), seq, 1).await.unwrap().len(),
                _ => h.runtime.records_after(seq, 1).await.unwrap().len(),
            };
            while records().await == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let early = !sent.is_finished();
            assert_eq!(h.runtime.view("r").await.unwrap().snapshot.seq(), seq);
            assert!(early || sent.await.is_ok());
        }
    });
}
