//! `tools` of an actor of kind `model`: its model sends events, and the charter judges each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::providers::{Server, charter};
use crate::support::Scratch;
use crate::usage::sql;
use serde_json::{Value as Json, json};

/// A clerk that may look things up and note them; only a manager may pay.
pub(crate) fn clerk(name: &str, kind: &str, server: &Server, rounds: u32) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.file(
        "c.yaml",
        format!(
            "\
charter: 1
id: clerk
context: {{found: '', said: ''}}
roles: {{manager: {{}}}}
actors:
  clerk:
    kind: model
    prompt: p.md
    model: near:a
    tools: {{look.up: Looks a word up., NOTE: null, PAY: null}}
    rounds: {rounds}
    output: {{type: object, required: [said], properties: {{said: {{type: string}}}}}}
    timeout: 30s
    retry: {{attempts: 1}}
  book: {{kind: exec, command: [cat], output: {{}}}}
events:
  look.up:
    data: {{type: object, required: [word], properties: {{word: {{type: string}}}}, additionalProperties: false}}
  NOTE: {{data: {{type: string}}, description: Notes a sentence.}}
  PAY: {{by: [manager]}}
initial: both
states:
  both:
    type: parallel
    onDone: over
    states:
      work:
        initial: thinking
        states:
          thinking:
            invoke:
              src: clerk
              onDone: {{target: thought, actions: [{{assign: {{said: '= event.output.said'}}}}]}}
              onError: {{target: failed, actions: [{{assign: {{said: '= event.error.code'}}}}]}}
          thought: {{type: final}}
          failed: {{type: final}}
      desk:
        initial: free
        states:
          free:
            on:
              look.up: looking
              NOTE: {{actions: [{{emit: {{type: noted, data: {{text: '= event'}}}}}}]}}
              PAY: free
          looking:
            invoke:
              id: reading
              src: book
              input: {{word: '= event.word', page: 7}}
              onDone: {{target: free, actions: [{{assign: {{found: '= event.output.word'}}}}]}}
              onError: free
  over: {{type: final}}
"
        ),
    );
    scratch.file("p.md", "You are a clerk.\n---\nWhat is it?");
    scratch.file("m.toml", format!("[providers.near]\nkind = \"{kind}\"\naddress = \"{}\"\n", server.url));
    scratch
}

/// A reply that calls tools, or with an answer, as a provider gives it.
pub(crate) fn reply(kind: &str, calls: &[(&str, Json)]) -> (u16, Json) {
    let usage = json!({"input_tokens": 9, "output_tokens": 1});
    let body = match kind {
        "anthropic" => {
            let blocks: Vec<Json> = calls
                .iter()
                .enumerate()
                .map(|(n, (name, input))| json!({"type": "tool_use", "id": format!("t{n}"), "name": name, "input": input}))
                .collect();
            json!({"model": "m", "content": blocks, "stop_reason": "tool_use", "usage": usage})
        }
        "gemini" => {
            let part = |(name, args): &(&str, Json)| match *name {
                "answer" => json!({"text": args.to_string()}),
                _ => json!({"functionCall": {"name": name, "args": args}, "thoughtSignature": "c2ln"}),
            };
            let parts: Vec<Json> = calls.iter().map(part).collect();
            json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
        }
        _ => {
            let message = match calls {
                [("answer", answer)] => json!({"role": "assistant", "content": answer.to_string()}),
                calls => {
                    let call = |(n, (name, args)): (usize, &(&str, Json))| json!({"id": format!("t{n}"), "type": "function", "function": {"name": name, "arguments": args.to_string()}});
                    let calls: Vec<Json> = calls.iter().enumerate().map(call).collect();
                    json!({"role": "assistant", "content": null, "tool_calls": calls})
                }
            };
            json!({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})
        }
    };
    (200, body)
}

