//! `charter mcp`: an agent over standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::support::processes::Site;

const PAYMENT: &str = "
charter: 1
id: payment
roles: {clerk: {}, boss: {}}
context: {amount: 0}
events:
  PROPOSE: {by: clerk, data: {type: object, required: [amount], properties: {amount: {type: integer}}}}
  APPROVE: {by: boss, data: {type: object}}
  NOTE: {by: clerk}
states:
  draft: {on: {PROPOSE: {target: review, actions: {assign: {amount: '= event.amount'}}}}}
  review: {on: {APPROVE: {target: paid, approves: {value: context.amount}}, NOTE: {}}}
  paid: {type: final}
";

/// A client that starts `charter mcp`.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    answers: mpsc::Receiver<String>,
    last: u64,
}

impl Client {
    fn start(mut command: Command) -> Client {
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (lines, answers) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        Client { input: child.stdin.take(), child, answers, last: 0 }
    }

    fn say(&mut self, text: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(text).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// The next line; each is a message.
    fn next(&self) -> Json {
        let line = self.answers.recv_timeout(Duration::from_secs(60)).unwrap();
        let message: Json = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    /// Sends a request; returns its answer. What is told meanwhile is skipped.
    fn ask(&mut self, method: &str, params: Json) -> Json {
        self.last += 1;
        let text = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}).to_string();
        self.say(text.as_bytes());
        loop {
            let message = self.next();
            if message["id"] == self.last {
                return message;
            }
        }
    }

