//! Threads do not decide what a run becomes: on a virtual clock, its chain is always the same.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, Store};
use charter_kernel::Status;
use charter_runtime::{Charter, Runtime, Start};
use charter_test_support::cases;
use serde_json::json;

use crate::common::{BEGIN, options, who};

/// Runs `feijoa` with its scripted agents on two threads; returns its records, one a line.
fn run(folder: &Path) -> String {
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let store = Arc::new(MemoryStore::new());
    tokio.block_on(async {
        let clock = VirtualClock::new(BEGIN);
        let (runtime, _) = Runtime::open(store.clone(), options(&clock)).await.unwrap();
        let charter = runtime.add(Charter::load(folder).unwrap()).await.unwrap().digest();
        let input = json!({"goal": "Move the archive"});
        let start = Start { charter, run: Some("r".into()), input, by: who("ana", &[]) };
        runtime.start(start).await.unwrap();
        clock.run(86_400_000).await;
        runtime.shutdown(Duration::ZERO).await;
    });
    let records = store.records("r", 0, 10_000).unwrap();
    assert_eq!(records.last().unwrap().status, Some(Status::Done), "{:?}", records.last());
    records.iter().map(|r| format!("{} {} {}\n", r.hash, r.event.r#type, r.verdict.word())).collect()
}

#[test]
fn feijoa_on_two_threads_has_one_chain() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters/feijoa");
    let mut chains: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..cases(10, 1_000) {
        *chains.entry(run(&folder)).or_default() += 1;
    }
    let chains: Vec<_> = chains.iter().map(|(chain, count)| format!("{count} times:\n{chain}")).collect();
    assert_eq!(chains.len(), 1, "{}", chains.join("\n"));
}
