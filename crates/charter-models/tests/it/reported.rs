//! What servers report of the tokens of one answer is what is counted.

use charter_models::codes;
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, STREAM, anthropic, gemini, server};
use crate::wire::{GOOD, asked, model};

/// A stream of Anthropic with these counts at its beginning and at its end.
fn anthropic_with(begin: &Json, end: &Json) -> Act {
    let Act::Say(status, headers, body) = anthropic(GOOD) else { panic!() };
    let usage = r#"{"input_tokens":20,"output_tokens":1}"#;
    assert!(body.contains(usage), "{body}");
    Act::Say(
        status,
        headers,
        body.replace(usage, &begin.to_string()).replace(r#"{"output_tokens":9}"#, &end.to_string()),
    )
}

#[test]
fn the_counts_at_the_end_of_a_stream_are_totals() {
    for (begin, end, expected) in [
        (
            json!({"input_tokens": 0, "output_tokens": 1}),
            json!({"input_tokens": 10_282, "cache_read_input_tokens": 400, "output_tokens": 510}),
            (10_682, 510, 400, 0),
        ),
        (
            json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}),
            json!({"input_tokens": 1_000, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 400, "output_tokens": 7}),
            (1_450, 7, 50, 400),
        ),
        (
            json!({"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}),
            json!({"output_tokens": 9}),
            (15, 9, 5, 0),
        ),
    ] {
        let (answer, exchange) = asked(&model("anthropic", &server(vec![anthropic_with(&begin, &end)])));
        assert_eq!(answer.unwrap()["sure"], 0.9);
        let usage = exchange.usage;
        assert_eq!((usage.input, usage.output, usage.cached, usage.cache_written), expected, "{end}");
        assert!(!usage.estimated, "{end}");
    }
}

/// `None`: the count is an estimate.
#[test]
fn a_count_that_is_missing_does_not_hide_the_other() {
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 1_000}});
    let openai =
        |usage: Json| json!({"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}], "usage": usage});
    let anthropic =
        |usage: Json| json!({"content": [{"type": "text", "text": GOOD}], "stop_reason": "end_turn", "usage": usage});
    let gemini = |usage: Json| json!({"candidates": [{"content": {"parts": [{"text": GOOD}]}, "finishReason": "STOP"}], "usageMetadata": usage});
    for (provider, body, (input, output)) in [
        ("gemini", blocked, (Some(1_000), Some(0))),
        ("openai", openai(json!({"completion_tokens": 100})), (None, Some(100))),
        ("openai", openai(json!({"prompt_tokens": null, "completion_tokens": 100})), (None, Some(100))),
        ("openai", openai(json!({"prompt_tokens": 1_000})), (Some(1_000), None)),
        ("anthropic", anthropic(json!({"output_tokens": 100})), (None, Some(100))),
        ("anthropic", anthropic(json!({"input_tokens": 900, "cache_read_input_tokens": 100})), (Some(1_000), None)),
        ("gemini", gemini(json!({"candidatesTokenCount": 90, "thoughtsTokenCount": 10})), (None, Some(100))),
        ("gemini", gemini(json!({"promptTokenCount": 1_000})), (Some(1_000), None)),
    ] {
        for (headers, text) in [(JSON, body.to_string()), (STREAM, format!("data: {body}\n\n"))] {
            if headers == STREAM && provider != "gemini" {
                continue;
            }
            let (_, exchange) = asked(&model(provider, &server(vec![Act::Say(200, headers, text)])));
            let usage = exchange.usage;
            assert_eq!(usage.estimated, input.is_none() || output.is_none(), "{body}: {usage:?}");
            assert_eq!(usage.input, input.unwrap_or(usage.input), "{body}");
            assert_eq!(usage.output, output.unwrap_or(usage.output), "{body}");
            assert!(usage.output > 0 || output == Some(0), "{body}: {usage:?}");
        }
    }
}

/// Mistral's models that think send a list of parts.
#[test]
fn an_answer_in_parts_and_one_after_a_byte_order_mark() {
    let parts = |text: &str| json!([{"type": "thinking", "thinking": [{"type": "text", "text": "{}"}]}, {"type": "text", "text": text}]);
    let whole = json!({"choices": [{"message": {"content": parts(GOOD)}, "finish_reason": "stop"}]});
    let piece = |text: &str| json!({"choices": [{"delta": {"content": parts(text)}}]});
    let stream = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", piece(&GOOD[..9]), piece(&GOOD[9..]));
    let Act::Say(status, headers, body) = gemini(GOOD) else { panic!() };
    for (provider, act) in [
        ("openai", Act::Say(200, JSON, whole.to_string())),
        ("openai", Act::Say(200, STREAM, stream)),
        ("gemini", Act::Say(status, headers, format!("\u{feff}{body}"))),
    ] {
        let (answer, exchange) = asked(&model(provider, &server(vec![act])));
        assert_eq!((answer.unwrap()["text"].as_str(), exchange.requests), (Some("ja, gewiß"), 1), "{provider}");
    }
}

#[test]
fn a_broken_call_is_repaired_and_a_full_context_is_not() {
    let broken = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "content": {}}]});
    let (answer, exchange) =
        asked(&model("gemini", &server(vec![Act::Say(200, JSON, broken.to_string()), gemini(GOOD)])));
    assert_eq!((answer.unwrap()["sure"].clone(), exchange.requests), (json!(0.9), 2));
    let content = json!([{"type": "text", "text": "{\"su"}]);
    let full = json!({"content": content, "stop_reason": "model_context_window_exceeded"}).to_string();
    let (answer, exchange) = asked(&model("anthropic", &server(vec![Act::Say(200, JSON, full)])));
    let fault = answer.unwrap_err();
    assert_eq!((fault.code.as_str(), exchange.requests), (codes::CUT_OFF, 1));
    assert!(fault.message.contains("context window"), "{fault:?}");
}
