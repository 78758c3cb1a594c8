//! Calls of tools in streams, in pieces as the providers send them.

use std::sync::Mutex;
use std::time::Duration;

use charter_actors::Fault;
use charter_models::ask::{Budget, Question, ask};
use charter_models::{Exchange, HttpTransport, Model, Place, Settings, Tool, ToolCall, ToolResult, Watcher};
use serde_json::{Value as Json, json};

use crate::servers::{Act, JSON, STREAM, anthropic, gemini, openai, server};
use crate::wire::{GOOD, model, prompt, schema};

/// Refuses what is over 100, and keeps the calls.
#[derive(Default)]
struct Judge(Mutex<Vec<String>>);

impl Watcher for Judge {
    fn act(&self, place: Place, tool: &Tool, call: ToolCall, data: Json) -> Result<ToolResult, Fault> {
        self.0.lock().unwrap().push(format!("{}.{} {} {data}", place.round, place.index, tool.event));
        let failed = data["sum"].as_u64() > Some(100);
        let refused = json!({"refused": "guard", "message": "the limit is 100"});
        let content = if failed { refused } else { json!({"accepted": true}) };
        Ok(ToolResult { call, content, failed, repeated: false })
    }
}

/// A stream of calls of `PAY`, each in pieces.
fn calls(provider: &str, sums: &[u32]) -> Act {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let mut chunks = Vec::new();
    match provider {
        "openai" => {
            let delta =
                |delta: Json, reason: Json| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
            for (index, sum) in sums.iter().enumerate() {
                let call = |rest: Json| {
                    let mut call = json!({"index": index});
                    call.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
                    delta(json!({"tool_calls": [call]}), Json::Null)
                };
                let id = format!("t{index}");
                chunks.push(call(json!({"id": id, "type": "function", "function": {"name": "PAY", "arguments": ""}})));
                chunks.push(call(json!({"function": {"arguments": "{\"su"}})));
                chunks.push(call(json!({"function": {"arguments": format!("m\":{sum}}}")}})));
            }
            chunks.push(delta(json!({}), json!("tool_calls")));
        }
        "anthropic" => {
            chunks.push(json!({"type": "message_start", "message": {"model": "m", "usage": usage}}));
            let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
            chunks.push(json!({"type": "content_block_start", "index": 0, "content_block": thinking}));
            for delta in [
                json!({"type": "thinking_delta", "thinking": "hm"}),
                json!({"type": "signature_delta", "signature": "c2ln"}),
            ] {
                chunks.push(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
            }
            chunks.push(json!({"type": "content_block_stop", "index": 0}));
            for (n, sum) in sums.iter().enumerate() {
                let index = n + 1;
                let block = json!({"type": "tool_use", "id": format!("t{n}"), "name": "PAY", "input": {}});
                chunks.push(json!({"type": "content_block_start", "index": index, "content_block": block}));
                for piece in ["{\"su".to_owned(), format!("m\":{sum}}}")] {
                    let delta = json!({"type": "input_json_delta", "partial_json": piece});
                    chunks.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
                }
                chunks.push(json!({"type": "content_block_stop", "index": index}));
            }
            let delta = json!({"stop_reason": "tool_use"});
            chunks.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}));
            chunks.push(json!({"type": "message_stop"}));
        }
        _ => {
            for sum in sums {
                let part = json!({"functionCall": {"name": "PAY", "args": {"sum": sum}}, "thoughtSignature": "c2ln"});
                chunks.push(json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]}));
            }
            chunks.push(json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}));
        }
    }
    let event = |data: &Json| match data["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    };
    let end = if provider == "openai" { "data: [DONE]\n\n" } else { "" };
    Act::Say(200, STREAM, chunks.iter().map(event).chain([end.to_owned()]).collect())
}

/// Asks a model that may send `PAY`, with data of this schema.
fn ask_with_pay(model: &Model, pay: Json, judge: &Judge) -> (Result<Json, Fault>, Exchange) {
    let tool =
        Tool { name: "PAY".into(), event: "PAY".into(), description: "Pays.".into(), schema: pay, wrapped: false };
    let question = Question {
        model,
        prompt: &prompt(),
        schema: Some(&schema()),
        settings: &Settings::default(),
        budget: Budget { tokens: 100_000, time: Duration::from_secs(20) },
        tools: &[tool],
        rounds: 5,
    };
    ask(&question, &HttpTransport::default(), judge)
}

