//! Responses that break off, stall or are none: they are asked for again, within the budgets.

use std::time::{Duration, Instant, SystemTime};

use charter_models::cassette::{Cassette, Recorder};
use charter_models::{HttpTransport, codes};
use serde_json::json;

use crate::servers::{Act, JSON, STREAM, anthropic, gemini, openai, server};
use crate::wire::{GOOD, asked, asked_within, model};

fn good(provider: &str) -> Act {
    match provider {
        "openai" => openai(GOOD),
        "anthropic" => anthropic(GOOD),
        _ => gemini(GOOD),
    }
}

/// The beginning of a good stream.
fn begin(provider: &str, parts: usize) -> String {
    let Act::Say(_, _, body) = good(provider) else { panic!() };
    let end = body.match_indices('\n').nth(parts).unwrap().0;
    body[..end].to_owned()
}

#[test]
fn a_broken_response_is_asked_for_again() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    for provider in ["openai", "anthropic", "gemini"] {
        let cut = begin(provider, if provider == "gemini" { 0 } else { 2 });
        let acts = [
            Act::Break(cut.clone()),
            Act::Break(cut[..cut.len() - 9].to_owned()),
            Act::Reset(cut.clone()),
            Act::Say(200, STREAM, format!("{cut}\n\nevent: error\ndata: {overloaded}\n\n")),
            Act::Say(200, "content-type: text/html\r\n", "<html><h1>502</h1></html>".into()),
            Act::Say(200, JSON, String::new()),
            Act::Say(200, STREAM, String::new()),
            Act::Say(200, JSON, "{}".into()),
            Act::Bytes(JSON, b"{\"a\": \"\xff\"}".to_vec()),
            Act::Bytes("content-type: application/json\r\ncontent-encoding: gzip\r\n", vec![0x1f, 0x8b, 8, 0]),
        ];
        for (number, act) in acts.into_iter().enumerate() {
            let server = server(vec![act.clone(), good(provider)]);
            let (answer, exchange) = asked(&model(provider, &server));
            assert_eq!(answer.unwrap()["sure"], 0.9, "{provider}, case {number}");
            assert_eq!(exchange.requests, 2, "{provider}, case {number}");
        }
    }
}

