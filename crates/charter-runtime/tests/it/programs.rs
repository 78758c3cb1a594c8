//! Commands and servers: input, output, limits, cancellation. The tests use real processes and the
//! system clock.
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use charter_actors::Folder;
use charter_journal::MemoryStore;
use charter_kernel::Principal;
use charter_runtime::{Charter, Options, Runtime, RuntimeError, SendEvent, Start};
use serde_json::{Value as Json, json};

fn source(actor: &str) -> String {
    format!(
        "
charter: 1
id: one
events: {{STOP: {{}}}}
input: {{}}
context: {{got: null}}
output: = context.got
actors:
  work: {actor}
states:
  working:
    invoke:
      src: work
      input: = input
      onDone: {{target: done, actions: {{assign: {{got: '= event.output'}}}}}}
      onError: {{target: failed, actions: {{assign: {{got: '= event.error'}}}}}}
    on: {{STOP: done}}
  done: {{type: final}}
  failed: {{type: final, tags: [failed]}}
"
    )
}

async fn begin(actor: &str, folder: &Path, input: Json) -> Runtime {
    try_begin(actor, Folder::Dir(folder.to_owned()), input).await.unwrap_or_else(|e| panic!("{e}"))
}

async fn try_begin(actor: &str, folder: Folder, input: Json) -> Result<Runtime, RuntimeError> {
    let document =
        charter_format::read(&source(actor), "one.yaml", &Default::default()).unwrap_or_else(|e| panic!("{e}"));
    let (runtime, _) = Runtime::open(Arc::new(MemoryStore::new()), Options::default()).await.unwrap();
    let charter = runtime.add(Charter::new(&document, folder).unwrap()).await?.digest();
    let start = Start { charter, run: Some("r".into()), input, by: Principal::new("ana", &[]) };
    runtime.start(start).await?;
    Ok(runtime)
}

/// Returns the output of the run: the actor's answer or its error.
fn run_in(folder: &Path, actor: &str, input: Json) -> Json {
    crate::common::block_on(async {
        let runtime = begin(actor, folder, input).await;
        let view = runtime.ended("r").await.unwrap();
        view.snapshot.output().cloned().unwrap_or_default()
    })
}

fn run(actor: &str, input: Json) -> Json {
    let folder = tempfile::tempdir().unwrap();
    run_in(folder.path(), actor, input)
}

/// The files of a bundled charter are in no folder.
#[test]
fn a_command_that_needs_no_file_runs_without_a_folder() {
    let run = |command: &str, files: &[&str]| {
        let texts = files.iter().map(|name| ((*name).to_owned(), String::new())).collect();
        crate::common::block_on(async {
            let actor = format!("{{kind: exec, command: {command}}}");
            let runtime = try_begin(&actor, Folder::Texts(Arc::new(texts)), json!({"n": 1})).await?;
            let view = runtime.ended("r").await?;
            Ok::<_, RuntimeError>(view.snapshot.output().cloned())
        })
    };
    assert_eq!(run("[cat]", &["a.txt"]).unwrap(), Some(json!({"n": 1})));
    assert_eq!(run("[printf, '\"%s\"', a]", &["a.txt"]).unwrap(), Some(json!("a")));
    for (command, file) in [("[cat, a.txt]", "a.txt"), ("[sh, ./x]", "x"), ("[sh, d/x]", "d/x")] {
        let why = run(command, &[file]).unwrap_err().to_string();
        assert!(why.ends_with("the charter has no folder in the file system of this host"), "{command}: {why}");
    }
}