#[test]
fn a_refused_call_is_corrected_in_the_next_round() {
    for (provider, answer) in [("openai", openai(GOOD)), ("anthropic", anthropic(GOOD)), ("gemini", gemini(GOOD))] {
        let server = server(vec![calls(provider, &[500, 7]), calls(provider, &[50]), answer]);
        let (model, judge) = (model(provider, &server), Judge::default());
        let pay = json!({"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}});
        let (given, exchange) = ask_with_pay(&model, pay, &judge);
        assert_eq!(given.unwrap()["sure"], 0.9, "{provider}");
        assert_eq!(exchange.requests, 3, "{provider}");
        let made = [r#"0.0 PAY {"sum":500}"#, r#"0.1 PAY {"sum":7}"#, r#"1.0 PAY {"sum":50}"#];
        assert_eq!(*judge.0.lock().unwrap(), made, "{provider}");
        // The second request has both calls with their ids or names, and both results, in order.
        let asked = server.asked.lock().unwrap();
        let body = &asked[1].body;
        let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (ids, results): (Json, Vec<String>) = match provider {
            "openai" => {
                let messages = body["messages"].as_array().unwrap();
                assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], r#"{"sum":500}"#);
                let ids = messages[3..].iter().map(|message| message["tool_call_id"].clone()).collect();
                (ids, messages[3..].iter().map(|message| text(&message["content"])).collect())
            }
            "anthropic" => {
                let messages = body["messages"].as_array().unwrap();
                let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
                assert_eq!(messages[1]["content"][0], thinking);
                assert_eq!(messages[1]["content"][1]["input"], json!({"sum": 500}));
                let results = messages[2]["content"].as_array().unwrap();
                assert_eq!(results[0]["is_error"], true);
                let ids = results.iter().map(|result| result["tool_use_id"].clone()).collect();
                (ids, results.iter().map(|result| text(&result["content"])).collect())
            }
            _ => {
                let contents = body["contents"].as_array().unwrap();
                assert_eq!(contents[1]["parts"][0]["thoughtSignature"], "c2ln");
                let results = contents[2]["parts"].as_array().unwrap();
                let of = |result: &Json, key: &str| result["functionResponse"][key].clone();
                assert_eq!(of(&results[0], "name"), "PAY");
                (json!(["t0", "t1"]), results.iter().map(|result| text(&of(result, "response"))).collect())
            }
        };
        assert_eq!(ids, json!(["t0", "t1"]), "{provider}");
        assert!(results[0].contains("the limit is 100") && results[1].contains("accepted"), "{provider}: {results:?}");
        assert_eq!(results.len(), 2, "{provider}");
    }
}

/// A reply that is not streamed, with these calls.
fn whole(provider: &str, calls: &[(&str, Json)]) -> Act {
    let calls = calls.iter().enumerate();
    let body = match provider {
        "openai" => {
            let call = |(n, (name, data)): (usize, &(&str, Json))| {
                let function = json!({"name": name, "arguments": data.to_string()});
                json!({"id": format!("t{n}"), "type": "function", "function": function})
            };
            let message = json!({"content": null, "tool_calls": calls.map(call).collect::<Vec<_>>()});
            json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
        }
        "anthropic" => {
            let block = |(n, (name, data)): (usize, &(&str, Json))| json!({"type": "tool_use", "id": format!("t{n}"), "name": name, "input": data});
            json!({"content": calls.map(block).collect::<Vec<_>>(), "stop_reason": "tool_use"})
        }
        _ => {
            let part =
                |(_, (name, data)): (usize, &(&str, Json))| json!({"functionCall": {"name": name, "args": data}});
            let parts: Vec<Json> = calls.map(part).collect();
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
        }
    };
    Act::Say(200, JSON, body.to_string())
}

#[test]
fn an_answer_beside_calls_is_asked_for_again_after_them() {
    for (provider, answer) in [("openai", openai(GOOD)), ("anthropic", anthropic(GOOD)), ("gemini", gemini(GOOD))] {
        let early = json!({"sure": 1, "text": "paid"});
        let beside = whole(provider, &[("PAY", json!({"sum": 7})), ("answer", early)]);
        // A tool that there is not is no answer either, and costs no repair.
        let unknown = whole(provider, &[("NOPE", json!({"x": 1}))]);
        let server = server(vec![beside, unknown, answer]);
        let (model, judge) = (model(provider, &server), Judge::default());
        let pay = json!({"type": "object"});
        let (given, _) = ask_with_pay(&model, pay, &judge);
        assert_eq!(given.unwrap()["text"], "ja, gewiß", "{provider}");
        assert_eq!(*judge.0.lock().unwrap(), [r#"0.0 PAY {"sum":7}"#], "{provider}");
        let asked = server.asked.lock().unwrap();
        let (second, third) = (asked[1].body.to_string(), asked[2].body.to_string());
        assert!(second.contains("came before the results of the other calls"), "{second}");
        assert!(third.contains("there is no such tool"), "{third}");
    }
}