    fn hello(&mut self, version: &str) -> &mut Client {
        let answer = self.ask("initialize", json!({"protocolVersion": version, "capabilities": {}}));
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        self.say(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        self
    }

    fn call(&mut self, tool: &str, arguments: Json) -> Json {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        answer["result"]["structuredContent"].clone()
    }

    /// Ends the input; returns the exit code.
    fn end(mut self) -> i32 {
        self.input = None;
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn site(name: &str) -> Site {
    Site::new(name, &[("payment.yaml", PAYMENT.into())])
}

#[test]
fn the_run_with_the_keys_is_not_for_agents() {
    let site = site("mcp-host");
    site.run("key add ana --role admin");
    for run in ["host", "hos"] {
        let done = site.command(&format!("mcp --run {run} --as x --role admin")).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains("holds the keys"), "{said}");
    }
}

#[test]
fn a_run_is_started_joined_and_left() {
    let site = site("mcp-start");
    let start = "mcp --charter payment.yaml --run p1 --as bob --role clerk";
    let mut client = Client::start(site.command(start));
    client.hello("2025-06-18");
    assert_eq!(client.call("status", json!({}))["state"], json!(["draft"]));
    let done = client.call("PROPOSE", json!({"amount": 3}));
    assert_eq!((&done["accepted"], &done["record"]), (&json!(true), &json!(1)), "{done}");
    assert_eq!(client.call("send", json!({"type": "PROPOSE", "data": {"amount": 4}}))["refusal"]["code"], "unhandled");
    assert_eq!(client.end(), 0);
    let records = site.records("p1");
    let by: Vec<&str> = records.iter().map(|r| r["by"]["id"].as_str().unwrap()).collect();
    assert_eq!(by, ["agent:bob"; 3]);
    assert_eq!((&records[1]["by"]["kind"], &records[2]["verdict"]), (&json!("agent"), &json!("refused")));
    // The same command joins the run.
    let mut again = Client::start(site.command(start));
    let seq = again.hello("2025-11-25").call("status", json!({}))["seq"].clone();
    assert_eq!(seq, 1, "what was refused has changed nothing");
    assert_eq!(again.end(), 0);
    assert!(site.run("verify").contains("verified"));
}

#[test]
fn two_agents_and_a_person_use_one_journal() {
    let site = site("mcp-two");
    let mut one = Client::start(site.command("mcp --charter payment.yaml --run p1 --as one --role clerk"));
    one.hello("2025-11-25");
    let mut two = Client::start(site.command("mcp --run p1 --as two --role clerk --tools static"));
    two.hello("2025-06-18");
    one.call("PROPOSE", json!({"amount": 3}));
    assert_eq!(two.call("status", json!({}))["state"], json!(["review"]), "at once");
    let refused = two.call("send", json!({"type": "APPROVE", "data": {}}));
    assert_eq!(refused["refusal"]["code"], "authority");
    let digest = refused["waiting"][0]["digest"].as_str().unwrap().to_owned();
    site.run(&format!(r#"send p1 APPROVE {{"digest":"{digest}"}} --as eve --role boss"#));
    assert_eq!(one.call("status", json!({}))["status"], "done");
    // The news of the person's event has arrived, too.
    assert_eq!(two.end(), 0);
    assert_eq!(one.end(), 0);
    let by: Vec<String> = site.records("p1").iter().map(|r| r["by"]["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(by, ["agent:one", "agent:one", "agent:two", "eve"]);
}

#[test]
fn an_agent_continues_when_the_process_that_holds_the_journal_is_killed() {
    let site = site("mcp-killed");
    let mut one = Client::start(site.command("mcp --charter payment.yaml --run p1 --as one --role clerk"));
    one.hello("2025-11-25");
    let mut two = Client::start(site.command("mcp --run p1 --as two --role clerk"));
    two.hello("2025-11-25");
    assert_eq!(two.ask("resources/subscribe", json!({"uri": "charter://runs/p1"}))["result"], json!({}));
    one.child.kill().unwrap();
    one.child.wait().unwrap();
    let done = two.call("PROPOSE", json!({"amount": 3}));
    assert_eq!((&done["accepted"], &done["record"]), (&json!(true), &json!(1)), "{done}");
    // A third one finds the journal with the second, which still tells the news.
    let mut three = Client::start(site.command("mcp --run p1 --as three --role clerk"));
    assert_eq!(three.hello("2025-11-25").call("NOTE", json!({}))["accepted"], true);
    loop {
        if two.next()["method"] == "notifications/resources/updated" {
            break;
        }
    }
    assert_eq!(three.end(), 0);
    assert_eq!(two.end(), 0);
    assert_eq!(site.records("p1").len(), 3);
}

#[test]
fn hostile_lines_are_answered_and_the_next_one_too() {
    let site = site("mcp-hostile");
    let mut client = Client::start(site.command("mcp --charter payment.yaml --run p1"));
    client.say(&vec![b'x'; (8 << 20) + 100]);
    assert_eq!(client.next()["error"]["code"], -32_600, "too long");
    for line in [&b"nonsense"[..], b"\xff\xfe", b"{\"jsonrpc\":\"2.0\"", b"[]"] {
        client.say(line);
        let code = client.next()["error"]["code"].as_i64().unwrap();
        assert!(code == -32_700 || code == -32_600, "{code}");
    }
    client.say(b"");
    client.hello("2025-11-25");
    let refused = client.call("send", json!({"type": "PROPOSE", "data": {"amount": 3}}));
    assert_eq!(refused["refusal"]["code"], "authority", "an agent without `--role` has none: {refused}");
    // A last line without an end is a line.
    let input = client.input.as_mut().unwrap();
    input.write_all(br#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#).unwrap();
    input.flush().unwrap();
    client.input = None;
    assert_eq!(client.next()["id"], 99);
    assert_eq!(client.end(), 0);
}

#[test]
fn requests_alone_are_answered_on_lines_too() {
    let site = site("mcp-alone");
    let mut client = Client::start(site.command("mcp --charter payment.yaml --run p1 --role clerk"));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.ask("server/discover", json!({"_meta": meta}));
    assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28");
    let listen = json!({
        "jsonrpc": "2.0", "id": "news", "method": "subscriptions/listen",
        "params": {"_meta": meta, "notifications": {"toolsListChanged": true}},
    });
    client.say(listen.to_string().as_bytes());
    assert_eq!(client.next()["method"], "notifications/subscriptions/acknowledged");
    client.ask("tools/call", json!({"_meta": meta, "name": "PROPOSE", "arguments": {"amount": 1}}));
    let news = client.next();
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "news");
    client.input = None;
    assert_eq!(client.next()["result"]["resultType"], "complete", "the subscription ends in order");
    assert_eq!(client.end(), 0);
}

#[test]
fn a_command_that_cannot_serve_says_nothing_on_standard_output() {
    let site = site("mcp-wrong");
    for args in [
        "mcp",
        "mcp --run p1",
        "mcp --charter nothing.yaml",
        "mcp --run p1 --input {}",
        "mcp --run p1 --tools all",
        "mcp --charter payment.yaml --as system",
        "mcp --charter payment.yaml --input [",
    ] {
        let (code, out, err) = site.any(args);
        assert_eq!((code, out.as_str()), (2, ""), "{args}: {err}");
        assert!(!err.is_empty(), "{args}");
    }
}
