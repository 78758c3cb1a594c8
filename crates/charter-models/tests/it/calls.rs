//! Calls of tools in the streams and bodies of the three wire formats.

use charter_models::wire::{End, Reply, reply};
use charter_models::{Provider, Response, Tool};
use serde_json::{Value as Json, json};

fn tools() -> Vec<Tool> {
    let schema = json!({"type": "object"});
    let tool = |name: &str| Tool {
        name: name.into(),
        event: name.into(),
        description: String::new(),
        schema: schema.clone(),
        wrapped: false,
    };
    vec![tool("look"), tool("note")]
}

fn stream(chunks: &[Json]) -> Response {
    let body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    Response { status: 200, content_type: "text/event-stream".into(), body, ..Response::default() }
}

fn whole(body: &Json) -> Response {
    Response { status: 200, content_type: "application/json".into(), body: body.to_string(), ..Response::default() }
}

fn read(provider: Provider, response: &Response) -> Reply {
    reply(provider, response, &tools()).unwrap()
}

/// The calls as `name(arguments)`.
fn calls(reply: &Reply) -> Vec<String> {
    reply.calls.iter().map(|call| format!("{} {}({})", call.id, call.name, call.arguments)).collect()
}

#[test]
fn openai_streams_calls_in_pieces() {
    let delta = |delta: Json| json!({"choices": [{"delta": delta}]});
    let part = |index: u64, id: &str, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        delta(json!({"tool_calls": [{"index": index, "id": id, "function": function}]}))
    };
    let chunks = [
        delta(json!({"content": "Let me see."})),
        part(0, "a", "look", ""),
        part(1, "b", "note", "{\"t\":"),
        part(0, "", "", "{\"w\": 1}"),
        part(1, "", "", "2}"),
        json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}),
    ];
    let found = read(Provider::OpenAi, &stream(&chunks));
    assert_eq!(calls(&found), ["a look({\"w\": 1})", "b note({\"t\":2})"]);
    assert_eq!(found.end, End::Complete);
    assert_eq!(found.message["content"], "Let me see.");
    assert_eq!(found.message["tool_calls"][1]["function"]["arguments"], "{\"t\":2}");
    // A stream that breaks off is not acted upon.
    assert_eq!(read(Provider::OpenAi, &stream(&chunks[..4])).end, End::Broken);
}

#[test]
fn anthropic_streams_thoughts_with_their_signature() {
    let start =
        |index: u64, block: Json| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Json| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let chunks = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        start(1, json!({"type": "tool_use", "id": "a", "name": "look", "input": {}})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "{\"w\":"})),
        delta(1, json!({"type": "input_json_delta", "partial_json": " 1}"})),
        start(2, json!({"type": "tool_use", "id": "b", "name": "note", "input": {}})),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
    ];
    let found = read(Provider::Anthropic, &stream(&chunks));
    assert_eq!(calls(&found), ["a look({\"w\":1})", "b note({})"]);
    assert_eq!(
        found.message,
        json!([
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "tool_use", "id": "a", "name": "look", "input": {"w": 1}},
            {"type": "tool_use", "id": "b", "name": "note", "input": {}},
        ])
    );
    assert_eq!(read(Provider::Anthropic, &stream(&chunks[..7])).end, End::Broken);
    // A call whose arguments were cut off is not made.
    let mut cut = chunks.to_vec();
    cut.remove(6);
    cut[7] = json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 5}});
    let found = read(Provider::Anthropic, &stream(&cut));
    assert_eq!((calls(&found).len(), found.end), (0, End::CutOff));
}

#[test]
fn gemini_keeps_the_signatures_of_thoughts() {
    let part = json!({"functionCall": {"name": "look", "args": {"w": 1}}, "thoughtSignature": "c2ln"});
    let chunk = |part: &Json| json!({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]});
    let found = read(Provider::Gemini, &stream(&[chunk(&part)]));
    assert_eq!(calls(&found), [" look({\"w\":1})"]);
    assert_eq!(found.message, json!([part]));
}

#[test]
fn calls_come_before_an_answer_beside_them() {
    let call = |name: &str, n: u64| json!({"id": "x", "type": "function", "function": {"name": name, "arguments": json!({"n": n}).to_string()}});
    let body = |calls: &[Json]| {
        whole(&json!({"choices": [{"message": {"content": null, "tool_calls": calls}, "finish_reason": "tool_calls"}]}))
    };
    for names in [["look", "answer"], ["look", "look"], ["other", "look"], ["other", "answer"]] {
        let found = read(Provider::OpenAi, &body(&[call(names[0], 1), call(names[1], 2)]));
        assert_eq!((found.text.as_str(), found.calls.len()), ("", 2), "{names:?}");
        assert_eq!(found.message["tool_calls"][0]["function"]["name"], names[0]);
    }
    let found = read(Provider::OpenAi, &body(&[call("answer", 2)]));
    assert_eq!((found.text.as_str(), found.calls.len()), ("{\"n\":2}", 0));
    // A tool that there is not is no answer, unless the model has no tools at all.
    let alone = body(&[call("other", 1)]);
    let found = read(Provider::OpenAi, &alone);
    assert_eq!((found.text.as_str(), found.calls.len()), ("", 1));
    let found = reply(Provider::OpenAi, &alone, &[]).unwrap();
    assert_eq!((found.text.as_str(), found.calls.len()), ("{\"n\":1}", 0));
}
