//! Models that actors name: their requests, and the next one where the first does not answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_actors::{Fault, Folder, Secret};
use charter_journal::MemoryStore;
use charter_kernel::Principal;
use charter_kernel::definition::ActorDecl;
use charter_models::actor::{ModelActor, Source};
use charter_models::limits::Limits;
use charter_models::{Exchange, HttpTransport, Model, Models, Provider, Providers, codes};
use charter_runtime::{Charter, Options, Runtime, Start};
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, Server, anthropic, openai, server};
use crate::wire::{GOOD, KEY, schema};

fn read(config: Json) -> Result<ModelActor, String> {
    let mut config = config;
    config["prompt"] = json!("p.md");
    let folder = Folder::Texts(Arc::new([("p.md".to_owned(), "You judge.\n---\n{{q}}".to_owned())].into()));
    let config = serde_json::from_value(config).unwrap();
    let decl = ActorDecl { kind: "model".into(), output: Some(schema()), config, ..ActorDecl::default() };
    ModelActor::read(&decl, &folder).map_err(|e| e.to_string())
}

fn asked(first: &Model, fallback: &[Model]) -> (Result<Json, Fault>, Vec<Exchange>) {
    let transport = HttpTransport::default();
    let source = Source::Model(first, fallback, &transport, &[]);
    read(json!({})).unwrap().answer(source, &json!({"q": 1}), Duration::from_secs(20), &())
}

fn model(host: &str, provider: Provider, server: &Server) -> Model {
    let model = Model::provider(host, provider).named("m").unwrap().at(&server.url).unwrap().key(Secret::new(KEY));
    Model { first_pause: Duration::from_millis(10), ..model }
}

#[test]
fn the_next_model_answers() {
    let say =
        |status, headers, message: &str| Act::Say(status, headers, json!({"error": {"message": message}}).to_string());
    let second = || server(vec![anthropic(GOOD)]);
    for (act, requests) in [
        (say(503, JSON, "down"), 4),
        (say(429, "content-type: application/json\r\nretry-after: 3600\r\n", "slow"), 1),
        (say(400, JSON, "response_format json_schema, json_object"), 3),
    ] {
        let (broken, good) = (server(vec![act]), second());
        let fallback = [model("far", Provider::Anthropic, &good)];
        let (answer, exchanges) = asked(&model("near", Provider::OpenAi, &broken), &fallback);
        assert_eq!(answer.unwrap()["sure"], 0.9);
        let models: Vec<(&str, u32)> = exchanges.iter().map(|e| (e.model.as_str(), e.requests)).collect();
        assert_eq!(models, [("near:m", requests), ("far:m", 1)]);
    }
    // What another model would not mend ends the question.
    let mode = || say(400, JSON, "response_format is not supported");
    for acts in [
        vec![say(401, JSON, "key")],
        vec![say(400, JSON, "the prompt")],
        // What is rejected after a switch of the mode need not be the mode.
        vec![mode(), say(400, JSON, "the prompt")],
        vec![mode(), say(422, JSON, "the prompt")],
        vec![mode(), mode(), say(400, JSON, "the prompt")],
        vec![mode(), say(404, JSON, "response_format is not here")],
        vec![mode(), say(401, JSON, "key")],
    ] {
        let requests = u32::try_from(acts.len()).unwrap();
        let (broken, good) = (server(acts), second());
        let fallback = [model("far", Provider::Anthropic, &good)];
        let (answer, exchanges) = asked(&model("near", Provider::OpenAi, &broken), &fallback);
        assert!(answer.is_err());
        assert_eq!((exchanges.len(), exchanges[0].requests, good.asked.lock().unwrap().len()), (1, requests, 0));
    }
}

#[test]
fn a_server_that_does_not_answer_leaves_time_for_the_next() {
    let Act::Say(_, _, whole) = openai(GOOD) else { panic!() };
    let begun = || Act::Stall(whole[..whole.len() / 2].to_owned(), Duration::from_secs(9));
    let hangs = || Act::Hang(Duration::from_secs(9));
    let ask = |config: Json, within: u64, acts: [Act; 2]| {
        let servers = acts.map(|act| server(vec![act]));
        let (first, next) =
            (model("near", Provider::OpenAi, &servers[0]), [model("far", Provider::OpenAi, &servers[1])]);
        let transport = HttpTransport::default();
        let source = Source::Model(&first, &next, &transport, &[]);
        let (answer, exchanges) =
            read(config).unwrap().answer(source, &json!({"q": 1}), Duration::from_millis(within), &());
        (answer, exchanges.len())
    };
    let seconds = |n: f64| json!({"budget": {"seconds": n}});
    for act in [hangs(), begun()] {
        let time = Instant::now();
        let (answer, asked) = ask(seconds(2.0), 20_000, [act, openai(GOOD)]);
        assert_eq!((answer.unwrap()["sure"].clone(), asked), (json!(0.9), 2));
        assert!((900..1_900).contains(&time.elapsed().as_millis()), "{:?}", time.elapsed());
    }
    for (config, within, acts, what, raise) in [
        (seconds(1.0), 20_000, [hangs(), hangs()], "the server did not answer", "`budget.seconds`"),
        (seconds(1.0), 20_000, [hangs(), begun()], "the answer was not complete", "`budget.seconds`"),
        (json!({}), 1_000, [hangs(), begun()], "the answer was not complete", "`timeout` or `attemptTimeout`"),
    ] {
        let fault = ask(config, within, acts).0.unwrap_err();
        let expected = format!("of 1 s, is used up: {what}; raise {raise}");
        assert!(
            fault.message.starts_with("the part of `far:m`, 0.") && fault.message.ends_with(&expected),
            "{fault:?}"
        );
        assert_eq!((fault.code.as_str(), fault.retryable), (codes::BUDGET, true));
    }
}

