//! What a question took is written when nobody waits for it any more, before its host has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_actors::{Folder, Secret};
use charter_journal::{MemoryStore, Store, UsageFilter, UsageTotals};
use charter_kernel::Principal;
use charter_models::{HttpTransport, Model, Models};
use charter_runtime::{Charter, Options, Runtime, Start};
use serde_json::json;

use crate::servers::{Act, Server, anthropic, server};
use crate::wire::{GOOD, KEY};

const STAYS: Duration = Duration::from_secs(6);

/// A stream that has begun, with its usage and some text, and then stays open.
fn begun() -> Act {
    let Act::Say(_, _, body) = anthropic(GOOD) else { panic!() };
    let end = body.rfind("event: message_delta").unwrap();
    Act::Stall(body[..end].to_owned(), STAYS)
}

fn asks(time: &str) -> String {
    format!(
        "
charter: 1
id: asks
actors:
  ask:
    kind: model
    prompt: p.md
    {time}
    retry: {{attempts: 1}}
    output: {{type: object}}
context: {{code: ''}}
output: {{code: '= context.code'}}
events: {{STOP: {{}}}}
states:
  asking:
    on: {{STOP: over}}
    invoke: {{src: ask, onDone: over, onError: {{target: over, actions: {{assign: {{code: '= event.error.code'}}}}}}}}
  over: {{type: final}}
"
    )
}

/// Runs the charter until it has ended or `stop` has ended it, and ends the host at once. Returns
/// the code of the error and what was written by then.
fn ended(time: &str, server: &Server, stop: impl AsyncFn(&Runtime)) -> (String, UsageTotals) {
    let folder = Folder::Texts(Arc::new([("p.md".to_owned(), "You judge.\n---\nWhat?".to_owned())].into()));
    let document = charter_test_support::document(&asks(time));
    let model = Model::parse("anthropic:m").unwrap().at(&server.url).unwrap().key(Secret::new(KEY));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let code = rt.block_on(async {
        let options = Options::default().executor("model", Models::asking(model, HttpTransport::default()));
        let (runtime, _) = Runtime::open(store.clone(), options).await.unwrap();
        let charter = runtime.add(Charter::new(&document, folder).unwrap()).await.unwrap().digest();
        let start = Start { charter, run: Some("r".into()), input: json!({}), by: Principal::default() };
        runtime.start(start).await.unwrap();
        while server.asked.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stop(&runtime).await;
        let view = runtime.view("r").await.unwrap();
        runtime.shutdown(Duration::ZERO).await;
        view.snapshot.output().map_or_else(String::new, |output| output["code"].as_str().unwrap().to_owned())
    });
    let totals = store.usage(&UsageFilter::default()).unwrap();
    rt.shutdown_background();
    (code, totals)
}

async fn by_itself(runtime: &Runtime) {
    runtime.ended("r").await.unwrap();
}

#[test]
fn what_was_received_within_the_time_is_written() {
    for (time, code) in [("timeout: 1s", "timeout"), ("attemptTimeout: 1s", "timeout")] {
        let server = server(vec![begun()]);
        let at = Instant::now();
        let (found, totals) = ended(time, &server, by_itself);
        assert!(at.elapsed() < STAYS, "{time}");
        assert_eq!(found, code, "{time}");
        assert_eq!((totals.input, totals.questions), (20, 1), "{time}: {totals:?}");
        assert!(totals.output > 5, "{time}: {totals:?}");
    }
}

#[test]
fn a_question_without_an_answer_counts() {
    let (code, totals) = ended("timeout: 1s", &server(vec![Act::Hang(STAYS)]), by_itself);
    assert_eq!(code, "timeout");
    assert!(totals.input > 5 && totals.output == 0, "{totals:?}");
}

#[test]
fn a_run_that_ends_or_stops_and_a_host_that_ends_write_it() {
    let wait = || tokio::time::sleep(Duration::from_millis(300));
    let stops: [fn(&Runtime); 2] = [|_| {}, |runtime| runtime.stop("r")];
    for stop in stops {
        let (_, totals) = ended("timeout: 1h", &server(vec![begun()]), async |runtime: &Runtime| {
            wait().await;
            stop(runtime);
        });
        assert!(totals.input == 20 && totals.output > 5, "{totals:?}");
    }
}
