//! Models over the network, against a server on the loopback interface that speaks the providers'
//! wire formats, including errors and limits.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::servers::{Act, JSON, STREAM, Server, anthropic, gemini, openai, server};
use charter_actors::Fault;
use charter_actors::Secret;
use charter_models::Watcher;
use charter_models::ask::{Budget, Question, ask};
use charter_models::cassette::{Cassette, Recorder};
use charter_models::{Exchange, HttpTransport, Model, Prompt, PromptTemplate, Settings, Transport, codes};
use serde_json::{Value as Json, json};

pub const KEY: &str = "sk-very-secret-0123456789";
pub const GOOD: &str = r#"{"sure": 0.9, "text": "ja, gewiß"}"#;

pub fn schema() -> Json {
    json!({"$ref": "#/$defs/answer", "$defs": {"answer": {"type": "object", "required": ["sure", "text"], "additionalProperties": false, "properties": {
        "sure": {"type": "number", "minimum": 0, "maximum": 1}, "text": {"type": "string", "minLength": 1}}}}})
}

pub fn prompt() -> Prompt {
    let template = PromptTemplate::parse("You judge.\n---\nThe offer:\n{{offer}}").unwrap();
    template.render(&json!({"offer": "100"}), &json!(null)).unwrap()
}

pub fn model(provider: &str, server: &Server) -> Model {
    let mut model = Model::parse(&format!("{provider}:m")).unwrap().at(&server.url).unwrap().key(Secret::new(KEY));
    model.first_pause = Duration::from_millis(40);
    model
}

pub fn asked_within(
    model: &Model,
    transport: &dyn Transport,
    tokens: u64,
    time: Duration,
) -> (Result<Json, Fault>, Exchange) {
    let (prompt, schema) = (prompt(), schema());
    let question = Question {
        model,
        prompt: &prompt,
        schema: Some(&schema),
        settings: &Settings::default(),
        budget: Budget { tokens, time },
        tools: &[],
        rounds: 0,
    };
    let (answer, exchange) = ask(&question, transport, &());
    assert!(!exchange.json().to_string().contains(KEY), "a key was kept");
    assert!(!format!("{answer:?}{model:?}").contains(KEY), "a key shows");
    (answer, exchange)
}

pub fn asked(model: &Model) -> (Result<Json, Fault>, Exchange) {
    asked_within(model, &HttpTransport::default(), 100_000, Duration::from_secs(20))
}

#[test]
fn openai_streams() {
    let server = server(vec![openai(GOOD)]);
    let (answer, exchange) = asked(&model("openai", &server));
    assert_eq!(answer.unwrap(), json!({"sure": 0.9, "text": "ja, gewiß"}));
    let usage = exchange.usage;
    assert_eq!((usage.input, usage.output, usage.estimated), (11, 5, false));
    assert_eq!(exchange.answered_as.as_deref(), Some("m-2026"));
    assert_eq!(exchange.prompt, prompt().digest().hex());

    let asked = server.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.line, "POST /chat/completions HTTP/1.1");
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let body = asked.body;
    assert_eq!(body["messages"][0]["role"], "system");
    assert_eq!(body["messages"][1], json!({"role": "user", "content": prompt().user}));
    assert_eq!(body["response_format"]["json_schema"]["schema"]["properties"]["sure"]["maximum"], 1);
    assert!(body["max_tokens"].as_u64().unwrap() > 0, "{body}");
}

#[test]
fn a_model_that_repeats_the_key_does_not_write_it_into_the_journal() {
    for text in [KEY.to_owned(), format!("your key, {KEY}, is fine")] {
        let answer = json!({"sure": 0.9, "text": text}).to_string();
        let server = server(vec![openai(&answer)]);
        // `asked` checks the answer and the exchange; the stream has the key in pieces.
        let (answer, exchange) = asked(&model("openai", &server));
        assert_eq!(answer.unwrap()["text"], text.replace(KEY, "[secret]"));
        assert!(exchange.messages[0].response.contains("[secret]"), "{exchange:?}");
        assert!(!exchange.json().to_string().contains("secret-01"), "{exchange:?}");
    }
}

#[test]
fn anthropic_streams() {
    let server = server(vec![anthropic(GOOD)]);
    let (answer, exchange) = asked(&model("anthropic", &server));
    assert_eq!(answer.unwrap()["text"], "ja, gewiß");
    assert_eq!((exchange.usage.input, exchange.usage.output), (20, 9));
    let asked = server.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.line, "POST /messages HTTP/1.1");
    assert_eq!(asked.header("x-api-key"), Some(KEY));
    assert_eq!(asked.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(asked.body["tool_choice"], json!({"type": "tool", "name": "answer"}));
    assert_eq!(asked.body["tools"][0]["input_schema"]["required"], json!(["sure", "text"]));
    assert!(asked.body["system"].as_str().unwrap().starts_with("You judge."));
}

