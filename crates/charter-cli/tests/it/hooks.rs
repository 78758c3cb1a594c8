//! `charter hook-out`, and a server that is killed between a delivery and the note of it.
#![cfg(all(unix, feature = "serve"))]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::serve::Served;
use crate::support::{Scratch, charter};

const QUICK: &str = "charter: 1
id: quick
events: {GO: {}}
initial: a
states: {a: {on: {GO: b}}, b: {type: final}}
";

/// The next message: its id, its body, and the connection to answer on.
fn next(listener: &TcpListener, patience: Duration) -> Option<(String, String, TcpStream)> {
    listener.set_nonblocking(true).unwrap();
    let begin = Instant::now();
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if begin.elapsed() > patience => return None,
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    stream.set_nonblocking(false).unwrap();
    let mut reader = BufReader::new(stream);
    let (mut id, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("webhook-id", value)) => id = value.to_owned(),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None if line.trim().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Some((id, String::from_utf8(body).unwrap(), reader.into_inner()))
}

fn json(text: &str) -> Json {
    serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_message_is_sent_again_if_the_server_is_killed_before_it_notes_the_delivery() {
    let scratch = Scratch::new("hook-killed");
    let db = scratch.0.join("charter.db").display().to_string();
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?token=1", receiver.local_addr().unwrap());
    let refused = charter(&["hook-out", "add", &url, "--on", "started", "--db", &db]);
    assert!(refused.code == 2 && refused.err.contains("--allow-private"), "{}", refused.err);
    let added = charter(&["hook-out", "add", &url, "--on", "started,ended", "--allow-private", "--db", &db]);
    assert_eq!(added.code, 0, "{}", added.err);
    let secret = added.out.trim().to_owned();
    assert!(secret.starts_with("whsec_") && added.err.contains("ended, started, to http://"), "{}", added.err);

    let quick = scratch.file("quick.yaml", QUICK);
    let served = Served::start(&scratch.0);
    charter(&["run", &quick, "--run", "r1", "--db", &db]);
    let long = Duration::from_secs(30);
    let (first, body, unanswered) = next(&receiver, long).expect("the first message");
    assert_eq!(json(&body)["subject"], "r1");
    let (_, said) = served.end("-KILL");
    drop(unanswered);
    assert!(!said.contains(&secret), "{said}");

    let served = Served::start(&scratch.0);
    let (again, same, mut answered) = next(&receiver, long).expect("the message again");
    let data = |body: &str| json(body)["data"].clone();
    assert_eq!((&again, data(&same)), (&first, data(&body)));
    answered.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    charter(&["send", "r1", "GO", "--db", &db]);
    let (other, ended, mut answered) = next(&receiver, long).expect("the next message");
    assert!(other != first && json(&ended)["type"] == "charter.ended", "{ended}");
    answered.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
    // At the command line, while the server runs, and over HTTP.
    let list = || json(&charter(&["hook-out", "list", "--json", "--db", &db]).out);
    let begin = Instant::now();
    while list()["behind"] != 0 && begin.elapsed() < long {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!((list()["behind"].as_u64(), list()["dead"].as_u64()), (Some(0), Some(0)), "{}", list());
    let key = charter(&["key", "add", "root", "--role", "admin", "--db", &db]).out.trim().to_owned();
    let at = |args: &[&str]| {
        let mut all = vec!["hook-out"];
        all.extend(args);
        all.extend(["--server", &served.url, "--key", &key]);
        charter(&all)
    };
    let id = list()["hook"].as_str().unwrap().to_owned();
    let begin = Instant::now();
    while at(&["list"]).code != 0 && begin.elapsed() < long {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(at(&["list"]).out.contains(&id) && at(&["dead", &id]).err.contains("no dead letters"));
    let inside = at(&["add", &url, "--on", "task", "--allow-private"]);
    assert!(inside.code == 2 && inside.err.contains("--private-hooks"), "{}", inside.err);
    let public = at(&["add", "https://tools.example/hook", "--on", "task", "--charter", "fred", "--note", "mine"]);
    assert!(public.code == 0 && public.out.starts_with("whsec_"), "{}", public.err);
    assert_eq!(at(&["retry", &id]).code, 0);
    assert_eq!(at(&["remove", &id]).code, 0);
    let unknown = at(&["remove", &id]);
    assert!(unknown.code == 2 && unknown.err.contains("no hook with this id"), "{}", unknown.err);
    let (code, said) = served.end("-TERM");
    assert_eq!(code, Some(0), "{said}");

    let gone = charter(&["hook-out", "remove", &id, "--db", &db]);
    assert!(gone.code == 2 && gone.err.contains("hook-out list"), "{}", gone.err);
    let left = charter(&["hook-out", "list", "--db", &db]).out;
    assert!(left.contains("tools.example") && !left.contains(&id), "{left}");
    let log = charter(&["log", "host", "--json", "--db", &db]);
    assert!(log.out.contains("HOOK_ADDED") && log.out.contains("HOOK_REMOVED") && !log.out.contains("whsec_"));
    assert!(!charter(&["export", "host", "--db", &db]).out.contains("whsec_"));
    assert_eq!(charter(&["verify", &db]).code, 0);
    assert!(next(&receiver, Duration::from_millis(200)).is_none(), "everything was delivered");
}
