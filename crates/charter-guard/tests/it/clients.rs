//! What the clients send, and what they are answered: each file in `tests/clients/` is a request
//! with everything that follows from it. `UPDATE_CLIENTS=1` rewrites what follows.

use std::path::PathBuf;

use charter_guard::client::{Answer, Client, Decision, Manner, Moment, answer, denial, failure, read};
use serde_json::{Map, Value as Json, json};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

fn said(answer: &Answer) -> Json {
    let out = answer.stdout.trim();
    let out = serde_json::from_str(out).unwrap_or_else(|_| json!(out));
    match answer.exit {
        0 => json!({"exit": 0, "stdout": out}),
        exit => json!({"exit": exit, "stdout": out, "stderr": answer.stderr}),
    }
}

/// Everything that follows from a request.
fn follows(case: &Json) -> Map<String, Json> {
    let bytes = case["request"].to_string();
    let client = case["client"].as_str().map(|name| name.parse().unwrap());
    let request = read(client, bytes.as_bytes()).unwrap();
    let read = json!({
        "moment": format!("{:?}", request.moment), "event": request.event, "session": request.session,
        "tool": request.tool, "input": request.input, "cwd": request.cwd, "call": request.call(),
        "principal": request.principal(), "event_id": request.event_id("nonce"),
        "ok": request.outcome.as_ref().map(|outcome| outcome.ok), "kept": request.kept,
    });
    let reason = || "refused by the charter `coder`\nstate: explore".to_owned();
    let waits = Decision::Waits { reason: "waits for approval a/b".into(), approval: "a/b".into() };
    let plain = Manner::default();
    let headless = Manner { headless: true, ..plain };
    let ask = Manner { ask: true, ..plain };
    let mut answers = Map::new();
    for (name, decision, manner) in [
        ("legal", Decision::Legal, plain),
        ("granted", Decision::Legal, Manner { grant: true, ..plain }),
        ("refused", Decision::Refused { reason: reason() }, plain),
        ("waits", waits.clone(), plain),
        ("waits, headless", waits.clone(), headless),
        ("waits, --ask", waits, ask),
        ("due", Decision::Due { reason: "still due: report".into() }, plain),
    ] {
        answers.insert(name.into(), said(&answer(&request, &decision, manner)));
    }
    let mut follows = Map::new();
    follows.insert("read".into(), read);
    follows.insert("answers".into(), answers.into());
    follows
}

#[test]
fn each_client_is_read_and_answered_in_its_own_shape() {
    let update = std::env::var_os("UPDATE_CLIENTS").is_some();
    let mut seen = 0;
    for file in std::fs::read_dir(folder()).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut case: Json = serde_json::from_str(&text).unwrap();
        let follows = follows(&case);
        // Without `--client`, the shape tells.
        if let Some(name) = case["detected"].as_str() {
            let request = read(None, case["request"].to_string().as_bytes()).unwrap();
            assert_eq!(request.client.name(), name, "{}", path.display());
        }
        if update {
            case.as_object_mut().unwrap().extend(follows);
            std::fs::write(&path, format!("{case:#}\n")).unwrap();
        } else {
            for (member, value) in follows {
                assert_eq!(case[&member], value, "{} {member}", path.display());
            }
        }
        seen += 1;
    }
    assert!(seen >= 25, "{seen}");
}

