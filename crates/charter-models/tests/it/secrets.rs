//! The key of a model is nowhere afterwards, whatever the server does with it, and the result is
//! the same with a recorder and without one.

use std::time::Duration;

use charter_models::cassette::Recorder;
use charter_models::{HttpTransport, Transport};
use serde_json::json;

use crate::servers::{Act, JSON, STREAM, anthropic, gemini, openai, server};
use crate::wire::{KEY, asked_within, model};

/// Whether a piece of the key is in a text.
fn shows(text: &str) -> bool {
    KEY.as_bytes().windows(10).any(|piece| text.contains(std::str::from_utf8(piece).unwrap()))
}

/// A stream whose chunks each have one piece of a text that contains the key, without an end.
fn pieces(chunk: impl Fn(&str) -> serde_json::Value, end: &str) -> Act {
    let text: Vec<char> = format!("no: {KEY} is wrong").chars().collect();
    let chunks = text.chunks(4).map(|piece| format!("data: {}\n\n", chunk(&piece.iter().collect::<String>())));
    Act::Say(200, STREAM, chunks.collect::<String>() + end)
}

#[test]
fn a_key_is_nowhere_whatever_a_server_does_with_it() {
    let answer = json!({"sure": 0.5, "text": format!("x{KEY}")}).to_string();
    let cut = &KEY[..12];
    let acts = [
        ("openai", openai(&answer)),
        ("anthropic", anthropic(&answer)),
        ("gemini", gemini(&answer)),
        ("openai", pieces(|t| json!({"choices": [{"delta": {"refusal": t}}]}), "data: [DONE]\n\n")),
        ("openai", pieces(|t| json!({"choices": [{"delta": {"reasoning_content": t}}]}), "data: [DONE]\n\n")),
        ("anthropic", pieces(|t| json!({"type": "content_block_delta", "delta": {"text": t}}), "")),
        ("gemini", pieces(|t| json!({"candidates": [{"content": {"parts": [{"text": t}]}}]}), "")),
        ("openai", Act::Say(401, JSON, json!({"error": {"message": format!("{}{KEY}", "x".repeat(490))}}).to_string())),
        ("openai", Act::Say(401, JSON, json!({"error": {"message": format!("wrong key {cut}")}}).to_string())),
        ("gemini", Act::Say(400, "", format!("{}{KEY}", "x".repeat(190)))),
        ("anthropic", Act::Say(404, "", format!("wrong key {cut}"))),
        ("openai", Act::Say(200, JSON, format!("{}{KEY}", "x".repeat(70)))),
        ("openai", Act::Say(200, JSON, format!("{{\"{0}{KEY}\": 1, \"{0}{KEY}\": 2}}", "x".repeat(45)))),
        (
            "openai",
            Act::Say(
                200,
                "content-type: text/event-stream\r\n",
                format!("data: {{\"a\": \"{KEY}\"}}\n\ndata: {{\"b\": \"{cut}"),
            ),
        ),
    ];
    for (number, (provider, act)) in acts.into_iter().enumerate() {
        let ask = |transport: &dyn Transport| {
            let mut model = model(provider, &server(vec![act.clone()]));
            model.max_attempts = 1;
            let (answer, mut exchange) = asked_within(&model, transport, 100_000, Duration::from_secs(9));
            exchange.base_url.clear();
            (format!("{answer:?}"), exchange.json().to_string())
        };
        let plain = ask(&HttpTransport::default());
        let mut tape = Vec::new();
        let recorded = ask(&Recorder::new(HttpTransport::default(), &mut tape));
        let tape = String::from_utf8(tape).unwrap();
        for text in [&plain.0, &plain.1, &tape] {
            assert!(!shows(text), "case {number}: {text}");
        }
        assert!(plain.1.contains("[secret]") && tape.contains("[secret]"), "case {number}: {}", plain.1);
        assert_eq!(plain, recorded, "case {number}");
    }
}
