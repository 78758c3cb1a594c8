//! What broken answers took is counted, so that budgets end them.

use std::time::Duration;

use charter_models::{HttpTransport, codes};
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, STREAM, server};
use crate::wire::{GOOD, asked, asked_within, model};

fn usage() -> Json {
    json!({"prompt_tokens": 100, "completion_tokens": 300})
}

/// A whole answer of OpenAI with its usage.
fn whole() -> String {
    let choices = json!([{"message": {"content": GOOD}, "finish_reason": "stop"}]);
    json!({"model": "m", "choices": choices, "usage": usage()}).to_string()
}

fn with_key_twice() -> String {
    whole().replacen('{', "{\"id\": 1, \"id\": 2, ", 1)
}

/// Many deltas of Anthropic, then an error.
fn overloaded() -> String {
    let mut events =
        vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}})];
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "word "}});
    events.extend(std::iter::repeat_n(delta, 300));
    events.push(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    events.iter().map(|data| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())).collect()
}

/// The whole text of OpenAI in a stream, and what comes after it.
fn streamed(end: &str) -> String {
    let text = json!({"choices": [{"delta": {"content": GOOD.repeat(9)}, "finish_reason": "stop"}]});
    format!("data: {text}\n\ndata: {end}\n\n")
}

#[test]
fn usage_is_read_from_answers_that_cannot_be_used() {
    let error = json!({"error": {"message": "no"}, "usage": usage()}).to_string();
    let cut = whole().replace('}', "} ");
    let cut = &cut[..cut.rfind(", \"").unwrap_or(cut.len() - 3)];
    for (case, act) in [
        ("a key twice", Act::Say(200, JSON, with_key_twice())),
        ("a byte is missing", Act::Short(whole())),
        ("the end is missing", Act::Short(cut.to_owned())),
        ("no choices", Act::Say(200, JSON, json!({"choices": [], "usage": usage()}).to_string())),
        ("a list", Act::Say(200, JSON, format!("[{}]", whole()))),
        ("more behind it", Act::Say(200, JSON, format!("{} oops", whole()))),
        ("a BOM", Act::Say(200, JSON, format!("\u{feff}{}", whole()))),
        ("an error with status 200", Act::Say(200, JSON, error.clone())),
        ("an error with status 500", Act::Say(500, JSON, error)),
        (
            "an event after the usage",
            Act::Say(200, STREAM, format!("data: {}\n\ndata: {{\n\n", json!({"choices": [], "usage": usage()}))),
        ),
    ] {
        let mut model = model("openai", &server(vec![act]));
        model.max_attempts = 2;
        let (answer, exchange) = asked(&model);
        assert!(answer.is_err(), "{case}");
        let (usage, spent) = (exchange.usage, exchange.spent);
        assert_eq!((usage.input, usage.output, usage.estimated), (200, 600, false), "{case}");
        assert_eq!(usage, spent, "{case}");
    }
}

#[test]
fn what_is_not_reported_is_estimated_from_what_arrived() {
    let error = json!({"error": {"message": "no"}}).to_string();
    for (provider, act, least) in [
        ("anthropic", Act::Say(200, STREAM, overloaded()), 400),
        (
            "anthropic",
            Act::Break(overloaded().replace("event: error", "event: ping").replace("\"error\"", "\"x\"")),
            400,
        ),
        ("openai", Act::Say(200, STREAM, streamed(&error)), 80),
        ("openai", Act::Say(200, STREAM, streamed("{")), 80),
        ("openai", Act::Say(200, JSON, "surprise".repeat(50)), 100),
        ("openai", Act::Say(500, STREAM, streamed(&error)), 80),
        ("openai", Act::Bytes("content-encoding: gzip\r\n", vec![0x1f; 400]), 100),
    ] {
        let mut model = model(provider, &server(vec![act]));
        model.max_attempts = 1;
        let (answer, exchange) = asked(&model);
        assert!(answer.is_err(), "{provider}");
        let usage = exchange.usage;
        assert!(usage.estimated && (least..least + 300).contains(&usage.total()), "{provider}, {least}: {usage:?}");
        assert_eq!(usage.input == 100, provider == "anthropic", "{usage:?}");
    }
}