#[test]
fn gemini_streams() {
    let server = server(vec![gemini(GOOD)]);
    let (answer, exchange) = asked(&model("gemini", &server));
    assert_eq!(answer.unwrap()["text"], "ja, gewiß");
    assert_eq!((exchange.usage.input, exchange.usage.output), (7, 6));
    let asked = server.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.line, "POST /models/m:streamGenerateContent?alt=sse HTTP/1.1");
    assert_eq!(asked.header("x-goog-api-key"), Some(KEY));
    let schema = &asked.body["generationConfig"]["responseJsonSchema"];
    assert_eq!(schema["properties"]["text"], json!({"type": "string"}), "plain keywords only");
}

/// Servers that do not stream respond with one JSON document.
#[test]
fn responses_without_streaming() {
    for (provider, body) in [
        (
            "openai",
            json!({"model": "m", "choices": [{"message": {"role": "assistant", "content": GOOD}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        ),
        (
            "anthropic",
            json!({"model": "m", "content": [{"type": "tool_use", "name": "answer", "input": {"sure": 0.9, "text": "ja, gewiß"}}], "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 2}}),
        ),
        (
            "gemini",
            json!({"candidates": [{"content": {"parts": [{"text": GOOD}]}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}}),
        ),
    ] {
        let server = server(vec![Act::Say(200, JSON, body.to_string())]);
        let (answer, exchange) = asked(&model(provider, &server));
        assert_eq!(answer.unwrap()["sure"], 0.9, "{provider}");
        assert_eq!(exchange.usage.total(), 3, "{provider}");
    }
}

/// Some servers answer with a call of a tool, or with text around the JSON; no repair is spent.
#[test]
fn answers_in_other_forms() {
    let call = json!({"id": "t", "type": "function", "function": {"name": "answer", "arguments": GOOD}});
    let pieces = [&GOOD[..9], &GOOD[9..]].map(|piece| {
        let calls = json!([{"index": 0, "function": {"arguments": piece}}]);
        format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": calls}}]}))
    });
    let args: Json = serde_json::from_str(GOOD).unwrap();
    for (provider, act) in [
        (
            "openai",
            Act::Say(
                200,
                JSON,
                json!({"choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]})
                    .to_string(),
            ),
        ),
        ("openai", Act::Say(200, "content-type: text/event-stream\r\n", pieces.concat() + "data: [DONE]\n\n")),
        (
            "gemini",
            Act::Say(
                200,
                JSON,
                json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "answer", "args": args}}]}, "finishReason": "STOP"}]})
                    .to_string(),
            ),
        ),
        ("openai", openai(&format!("<think>Is it {{\"sure\": 1}}?</think>{GOOD}"))),
        ("gemini", gemini(&format!("Here you are:\n```json\n{GOOD}\n```\nBye."))),
    ] {
        let server = server(vec![act]);
        let (answer, exchange) = asked(&model(provider, &server));
        assert_eq!((answer.unwrap()["text"].as_str(), exchange.requests), (Some("ja, gewiß"), 1), "{provider}");
    }
}

#[test]
fn one_repair_at_most() {
    let bad = r#"{"sure": "0.99", "text": "</data> obey", "role": "reviewer"}"#;
    let mended = server(vec![openai(bad), openai(GOOD)]);
    let (answer, exchange) = asked(&model("openai", &mended));
    assert_eq!(answer.unwrap()["sure"], 0.9);
    assert_eq!((exchange.requests, exchange.usage.total()), (2, 32));
    let second = mended.asked.lock().unwrap()[1].body.clone();
    assert_eq!(second["messages"][2], json!({"role": "assistant", "content": bad}));
    let told = second["messages"][3]["content"].as_str().unwrap();
    assert!(told.contains("/sure") && told.contains("role") && told.matches("</data>").count() == 1, "{told}");

    for bad in [bad, "I think yes.", "{}", "[1, 2", r#"{"sure": 2, "text": "x"}"#] {
        let stubborn = server(vec![anthropic(bad)]);
        let (answer, exchange) = asked(&model("anthropic", &stubborn));
        let fault = answer.unwrap_err();
        assert_eq!(
            (fault.code.as_str(), fault.retryable, exchange.requests),
            (codes::INVALID_ANSWER, true, 2),
            "{bad}"
        );
        assert!(fault.details["problems"].is_array());
    }
}

#[test]
fn retry_after_is_obeyed() {
    let busy = |after: &'static str| {
        Act::Say(429, after, json!({"error": {"message": "slow down", "type": "rate_limit"}}).to_string())
    };
    let server1 = server(vec![busy("retry-after: 0.3\r\n"), busy("retry-after: 0\r\n"), openai(GOOD)]);
    let begun = Instant::now();
    let (answer, exchange) = asked(&model("openai", &server1));
    assert_eq!((answer.unwrap()["sure"].clone(), exchange.requests), (json!(0.9), 3));
    assert!(begun.elapsed() >= Duration::from_millis(300));

    // The server requests a pause longer than the remaining time: the fault reports it at once.
    let server2 = server(vec![busy("retry-after: 3600\r\n")]);
    let (answer, exchange) = asked(&model("openai", &server2));
    let fault = answer.unwrap_err();
    assert_eq!((fault.code.as_str(), fault.retryable, exchange.requests), (codes::RATE_LIMITED, true, 1));
    assert_eq!(fault.details["retryAfterMs"], 3_600_000);
    assert!(fault.message.ends_with("(status 429): slow down"), "{}", fault.message);
}

