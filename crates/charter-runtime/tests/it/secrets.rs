//! What an actor was given as a secret is not in the journal, whatever the actor answers.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use charter_actors::{Exec, FindSecret, Http};
use charter_journal::{MemoryStore, Store};
use charter_kernel::Principal;
use charter_runtime::{Charter, Options, Runtime, RuntimeEvent, Start};
use serde_json::json;

use crate::actors::one;
use crate::common::block_on;

const KEY: &str = "sk-0123/456+789";

/// Returns the records of a run of one actor, as the journal has them.
fn journal(actor: &str) -> String {
    observed(actor).0
}

/// Returns the records of a run of one actor, and the texts that it showed while it worked.
fn observed(actor: &str) -> (String, Vec<String>) {
    let document = charter_test_support::document(&one(actor));
    let find: FindSecret = Arc::new(|name: &str| match name {
        "KEY" => Some(format!("Bearer {KEY}")),
        "PLAIN" => Some(KEY.to_owned()),
        _ => None,
    });
    block_on(async {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let options = Options::default()
            .executor("http", Http::default().secrets(find.clone()))
            .executor("exec", Exec::default().secrets(find));
        let (runtime, _) = Runtime::open(store.clone(), options).await.unwrap();
        let folder = charter_actors::Folder::Dir(env!("CARGO_MANIFEST_DIR").into());
        let charter = runtime.add(Charter::new(&document, folder).unwrap()).await.unwrap().digest();
        let mut events = runtime.subscribe(Some("r"));
        let start = Start { charter, run: Some("r".into()), input: json!({}), by: Principal::default() };
        runtime.start(start).await.unwrap();
        runtime.ended("r").await.unwrap();
        let mut shown = Vec::new();
        while let Some(event) = events.try_next() {
            if let RuntimeEvent::Progress(progress) = event {
                shown.push(progress.text);
            }
        }
        let records = store.records("r", 0, 100).unwrap();
        (records.iter().map(|r| format!("{}\n", r.text())).collect(), shown)
    })
}

/// A server that echoes the header `authorization`, as `form` writes it.
fn echo(status: &'static str, form: fn(&str) -> String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            reader.read_line(&mut String::new()).unwrap();
            let (mut authorization, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.trim().split_once(": ") {
                    Some((name, value)) if name.eq_ignore_ascii_case("authorization") => authorization = value.into(),
                    Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                        length = value.parse().unwrap();
                    }
                    Some(_) => {}
                    None => break,
                }
            }
            std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
            let body = form(&authorization);
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    port
}

fn echoed(status: &'static str, form: fn(&str) -> String) -> String {
    let port = echo(status, form);
    journal(&format!("{{kind: http, url: 'http://127.0.0.1:{port}/', headers: {{authorization: {{secret: KEY}}}}}}"))
}

#[test]
fn a_server_that_echoes_a_header_does_not_write_it_into_the_journal() {
    let answered = echoed("200 OK", |header| json!({"headers": {"authorization": header, "n": 1}}).to_string());
    assert!(answered.contains("[secret]") && answered.contains("\"n\":1"), "{answered}");
    assert!(!answered.contains(KEY), "{answered}");
    let escaped = echoed("200 OK", |header| json!({"log": header.replace('/', "\\/").replace('+', "%2B")}).to_string());
    assert!(escaped.contains("[secret]") && !escaped.contains("0123"), "{escaped}");
    let failed = echoed("403 Forbidden", |header| format!("{}denied: {header}", "x".repeat(480)));
    assert!(failed.contains("403") && !failed.contains("sk-"), "{failed}");
    for status in ["401 Unauthorized", "500 Internal Server Error"] {
        let cut = echoed(status, |header| format!("denied: {}", &header[..header.len() - 3]));
        assert!(cut.contains("denied: [secret]") && !cut.contains("sk-"), "{cut}");
        let inside = echoed(status, |header| json!({"error": &header[..header.len() - 3]}).to_string());
        assert!(inside.contains("[secret]") && !inside.contains("sk-"), "{inside}");
    }
    // The message of the parser would show the first 60 characters of the key.
    let long = echoed("200 OK", |header| {
        let name = format!("{}{header}", "x".repeat(50));
        format!("{{\"{name}\": 1, \"{name}\": 2}}")
    });
    assert!(long.contains("duplicate key") && !long.contains("sk-"), "{long}");
}

#[test]
fn a_command_that_prints_its_variables_does_not_write_them_into_the_journal() {
    let actor = |script: &str| {
        let command = serde_json::to_string(&json!(["sh", "-c", script])).unwrap();
        journal(&format!("{{kind: exec, command: {command}, env: {{TOKEN: {{secret: PLAIN}}, N: 3}}}}"))
    };
    let answered = actor(r#"printf '{"env": "%s", "n": %s}' "$TOKEN" "$N""#);
    assert!(answered.contains("[secret]") && answered.contains("\"n\":3"), "{answered}");
    assert!(!answered.contains(KEY), "{answered}");
    let failed = actor(r#"printf 'bad token %s\n' "$TOKEN" >&2; exit 3"#);
    assert!(failed.contains("bad token [secret]") && !failed.contains("0123"), "{failed}");
    // The report begins within the secret: 2,048 bytes of standard error are reported.
    let cut = actor(r#"printf '%s%02040d' "$TOKEN" 0 >&2; exit 3"#);
    assert!(!cut.contains("6+789") && cut.contains("000000"), "{cut}");
    let malformed = actor(r#"printf '%0110d%s' 0 "$TOKEN""#);
    assert!(malformed.contains("malformed") && !malformed.contains("sk-"), "{malformed}");
}

#[test]
fn what_a_command_reports_is_shown_without_its_secrets() {
    let script =
        r#"echo one >&2; printf "with $TOKEN, " >&2; printf 'sk-0123/45' >&2; sleep 0.5; echo '6+789.' >&2; sleep 0.5"#;
    let script = script.replace('\'', "''");
    let (journal, shown) =
        observed(&format!("{{kind: exec, command: [sh, -c, '{script}'], env: {{TOKEN: {{secret: PLAIN}}}}}}"));
    assert_eq!(shown, ["one\nwith [secret], [secret]", "one\nwith [secret], [secret].\n"]);
    assert!(!journal.contains("[secret]"), "it is shown only: {journal}");
}
