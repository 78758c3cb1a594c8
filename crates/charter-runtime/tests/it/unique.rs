//! Unique keys: an order is not paid twice by two runs of a host.

use crate::altered::Altered;
use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, SqliteStore, Store, fork, machine, verify};
use charter_runtime::{Receipt, RuntimeError, SendEvent};
use charter_test_support::{Folder, cases};
use serde_json::{Value as Json, json};

use crate::common::{self, BEGIN, Host, block_on, charter, host, options, try_charter, who};

const SHOP: &str = "
charter: 1
id: shop
events:
  PAY: {data: {type: object, required: [order]}, unique: {key: event.order}}
  SHIP: {}
states:
  open: {on: {PAY: {actions: {emit: {type: paid, data: '= event.order'}}}, SHIP: shipped}}
  shipped: {type: final}
";

fn code(receipt: &Receipt) -> Option<&'static str> {
    receipt.record.refusal.as_ref().map(|refusal| refusal.code.word())
}

async fn pay(h: &Host, run: &str, order: impl Into<Json>) -> Option<&'static str> {
    code(&h.send(run, "PAY", json!({"order": order.into()})).await)
}

#[test]
fn an_order_is_paid_by_one_run() {
    block_on(async {
        let h = host(SHOP).await;
        h.start("r1", json!({})).await;
        h.start("r2", json!({})).await;
        assert_eq!(pay(&h, "r1", "o17").await, None);
        let again = h.send("r2", "PAY", json!({"order": "o17"})).await;
        assert_eq!(code(&again), Some("taken"));
        let message = again.record.explanation(None).unwrap().message;
        assert_eq!(message, "run `r1` has accepted `PAY` with the key \"o17\", which is unique across runs");
        assert_eq!(pay(&h, "r1", "o17").await, Some("taken"));
        assert_eq!(pay(&h, "r2", 17).await, None);
        // The order stays paid when its run has ended, and after a crash.
        h.send("r1", "SHIP", json!({})).await;
        let h = h.crash(charter(SHOP), |o| o).await;
        assert_eq!(pay(&h, "r2", "o17").await, Some("taken"));
        assert!(verify(h.store.as_ref(), None).unwrap().is_verified());
    });
}

#[test]
fn a_repeated_id_gets_its_first_result() {
    block_on(async {
        let h = host(SHOP).await;
        h.start("r1", json!({})).await;
        let send =
            || SendEvent { id: Some("x".into()), ..SendEvent::new("r1", "PAY", json!({"order": "o"}), who("a", &[])) };
        assert!(!h.try_send(send()).await.unwrap().repeated);
        let again = h.try_send(send()).await.unwrap();
        assert!(again.repeated && code(&again).is_none());
        // Without the id, it is the order that is known.
        assert_eq!(pay(&h, "r1", "o").await, Some("taken"));
    });
}

#[test]
fn runs_that_send_at_once_do_not_share_a_key() {
    block_on(async {
        let folder = Folder::new();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.file("journal.db")).unwrap());
        let clock = VirtualClock::new(BEGIN);
        let h = common::open(store, clock.clone(), charter(SHOP), options(&clock)).await;
        let runs = ["r1", "r2", "r3", "r4"];
        for run in runs {
            h.start(run, json!({})).await;
        }
        // Each run sends each order twice, and all at once.
        let mut tasks = Vec::new();
        for n in 0..10 {
            for run in runs.iter().chain(&runs) {
                let runtime = h.runtime.clone();
                let send = SendEvent::new(run, "PAY", json!({"order": n}), who("ana", &[]));
                tasks.push(tokio::spawn(async move { (n, code(&runtime.send(send).await.unwrap())) }));
            }
        }
        let mut paid: BTreeMap<i32, u32> = BTreeMap::new();
        for task in tasks {
            let (n, refused) = task.await.unwrap();
            assert!(matches!(refused, None | Some("taken")), "{refused:?}");
            *paid.entry(n).or_default() += u32::from(refused.is_none());
        }
        assert_eq!(paid, (0..10).map(|n| (n, 1)).collect());
        assert_eq!(verify(h.store.as_ref(), None).unwrap().findings, []);
    });
}