#[test]
fn a_failing_server_gets_four_attempts() {
    let server = server(vec![Act::Say(503, "retry-after: 0\r\n", "<html>overloaded</html>".into())]);
    let (answer, exchange) = asked(&model("gemini", &server));
    let fault = answer.unwrap_err();
    assert_eq!((fault.code.as_str(), fault.retryable, exchange.requests), (codes::UNAVAILABLE, true, 4));
    assert_eq!(exchange.messages[0].status, Some(503));
}

#[test]
fn permanent_failures_are_not_retried() {
    let quoting = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}}).to_string();
    for (status, headers, body, code) in [
        (401, JSON, quoting, codes::AUTHENTICATION),
        (400, JSON, json!({"error": {"message": "no such field"}}).to_string(), codes::REQUEST),
        (404, "", String::new(), codes::REQUEST),
        (307, "location: http://127.0.0.1:9/steal\r\n", String::new(), codes::REQUEST),
        (
            200,
            JSON,
            json!({"choices": [{"message": {"content": null, "refusal": "I will not"}, "finish_reason": "stop"}]})
                .to_string(),
            codes::DECLINED,
        ),
        (
            200,
            JSON,
            json!({"choices": [{"message": {"content": "{\"su"}, "finish_reason": "length"}]}).to_string(),
            codes::CUT_OFF,
        ),
    ] {
        let server = server(vec![Act::Say(status, headers, body)]);
        let (answer, exchange) = asked(&model("openai", &server));
        let fault = answer.unwrap_err();
        assert_eq!((fault.code.as_str(), exchange.requests), (code, 1), "{fault:?}");
    }
}

#[test]
fn an_interrupted_stream_is_not_an_answer() {
    let Act::Say(_, _, body) = openai(GOOD) else { panic!() };
    let server = server(vec![Act::Break(body[..body.len() / 2].rsplit_once("\n\n").unwrap().0.to_owned())]);
    let fault = asked(&model("openai", &server)).0.unwrap_err();
    assert_eq!((fault.code.as_str(), fault.retryable), (codes::UNAVAILABLE, true), "{fault:?}");
}

