//! Cassettes of equal requests: which line answers which of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use charter_actors::Folder;
use charter_journal::MemoryStore;
use charter_kernel::Principal;
use charter_models::cassette::{Cassette, Missing, Recorder};
use charter_models::{Model, Models, Request, Response, Transport, TransportError};
use charter_runtime::{Charter, Options, Runtime, Start};
use serde_json::{Value as Json, json};

/// Answers with the number of the request, the first ones busy.
#[derive(Default)]
struct Counting {
    busy: usize,
    asked: AtomicUsize,
}

impl Transport for Counting {
    fn send(&self, _: &Request, _: Duration, _: &mut dyn FnMut(&str) -> bool) -> Result<Response, TransportError> {
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        if n < self.busy {
            return Ok(Response { status: 503, retry_after: Some("0".into()), ..Response::default() });
        }
        let answer = json!({"n": n}).to_string();
        let body = json!({"choices": [{"message": {"content": answer}, "finish_reason": "stop"}]}).to_string();
        Ok(Response { status: 200, body, ..Response::default() })
    }
}

/// Requests of the parallel calls arrive in the order of these delays.
struct Late<T>(T, [u64; 4]);

impl<T: Transport> Transport for Late<T> {
    fn send(
        &self,
        request: &Request,
        within: Duration,
        line: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Response, TransportError> {
        let call: usize = request.asker.rsplit('/').next().unwrap().parse().unwrap();
        std::thread::sleep(Duration::from_millis(self.1[call] * 60));
        self.0.send(request, within, line)
    }
}

#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Tape {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

const VOTES: &str = "
charter: 1
id: votes
context: {got: null}
output: = context.got
actors:
  vote:
    kind: model
    prompt: p.md
    calls: CALLS
    output: OUTPUT
    timeout: 60s
states:
  voting:
    invoke:
      src: vote
      onDone: {target: done, actions: {assign: {got: '= event.output'}}}
      onError: {target: done, actions: {assign: {got: '= event.error'}}}
  done: {type: final}
";

/// What a run gives whose model gets equal requests.
fn given(calls: &str, transport: impl Transport + 'static) -> Json {
    let output = if calls == "null" { "{type: object}" } else { "{type: array, items: {type: object}}" };
    let document = charter_test_support::document(&VOTES.replace("CALLS", calls).replace("OUTPUT", output));
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let mut model = Model::parse("openai:m").unwrap();
        model.first_pause = Duration::from_millis(1);
        let options = Options::default().executor("model", Models::asking(model, transport));
        let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        let files = [("p.md".to_owned(), "You vote.\n---\nNow.".to_owned())];
        let folder = Folder::Texts(Arc::new(files.into()));
        let charter = runtime.add(Charter::new(&document, folder).unwrap()).await.unwrap().digest();
        let by = Principal::new("u", &[]);
        runtime.start(Start { charter, run: Some("r".into()), input: json!({}), by }).await.unwrap();
        runtime.ended("r").await.unwrap().snapshot.output().unwrap().clone()
    })
}

#[test]
fn equal_requests_of_parallel_calls_get_their_own_answers_again() {
    let calls = "[{k: 1}, {k: 1}, {k: 1}, {k: 1}]";
    let tape = Tape::default();
    let recorded = given(calls, Recorder::new(Late(Counting::default(), [2, 0, 3, 1]), tape.clone()));
    assert_eq!(recorded, json!([{"n": 2}, {"n": 0}, {"n": 3}, {"n": 1}]));
    for order in [[0, 1, 2, 3], [3, 2, 1, 0]] {
        assert_eq!(given(calls, Late(Cassette::parse(&tape.text()).unwrap(), order)), recorded, "{order:?}");
    }
}

#[test]
fn a_recorded_line_answers_once_if_what_is_missing_is_asked_for() {
    let tape = Tape::default();
    let live = given("null", Recorder::new(Counting { busy: 1, ..Counting::default() }, tape.clone()));
    assert_eq!(live, json!({"n": 1}));
    // The recording was killed after the first response, which was a failure.
    let cut = tape.text().lines().next().unwrap().to_owned() + "\n";
    let rest = Tape::default();
    let completed = Missing::new(Cassette::parse(&cut).unwrap(), Counting::default(), rest.clone());
    assert_eq!(given("null", completed), json!({"n": 0}));
    let whole = cut + &rest.text();
    assert_eq!(given("null", Cassette::parse(&whole).unwrap()), json!({"n": 0}));
}