/// The server of a model that looks a word up, notes it, tries to pay, and answers.
fn script(kind: &'static str) -> Server {
    let asked = Arc::new(AtomicUsize::new(0));
    Server::new(move |body| {
        let said = |text: &str| assert!(body.contains(text), "{text}: {body}");
        let all = |texts: &[&str]| texts.iter().for_each(|text| said(text));
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => {
                all(&["look_up", "Looks a word up.", "Notes a sentence.", "PAY", "additionalProperties"]);
                reply(kind, &[("look_up", json!({"word": "fox"}))])
            }
            1 => {
                // Where the run is after the answer of the program, and what that is.
                assert!(body.contains("desk.free") && !body.contains("desk.looking"), "{body}");
                match kind {
                    "gemini" => all(&[r#""page":7"#, r#""word":"fox""#, "c2ln"]),
                    _ => all(&[r#"\"page\":7"#, r#"\"word\":\"fox\""#]),
                }
                reply(
                    kind,
                    &[("NOTE", json!({"answer": "a fox"})), ("PAY", json!({})), ("look_up", json!({"word": 1}))],
                )
            }
            _ => {
                all(&["noted", "refused", "authority", "schema"]);
                reply(kind, &[("answer", json!({"said": "it is a fox"}))])
            }
        }
    })
}

pub(crate) fn log(scratch: &Scratch) -> Vec<Json> {
    let (_, text) = charter(scratch, "log r --json", None);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_charter_judges_every_call() {
    for kind in ["openai", "anthropic", "gemini"] {
        let server = script(kind);
        let scratch = clerk(&format!("calls-{kind}"), kind, &server, 5);
        let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml --record-models cassette", None);
        assert!(output.status.success(), "{kind}: {text}");
        assert_eq!(server.times(), 3, "{kind}");
        for line in ["the model sends look.up: accepted", "the model sends PAY: refused (authority)"] {
            assert!(text.contains(line), "{kind}: {text}");
        }
        let sent: Vec<String> = log(&scratch)
            .iter()
            .filter(|record| record["by"]["kind"] == "agent")
            .map(|record| {
                let code = record["refusal"]["code"].as_str().unwrap_or("accepted");
                format!("{} {code} by {}", record["event"]["type"].as_str().unwrap(), record["by"]["id"])
            })
            .collect();
        let clerk = |what: &str| format!("{what} by \"clerk\"");
        let expected = ["look.up accepted", "NOTE accepted", "PAY authority", "look.up schema"].map(clerk);
        assert_eq!(sent, expected, "{kind}");
        let (_, text) = charter(&scratch, "show r", None);
        assert!(text.contains("it is a fox"), "{kind}: {text}");
        let (output, text) = charter(&scratch, "verify charter.db", None);
        assert!(output.status.success(), "{kind}: {text}");
        // The cassette has the whole conversation.
        let again = "run c.yaml --run again --models m.toml --replay-models cassette";
        let (output, text) = charter(&scratch, again, None);
        assert!(output.status.success() && text.contains("look.up: accepted"), "{kind}: {text}");
        assert_eq!(server.times(), 3, "{kind}");
    }
}

#[test]
fn rounds_are_bounded() {
    for kind in ["openai", "anthropic", "gemini"] {
        let last = Arc::new(std::sync::Mutex::new(String::new()));
        let seen = last.clone();
        let server = Server::new(move |body| {
            *seen.lock().unwrap() = body.to_owned();
            reply(kind, &[("NOTE", json!({"answer": "again"}))])
        });
        let scratch = clerk(&format!("rounds-{kind}"), kind, &server, 2);
        charter(&scratch, "run c.yaml --run r --models m.toml", None);
        assert_eq!(server.times(), 3, "{kind}");
        let (_, text) = charter(&scratch, "show r", None);
        assert!(text.contains("rounds"), "{kind}: {text}");
        assert_eq!(log(&scratch).iter().filter(|record| record["event"]["type"] == "NOTE").count(), 2, "{kind}");
        // The last request demands an answer.
        let body: Json = serde_json::from_str(&last.lock().unwrap()).unwrap();
        match kind {
            "openai" => assert_eq!(body["tool_choice"], "none"),
            "anthropic" => assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "answer"})),
            _ => assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "NONE"),
        }
    }
}