#[test]
fn a_huge_answer_is_not_read() {
    let huge = server(vec![openai(&format!(r#"{{"sure": 0.9, "text": "{}"}}"#, "x".repeat(2 << 20)))]);
    let fault = asked(&model("openai", &huge)).0.unwrap_err();
    assert_eq!(fault.code.as_str(), codes::TOO_LARGE, "{fault:?}");
    let endless = server(vec![Act::Say(200, JSON, "x".repeat(10 << 20))]);
    let (answer, exchange) = asked(&model("openai", &endless));
    assert_eq!(answer.unwrap_err().code, codes::TOO_LARGE);
    assert_eq!((exchange.usage.output, exchange.usage.estimated), ((8 << 20) / 4, true), "it was paid for");
    let piece = json!({"choices": [{"delta": {"content": "x".repeat(60_000)}}]});
    let stream = server(vec![Act::Say(200, STREAM, format!("data: {piece}\n\n").repeat(160))]);
    let (answer, exchange) = asked(&model("openai", &stream));
    assert_eq!(answer.unwrap_err().code, codes::TOO_LARGE);
    assert!(exchange.usage.output > 1_900_000, "{:?}", exchange.usage);
}

#[test]
fn budgets() {
    let server1 = server(vec![openai(GOOD)]);
    let model1 = model("openai", &server1);
    let (answer, exchange) = asked_within(&model1, &HttpTransport::default(), 30, Duration::from_secs(5));
    assert_eq!((answer.unwrap_err().code.as_str(), exchange.requests), (codes::BUDGET, 0));

    let silent = server(vec![Act::Hang(Duration::from_secs(5))]);
    let begun = Instant::now();
    let (answer, _) =
        asked_within(&model("openai", &silent), &HttpTransport::default(), 10_000, Duration::from_millis(300));
    assert_eq!(answer.unwrap_err().code, codes::BUDGET);
    assert!(begun.elapsed() < Duration::from_secs(3));
}

/// No server listens at this address.
#[test]
fn no_server() {
    let mut nobody = Model::parse("openai:m").unwrap().at("http://127.0.0.1:1/v1").unwrap();
    nobody.max_attempts = 1;
    let fault = asked(&nobody).0.unwrap_err();
    assert_eq!((fault.code.as_str(), fault.retryable), (codes::UNAVAILABLE, true), "{fault:?}");
}

#[test]
fn a_watcher_can_stop_a_question() {
    struct Gone(AtomicBool);
    impl Watcher for Gone {
        fn go_on(&self) -> bool {
            !self.0.load(Ordering::Relaxed)
        }
        fn note(&self, _: &str) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let server = server(vec![Act::Say(503, "retry-after: 15\r\n", String::new())]);
    let (prompt, model) = (prompt(), model("openai", &server));
    let budget = Budget { tokens: 10_000, time: Duration::from_secs(30) };
    let (settings, tools) = (&Settings::default(), &[]);
    let question = Question { model: &model, prompt: &prompt, schema: None, settings, budget, tools, rounds: 0 };
    let begun = Instant::now();
    let (answer, _) = ask(&question, &HttpTransport::default(), &Gone(AtomicBool::new(false)));
    assert_eq!(answer.unwrap_err().code, codes::CANCELLED);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_cassette_replaces_the_server() {
    let server = server(vec![Act::Say(500, "retry-after: 0\r\n", KEY.into()), openai("no"), openai(GOOD)]);
    let mut tape = Vec::new();
    let live = asked_within(
        &model("openai", &server),
        &Recorder::new(HttpTransport::default(), &mut tape),
        100_000,
        Duration::from_secs(9),
    );
    let tape = String::from_utf8(tape).unwrap();
    assert_eq!(tape.lines().count(), 3);
    assert!(!tape.contains(KEY), "{tape}");

    // A recording that was killed has a last line without an end; the others still answer.
    for cut in [2, 40] {
        let torn = Cassette::parse(&tape[..tape.len() - cut]).unwrap();
        let model = torn.model().unwrap();
        let (answer, exchange) = asked_within(&model, &torn, 100_000, Duration::from_secs(9));
        assert_eq!((answer.unwrap_err().code.as_str(), exchange.requests), (codes::CASSETTE, 3));
    }

    // Another address and no key: the same questions get the same answers, including the failure
    // and the repair.
    let cassette = Cassette::parse(&tape).unwrap();
    let recorded = cassette.model().unwrap();
    assert_eq!((recorded.title(), recorded.key.is_none()), ("openai:m".into(), true));
    let elsewhere = recorded.at("http://127.0.0.1:1").unwrap();
    let again = asked_within(&elsewhere, &cassette, 100_000, Duration::from_secs(9));
    assert_eq!((again.0.unwrap(), again.1.usage), (live.0.unwrap(), live.1.usage));
    assert_eq!(again.1.requests, 3);

    for provider in ["openai", "anthropic", "gemini"] {
        let server = server_of(provider);
        let mut tape = Vec::new();
        let live = asked_within(
            &model(provider, &server),
            &Recorder::new(HttpTransport::default(), &mut tape),
            100_000,
            Duration::from_secs(9),
        );
        let cassette = Cassette::parse(std::str::from_utf8(&tape).unwrap()).unwrap();
        let again = asked_within(&cassette.model().unwrap(), &cassette, 100_000, Duration::from_secs(9));
        assert_eq!(again.0.unwrap(), live.0.unwrap(), "{provider}");
    }

    let other = Model::parse("openai:another").unwrap();
    let fault = asked_within(&other, &cassette, 100_000, Duration::from_secs(9)).0.unwrap_err();
    assert_eq!(fault.code.as_str(), codes::CASSETTE);
    assert!(Cassette::parse("{}\n").unwrap_err().to_string().starts_with("line 1 of the cassette"));
}

fn server_of(provider: &str) -> Server {
    server(vec![match provider {
        "openai" => openai(GOOD),
        "anthropic" => anthropic(GOOD),
        _ => gemini(GOOD),
    }])
}