#[test]
fn azure_and_headers() {
    let server = server(vec![openai(GOOD)]);
    let azure = model("work", Provider::Azure, &server).header("X-Team", "a b").unwrap();
    assert!(asked(&azure, &[]).0.is_ok());
    let sent = server.asked.lock().unwrap()[0].clone();
    assert_eq!(sent.line, "POST /chat/completions HTTP/1.1");
    assert_eq!((sent.header("api-key"), sent.header("authorization")), (Some(KEY), None));
    assert_eq!((sent.header("x-team"), &sent.body["max_completion_tokens"]), (Some("a b"), &json!(16_384)));
    for (name, value) in [("Authorization", "x"), ("a b", "x"), ("a", "x\r\nb: c"), ("a", "ü"), ("host", "x")] {
        assert!(model("work", Provider::Azure, &server).header(name, value).is_err(), "{name}");
    }
}

#[test]
fn limits_of_a_provider() {
    let near = server(vec![openai(GOOD)]);
    let limited =
        Model { limits: Some(Arc::new(Limits::new(None, Some(1)))), ..model("near", Provider::OpenAi, &near) };
    assert!(asked(&limited, &[]).0.is_ok());
    let begun = Instant::now();
    let (answer, _) = asked(&limited, &[]);
    let fault = answer.unwrap_err();
    assert_eq!(
        (fault.code.as_str(), fault.message.as_str()),
        (codes::RATE_LIMITED, "the limit of this host for `near` is reached: 1 requests a minute")
    );
    let far = server(vec![openai(GOOD)]);
    let (answer, exchanges) = asked(&limited, &[model("far", Provider::OpenAi, &far)]);
    assert_eq!((answer.is_ok(), exchanges.len(), near.asked.lock().unwrap().len()), (true, 2, 1));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn wrong_keys_are_refused() {
    for (config, message) in [
        (json!({"model": "m"}), "invalid `model`: expected `PROVIDER:NAME`, e.g. `openai:gpt-5-mini`, found `\"m\"`"),
        (json!({"provider": "p"}), "missing key `model`: the name of a model of the `provider`"),
        (json!({"provider": 1, "model": "m"}), "invalid `provider`: expected a name, found `1`"),
        (
            json!({"fallback": "openai:x"}),
            "invalid `fallback`: expected a list of at most 8 names such as `openai:NAME`, found `\"openai:x\"`",
        ),
        (json!({"headers": {"a": "b"}}), "missing key `model`: with `headers`, which are sent to this model only"),
        (
            json!({"model": "openai:x", "headers": {"Authorization": "b"}}),
            "`headers`: cannot send the header `Authorization`: it is set by this program; keys are set in the environment",
        ),
    ] {
        assert_eq!(read(config).unwrap_err(), message);
    }
}

#[test]
fn a_pause_beyond_the_time_of_the_invocation_is_not_waited_for() {
    let headers = "content-type: application/json\r\nretry-after: 13\r\n";
    let (busy, good) = (server(vec![Act::Say(429, headers, json!({}).to_string())]), server(vec![anthropic(GOOD)]));
    let source = "
charter: 1
id: asks
actors:
  ask:
    kind: model
    prompt: p.md
    model: near:m
    fallback: ['far:m']
    timeout: 12s
    output: {type: object, required: [sure], properties: {sure: {type: number}}}
context: {sure: 0.0}
output: {sure: '= context.sure'}
states:
  asking: {invoke: {src: ask, onDone: {target: over, actions: {assign: {sure: '= event.output.sure'}}}, onError: over}}
  over: {type: final}
";
    let document = charter_test_support::document(source);
    let folder = Folder::Texts(Arc::new([("p.md".to_owned(), "You judge.\n---\nWhat?".to_owned())].into()));
    let named = [("near", Provider::OpenAi, &busy), ("far", Provider::Anthropic, &good)];
    let named = named.map(|(host, provider, server)| (host.to_owned(), model(host, provider, server)));
    let providers = Providers { named: named.into(), ..Providers::default() };
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let begun = Instant::now();
    let output = rt.block_on(async {
        let options = Options::default().executor("model", Models::of(providers, HttpTransport::default()));
        let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        let charter = runtime.add(Charter::new(&document, folder).unwrap()).await.unwrap().digest();
        let start = Start { charter, run: Some("r".into()), input: json!({}), by: Principal::default() };
        runtime.start(start).await.unwrap();
        runtime.ended("r").await.unwrap().snapshot.output().unwrap().clone()
    });
    assert_eq!(output, json!({"sure": 0.9}));
    assert!(begun.elapsed() < Duration::from_secs(10), "the other model is asked at once");
}
