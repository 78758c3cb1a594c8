//! Complete turns on the embedded host with a virtual clock, and a host that is killed in
//! each state of a turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use charter_actors::{BoxFuture, Call, Executor, Fault, Folder, Outcome, VirtualClock};
use charter_automaton::{MockInference, MockSigner, MockSkills, Ports, answer, host::add_executors};
use charter_journal::{MemoryStore, Store};
use charter_kernel::{Principal, Timestamp};
use charter_runtime::{Charter, Limits, Options, Runtime, SendEvent, Start};
use serde_json::{Value as Json, json};

/// Adds the executors of the automaton to the options of a host.
fn with_executors(mut options: Options) -> Options {
    add_executors(&mut options.executors);
    options
}

const BEGIN: i64 = 1_795_255_200_000;

fn charter() -> Charter {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charters/automaton");
    let source = std::fs::read_to_string(format!("{folder}/charter.yaml")).unwrap();
    let document = charter_format::read(&source, "charter.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut texts = BTreeMap::new();
    for name in ["skills/greet.md", "skills/note.md", "prompts/infer.md"] {
        texts.insert(name.to_owned(), std::fs::read_to_string(format!("{folder}/{name}")).unwrap());
    }
    Charter::new(&document, Folder::Texts(Arc::new(texts))).unwrap()
}

struct Host {
    runtime: Runtime,
    clock: VirtualClock,
    store: Arc<dyn Store>,
}

async fn open(store: Arc<dyn Store>, clock: VirtualClock, set: impl FnOnce(Options) -> Options) -> Host {
    let limits = Limits { events_per_second: 0, ..Limits::default() };
    let options = Options { limits, ..Options::default().clock(clock.clone()) };
    let (runtime, _) = Runtime::open(store.clone(), set(options)).await.unwrap();
    runtime.add(charter()).await.unwrap();
    Host { runtime, clock, store }
}

impl Host {
    async fn start(&self, input: Json) {
        let start = Start {
            charter: charter().digest(),
            run: Some("a".into()),
            input,
            by: Principal::new("ana", &["controller"]),
        };
        self.runtime.start(start).await.unwrap();
        self.clock.settle().await;
    }
    async fn send(&self, kind: &str, data: Json) -> bool {
        let refused = self
            .runtime
            .send(SendEvent::new("a", kind, data, Principal::new("ana", &["controller"])))
            .await
            .unwrap()
            .is_refused();
        self.clock.settle().await;
        !refused
    }
    fn states(&self) -> Vec<String> {
        let records = self.store.records("a", 0, 10_000).unwrap();
        let last = records.last().unwrap();
        last.state.iter().map(ToString::to_string).collect()
    }
    async fn variable(&self, name: &str) -> Json {
        self.runtime
            .view("a")
            .await
            .unwrap()
            .snapshot
            .actor("root")
            .unwrap()
            .variable(name)
            .cloned()
            .unwrap_or_default()
    }
    /// Returns the outcome of each turn that ended, and why it failed.
    fn turns(&self) -> Vec<(String, Json)> {
        let records = self.store.records("a", 0, 10_000).unwrap();
        let emitted = records.iter().flat_map(|r| &r.effects).filter(|e| e["kind"] == "emit");
        emitted.map(|e| (e["data"]["outcome"].as_str().unwrap().to_owned(), e["data"]["reason"].clone())).collect()
    }
    fn verified(&self) {
        let report = charter_journal::verify(self.store.as_ref(), None).unwrap();
        assert!(report.is_verified(), "{report:?}");
    }
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}

#[test]
fn the_loop_starts_turns_and_each_is_recorded_once() {
    block_on(async {
        let h = open(Arc::new(MemoryStore::new()), VirtualClock::new(BEGIN), with_executors).await;
        h.start(json!({"wake": "Please sign this"})).await;
        assert_eq!(h.states(), ["Sleeping"]);
        assert_eq!(h.turns(), [("completed".to_owned(), Json::Null)]);
        assert_eq!(h.variable("skills").await["greet"]["source"], "skills/greet.md");
        let episodes = h.variable("episodes").await;
        assert_eq!(episodes[0]["reply"], "(mock) I heard: Please sign this");
        // There is one more turn every 300 s.
        h.clock.advance(900_000).await;
        assert_eq!(h.turns().len(), 4);
        assert!(h.send("SetLoop", json!({"enabled": false})).await);
        h.clock.advance(900_000).await;
        assert_eq!(h.turns().len(), 4);
        h.verified();
    });
}

/// Answers like the real executor, but never returns for one part of a turn.
struct Hangs {
    part: &'static str,
    done: Arc<AtomicU32>,
}

impl Executor for Hangs {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let (hangs, done) = (self.part, self.done.clone());
        Box::pin(async move {
            let part = call.config("part").and_then(Json::as_str).unwrap_or_default().to_owned();
            if part == "actions" {
                done.fetch_add(1, Ordering::SeqCst);
            }
            if part == hangs {
                call.clock().sleep_until(Timestamp::MAX).await;
            }
            let ports = Ports { inference: &MockInference, signer: &MockSigner, skills: &MockSkills };
            answer(&part, &call.input, &ports).map(Outcome::Done).map_err(|e| Fault::new(e.code, &e.message))
        })
    }
}

