//! fred on the embedded host: offline, with a model behind a cassette, with a server that dies, and
//! again after a crash.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use charter_journal::{MemoryStore, Record, Store};
use charter_kernel::{Digest, Principal};
use charter_models::{
    Model, Models, Request, Response, Transport, TransportError, cassette::Cassette, cassette::Recorder,
};
use charter_runtime::{Charter, Options, Runtime, SendEvent, Start, View};
use serde_json::{Value as Json, json};

fn charter() -> Charter {
    Charter::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charters/fred")).unwrap_or_else(|e| panic!("{e}"))
}

async fn host(store: &Arc<dyn Store>, models: Models) -> (Runtime, Digest) {
    let options = Options::default().executor("model", models);
    let (runtime, _) = Runtime::open(store.clone(), options).await.unwrap();
    let digest = runtime.add(charter()).await.unwrap().digest();
    (runtime, digest)
}

async fn start(runtime: &Runtime, charter: Digest, run: &str, message: &str) {
    let input = json!({"userId": "u1", "message": message});
    let by = Principal::new("u1", &["founder"]);
    let receipt = runtime.start(Start { charter, run: Some(run.into()), input, by }).await.unwrap();
    assert!(!receipt.is_refused());
}

/// Waits until the run is in one of these states.
async fn reached(runtime: &Runtime, run: &str, states: &[&str]) -> View {
    for _ in 0..1_000 {
        let view = runtime.view(run).await.unwrap();
        let now = state(&view);
        if states.contains(&now.as_str()) {
            return view;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never got there: {}", state(&runtime.view(run).await.unwrap()));
}

fn state(view: &View) -> String {
    view.snapshot.actor("root").unwrap().state().collect::<Vec<_>>().join(" ")
}

async fn approve(runtime: &Runtime, run: &str) {
    let view = runtime.view(run).await.unwrap();
    let decision = view.snapshot.actor("root").unwrap().variable("decision").unwrap().clone();
    let data = json!({"digest": Digest::of_json(&decision).hex()});
    let receipt =
        runtime.send(SendEvent::new(run, "HUMAN_APPROVED", data, Principal::new("rui", &["reviewer"]))).await.unwrap();
    assert!(!receipt.is_refused(), "{:?}", receipt.refusal());
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    rt.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await.expect("the test hangs") })
}

fn emitted(store: &dyn Store) -> Vec<Json> {
    let mut all = Vec::new();
    store
        .emitted("fred.decision", &mut |_, _, data| {
            all.push(serde_json::from_str(data).unwrap());
            true
        })
        .unwrap();
    all
}

#[test]
fn offline_from_the_question_to_the_decision_and_memory() {
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (runtime, charter) = host(&store, Models::offline()).await;
        start(&runtime, charter, "r1", "Should we raise prices by 20 % for new customers?").await;
        let view = reached(&runtime, "r1", &["human_review"]).await;
        let root = view.snapshot.actor("root").unwrap();
        assert_eq!(root.variable("mentalModels").unwrap().as_array().unwrap().len(), 4);
        assert!(
            root.variable("synthesis").unwrap()["reasoning"]
                .as_str()
                .unwrap()
                .starts_with("Offline rules, not intelligence")
        );
        let reject = json!({"feedback": "think of old customers"});
        runtime
            .send(SendEvent::new("r1", "HUMAN_REJECTED", reject, Principal::new("rui", &["reviewer"])))
            .await
            .unwrap();
        let view = reached(&runtime, "r1", &["human_review"]).await;
        assert!(
            view.snapshot.actor("root").unwrap().variable("decision").unwrap()["content"]
                .as_str()
                .unwrap()
                .contains("think of old customers")
        );
        approve(&runtime, "r1").await;
        let view = runtime.ended("r1").await.unwrap();
        assert_eq!(view.snapshot.output().unwrap()["approval"]["by"], "rui");
        assert_eq!(emitted(store.as_ref()).len(), 1);

        // A small experiment is decided without a person, but not after this user was overruled.
        start(&runtime, charter, "r2", "Shall we run a small experiment with new customers?").await;
        let view = reached(&runtime, "r2", &["human_review"]).await;
        let memory = view.snapshot.actor("root").unwrap().variable("memory").unwrap().clone();
        assert_eq!((memory[0]["overruled"].clone(), memory[0]["approvedBy"].clone()), (json!(1), json!("rui")));
        let other = json!({"userId": "u2", "message": "Shall we run a small experiment with new customers?"});
        let by = Principal::new("u2", &["founder"]);
        runtime.start(Start { charter, run: Some("r3".into()), input: other, by }).await.unwrap();
        let view = runtime.ended("r3").await.unwrap();
        assert_eq!(view.snapshot.output().unwrap()["approval"], Json::Null);
        assert!(view.snapshot.actor("root").unwrap().variable("memory").unwrap().as_array().unwrap().is_empty());
    });
}

/// A model in this process, which answers by the requested schema.
struct Pretending {
    asked: AtomicUsize,
    /// The index of the request that is never answered, as if the server had died.
    dies_at: Option<usize>,
}