#[test]
fn a_command_reads_and_writes_json() {
    let input = json!({"text": "a \"b\" ü\n", "n": [1, 2.5]});
    assert_eq!(run("{kind: exec, command: [cat]}", input.clone()), input);
    // A command does not have to read its input or write an output.
    let large = json!({"x": "y".repeat(300_000)});
    assert_eq!(run("{kind: exec, command: ['true']}", large), json!(null));
    // No shell interprets the words.
    assert_eq!(run(r#"{kind: exec, command: [printf, '"%s"', '$HOME; ls *']}"#, json!({})), json!("$HOME; ls *"));
}

#[test]
fn a_command_has_a_minimal_environment_and_runs_in_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    std::fs::write(folder.path().join("sub/data.json"), "{\"here\": true}").unwrap();
    assert_eq!(
        run_in(folder.path(), "{kind: exec, dir: sub, command: [cat, data.json]}", json!({})),
        json!({"here": true})
    );
    std::fs::write(
        folder.path().join("names.sh"),
        "#!/bin/sh\nenv | sed 's/=.*//' | sort | tr '\\n' ' ' | sed 's/^/\"/;s/ $/\"/'\n",
    )
    .unwrap();
    std::fs::set_permissions(folder.path().join("names.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let names = run_in(folder.path(), "{kind: exec, command: [./names.sh], env: {EXTRA: 1}}", json!({}));
    assert_eq!(
        names,
        json!("CHARTER_ACTOR CHARTER_ATTEMPT CHARTER_EFFECT CHARTER_RUN CHARTER_TREE EXTRA LANG PATH PWD")
    );
    let key = run(r#"{kind: exec, command: [sh, -c, 'printf "\"$CHARTER_EFFECT $CHARTER_ATTEMPT\""']}"#, json!({}));
    assert_eq!(key, json!("r/0/0 1"));
}

#[test]
fn failures_of_commands() {
    let e = run("{kind: exec, command: [sh, -c, 'echo one >&2; echo two >&2; exit 3']}", json!({}));
    assert_eq!(
        e,
        json!({"code": "failed", "message": "the command failed (exit status: 3): two", "retryable": true, "exit": 3, "stderr": "one\ntwo"})
    );
    let e = run("{kind: exec, command: [echo, nonsense]}", json!({}));
    assert_eq!((&e["code"], &e["output"]), (&json!("malformed"), &json!("nonsense")));
    let e = run("{kind: exec, command: [there-is-no-such-program]}", json!({}));
    assert_eq!((&e["code"], &e["retryable"]), (&json!("start"), &json!(false)));
    let begin = Instant::now();
    let e = run("{kind: exec, maxOutput: 1000, command: [sh, -c, 'trap \"\" PIPE; yes; sleep 30']}", json!({}));
    assert_eq!(
        (&e["code"], &e["message"]),
        (&json!("too-large"), &json!("the command wrote more than 1000 bytes (`maxOutput`)"))
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    // A failed command is retried as configured.
    let folder = tempfile::tempdir().unwrap();
    let actor = "{kind: exec, retry: {attempts: 3, backoff: 10ms}, command: [sh, -c, 'echo x >> tries; test $CHARTER_ATTEMPT = 3 && echo 1']}";
    assert_eq!(run_in(folder.path(), actor, json!({})), json!(1));
    assert_eq!(std::fs::read_to_string(folder.path().join("tries")).unwrap(), "x\nx\nx\n");
}

/// Waits until a process has ended.
fn gone(folder: &Path, file: &str) -> bool {
    let begin = Instant::now();
    loop {
        let pid = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap_or_default();
        // In a container, an orphaned process may stay a zombie because nothing waits for it.
        if !pid.trim().is_empty() && (status.is_empty() || status.contains("State:\tZ")) {
            return true;
        }
        if begin.elapsed() > Duration::from_secs(5) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

const TREE: &str = "command: [sh, -c, 'setsid sleep 60 & echo $! > child; echo $$ > self; sleep 60']";

#[test]
fn a_command_that_exceeds_its_time_is_killed_with_everything_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let e = run_in(folder.path(), &format!("{{kind: exec, attemptTimeout: 400ms, {TREE}}}"), json!({}));
    assert_eq!((&e["code"], &e["retryable"]), (&json!("timeout"), &json!(true)));
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(gone(folder.path(), "self") && gone(folder.path(), "child"));
}

#[test]
fn a_command_that_the_run_no_longer_waits_for_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    crate::common::block_on(async {
        let runtime = begin(&format!("{{kind: exec, {TREE}}}"), folder.path(), json!({})).await;
        // The shell creates the file before it writes to it.
        while std::fs::read_to_string(folder.path().join("self")).unwrap_or_default() == "" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        runtime.send(SendEvent::new("r", "STOP", json!({}), Principal::new("ana", &[]))).await.unwrap();
        runtime.shutdown(Duration::from_secs(5)).await;
    });
    assert!(gone(folder.path(), "self") && gone(folder.path(), "child"));
}

#[test]
fn processes_that_a_command_leaves_behind_do_not_delay_it() {
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    let got = run_in(
        folder.path(),
        "{kind: exec, command: [sh, -c, 'setsid sleep 60 & echo $! > child; echo 5']}",
        json!({}),
    );
    assert_eq!(got, json!(5));
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(gone(folder.path(), "child"));
}

/// Starts a server that gives these responses, one per connection, and keeps the requests.
fn server(answers: Vec<&'static str>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = heard.clone();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut page = [0; 4096];
            while !is_whole(&request) {
                let count = stream.read(&mut page).unwrap();
                if count == 0 {
                    break;
                }
                request.extend_from_slice(&page[..count]);
            }
            keep.lock().unwrap().push(String::from_utf8(request).unwrap());
            if answer.is_empty() {
                std::thread::sleep(Duration::from_secs(3));
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, heard)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse().unwrap()));
    body.len() >= length.unwrap_or(0)
}

const FINE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n{\"ok\": 1}";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
const LATER: &str = "HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
const MUCH_LATER: &str =
    "HTTP/1.1 503 Busy\r\nretry-after: 999999\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
const IN_2100: &str = "HTTP/1.1 503 Busy\r\nretry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy";
const GZIP: &str = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
const MOVED: &str =
    "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
const WRONG: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno";
const NO_JSON: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n<>";

#[test]
fn a_server_receives_the_input_and_the_key() {
    let (port, heard) = server(vec![BUSY, FINE]);
    let actor = format!(
        "{{kind: http, url: 'http://127.0.0.1:{port}/do', headers: {{x-a: b}}, retry: {{attempts: 2, backoff: 10ms}}}}"
    );
    assert_eq!(run(&actor, json!({"a": 1})), json!({"ok": 1}));
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 2);
    for request in heard.iter() {
        let request = request.to_ascii_lowercase();
        assert!(request.starts_with("post /do http/1.1\r\n"), "{request}");
        for header in ["idempotency-key: r/0/0\r\n", "content-type: application/json\r\n", "x-a: b\r\n"] {
            assert!(request.contains(header), "{request}");
        }
        assert!(request.ends_with("{\"a\":1}"));
    }
}

#[test]
fn the_pause_that_a_server_requests() {
    let actor = |port| {
        format!("{{kind: http, url: 'http://127.0.0.1:{port}/', retry: {{attempts: 3, backoff: 1ms, jitter: 0}}}}")
    };
    let (port, heard) = server(vec![LATER, FINE]);
    let begun = std::time::Instant::now();
    assert_eq!(run(&actor(port), json!({})), json!({"ok": 1}));
    assert!(begun.elapsed() >= Duration::from_secs(1) && heard.lock().unwrap().len() == 2);
    let (port, heard) = server(vec![MUCH_LATER]);
    let e = run(&actor(port), json!({}));
    assert_eq!((&e["status"], &e["retryAfterMs"], &e["retryable"]), (&json!(503), &json!(999_999_000), &json!(true)));
    assert_eq!(heard.lock().unwrap().len(), 1);
    // A date, although the server does not say what it takes for now.
    let (port, heard) = server(vec![IN_2100]);
    let e = run(&actor(port), json!({}));
    assert!(e["retryAfterMs"].as_u64() > Some(1_000_000_000_000), "{e}");
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[test]
fn failures_of_servers() {
    let answer = |answer: &'static str, more: &str| {
        let (port, _) = server(vec![answer]);
        run(&format!("{{kind: http, url: 'http://127.0.0.1:{port}/'{more}}}"), json!({}))
    };
    let e = answer(WRONG, "");
    assert_eq!(
        (&e["code"], &e["status"], &e["body"], &e["retryable"]),
        (&json!("failed"), &json!(400), &json!("no"), &json!(false))
    );
    let e = answer(GZIP, "");
    assert_eq!((&e["code"], &e["retryable"]), (&json!("malformed"), &json!(true)), "as the table in actors.md says");
    assert!(e["message"].as_str().unwrap().starts_with("the response is compressed (`content-encoding: gzip`)"), "{e}");
    // Redirects are not followed: the charter decides where its data goes.
    let e = answer(MOVED, "");
    assert_eq!((&e["code"], &e["status"]), (&json!("failed"), &json!(302)));
    assert_eq!(answer(NO_JSON, "")["code"], json!("malformed"));
    assert_eq!(answer(FINE, ", maxOutput: 5")["code"], json!("too-large"));
    assert_eq!(answer("", ", attemptTimeout: 200ms")["code"], json!("timeout"));
    // No server listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let e = run(&format!("{{kind: http, url: 'http://127.0.0.1:{port}/'}}"), json!({}));
    assert_eq!((&e["code"], &e["retryable"]), (&json!("start"), &json!(true)));
}
