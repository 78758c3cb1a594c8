//! Actors of kind `tool`, with an MCP server written by hand.
#![cfg(feature = "tools")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_journal::{MemoryStore, Store};
use charter_kernel::Principal;
use charter_models::Tools;
use charter_runtime::{Charter, Folder, Options, Runtime, Start};
use serde_json::{Value as Json, json};

/// Calls a tool in a run of its own: the answer, or the error.
fn called(tool: &str, extra: &str) -> Result<Json, Json> {
    let source = format!(
        "
charter: 1
id: caller
actors:
  call:
    kind: tool
    server: {{command: [python3, server.py], env: {{GREETING: hello}}}}
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
    let document = charter_format::read(&source, "caller.yaml", &Default::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let folder = Folder::Dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support"));
    let rt = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    rt.block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let options = Options::default().executor("tool", Tools::default());
        let (runtime, _) = Runtime::open(store, options).await.unwrap();
        let charter = match Charter::new(&document, folder) {
            Ok(charter) => match runtime.add(charter).await {
                Ok(charter) => charter.digest(),
                Err(e) => return Err(json!(e.to_string())),
            },
            Err(e) => return Err(json!(e.to_string())),
        };
        let start = Start {
            charter,
            run: Some("r".into()),
            input: json!({}),
            by: Principal::default(),
        };
        runtime
            .start(start)
            .await
            .map_err(|e| json!(e.to_string()))?;
        let view = runtime.ended("r").await.unwrap();
        let output = view.snapshot.output().unwrap().clone();
        match output["error"].is_null() {
            true => Ok(output["answer"].clone()),
            false => Err(output["error"].clone()),
        }
    })
}

#[test]
fn answers() {
    assert_eq!(
        called("add", "arguments: {a: '= input.n + 1', b: 2}").unwrap(),
        json!({"sum": 23})
    );
    assert_eq!(called("text", "").unwrap(), json!("two\nlines"));
    assert_eq!(called("json", "").unwrap(), json!({"n": 1}));
    let seen = called("environment", "").unwrap();
    let names: Vec<&str> = seen["names"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Json::as_str)
        .filter(|n| !n.starts_with("LC_"))
        .collect();
    assert_eq!(names, ["GREETING", "LANG", "PATH"]);
    assert!(
        seen["here"]
            .as_array()
            .unwrap()
            .contains(&json!("server.py"))
    );
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
    assert_eq!(
        error("nothing", ""),
        (
            "tool-failed".into(),
            "the tool `nothing` says: no tool nothing".into()
        )
    );
    assert_eq!(error("huge", "").0, "too-large");
    assert_eq!(error("die", "").0, "tool-failed");
    let begun = Instant::now();
    assert_eq!(error("hang", "").0, "timeout");
    assert!(begun.elapsed() < Duration::from_secs(30));
    let absent = called("add", "arguments: {a: '= input.m', b: 2}").unwrap_err();
    assert_eq!(absent["code"], "configuration");
}

#[test]
fn what_is_wrong_is_said_before_a_run_begins() {
    let said = |extra: &str| called("add", extra).unwrap_err().to_string();
    assert!(
        said("argument: {}").contains("did you mean `arguments`?"),
        "{}",
        said("argument: {}")
    );
    assert!(said("arguments: '= input.'").contains("is no expression"));
}