impl Transport for Pretending {
    fn send(
        &self,
        request: &Request,
        _: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        if self.dies_at.is_some_and(|at| n >= at) {
            while line("") {
                std::thread::sleep(Duration::from_millis(5));
            }
            return Err(TransportError::Cancelled);
        }
        let body: Json = serde_json::from_str(&request.body).unwrap();
        let properties = &body["response_format"]["json_schema"]["schema"]["properties"];
        let answer = if properties.get("clarificationNeeded").is_some() {
            json!({"intent": "decision_request", "entities": [], "confidence": 0.9, "clarificationNeeded": []})
        } else if properties.get("relevance").is_some() {
            let system = body["messages"][0]["content"].as_str().unwrap();
            let model = system.split("exactly `").nth(1).unwrap().split('`').next().unwrap();
            json!({"model": model, "analysis": {"a": 1}, "relevance": 0.7})
        } else if properties.get("factors").is_some() {
            json!({"recommendation": "Do it", "confidence": 0.9, "reasoning": "It pays.", "alternatives": [], "factors": {
                "strategicAlignment": 0.8, "leverage": 0.7, "speed": 0.9, "revenue": 0.8, "time": 0.6, "risk": 0.5, "relationships": 0.6}})
        } else if properties.get("requiresHumanApproval").is_some() {
            json!({"action": "recommend", "content": "Do it", "confidence": 0.7, "requiresHumanApproval": true})
        } else {
            json!({"summary": "done", "nextSteps": ["Tell them"]})
        };
        let reply = json!({"model": "pretending-1", "choices": [{"message": {"content": answer.to_string()}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 100, "completion_tokens": 20}});
        Ok(Response { status: 200, body: reply.to_string(), ..Response::default() })
    }
}

fn pretending(dies_at: Option<usize>) -> Pretending {
    Pretending { asked: AtomicUsize::new(0), dies_at }
}

/// Removes the parts of records that differ between runs: ids, times, and the hashes over them.
fn comparable(records: &[Record]) -> Vec<Json> {
    records
        .iter()
        .map(|r| {
            let mut json: Json = serde_json::from_str(r.text()).unwrap();
            let map = json.as_object_mut().unwrap();
            for key in ["at", "hash", "prev", "snapshot", "id", "timers"] {
                map.remove(key);
            }
            json
        })
        .collect()
}

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_cassette_reproduces_the_records() {
    block_on(async {
        let model = || Model::parse("openai:m").unwrap();
        let tape = Tape::default();
        let recorder = Recorder::new(pretending(None), tape.clone());
        let mut stories = Vec::new();
        let run = async |models: Models| {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            let (runtime, charter) = host(&store, models).await;
            start(&runtime, charter, "r1", "Should we raise prices?").await;
            reached(&runtime, "r1", &["human_review"]).await;
            approve(&runtime, "r1").await;
            let view = runtime.ended("r1").await.unwrap();
            assert_eq!(view.snapshot.output().unwrap()["scores"]["composite"], 0.7);
            (comparable(&store.records("r1", 0, 1_000).unwrap()), store)
        };
        let (live, store) = run(Models::asking(model(), recorder)).await;
        stories.push(live);
        let tape = String::from_utf8(tape.0.lock().unwrap().clone()).unwrap();
        assert_eq!(tape.lines().count(), 8, "validate, four models, synthesize, decide, execute");
        for _ in 0..2 {
            stories.push(run(Models::asking(model(), Cassette::parse(&tape).unwrap())).await.0);
        }
        // The data contains the time of the approval.
        let text = |story: &Vec<Json>| serde_json::to_string(story).unwrap();
        assert_eq!(text(&stories[0]), text(&stories[1]));
        assert_eq!(text(&stories[1]), text(&stories[2]));

        // The exchange is stored in the journal, with the effect.
        let mut kept = Vec::new();
        // Other blobs are prompts.
        store.scan_blobs(&mut |_, data| kept.extend(serde_json::from_slice::<Json>(data))).unwrap();
        let models: Vec<&Json> = kept.iter().filter(|k| k["actor"] == "applyMentalModels").collect();
        assert_eq!((models.len(), models[0]["exchanges"].as_array().unwrap().len()), (4, 1), "one for each question");
        let exchange = &models[0]["exchanges"][0];
        assert_eq!((&exchange["model"], &exchange["answeredAs"]), (&json!("openai:m"), &json!("pretending-1")));
        assert_eq!(exchange["usage"], json!({"input": 100, "output": 20}));
        assert!(models[0]["effect"].as_str().unwrap().starts_with("r1/"));
        assert!(exchange["said"][0]["request"].as_str().unwrap().contains("Should we raise prices?"));
    });
}

#[test]
fn a_killed_host_repeats_the_question_and_stores_the_decision_once() {
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for dies_at in [0, 3, 5, 6] {
            let run = format!("r{dies_at}");
            let (runtime, charter) =
                host(&store, Models::asking(Model::parse("openai:m").unwrap(), pretending(Some(dies_at)))).await;
            start(&runtime, charter, &run, "Should we raise prices?").await;
            tokio::time::sleep(Duration::from_millis(150)).await;
            drop(runtime);
            tokio::time::sleep(Duration::from_millis(50)).await;

            let (runtime, _) = host(&store, Models::asking(Model::parse("openai:m").unwrap(), pretending(None))).await;
            reached(&runtime, &run, &["human_review"]).await;
            approve(&runtime, &run).await;
            runtime.ended(&run).await.unwrap();
            let records = store.records(&run, 0, 1_000).unwrap();
            let decisions =
                records.iter().filter(|r| r.event.r#type == "done.invoke.decide" && r.verdict.word() == "accepted");
            assert_eq!(decisions.count(), 1);
            drop(runtime);
        }
        assert_eq!(emitted(store.as_ref()).len(), 4);
    });
}