#[test]
fn what_no_model_has_worked_on_counts_nothing() {
    let said = |status, text: &str| Act::Say(status, JSON, text.to_owned());
    let error = json!({"error": {"message": "no"}}).to_string();
    for act in [
        said(500, &error),
        said(401, &error),
        said(429, ""),
        said(404, "<p>"),
        said(503, "busy"),
        Act::Status(500, vec![0xff]),
    ] {
        let mut model = model("openai", &server(vec![act]));
        model.max_attempts = 2;
        let (answer, exchange) = asked(&model);
        assert!(answer.is_err());
        assert_eq!(exchange.usage.total(), 0, "{exchange:?}");
    }
}

#[test]
fn a_budget_ends_answers_that_cannot_be_used() {
    for (provider, act) in [
        ("openai", Act::Say(200, JSON, with_key_twice())),
        ("openai", Act::Short(whole())),
        ("anthropic", Act::Say(200, STREAM, overloaded())),
    ] {
        let model = model(provider, &server(vec![act]));
        let (answer, exchange) = asked_within(&model, &HttpTransport::default(), 1_000, Duration::from_secs(9));
        assert_eq!(answer.unwrap_err().code, codes::BUDGET, "{provider}");
        assert!((2..=3).contains(&exchange.requests), "{provider}: {}", exchange.requests);
    }
}

#[test]
fn the_status_of_a_body_that_is_no_text_counts() {
    let server = server(vec![Act::Status(401, b"\xff\xfe no".to_vec())]);
    let (answer, exchange) = asked(&model("openai", &server));
    assert_eq!((answer.unwrap_err().code.as_str(), exchange.requests), (codes::AUTHENTICATION, 1));
}

#[test]
fn a_server_that_wants_a_key_that_was_not_sent() {
    let mut model = model("openai", &server(vec![Act::Say(401, "", String::new())]));
    model.key = None;
    let fault = asked(&model).0.unwrap_err();
    assert_eq!(fault.code, codes::AUTHENTICATION);
    let expected = "the server of `openai:m` wants a key (status 401), and none was sent: set CHARTER_MODEL_KEY for";
    assert!(fault.message.starts_with(expected), "{fault:?}");
}

#[test]
fn every_count_of_tokens_has_to_be_one() {
    let openai = |cached: &Json| {
        let usage =
            json!({"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}});
        json!({"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}], "usage": usage})
    };
    let anthropic = |key: &str, count: &Json| {
        let usage = json!({"input_tokens": 9, "output_tokens": 5, key: count});
        json!({"content": [{"type": "text", "text": GOOD}], "stop_reason": "end_turn", "usage": usage})
    };
    let gemini = |key: &str, count: &Json| {
        let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 5, key: count});
        let candidates = json!([{"content": {"parts": [{"text": GOOD}]}, "finishReason": "STOP"}]);
        json!({"candidates": candidates, "usageMetadata": usage})
    };
    for count in [json!(-5), json!(1e308), json!("90000000"), json!(null), json!(2)] {
        for (provider, body) in [
            ("openai", openai(&count)),
            ("anthropic", anthropic("cache_read_input_tokens", &count)),
            ("anthropic", anthropic("cache_creation_input_tokens", &count)),
            ("gemini", gemini("toolUsePromptTokenCount", &count)),
            ("gemini", gemini("cachedContentTokenCount", &count)),
        ] {
            let model = model(provider, &server(vec![Act::Say(200, JSON, body.to_string())]));
            let (answer, exchange) = asked(&model);
            match count.is_u64() || count.is_null() {
                true => assert!(answer.is_ok() && !exchange.usage.estimated, "{body}"),
                false => {
                    assert_eq!(answer.unwrap_err().code, codes::PROTOCOL, "{body}");
                    assert_eq!(exchange.requests, 1, "it may have been paid for: {body}");
                    assert!(exchange.usage.total() > 0, "{body}");
                }
            }
        }
    }
}

#[test]
fn what_the_tools_of_google_have_found_is_read_by_the_model() {
    let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 5, "toolUsePromptTokenCount": 700});
    let candidates = json!([{"content": {"parts": [{"text": GOOD}]}, "finishReason": "STOP"}]);
    let body = json!({"candidates": candidates, "usageMetadata": usage}).to_string();
    let usage = asked(&model("gemini", &server(vec![Act::Say(200, JSON, body)]))).1.usage;
    assert_eq!((usage.input, usage.output, usage.estimated), (709, 5, false));
}