#[test]
fn hostile_calls_are_answered_one_by_one() {
    let results = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = results.clone();
    let asked = AtomicUsize::new(0);
    let server = Server::new(move |body| {
        let body: Json = serde_json::from_str(body).unwrap();
        let given: Vec<String> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect();
        *seen.lock().unwrap() = given;
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => {
                let call = |(n, (name, arguments)): (usize, (&str, String))| json!({"id": format!("t{n}"), "type": "function", "function": {"name": name, "arguments": arguments}});
                let note = |text: String| ("NOTE", json!({"answer": text}).to_string());
                let mut calls = vec![
                    ("HACK", "{}".to_owned()),
                    ("NOTE", format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000))),
                    ("NOTE", r#"{"answer": "a", "answer": "b"}"#.to_owned()),
                    note("x".repeat(100 << 10)),
                    note("x".repeat(1_100_000)),
                ];
                calls.extend((0..20).map(|n| note(n.to_string())));
                let calls: Vec<Json> = calls.into_iter().enumerate().map(call).collect();
                let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
                (200, json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))
            }
            _ => reply("openai", &[("answer", json!({"said": "done"}))]),
        }
    });
    let scratch = clerk("calls-hostile", "openai", &server, 5);
    let text = std::fs::read_to_string(scratch.0.join("c.yaml")).unwrap();
    scratch.file("c.yaml", text.replace("prompt: p.md", "prompt: p.md\n    budget: {tokens: 9000000}"));
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    let results = results.lock().unwrap();
    assert_eq!(results.len(), 25, "{text}");
    for (n, expected) in [
        (0, "there is no such tool"),
        (1, "cannot be read"),
        (2, "duplicate key `answer`"),
        (3, "only the beginning follows"),
        (4, "is too large: the limit"),
        (5, r#""accepted":true"#),
        (15, r#""accepted":true"#),
        (16, "too many calls at once"),
    ] {
        assert!(results[n].contains(expected), "{n}: {}", results[n].chars().take(300).collect::<String>());
        assert!(results[n].len() < 70 << 10);
    }
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("done"), "{text}");
}

#[test]
fn a_tool_that_the_charter_does_not_declare_is_an_error() {
    let server = Server::new(|_| reply("openai", &[]));
    let scratch = clerk("undeclared", "openai", &server, 2);
    let text = std::fs::read_to_string(scratch.0.join("c.yaml")).unwrap();
    scratch.file("c.yaml", text.replace("NOTE: null", "NOET: null"));
    let (output, text) = charter(&scratch, "run c.yaml --run r --models m.toml", None);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("the charter does not declare the event `NOET`"), "{text}");
    assert_eq!(server.times(), 0);
}

#[test]
fn killed_between_two_calls_each_event_is_recorded_once() {
    // The first process gets no second reply before it is killed.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Server::new(move |body| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        if n == 1 {
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        match body.contains("noted") {
            true => reply("openai", &[("answer", json!({"said": "done"}))]),
            false => reply("openai", &[("look_up", json!({"word": "fox"})), ("NOTE", json!({"answer": "a fox"}))]),
        }
    });
    let scratch = clerk("calls-killed", "openai", &server, 5);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_charter"));
    command.current_dir(&scratch.0).args(["run", "c.yaml", "--run", "r", "--models", "m.toml"]);
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    while asked.load(Ordering::SeqCst) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // What the first reply took is counted, although the question never ended.
    let select = "SELECT outcome, requests, input > 0 FROM usage";
    let counted = sql(&scratch, select);
    assert!(counted.contains(r#"["open",1,1]"#), "{counted}");
    let (output, text) = charter(&scratch, "run --resume r --models m.toml", None);
    assert!(output.status.success(), "{text}");
    let count = |event: &str| log(&scratch).iter().filter(|record| record["event"]["type"] == event).count();
    assert_eq!((count("look.up"), count("NOTE")), (1, 1), "{text}");
    let (_, text) = charter(&scratch, "show r", None);
    assert!(text.contains("done"), "{text}");
}