#[test]
fn what_cannot_be_read_with_certainty_is_an_error() {
    let whole = json!({
        "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t",
    });
    assert!(read(None, whole.to_string().as_bytes()).is_ok());
    for member in ["session_id", "hook_event_name", "tool_name", "tool_input"] {
        let mut less = whole.clone();
        less.as_object_mut().unwrap().remove(member);
        let error = read(Some(Client::Claude), less.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(&format!("`{member}`")), "{error}");
    }
    for (bytes, why) in [
        (&b""[..], "empty"),
        (b" \n\t", "empty"),
        (b"\xff\xfe", "not JSON"),
        (b"{", "not JSON"),
        (b"[]", "shape"),
        (b"null", "shape"),
        (b"\"PreToolUse\"", "shape"),
        (b"{}", "shape"),
        (br#"{"hook_event_name": "PreToolUse"}"#, "shape"),
        (br#"{"session_id": "s", "session_id": "t"}"#, "duplicate"),
        (br#"{"session_id": "s", "hook_event_name": "UserPromptSubmit"}"#, "no charter decides"),
        (br#"{"session_id": "s", "hook_event_name": 7}"#, "shape"),
    ] {
        let error = read(None, bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(read(None, &vec![b' '; 9 << 20]).unwrap_err().to_string().contains("more than"));
    let deep = format!("{{\"session_id\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(read(None, deep.as_bytes()).is_err());
    // The shape of another client is none of the named one.
    let copilot = json!({"sessionId": "s", "toolName": "bash", "toolArgs": "{}"}).to_string();
    for client in Client::ALL.into_iter().filter(|client| *client != Client::Copilot) {
        assert!(read(Some(client), copilot.as_bytes()).is_err(), "{client}");
    }
}

#[test]
fn claude_code_says_that_a_command_worked_with_its_output_only() {
    let ok = |tool: &str, response: Json| {
        let json = json!({
            "session_id": "s", "hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": {},
            "tool_use_id": "t", "tool_response": response,
        });
        read(Some(Client::Claude), json.to_string().as_bytes()).unwrap().outcome.unwrap().ok
    };
    for response in [
        json!(null),
        json!({}),
        json!([]),
        json!(""),
        json!("Error: exit 1"),
        json!({"stderr": "x"}),
        json!({"stdout": null}),
        json!({"stdout": "x", "interrupted": "true"}),
        json!({"stdout": "x", "backgroundTaskId": "b1"}),
        json!({"stdout": "", "interrupted": false, "returnCodeInterpretation": "No matches found"}),
    ] {
        assert_eq!(ok("Bash", response.clone()), None, "{response}");
    }
    assert_eq!(ok("Bash", json!({"stdout": "x", "stderr": "", "interrupted": false})), Some(true));
    assert_eq!(ok("Bash", json!({"stdout": "x", "interrupted": true})), Some(false));
    assert_eq!(ok("Write", json!({"filePath": "x"})), Some(true));
    assert_eq!(ok("Write", json!("Error")), None);
}

#[test]
fn ids_have_a_limit_and_no_separators_of_their_own() {
    let request = |session: &str, call: &str| {
        let json = json!({
            "session_id": session, "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {},
            "tool_use_id": call,
        });
        read(Some(Client::Claude), json.to_string().as_bytes()).unwrap()
    };
    let long = "x".repeat(100_000);
    for (session, call) in [(&*long, &*long), ("a/b", "c/d"), ("a\nb", "\u{202e}"), ("é", " ")] {
        let request = request(session, call);
        let id = request.event_id(&long);
        assert!(id.len() + "/result/18446744073709551615".len() <= 256, "{id}");
        assert_eq!(id.matches('/').count(), 2, "{id}");
        assert!(request.principal().len() <= 256);
    }
    // Different calls never have the same id.
    assert_ne!(request("a/b", "c").event_id(""), request("a", "b/c").event_id(""));
    assert_eq!(request("s", "t").event_id("x"), "claude/s/t");
    assert_eq!(request("s", "t").principal(), "agent:claude/s");
}

#[test]
fn a_failure_is_exit_code_2_with_one_line() {
    for why in ["", "\n\n", "a\nb\r\nc", "x"] {
        let answer = failure(why);
        assert_eq!((answer.exit, answer.stdout.as_str()), (2, ""));
        assert_eq!(answer.stderr.trim_end_matches('\n').lines().count(), 1, "{:?}", answer.stderr);
        assert!(answer.stderr.starts_with("charter hook: not allowed: ") && answer.stderr.len() > 28);
    }
    assert!(failure(&"é".repeat(100_000)).stderr.len() < 5_000);
}

#[test]
fn no_manner_turns_a_refusal_into_consent() {
    let refused = Decision::Refused { reason: "no".into() };
    let allows = ["\"allow\"", "\"ask\"", "\"defer\""];
    for file in std::fs::read_dir(folder()).unwrap() {
        let case: Json = serde_json::from_str(&std::fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
        let client: Client = case["client"].as_str().unwrap().parse().unwrap();
        let request = read(Some(client), case["request"].to_string().as_bytes()).unwrap();
        for bits in 0..8 {
            let manner = Manner { grant: bits & 1 > 0, ask: bits & 2 > 0, headless: bits & 4 > 0 };
            let said = answer(&request, &refused, manner);
            assert!(!allows.iter().any(|word| said.stdout.contains(word)), "{said:?}");
            if request.moment == Moment::Before {
                assert!(said.stdout.contains("\"deny\"") || said.stdout.contains("\"block\""), "{said:?}");
            }
        }
        let said = denial(client, "why");
        assert!(said.exit == 0 && (said.stdout.contains("\"deny\"") || said.stdout.contains("\"block\"")), "{said:?}");
    }
}