#[test]
fn a_dry_fork_may_repeat_what_its_origin_did() {
    block_on(async {
        let h = host(SHOP).await;
        h.start("r", json!({})).await;
        h.start("other", json!({})).await;
        for order in ["o1", "o2"] {
            assert_eq!(pay(&h, "r", order).await, None);
        }
        assert_eq!(pay(&h, "other", "o3").await, None);
        let machine = machine(h.store.as_ref(), h.charter).unwrap();
        fork(h.store.as_ref(), &machine, "r", 1, "dry", true).unwrap();
        fork(h.store.as_ref(), &machine, "dry", 1, "drier", true).unwrap();
        fork(h.store.as_ref(), &machine, "r", 1, "live", false).unwrap();
        let mut found = BTreeMap::new();
        for run in ["dry", "drier", "live"] {
            let mut codes = Vec::new();
            for order in ["o1", "o2", "o2", "o3"] {
                codes.push(pay(&h, run, order).await.unwrap_or("-"));
            }
            found.insert(run, codes.join(" "));
        }
        assert_eq!(found["dry"], "taken - taken taken");
        assert_eq!(found["drier"], "taken - taken taken");
        assert_eq!(found["live"], "taken taken taken taken");
        // What a dry fork does alone takes no key.
        assert_eq!(pay(&h, "dry", "o4").await, None);
        assert_eq!(pay(&h, "live", "o4").await, None);
        assert_eq!(verify(h.store.as_ref(), None).unwrap().findings, []);
    });
}

#[test]
fn a_store_without_keys_has_no_such_runs() {
    block_on(async {
        let memory = MemoryStore::new();
        let at = |store: Arc<dyn Store>| async move {
            let clock = VirtualClock::new(BEGIN);
            charter_runtime::Runtime::open(store, options(&clock)).await.unwrap().0
        };
        let runtime = at(Arc::new(Altered::new(memory, |inside, batch, reply| inside.submit(batch, reply)))).await;
        let error = runtime.add(try_charter(SHOP).unwrap()).await.unwrap_err();
        assert!(matches!(error, RuntimeError::Charter { .. }));
        let why =
            "the event `PAY` has a key that is unique across runs, and the store of this host does not reserve keys";
        assert!(error.to_string().contains(why), "{error}");
    });
}

/// A simple generator of numbers, so that a failure names the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Random orders of random runs, several at once, with crashes in between.
#[test]
fn no_order_is_paid_twice() {
    for seed in 0..u64::from(cases(12, 500)) {
        let mut random = Random(seed);
        let paid = block_on(async {
            let mut h = host(SHOP).await;
            for run in ["r0", "r1", "r2"] {
                h.start(run, json!({})).await;
            }
            for _ in 0..random.below(8) {
                let sends = random.below(6);
                if sends == 0 {
                    h = h.crash(charter(SHOP), |o| o).await;
                }
                let mut tasks = Vec::new();
                for _ in 0..sends {
                    let (run, order) = (format!("r{}", random.below(3)), random.below(4));
                    let runtime = h.runtime.clone();
                    let send = SendEvent::new(&run, "PAY", json!({"order": order}), who("ana", &[]));
                    tasks.push(tokio::spawn(async move { runtime.send(send).await.unwrap() }));
                }
                for task in tasks {
                    task.await.unwrap();
                }
            }
            let mut paid: BTreeMap<String, Vec<String>> = BTreeMap::new();
            let mut visit = |run: &str, _, data: &str| {
                paid.entry(data.to_owned()).or_default().push(run.to_owned());
                true
            };
            h.store.emitted("paid", &mut visit).unwrap();
            assert_eq!(verify(h.store.as_ref(), None).unwrap().findings, []);
            paid
        });
        for (order, runs) in paid {
            assert_eq!(runs.len(), 1, "seed {seed}: order {order} was paid by {runs:?}");
        }
    }
}
