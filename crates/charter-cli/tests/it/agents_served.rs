//! Hooks with a server: the local socket, another machine's way in, `type: http`, and approvals.
#![cfg(feature = "serve")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value as Json, json};

use crate::agents::{call, decision, denied, hook, hook_with, read, site, write};
use crate::serve::Served;
use crate::support::processes::Site;

/// A request to a server; the status, and the body as JSON if it is.
pub(crate) fn http(served: &Served, method: &str, path: &str, key: Option<&str>, body: Option<&Json>) -> (u16, Json) {
    let host = served.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let body = body.map(Json::to_string).unwrap_or_default();
    let key = key.map(|key| format!("authorization: Bearer {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n{key}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
}

fn key(site: &Site, args: &str) -> String {
    site.run(&format!("key add {args}")).trim().to_owned()
}

/// A headless session of Claude Code.
fn headless(site: &Site, request: &Json) -> std::process::Output {
    let mut command = site.command("hook r --client claude");
    command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    hook_with(command, request.to_string().as_bytes())
}

#[test]
fn an_approval_in_the_inbox_lets_the_deferred_call_go_on() {
    let site = site("hook-inbox");
    let ana = key(&site, "ana --person --role boss");
    let served = Served::start(&site.path(""));
    site.run("send r PLAN {\"text\":\"x\"} --as bot --kind agent --role agent");
    let request = write(&site, "t1");
    let deferred = decision(&headless(&site, &request));
    let said = &deferred["hookSpecificOutput"];
    assert_eq!(said["permissionDecision"], "defer", "{deferred}");
    let why = said["permissionDecisionReason"].as_str().unwrap();
    assert!(why.contains(&format!("{}/#/inbox?run=r&request=r%2Froot%2Fasked", served.url)), "{why}");
    // In the other clients: denied, with the same place.
    let copilot = json!({"sessionId": "s", "cwd": request["cwd"], "toolName": "create", "toolArgs": {"path": "a.txt", "file_text": "a"}});
    let other = decision(&hook(&site, "r --client copilot", &copilot));
    assert_eq!(other["permissionDecision"], "deny");
    assert!(
        other["permissionDecisionReason"].as_str().unwrap().starts_with("waits for approval r/root/asked/"),
        "{other}"
    );
    // A person decides.
    let (status, inbox) = http(&served, "GET", "/v1/inbox", Some(&ana), None);
    assert_eq!(status, 200);
    let asked = &inbox["requests"][0];
    assert!(why.contains(asked["id"].as_str().unwrap()), "{inbox}");
    let digest = &asked["decisions"][0]["demands"]["approves"]["digest"];
    let approve = json!({"type": "APPROVE", "data": {"digest": digest}});
    let (status, done) = http(&served, "POST", "/v1/runs/r/events", Some(&ana), Some(&approve));
    assert_eq!(status, 200, "{done}");
    // The same call is legal now.
    assert_eq!(decision(&headless(&site, &request)), json!({}));
    assert_eq!(decision(&hook(&site, "r --client copilot", &copilot)), json!({}));
    let records = site.records("r");
    let accepted = records.iter().find(|r| r["id"] == json!(format!("claude/s1/t1/{}", done["seq"]))).unwrap();
    assert_eq!(accepted["verdict"], "accepted");
    assert_eq!(served.end("-TERM").0, Some(0));
    site.run("verify");
}

#[test]
fn an_agent_has_the_rights_of_its_key_and_no_others() {
    let site = site("hook-key");
    let (agent, nobody) = (key(&site, "bot --agent --role agent"), key(&site, "zed --agent --role other"));
    let served = Served::start(&site.path(""));
    let with = |key: &str, args: &str, request: &Json| {
        let mut command = site.command(&format!("hook r --client claude --server {} {args}", served.url));
        command.env("CHARTER_KEY", key);
        hook_with(command, request.to_string().as_bytes())
    };
    assert_eq!(decision(&with(&agent, "", &read(&site, "t1"))), json!({}));
    assert!(denied(&with(&agent, "", &write(&site, "t2"))).contains("state: look"));
    // Roles come from the key, whatever the hook says; and a call is repeated as one event.
    assert_eq!(decision(&with(&agent, "--role boss", &read(&site, "t1"))), json!({}));
    for (key, what) in [("chk_wrong", "wrong"), (&nobody, "without a role")] {
        let output = with(key, "", &read(&site, what));
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{what}: {err}");
        assert!(err.starts_with("charter hook: not allowed: "), "{what}: {err}");
    }
    // The same over HTTP.
    let post = |key: Option<&str>, client: &str, body: &Json| {
        http(&served, "POST", &format!("/v1/runs/r/hook/{client}"), key, Some(body))
    };
    assert_eq!(post(Some(&agent), "claude", &read(&site, "h1")), (200, json!({})));
    let refused =
        |answer: &(u16, Json)| answer.0 == 200 && answer.1["hookSpecificOutput"]["permissionDecision"] == "deny";
    for (key, body) in [
        (&agent, write(&site, "h2")),
        (&nobody, read(&site, "h3")),
        (&agent, json!({})),
        (&agent, json!([1])),
        (&agent, call(&site, "h4", "Bash", json!({"command": "rm -rf /"}))),
    ] {
        let answer = post(Some(key), "claude", &body);
        assert!(refused(&answer), "{body}: {answer:?}");
    }
    assert!(refused(&http(&served, "POST", "/v1/runs/none/hook/claude", Some(&agent), Some(&read(&site, "h5")))));
    assert_eq!(post(None, "claude", &read(&site, "h6")).0, 401);
    assert_eq!(post(Some(&agent), "emacs", &read(&site, "h7")).0, 400);
    let by = |id: &str| site.records("r").into_iter().find(|r| r["id"] == id).unwrap()["by"].clone();
    for id in ["claude/s1/t1", "claude/s1/h1"] {
        assert_eq!(by(id), json!({"id": "bot", "kind": "agent", "roles": ["agent"], "auth": "key"}), "{id}");
    }
    assert_eq!(site.records("r").iter().filter(|r| r["id"] == "claude/s1/t1").count(), 1);
    drop(served);
    let output =
        site.command("hook r --client claude --server http://127.0.0.1:9").stdin(std::process::Stdio::null()).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

/// Not a benchmark, which debug builds would not pass: shows that the way is short.
#[test]
fn a_decision_takes_milliseconds() {
    let site = site("hook-fast");
    let median = |what: &str| {
        let mut times: Vec<_> = (0..15)
            .map(|n| {
                let began = Instant::now();
                assert_eq!(decision(&hook(&site, "r --client claude", &read(&site, &format!("{what}{n}")))), json!({}));
                began.elapsed()
            })
            .collect();
        times.sort();
        eprintln!("{what}: {:?}", times[7]);
        times[7]
    };
    let alone = median("alone");
    let served = Served::start(&site.path(""));
    let with_server = median("server");
    drop(served);
    assert!(alone.as_secs() < 3 && with_server.as_secs() < 3, "{alone:?} {with_server:?}");
}
