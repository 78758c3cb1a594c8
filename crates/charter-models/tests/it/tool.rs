//! Actors of kind `tool`, with a minimal MCP server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_actors::Folder;
use charter_journal::{MemoryStore, Store};
use charter_kernel::Principal;
use charter_models::Tools;
use charter_runtime::{Charter, Options, Runtime, RuntimeEvent, Start};
use serde_json::{Value as Json, json};

const PROGRAM: &str = "{command: [python3, server.py], env: {GREETING: hello}}";

/// Calls a tool of a program in a run. Returns the answer or the error.
fn called(tool: &str, extra: &str) -> Result<Json, Json> {
    called_at(PROGRAM, tool, extra)
}

pub(crate) fn called_at(server: &str, tool: &str, extra: &str) -> Result<Json, Json> {
    observed_at(server, tool, extra).0
}

/// Calls a tool in a run. Returns the answer or the error, and the progress that was shown.
pub(crate) fn observed_at(server: &str, tool: &str, extra: &str) -> (Result<Json, Json>, Vec<String>) {
    let source = format!(
        "
charter: 1
id: caller
actors:
  call:
    kind: tool
    server: {server}
    tool: {tool}
    timeout: 3s
    {extra}
context: {{answer: null, error: null}}
output: {{answer: '= context.answer', error: '= context.error'}}
states:
  calling:
    invoke:
      src: call
      input: {{n: 20}}
      onDone: {{target: over, actions: {{assign: {{answer: '= event.output'}}}}}}
      onError: {{target: over, actions: {{assign: {{error: '= event.error'}}}}}}
  over: {{type: final}}
"
    );
    let document = charter_format::read(&source, "caller.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let folder = Folder::Dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it"));
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut shown = Vec::new();
    let result = rt.block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let secret = |name: &str| match name {
            "OPEN" => Some("Bearer sesame-sesame".to_owned()),
            "WRONG" => Some("Bearer wrong-wrong".to_owned()),
            _ => None,
        };
        let tools = Tools { secret: Arc::new(secret), ..Tools::default() };
        let options = Options::default().executor("tool", tools);
        let (runtime, _) = Runtime::open(store, options).await.unwrap();
        let charter = match Charter::new(&document, folder) {
            Ok(charter) => match runtime.add(charter).await {
                Ok(charter) => charter.digest(),
                Err(e) => return Err(json!(e.to_string())),
            },
            Err(e) => return Err(json!(e.to_string())),
        };
        let mut events = runtime.subscribe(Some("r"));
        let start = Start { charter, run: Some("r".into()), input: json!({}), by: Principal::default() };
        runtime.start(start).await.map_err(|e| json!(e.to_string()))?;
        let view = runtime.ended("r").await.unwrap();
        if extra.contains("attemptTimeout") {
            // What is said to the server afterwards ends with these threads.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        while let Some(event) = events.try_next() {
            if let RuntimeEvent::Progress(progress) = event {
                shown.push(progress.text);
            }
        }
        let output = view.snapshot.output().unwrap().clone();
        match output["error"].is_null() {
            true => Ok(output["answer"].clone()),
            false => Err(output["error"].clone()),
        }
    });
    (result, shown)
}

#[test]
fn answers() {
    assert_eq!(called("add", "arguments: {a: '= input.n + 1', b: 2}").unwrap(), json!({"sum": 23}));
    assert_eq!(called("text", "").unwrap(), json!("two\nlines"));
    assert_eq!(called("json", "").unwrap(), json!({"n": 1}));
    let seen = called("environment", "").unwrap();
    let names: Vec<&str> =
        seen["names"].as_array().unwrap().iter().filter_map(Json::as_str).filter(|n| !n.starts_with("LC_")).collect();
    assert_eq!(names, ["CHARTER_TREE", "GREETING", "LANG", "PATH"]);
    assert!(seen["here"].as_array().unwrap().contains(&json!("server.py")));
}