#[test]
fn a_broken_response_is_asked_for_four_times() {
    for (body, code, says) in [
        (Act::Say(200, JSON, "surprise".into()), codes::PROTOCOL, "not valid JSON"),
        (Act::Say(200, JSON, json!({"choices": []}).to_string()), codes::PROTOCOL, "no `choices[0].message`"),
        (Act::Say(200, JSON, r#"{"model": "a", "model": "b"}"#.into()), codes::PROTOCOL, "duplicate key `model`"),
        (Act::Bytes(JSON, b"\"\xff\"".to_vec()), codes::PROTOCOL, "not valid UTF-8"),
        (
            Act::Bytes("content-encoding: gzip\r\n", vec![0x1f]),
            codes::PROTOCOL,
            "compressed (`content-encoding: gzip`)",
        ),
        (Act::Break(begin("openai", 2)), codes::UNAVAILABLE, "ended early"),
    ] {
        let server = server(vec![body]);
        let (answer, exchange) = asked(&model("openai", &server));
        let fault = answer.unwrap_err();
        assert_eq!((fault.code.as_str(), exchange.requests), (code, 4), "{fault:?}");
        assert!(fault.message.contains(says), "{fault:?}");
    }
}

#[test]
fn a_stalled_stream_is_given_up_and_asked_for_again() {
    let server = server(vec![Act::Stall(begin("anthropic", 3) + "\n", Duration::from_secs(30)), anthropic(GOOD)]);
    let begun = Instant::now();
    let transport = HttpTransport::default().idle(Duration::from_millis(200));
    let (answer, exchange) = asked_within(&model("anthropic", &server), &transport, 50_000, Duration::from_secs(20));
    assert_eq!((answer.unwrap()["sure"].as_f64(), exchange.requests), (Some(0.9), 2));
    assert!(exchange.messages[0].response.contains("stalled"), "{:?}", exchange.messages[0]);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn broken_responses_use_up_the_budget() {
    let server = server(vec![Act::Break(begin("openai", 9))]);
    let fault = asked_within(&model("openai", &server), &HttpTransport::default(), 400, Duration::from_secs(9));
    assert_eq!(fault.0.unwrap_err().code, codes::BUDGET);
    assert!((2..4).contains(&fault.1.requests), "{}", fault.1.requests);
    assert!(fault.1.usage.estimated && fault.1.usage.total() > 200, "{:?}", fault.1.usage);
}

#[test]
fn an_answer_that_is_cut_off_says_what_to_raise() {
    let cut = json!({"choices": [{"message": {"content": "{\"su"}, "finish_reason": "length"}]}).to_string();
    let server = server(vec![Act::Say(200, JSON, cut)]);
    let message = |tokens| {
        let transport = HttpTransport::default();
        let fault = asked_within(&model("openai", &server), &transport, tokens, Duration::from_secs(9)).0.unwrap_err();
        assert_eq!(fault.code, codes::CUT_OFF);
        fault.message
    };
    assert!(message(100_000).contains("limit of 16384 tokens: raise `maxTokens`"), "{}", message(100_000));
    assert!(message(2_000).contains("raise `budget.tokens`"), "{}", message(2_000));
    assert_eq!(server.asked.lock().unwrap()[0].body["max_tokens"], 16_384);
}

#[test]
fn two_different_answers_at_once_are_repaired_and_none_is_chosen() {
    let other = json!({"sure": 0.1, "text": "no"});
    let good: serde_json::Value = serde_json::from_str(GOOD).unwrap();
    let openai_calls = |answers: &[&serde_json::Value]| {
        let call = |a: &&serde_json::Value| json!({"id": "c", "type": "function", "function": {"name": "answer", "arguments": a.to_string()}});
        let calls: Vec<_> = answers.iter().map(call).collect();
        json!({"choices": [{"message": {"content": null, "tool_calls": calls}, "finish_reason": "tool_calls"}]})
    };
    let anthropic_calls = |answers: &[&serde_json::Value]| {
        let call = |a: &&serde_json::Value| json!({"type": "tool_use", "id": "t", "name": "answer", "input": a});
        json!({"model": "c", "content": answers.iter().map(call).collect::<Vec<_>>(), "stop_reason": "tool_use"})
    };
    for (provider, two, same) in [
        ("openai", openai_calls(&[&other, &good]), openai_calls(&[&good, &good])),
        ("anthropic", anthropic_calls(&[&other, &good]), anthropic_calls(&[&good, &good])),
    ] {
        let said = |body: &serde_json::Value| Act::Say(200, JSON, body.to_string());
        let server1 = server(vec![said(&two), said(&same)]);
        let (answer, exchange) = asked(&model(provider, &server1));
        assert_eq!((answer.unwrap(), exchange.requests), (good.clone(), 2), "{provider}");
        let repair = server1.asked.lock().unwrap()[1].body.to_string();
        assert!(repair.contains("more than one JSON value that matches the schema"), "{repair}");
        let server2 = server(vec![said(&two)]);
        assert_eq!(asked(&model(provider, &server2)).0.unwrap_err().code, codes::INVALID_ANSWER);
    }
}

#[test]
fn cached_tokens_count_and_absurd_counts_are_a_fault() {
    let content = json!([{"type": "text", "text": GOOD}]);
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 5});
    let body = json!({"model": "c", "content": content, "stop_reason": "end_turn", "usage": usage}).to_string();
    let server1 = server(vec![Act::Say(200, JSON, body)]);
    let usage = asked(&model("anthropic", &server1)).1.usage;
    assert_eq!((usage.input, usage.cached, usage.cache_written, usage.output), (123, 100, 20, 5));

    let more = |cached: u64| json!({"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": cached}});
    for (reported, cached, estimated) in [(50, 50, false), (51, 50, true), (u64::MAX, 50, true)] {
        let body =
            json!({"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}], "usage": more(reported)});
        let usage = asked(&model("openai", &server(vec![Act::Say(200, JSON, body.to_string())]))).1.usage;
        assert_eq!((usage.input, usage.cached, usage.estimated), (50, cached, estimated));
    }
    let absurd = |count: serde_json::Value| {
        let choices = json!([{"message": {"content": GOOD}, "finish_reason": "stop"}]);
        let body = json!({"choices": choices, "usage": {"prompt_tokens": 1, "completion_tokens": &count}}).to_string();
        let server = server(vec![Act::Say(200, JSON, body)]);
        let (answer, exchange) = asked(&model("openai", &server));
        // What was asked is counted in any case, so that a budget ends it.
        assert!(
            exchange.usage.total() > 0 && exchange.usage.estimated == (answer.is_err() || count.is_null()),
            "{exchange:?}"
        );
        (answer.map_err(|fault| fault.code), exchange.requests)
    };
    assert_eq!(absurd(json!(u64::MAX)), (Err(codes::PROTOCOL.to_owned()), 1));
    assert_eq!(absurd(json!(100_000_001_u64)), (Err(codes::PROTOCOL.to_owned()), 1));
    assert!(absurd(json!(99_000_000_u64)).0.is_ok());
    assert!(absurd(json!(null)).0.is_ok());
    for count in [json!(-1), json!(1e300), json!("200000000"), json!(true), json!(1e9), json!(0.5), json!([1])] {
        assert_eq!(absurd(count.clone()).0, Err(codes::PROTOCOL.to_owned()), "{count}");
    }
}

/// This server sends no `Date`, with which its date could be compared.
#[test]
fn a_date_in_retry_after_is_obeyed() {
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3_600));
    let header: &'static str = format!("retry-after: {date}\r\n").leak();
    let mut tape = Vec::new();
    let recorder = Recorder::new(HttpTransport::default(), &mut tape);
    let busy = model("openai", &server(vec![Act::Say(429, header, String::new())]));
    let fault = asked_within(&busy, &recorder, 10_000, Duration::from_secs(9)).0.unwrap_err();
    let wait = fault.details["retryAfterMs"].as_u64().unwrap();
    assert!((3_590_000..=3_600_000).contains(&wait), "{wait}");
    // A cassette is replayed later, with the same pause.
    let cassette = Cassette::parse(std::str::from_utf8(&tape).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let again = asked_within(&busy, &cassette, 10_000, Duration::from_secs(9)).0.unwrap_err();
    assert_eq!(again.details["retryAfterMs"], wait);
}
