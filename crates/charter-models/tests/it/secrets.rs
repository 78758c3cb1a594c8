//! The key of a model is nowhere afterwards, whatever the server does with it, and the result is
//! the same with a recorder and without one.

use std::time::Duration;

use charter_actors::{Fault, Secret};
use charter_models::ask::{Budget, Question, ask};
use charter_models::cassette::{Cassette, Recorder};
use charter_models::{Exchange, HttpTransport, Model, PromptTemplate, Settings, Transport};
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, STREAM, anthropic, gemini, openai, server};
use crate::wire::{KEY, asked_within, model};

/// Whether a piece of the key is in a text.
fn shows(text: &str) -> bool {
    KEY.as_bytes().windows(10).any(|piece| text.contains(std::str::from_utf8(piece).unwrap()))
}

/// A stream whose chunks each have one piece of a text that contains the key, without an end.
fn pieces(chunk: impl Fn(&str) -> Json, end: &str) -> Act {
    let text: Vec<char> = format!("no: {KEY} is wrong").chars().collect();
    let chunks = text.chunks(4).map(|piece| format!("data: {}\n\n", chunk(&piece.iter().collect::<String>())));
    Act::Say(200, STREAM, chunks.collect::<String>() + end)
}

/// A stream of Anthropic whose first block begins with this much of the answer.
fn begun_with(answer: &str, length: usize) -> Act {
    let (begin, rest) = answer.split_at(length);
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": begin}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": rest}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
    ];
    Act::Say(200, STREAM, events.iter().map(|event| format!("data: {event}\n\n")).collect())
}

/// An error that ends within an escaped key.
fn cut_in(key: &str) -> Act {
    Act::Say(400, "", format!("no {}", &key[..key.len() - 4]))
}

/// Lines of a stream may end with CR alone.
#[test]
fn a_stream_with_carriage_returns_is_understood_and_has_no_key() {
    for provider in ["openai", "anthropic", "gemini"] {
        let answer = json!({"sure": 0.5, "text": format!("x{KEY}")}).to_string();
        let act = match provider {
            "openai" => openai(&answer),
            "anthropic" => anthropic(&answer),
            _ => gemini(&answer),
        };
        let Act::Say(status, headers, body) = act else { panic!() };
        for end in ["\r", "\r\n"] {
            let server = server(vec![Act::Say(status, headers, body.replace('\n', end))]);
            let mut tape = Vec::new();
            let recorder = Recorder::new(HttpTransport::default(), &mut tape);
            let (answer, exchange) =
                asked_within(&model(provider, &server), &recorder, 100_000, Duration::from_secs(9));
            assert_eq!(answer.unwrap()["text"], "x[secret]", "{provider} {end:?}");
            assert!(!exchange.usage.estimated, "{provider} {end:?}");
            let kept = exchange.json().to_string() + &String::from_utf8(tape).unwrap();
            assert!(!shows(&kept), "{kept}");
        }
    }
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
        ("anthropic", begun_with(&answer, answer.len() - 20)),
        ("anthropic", begun_with(&answer, answer.len() - 12)),
        ("openai", cut_in(&KEY.bytes().map(|b| format!("%{b:02x}")).collect::<String>())),
        ("openai", cut_in(&KEY.bytes().map(|b| format!("\\u{b:04x}")).collect::<String>())),
        (
            "openai",
            Act::Say(200, STREAM, format!("data: {{\"a\": \"{cut}\"}}\n\ndata: {{\"a\": \"{}\"\n\n", &KEY[12..])),
        ),
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

/// Asks with a text of the input.
fn asked_about(text: &str, model: &Model, transport: &dyn Transport) -> (Result<Json, Fault>, Exchange) {
    let template = PromptTemplate::parse("You judge.\n---\n{{offer}}").unwrap();
    let prompt = template.render(&json!({"offer": text}), &json!(null)).unwrap();
    let settings = Settings::default();
    let budget = Budget { tokens: 100_000, time: Duration::from_secs(9) };
    ask(
        &Question { model, prompt: &prompt, schema: None, settings: &settings, budget, tools: &[], rounds: 0 },
        transport,
        &(),
    )
}

#[test]
fn a_key_in_the_text_of_a_request_is_sent_and_not_kept() {
    const OTHER: &str = "key-of-another-model-42";
    let text = format!("my notes: Bearer {KEY}, and \"{OTHER}\"; what now?");
    for provider in ["openai", "anthropic", "gemini"] {
        let answer = match provider {
            "openai" => openai("{}"),
            "anthropic" => anthropic("{}"),
            _ => gemini("{}"),
        };
        let server = server(vec![answer]);
        let mut model = model(provider, &server);
        model.others.push(Secret::new(OTHER));
        let mut tape = Vec::new();
        let (answer, exchange) = asked_about(&text, &model, &Recorder::new(HttpTransport::default(), &mut tape));
        let tape = String::from_utf8(tape).unwrap();
        assert_eq!(answer.unwrap(), json!({}));
        let sent = server.asked.lock().unwrap()[0].body.to_string();
        assert!(sent.contains(KEY) && sent.contains(OTHER), "what is sent is what was asked: {sent}");
        for kept in [&tape, &exchange.json().to_string()] {
            assert!(!shows(kept) && !kept.contains(OTHER) && kept.contains("[secret]"), "{kept}");
            assert!(kept.contains("my notes") && kept.contains("what now?"), "{kept}");
        }
        // The cassette answers a host with the same keys, with others, and without any.
        let mut replaying = model.clone();
        for keys in [vec![KEY, OTHER], vec!["something-else-entirely"], vec![]] {
            replaying.key = None;
            replaying.others = keys.iter().map(|key| Secret::new(*key)).collect();
            let cassette = Cassette::parse(&tape).unwrap();
            let (answer, replayed) = asked_about(&text, &replaying, &cassette);
            assert_eq!(answer.unwrap(), json!({}), "{keys:?}");
            if keys.len() == 2 {
                assert_eq!(replayed.messages, exchange.messages);
            }
            for other in ["my notes: Bearer a b, and \"c\"; what now?", "my notes: Bearer , and \"c\"; what now?"] {
                asked_about(other, &replaying, &cassette).0.unwrap_err();
            }
        }
    }
}
