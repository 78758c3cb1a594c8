//! Every provider, whole and streamed, with everything that its server may do: which answer or
//! fault there is, and after how many requests. The wire formats are those of the providers'
//! references.

use std::time::Duration;

use charter_models::{HttpTransport, codes};
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, STREAM, server};
use crate::wire::{GOOD, KEY, asked_within, model};

const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// How a model gives its answer.
enum Form {
    Text(String),
    Call(String),
    /// Thoughts in the form of the provider, then a text.
    Thoughts(String),
}

fn whole(provider: &str, form: &Form) -> String {
    let body = match (provider, form) {
        ("openai", Form::Text(text)) => openai_message(&json!({"content": text})),
        ("openai", Form::Thoughts(text)) => openai_message(&json!({"reasoning_content": "hm {}", "content": text})),
        ("openai", Form::Call(arguments)) => {
            let function = json!({"name": "answer", "arguments": arguments});
            openai_message(
                &json!({"content": null, "tool_calls": [{"id": "t", "type": "function", "function": function}]}),
            )
        }
        ("anthropic", Form::Text(text)) => anthropic_message(&[json!({"type": "text", "text": text})]),
        ("anthropic", Form::Thoughts(text)) => anthropic_message(&[
            json!({"type": "thinking", "thinking": "hm {}", "signature": "c2ln"}),
            json!({"type": "text", "text": text}),
        ]),
        ("anthropic", Form::Call(arguments)) => {
            let input: Json = serde_json::from_str(arguments).unwrap();
            anthropic_message(&[json!({"type": "tool_use", "id": "t", "name": "answer", "input": input})])
        }
        (_, form) => gemini_message(&gemini_parts(form)),
    };
    body.to_string()
}

fn openai_message(message: &Json) -> Json {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3});
    json!({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
}

fn anthropic_message(content: &[Json]) -> Json {
    let usage = json!({"input_tokens": 9, "output_tokens": 3});
    json!({"type": "message", "model": "m", "content": content, "stop_reason": "end_turn", "usage": usage})
}

fn gemini_parts(form: &Form) -> Vec<Json> {
    match form {
        Form::Text(text) => vec![json!({"text": text})],
        Form::Thoughts(text) => vec![json!({"text": "hm {}", "thought": true}), json!({"text": text})],
        Form::Call(arguments) => {
            let args: Json = serde_json::from_str(arguments).unwrap();
            vec![json!({"functionCall": {"name": "answer", "args": args}})]
        }
    }
}

fn gemini_message(parts: &[Json]) -> Json {
    let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 3});
    json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage})
}

fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars.chunks((chars.len() / 500).max(6)).map(|piece| piece.iter().collect()).collect()
}

fn streamed(provider: &str, form: &Form) -> String {
    let event = |data: &Json| match data["type"].as_str() {
        Some(name) if provider == "anthropic" => format!("event: {name}\ndata: {data}\n\n"),
        _ => format!("data: {data}\n\n"),
    };
    let chunks: Vec<Json> = match provider {
        "openai" => {
            let delta = |delta: Json| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
            let mut chunks = match form {
                Form::Text(text) => pieces(text).iter().map(|piece| delta(json!({"content": piece}))).collect(),
                Form::Thoughts(text) => {
                    let mut chunks = vec![delta(json!({"reasoning_content": "hm {}"}))];
                    chunks.extend(pieces(text).iter().map(|piece| delta(json!({"content": piece}))));
                    chunks
                }
                Form::Call(arguments) => {
                    let call = |function: Json| delta(json!({"tool_calls": [{"index": 0, "function": function}]}));
                    let mut chunks = vec![call(json!({"name": "answer", "arguments": ""}))];
                    chunks.extend(pieces(arguments).iter().map(|piece| call(json!({"arguments": piece}))));
                    chunks
                }
            };
            chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
            chunks.push(json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}));
            chunks
        }
        "anthropic" => {
            let usage = json!({"input_tokens": 9, "output_tokens": 1});
            let mut chunks = vec![json!({"type": "message_start", "message": {"model": "m", "usage": usage}})];
            let mut block = |begun: Json, deltas: Vec<Json>| {
                let index = chunks.iter().filter(|chunk| chunk["type"] == "content_block_start").count();
                chunks.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
                chunks.extend(
                    deltas
                        .into_iter()
                        .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
                );
                chunks.push(json!({"type": "content_block_stop", "index": index}));
            };
            let text_deltas =
                |text: &str| pieces(text).iter().map(|p| json!({"type": "text_delta", "text": p})).collect();
            match form {
                Form::Text(text) => block(json!({"type": "text", "text": ""}), text_deltas(text)),
                Form::Thoughts(text) => {
                    let thoughts = [
                        json!({"type": "thinking_delta", "thinking": "hm {}"}),
                        json!({"type": "signature_delta", "signature": "c2ln"}),
                    ];
                    block(json!({"type": "thinking", "thinking": ""}), thoughts.to_vec());
                    block(json!({"type": "text", "text": ""}), text_deltas(text));
                }
                Form::Call(arguments) => {
                    let deltas = pieces(arguments)
                        .iter()
                        .map(|p| json!({"type": "input_json_delta", "partial_json": p}))
                        .collect();
                    block(json!({"type": "tool_use", "id": "t", "name": "answer", "input": {}}), deltas);
                }
            }
            chunks.push(
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}),
            );
            chunks.push(json!({"type": "message_stop"}));
            chunks
        }
        _ => {
            let (last, before) = {
                let mut parts = gemini_parts(form);
                (parts.pop().unwrap(), parts)
            };
            let part = |part: &Json| json!({"candidates": [{"content": {"parts": [part]}}]});
            let split = match last["text"].as_str() {
                Some(text) => pieces(text).iter().map(|piece| json!({"text": piece})).collect(),
                None => vec![last.clone()],
            };
            let mut chunks: Vec<Json> = before.iter().chain(&split).map(part).collect();
            chunks.push(json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3}}));
            chunks
        }
    };
    let end = if provider == "openai" { "data: [DONE]\n\n" } else { "" };
    chunks.iter().map(event).chain([end.to_owned()]).collect()
}