#[test]
fn failures() {
    let error = |tool: &str, extra: &str| {
        let error = called(tool, extra).unwrap_err();
        (
            error["code"].as_str().unwrap_or_default().to_owned(),
            error["message"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(error("nothing", ""), ("tool-failed".into(), "the tool `nothing` failed: no tool nothing".into()));
    assert_eq!(error("huge", "").0, "too-large");
    assert_eq!(error("die", "").0, "tool-failed");
    let begun = Instant::now();
    assert_eq!(error("hang", "").0, "timeout");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let absent = called("add", "arguments: {a: '= input.m', b: 2}").unwrap_err();
    assert_eq!(absent["code"], "config");
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_ends_with_everything_it_started() {
    let pid = called("leave", "").unwrap()["pid"].as_u64().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    // Without an adopting program, a zombie may stay until the system's first process waits for it.
    assert!(status.is_empty() || status.contains("State:\tZ"), "{status}");
}

/// The server over HTTP, which ends with the test.
struct Served(std::process::Child, String);

impl Served {
    fn new() -> Served {
        let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/server.py");
        let mut child = std::process::Command::new("python3")
            .args([server, "http"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut port).unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        Served(child, url)
    }

    fn with(&self, secret: &str) -> String {
        let Served(_, url) = self;
        format!("{{url: '{url}', headers: {{authorization: {{secret: {secret}}}}}}}")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn over_http() {
    let served = Served::new();
    let open = served.with("OPEN");
    let sum = called_at(&open, "add", "arguments: {a: '= input.n + 1', b: 2}");
    assert_eq!(sum.unwrap(), json!({"sum": 23}));
    // The effect's id is sent as the idempotency key.
    let key = called_at(&open, "key", "").unwrap();
    assert_eq!(key, json!({"key": "r/0/0"}));
    let busy = called_at(&open, "busy", "").unwrap_err();
    assert_eq!((&busy["code"], &busy["retryable"]), (&json!("tool-failed"), &json!(true)), "{busy}");
    // A stream that breaks off is told from a tool that fails.
    for idempotent in [true, false] {
        let cut = called_at(&open, "cut", &format!("idempotent: {idempotent}")).unwrap_err();
        assert_eq!((&cut["code"], &cut["retryable"]), (&json!("tool-failed"), &json!(idempotent)), "{cut}");
        assert!(cut["message"].as_str().unwrap().contains("ended before the response"), "{cut}");
    }
    let unknown = called_at(&open, "unknown", "").unwrap_err();
    assert_eq!(unknown["retryable"], json!(false));
    assert!(unknown["message"].as_str().unwrap().contains("Unknown tool"), "{unknown}");

    // The server quotes the key, but the fault does not contain it.
    let wrong = called_at(&served.with("WRONG"), "add", "").unwrap_err();
    assert_eq!(wrong["code"], "authentication");
    assert!(!wrong.to_string().contains("wrong-wrong"), "{wrong}");
    let nobody = called_at("{url: 'http://127.0.0.1:9/mcp'}", "add", "").unwrap_err();
    assert_eq!((&nobody["code"], &nobody["retryable"]), (&json!("unavailable"), &json!(true)));
}

#[test]
fn a_server_is_told_that_a_call_is_not_wanted_any_more() {
    let served = Served::new();
    let open = served.with("OPEN");
    let late = called_at(&open, "hang", "attemptTimeout: 500ms").unwrap_err();
    assert_eq!(late["code"], "timeout", "{late}");
    // The server is told beside the run, which does not wait for that.
    let told = || called_at(&open, "cancelled", "").unwrap()["reasons"].clone();
    let end = Instant::now() + Duration::from_secs(10);
    while told() == json!([]) && Instant::now() < end {}
    assert_eq!(told(), json!(["the run no longer waits for the answer"]));
}

#[test]
fn invalid_configurations_are_rejected_before_a_run_starts() {
    let said = |extra: &str| called("add", extra).unwrap_err().to_string();
    assert!(said("argument: {}").contains("did you mean `arguments`?"), "{}", said("argument: {}"));
    assert!(said("arguments: '= input.'").contains("invalid expression"));
    let at = |server: &str| called_at(server, "add", "").unwrap_err().to_string();
    assert!(at("{url: 'http://example.org/mcp'}").contains("begins with `https://`"));
    assert!(at("{url: 'https://example.org/mcp', header: {}}").contains("did you mean `server.headers`?"));
    assert!(at("{url: 'https://example.org', headers: {a: {secret: B}}}").contains("no secret `B`"));
    assert!(at("{}").contains("invalid `server.command`: expected a list"));
}

#[test]
fn the_examples_and_codes_of_the_page() {
    let page = include_str!("../../../../docs/actors.md");
    let block = page.split("```yaml\n").find(|b| b.contains("kind: tool"));
    let block = block.unwrap().split("```").next().unwrap();
    let actors: String = block.lines().map(|l| format!("  {l}\n")).collect();
    let source = format!("charter: 1\nid: page\nactors:\n{actors}");
    let document = charter_format::read(&source, "page.yaml", &Default::default()).unwrap();
    let tools = Tools { secret: Arc::new(|name: &str| (name == "TOOLS").then(|| "x".to_owned())), ..Tools::default() };
    let folder = Folder::Dir(env!("CARGO_MANIFEST_DIR").into());
    let charter = Charter::new(&document, folder.clone()).unwrap();
    let actors = &charter.machine().definition().actors;
    assert_eq!(actors.len(), 2);
    for (name, actor) in actors {
        charter_actors::Executor::check(&tools, name, actor, &folder).unwrap();
    }
    let sources = [include_str!("../../src/tool/mod.rs"), include_str!("../../src/tool/post.rs")];
    assert!(!sources.iter().any(|s| s.contains("Fault::new(\"")));
    for code in ["tool-failed", "unavailable", "authentication", "protocol", "too-large", "config"] {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
}
