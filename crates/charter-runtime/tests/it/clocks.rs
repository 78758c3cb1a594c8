//! A clock that is far from the newest record of the journal is refused when a host is opened.

use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, SqliteStore, Store, export, import};
use charter_runtime::{Options, Runtime, RuntimeError};
use serde_json::json;

use crate::common::{BEGIN, block_on, charter, open, options, who};

const DOOR: &str = "{charter: 1, id: door, events: {PUSH: {}}, states: {shut: {on: {PUSH: shut}}}}";
const DAY: i64 = 86_400_000;

/// Opens a journal at another time.
async fn at(store: &Arc<dyn Store>, ms: i64, accept_clock: bool) -> Result<(), RuntimeError> {
    let clock = VirtualClock::new(BEGIN + ms);
    let options = Options { accept_clock, ..options(&clock) };
    Runtime::open(store.clone(), options).await.map(drop)
}

async fn used(store: Arc<dyn Store>) {
    let clock = VirtualClock::new(BEGIN);
    assert_eq!(at(&store, -1_000 * DAY, false).await, Ok(()), "a journal without records says nothing");
    let host = open(store.clone(), clock.clone(), charter(DOOR), options(&clock)).await;
    host.start("r", json!(null)).await;
    drop(host);
    for ms in [0, -DAY, 730 * DAY] {
        assert_eq!(at(&store, ms, false).await, Ok(()), "{ms}");
    }
    for ms in [-DAY - 1, -40 * 365 * DAY, 730 * DAY + 1, 5_000 * 365 * DAY] {
        assert!(matches!(at(&store, ms, false).await, Err(RuntimeError::WrongClock(_))), "{ms}");
        assert_eq!(at(&store, ms, true).await, Ok(()), "{ms}");
    }
    // Once it was accepted and used, the clock agrees with the newest record.
    let clock = VirtualClock::new(BEGIN - 20 * DAY);
    let accepting = Options { accept_clock: true, ..options(&clock) };
    let host = open(store.clone(), clock.clone(), charter(DOOR), accepting).await;
    host.start("s", json!(null)).await;
    drop(host);
    assert_eq!(at(&store, -20 * DAY, false).await, Ok(()));
    assert!(at(&store, 800 * DAY, false).await.is_err());
    // An imported run says nothing about the clock of this journal.
    let old = Arc::new(MemoryStore::new());
    let clock = VirtualClock::new(BEGIN - 3_000 * DAY);
    let host = open(old.clone(), clock.clone(), charter(DOOR), options(&clock)).await;
    host.start("old", json!(null)).await;
    let mut text = Vec::new();
    export(old.as_ref(), "old", &mut text).unwrap();
    import(store.as_ref(), &mut text.as_slice()).unwrap();
    assert_eq!(at(&store, -20 * DAY, false).await, Ok(()));
    assert!(at(&store, 800 * DAY, false).await.is_err());
}

#[test]
fn a_wrong_clock_is_refused_unless_it_is_accepted() {
    block_on(used(Arc::new(MemoryStore::new())));
    let folder = tempfile::tempdir().unwrap();
    block_on(used(Arc::new(SqliteStore::open(&folder.path().join("journal.db")).unwrap())));
}

#[test]
fn a_run_does_not_go_back_in_time_with_an_accepted_clock() {
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let clock = VirtualClock::new(BEGIN);
        let host = open(store.clone(), clock.clone(), charter(DOOR), options(&clock)).await;
        host.start("r", json!(null)).await;
        drop(host);
        let clock = VirtualClock::new(BEGIN - 20 * DAY);
        let accepting = Options { accept_clock: true, ..options(&clock) };
        let host = open(store, clock.clone(), charter(DOOR), accepting).await;
        let event = charter_runtime::SendEvent::new("r", "PUSH", json!(null), who("ana", &[]));
        let receipt = host.try_send(event).await.unwrap();
        assert_eq!(receipt.record.at.0, BEGIN);
    });
}