/// What a cell of the matrix expects: an answer, or the code of a fault; and the requests.
type Expected = (Result<(), &'static str>, u32);

/// The cases: the actions of the server before a good answer, and what is expected.
fn cases(provider: &str, stream: bool) -> Vec<(&'static str, Act, Expected)> {
    let headers = if stream { STREAM } else { JSON };
    let body = |form: &Form| if stream { streamed(provider, form) } else { whole(provider, form) };
    let say = |form: &Form| Act::Say(200, headers, body(form));
    let text = |text: String| say(&Form::Text(text));
    let good = body(&Form::Text(GOOD.into()));
    let half = good[..good.len() / 2].to_owned();
    let error = |message: &str| json!({"error": {"message": message, "type": "api_error"}}).to_string();
    let once: Expected = (Ok(()), 1);
    let again: Expected = (Ok(()), 2);
    vec![
        ("good", text(GOOD.into()), once),
        ("prose", text(format!("Here is what I found:\n{GOOD}\nThat is all.")), once),
        ("fences", text(format!("```json\n{GOOD}\n```")), once),
        ("thinking", say(&Form::Thoughts(GOOD.into())), once),
        ("thinking in the text", text(format!("<think>perhaps {{}}</think>{GOOD}")), once),
        ("tool call", say(&Form::Call(GOOD.into())), once),
        ("wrong type", text(r#"{"sure": "very", "text": 1}"#.into()), again),
        ("cut", if stream { Act::Break(half.clone()) } else { Act::Say(200, JSON, half.clone()) }, again),
        ("reset", Act::Reset(half.clone()), again),
        ("stalled", Act::Stall(half, Duration::from_secs(20)), again),
        ("429", Act::Say(429, "retry-after: 0\r\ncontent-type: application/json\r\n", error("slow down")), again),
        ("500", Act::Say(500, JSON, error("oh")), again),
        ("401", Act::Say(401, JSON, error(&format!("the key {KEY} is invalid"))), (Err(codes::AUTHENTICATION), 1)),
        ("redirect", Act::Say(302, "location: http://127.0.0.1:1/\r\n", String::new()), (Err(codes::REQUEST), 1)),
        (
            "gzip",
            Act::Bytes("content-type: application/json\r\ncontent-encoding: gzip\r\n", vec![0x1f, 0x8b, 8, 0]),
            again,
        ),
        ("huge", text(json!({"sure": 0.9, "text": "x".repeat(1 << 20)}).to_string()), (Err(codes::TOO_LARGE), 1)),
    ]
}

#[test]
fn every_cell() {
    let cells = PROVIDERS.iter().flat_map(|provider| [(*provider, false), (*provider, true)]);
    // Some wait for a server that stalls, so they go on at once.
    let threads: Vec<_> = cells
        .flat_map(|(provider, stream)| {
            // A long answer takes seconds in a debug build.
            let all = charter_test_support::full() || (provider == "openai" && !stream);
            let cases = cases(provider, stream).into_iter().filter(move |(name, ..)| all || *name != "huge");
            cases.map(move |(name, act, expected)| {
                std::thread::spawn(move || {
                    let good = if stream {
                        streamed(provider, &Form::Text(GOOD.into()))
                    } else {
                        whole(provider, &Form::Text(GOOD.into()))
                    };
                    let headers = if stream { STREAM } else { JSON };
                    let server = server(vec![act, Act::Say(200, headers, good)]);
                    let transport = HttpTransport::default().idle(Duration::from_millis(500));
                    // It checks that the key is not in the answer, the fault and the exchange.
                    let time = Duration::from_secs(60);
                    let (answer, exchange) = asked_within(&model(provider, &server), &transport, 2_000_000, time);
                    let found = (answer.as_ref().map(drop).map_err(|fault| fault.code.as_str()), exchange.requests);
                    let cell = format!("{provider}, {}, {name}", if stream { "streamed" } else { "whole" });
                    assert_eq!(found, expected, "{cell}: {answer:?}");
                    if let Ok(answer) = answer {
                        assert_eq!(answer, serde_json::from_str::<Json>(GOOD).unwrap(), "{cell}");
                    }
                    assert_eq!(server.asked.lock().unwrap().len(), usize::try_from(expected.1).unwrap(), "{cell}");
                })
            })
        })
        .collect();
    assert_eq!(threads.len(), if charter_test_support::full() { 3 * 2 * 16 } else { 3 * 2 * 15 + 1 });
    let failed: Vec<_> = threads.into_iter().filter_map(|thread| thread.join().err()).collect();
    assert!(failed.is_empty(), "{} cells failed", failed.len());
}
