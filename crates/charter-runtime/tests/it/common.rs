//! A host with a store in memory and a virtual clock, and shortcuts for tests.
#![allow(unreachable_pub, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use charter_actors::{Folder, VirtualClock};
use charter_journal::{MemoryStore, Store};
use charter_kernel::{Digest, Principal};
use charter_runtime::{Charter, Limits, Options, Receipt, Recovery, Runtime, RuntimeError, SendEvent, Start};
use serde_json::{Value as Json, json};

pub const BEGIN: i64 = 1_795_255_200_000;

pub struct Host {
    pub runtime: Runtime,
    pub clock: VirtualClock,
    pub store: Arc<dyn Store>,
    pub charter: Digest,
    pub recovery: Recovery,
}

pub fn options(clock: &VirtualClock) -> Options {
    let count = Arc::new(AtomicU64::new(0));
    Options {
        new_id: Arc::new(move || format!("r{}", count.fetch_add(1, Ordering::SeqCst) + 1)),
        limits: Limits { events_per_second: 0, ..Limits::default() },
        ..Options::default().clock(clock.clone())
    }
}

pub fn charter(source: &str) -> Charter {
    try_charter(source).unwrap_or_else(|e| panic!("{e}"))
}

pub fn try_charter(source: &str) -> Result<Charter, RuntimeError> {
    Charter::new(&charter_test_support::document(source), Folder::None)
}

/// Creates a host with one charter.
pub async fn host(source: &str) -> Host {
    host_with(source, |o| o).await
}

pub async fn host_with(source: &str, set: impl FnOnce(Options) -> Options) -> Host {
    let clock = VirtualClock::new(BEGIN);
    open(Arc::new(MemoryStore::new()), clock.clone(), charter(source), set(options(&clock))).await
}

pub async fn open(store: Arc<dyn Store>, clock: VirtualClock, charter: Charter, options: Options) -> Host {
    let (runtime, recovery) = Runtime::open(store.clone(), options).await.unwrap();
    let charter = runtime.add(charter).await.unwrap().digest();
    Host { runtime, clock, store, charter, recovery }
}

impl Host {
    pub async fn start(&self, run: &str, input: Json) -> Receipt {
        let start = Start { charter: self.charter, run: Some(run.into()), input, by: who("starter", &[]) };
        self.runtime.start(start).await.unwrap()
    }

    pub async fn send(&self, run: &str, r#type: &str, data: Json) -> Receipt {
        self.try_send(SendEvent::new(run, r#type, data, who("ana", &["user"]))).await.unwrap()
    }

    pub async fn try_send(&self, send: SendEvent) -> Result<Receipt, RuntimeError> {
        self.runtime.send(send).await
    }

    /// Renders one line per record: time since the beginning, type, verdict, states afterwards.
    pub fn story(&self, run: &str) -> Vec<String> {
        self.store
            .records(run, 0, 10_000)
            .unwrap()
            .iter()
            .map(|r| {
                let code = r.refusal.as_ref().map(|x| format!(" {}", x.code)).unwrap_or_default();
                format!("{} {} {}{code} {}", r.at.0 - BEGIN, r.event.r#type, r.verdict.word(), r.state.join(","))
            })
            .collect()
    }

    /// Returns the data of the last record of a type.
    pub fn data(&self, run: &str, r#type: &str) -> Json {
        let records = self.store.records(run, 0, 10_000).unwrap();
        let last = records.iter().rev().find(|r| r.event.r#type == r#type);
        last.map_or(json!("there is none"), |r| r.event.data.clone().into_owned())
    }

    /// Ends the host as a crash would, and opens the journal again.
    pub async fn crash(self, charter: Charter, set: impl FnOnce(Options) -> Options) -> Host {
        let Host { runtime, clock, store, .. } = self;
        drop(runtime);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let options = set(options(&clock));
        open(store, clock, charter, options).await
    }
}

pub fn who(id: &str, roles: &[&str]) -> Principal {
    Principal::new(id, roles)
}

/// Runs a test.
pub fn block_on<T>(test: impl Future<Output = T>) -> T {
    let rt = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    rt.block_on(async { tokio::time::timeout(std::time::Duration::from_secs(20), test).await.expect("the test hangs") })
}
