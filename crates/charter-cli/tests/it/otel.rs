//! Spans as a collector receives them, from a run with a mock model and a mock collector.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::support::Scratch;
use serde_json::{Value as Json, json};

const CHARTER: &str = "
charter: 1
id: asker
input: {type: object}
context: {answer: null}
actors:
  ask: {kind: model, prompt: prompt.md, output: {type: object, required: [n], properties: {n: {type: integer}}}, timeout: 20s}
states:
  asking:
    invoke:
      src: ask
      input: {q: '= input.q'}
      onDone: {target: over, actions: {assign: {answer: '= event.output'}}}
      onError: over
  over: {type: final}
";
const KEY: &str = "sk-very-secret-key";
const SAID: &str = "what nobody else shall read";

/// Starts a server that gives every request the same answer, and keeps the request bodies.
fn server(answer: Json) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let bodies = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some((name, value)) = line.split_once(": ")
                    && name.eq_ignore_ascii_case("content-length")
                {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            bodies.lock().unwrap().push(String::from_utf8(body).unwrap());
            let answer = answer.to_string();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                answer.len()
            )
            .unwrap();
        }
    });
    (url, kept)
}

fn attribute(span: &Json, key: &str) -> Json {
    let all = span["attributes"].as_array().unwrap();
    let found = all.iter().find(|a| a["key"] == key);
    let value = found.map(|a| a["value"].as_object().unwrap().values().next().unwrap());
    value.map_or(Json::Null, |value| match value.as_str().and_then(|v| v.parse::<u64>().ok()) {
        Some(number) => number.into(),
        None => value.clone(),
    })
}

#[test]
fn a_run_is_one_trace_without_secrets() {
    let said = json!({
        "model": "m-2026", "choices": [{"message": {"content": "{\"n\": 4}"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    });
    let (model, asked) = server(said);
    let (collector, bodies) = server(json!({}));
    let scratch = Scratch::new("otel");
    std::fs::write(scratch.0.join("charter.yaml"), CHARTER).unwrap();
    std::fs::write(scratch.0.join("prompt.md"), "Answer.\n---\n{{q}}").unwrap();
    let run = |id: &str, endpoint: &str| {
        Command::new(env!("CARGO_BIN_EXE_charter"))
            .current_dir(&scratch.0)
            .args(["run", "charter.yaml", "--run", id, "--model", "openai:m", "--model-url", &model])
            .args(["--input", &json!({"q": SAID}).to_string()])
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
            .env("CHARTER_MODEL_KEY", KEY)
            .output()
            .unwrap()
    };
    let output = run("r1", &collector);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(asked.lock().unwrap()[0].contains(SAID));

    let bodies = bodies.lock().unwrap();
    let all = bodies.join("\n");
    assert!(!all.contains(KEY) && !all.contains(SAID), "{all}");
    let mut spans: Vec<Json> = Vec::new();
    for body in bodies.iter() {
        let body: Json = serde_json::from_str(body).unwrap();
        for resource in body["resourceSpans"].as_array().unwrap() {
            assert_eq!(attribute(&resource["resource"], "service.name"), "charter");
            for scope in resource["scopeSpans"].as_array().unwrap() {
                spans.extend(scope["spans"].as_array().unwrap().iter().cloned());
            }
        }
    }
    let names: Vec<&str> = spans.iter().filter_map(|s| s["name"].as_str()).collect();
    let find = |name: &str| spans.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    let (chat, call, done) = (find("chat m"), find("call ask"), find("done.invoke.ask"));
    assert_eq!(chat["parentSpanId"], call["spanId"]);
    assert_eq!(chat["kind"], 3);
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("m")),
        ("gen_ai.response.model", json!("m-2026")),
        ("gen_ai.usage.input_tokens", json!(12)),
        ("gen_ai.usage.output_tokens", json!(3)),
    ] {
        assert_eq!(attribute(chat, key), value, "{key}");
    }
    assert_eq!(attribute(call, "charter.effect"), "r1/0/0");
    assert_eq!(attribute(done, "charter.to"), "over");
    assert_eq!(attribute(done, "charter.verdict"), "accepted");
    assert!(spans.iter().all(|s| s["traceId"] == chat["traceId"]), "{names:?}");

    // An unreachable collector changes nothing.
    let output = run("r2", "http://127.0.0.1:9");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