#[test]
fn a_turn_whose_host_was_killed_fails_and_no_action_runs_twice() {
    block_on(async {
        for (part, state, acted) in [
            ("context", "LoadingContext", 0),
            ("inference", "Inferring", 0),
            ("actions", "ExecutingActions", 1),
            ("persist", "Persisting", 1),
        ] {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let clock = VirtualClock::new(BEGIN);
            let done = Arc::new(AtomicU32::new(0));
            let h = open(store.clone(), clock.clone(), |o| {
                with_executors(o).executor("automaton", Hangs { part, done: done.clone() })
            })
            .await;
            h.start(json!({"wake": "Say hello", "loop": false})).await;
            assert_eq!(h.states(), [state]);
            h.runtime.shutdown(Duration::ZERO).await;

            let h = open(store, clock, |o| {
                with_executors(o).executor("automaton", Hangs { part: "none", done: done.clone() })
            })
            .await;
            h.clock.settle().await;
            assert_eq!(h.states(), ["Faulted"], "{part}");
            assert_eq!(done.load(Ordering::SeqCst), acted, "{part}: no action twice");
            let turns = h.turns();
            assert_eq!(turns.len(), 1);
            assert_eq!(turns[0].0, "failed");
            assert!(turns[0].1.as_str().unwrap().starts_with("unknown: "), "{turns:?}");
            assert!(h.send("ResetFault", json!({})).await);
            assert!(h.send("WakeRequested", json!({"reason": "by hand"})).await);
            assert_eq!(h.states(), ["Sleeping"]);
            assert_eq!(h.turns().len(), 2);
            h.verified();
        }
    });
}

#[test]
fn the_soul_survives_a_restart_and_its_history_is_in_the_journal() {
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let clock = VirtualClock::new(BEGIN);
        let h = open(store.clone(), clock.clone(), with_executors).await;
        h.start(json!({})).await;
        assert!(h.send("UpdateSoul", json!({"text": "Be brief."})).await);
        assert!(!h.send("UpdateSoul", json!({"text": " "})).await);
        h.runtime.shutdown(Duration::ZERO).await;
        let h = open(store, clock, with_executors).await;
        assert_eq!(h.variable("soul").await, json!({"text": "Be brief.", "version": 2}));
        let records = h.store.records("a", 0, 100).unwrap();
        let history: Vec<_> = records
            .iter()
            .filter(|r| r.event.r#type == "UpdateSoul")
            .map(|r| (r.verdict.word(), r.by.id.as_str()))
            .collect();
        assert_eq!(history, [("accepted", "ana"), ("refused", "ana")]);
    });
}

#[test]
fn a_stub_fails_with_not_configured() {
    block_on(async {
        let (store, clock) = (Arc::new(MemoryStore::new()), VirtualClock::new(BEGIN));
        let h = open(store, clock, with_executors).await;
        h.start(json!({"wake": "x", "inference": "stub"})).await;
        let reason = "not-configured: the inference port is not configured: choose another adapter for it";
        assert_eq!(h.variable("lastError").await["reason"], reason);
        // The adapter is a setting.
        assert!(h.send("ResetFault", json!({})).await);
        let adapter = |value: &str| json!({"key": "inference.adapter", "value": value});
        assert!(!h.send("SetConfig", adapter("oracle")).await);
        assert!(h.send("SetConfig", adapter("mock")).await);
        assert!(h.send("WakeRequested", json!({"reason": "again"})).await);
        assert_eq!(h.states(), ["Sleeping"]);
        // A host without models fails with a reason.
        assert!(h.send("SetConfig", adapter("model")).await);
        assert!(h.send("WakeRequested", json!({"reason": "again"})).await);
        let reason = "config: this host has no models; choose the adapter `mock` or `stub`";
        assert_eq!(h.variable("lastError").await["reason"], reason);
    });
}

/// Answers as a model would, and checks that it gets the prompt.
struct Model;

impl Executor for Model {
    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        Box::pin(async move {
            assert_eq!(call.config("prompt"), Some(&json!("prompts/infer.md")));
            let heard = call.input["input"].as_str().unwrap_or_default();
            let note = json!({"kind": "note", "input": {"text": heard}});
            let kinds = match heard {
                "too much" => 9,
                _ => 1,
            };
            Ok(Outcome::Done(json!({"thought": "hm", "reply": format!("{heard}!"), "actions": vec![note; kinds]})))
        })
    }
}

#[test]
fn a_model_has_the_same_limits() {
    block_on(async {
        let (store, clock) = (Arc::new(MemoryStore::new()), VirtualClock::new(BEGIN));
        let h = open(store, clock, |o| with_executors(o.executor("model", Model))).await;
        h.start(json!({"wake": "hello", "inference": "model"})).await;
        assert_eq!(h.states(), ["Sleeping"]);
        assert_eq!(h.variable("episodes").await[0]["reply"], "hello!");
        let wake = json!({"reason": "more", "input": "too much"});
        assert!(h.send("WakeRequested", wake).await);
        assert_eq!(h.states(), ["Faulted"]);
        let failed = ("failed".to_owned(), json!("more actions than a turn may take"));
        assert_eq!(h.turns()[1], failed);
        h.verified();
    });
}
