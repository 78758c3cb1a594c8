//! Requests that are made to confuse, to slow down or to fill a server, over plain sockets.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use charter_journal::MemoryStore;
use serde_json::json;

use crate::site::Site;

/// A server whose patience is short.
fn impatient(change: impl FnOnce(&mut charter_server::Options)) -> Site {
    Site::with(Arc::new(MemoryStore::new()), |options| {
        options.limits.head_time = Duration::from_millis(300);
        options.limits.body_time = Duration::from_millis(300);
        options.limits.write_time = Duration::from_millis(300);
        change(options);
    })
}

/// What is read from a connection until the server closes it; an error if it does not within 10 s.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
            panic!("the connection stays open: {e}")
        }
        _ => all,
    }
}

#[test]
fn a_request_has_one_length() {
    let site = impatient(|_| {});
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let event = json!({"type": "PROPOSE", "data": {"amount": 1}}).to_string();
    let hidden = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    let length = event.len();
    for (lengths, body) in [
        (format!("Content-Length: {length}\r\nContent-Length: 5\r\n"), event.clone()),
        (format!("Content-Length: {length}, 5\r\n"), event.clone()),
        (format!("Content-Length: +{length}\r\n"), event.clone()),
        (format!("Content-Length: -{length}\r\n"), event.clone()),
        ("Content-Length: 99999999999999999999999\r\n".to_owned(), event.clone()),
        ("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n".to_owned(), "0\r\n\r\n".to_owned()),
        ("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n".to_owned(), "0\r\n\r\n".to_owned()),
        ("Transfer-Encoding: identity\r\n".to_owned(), event.clone()),
        ("Transfer-Encoding: chunked, identity\r\n".to_owned(), "0\r\n\r\n".to_owned()),
        ("Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n".to_owned(), "zz\r\n\r\n".to_owned()),
        ("Transfer-Encoding : chunked\r\n".to_owned(), "0\r\n\r\n".to_owned()),
        ("X: 1\r\n Content-Length: 4\r\n".to_owned(), event.clone()),
    ] {
        let request = format!(
            "POST /v1/runs/p1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\n{lengths}\r\n{body}{hidden}",
            site.address, ana.bearer
        );
        let mut stream = TcpStream::connect(site.address).unwrap();
        let _ = stream.write_all(request.as_bytes());
        let said = String::from_utf8_lossy(&rest(&mut stream)).into_owned();
        assert!(said.starts_with("HTTP/1.1 4"), "{lengths:?}: {said}");
        assert!(!said.contains("200 OK") && !said.contains("ok\n"), "{lengths:?}: a second request was read: {said}");
    }
    assert_eq!(ana.get("/v1/runs/p1").json()["seq"], 0, "none of them was an event");
}

#[test]
fn headers_that_are_there_twice_are_refused() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    let bob = site.person("bob", &["boss"]);
    ana.start("payment", "p1");
    for twice in [
        [("Authorization", ana.bearer.as_str()), ("Authorization", bob.bearer.as_str())],
        [("authorization", ana.bearer.as_str()), ("AUTHORIZATION", ana.bearer.as_str())],
    ] {
        assert_eq!(site.get("/v1/me", &twice).code(), "bad-request");
    }
    for name in ["Idempotency-Key", "If-Match"] {
        let sent = ana.post_with("/v1/runs/p1/events", &json!({"type": "PROPOSE"}), &[(name, "1"), (name, "2")]);
        assert_eq!((sent.status, sent.code().as_str()), (400, "bad-request"), "{name}");
    }
    let both = [("Authorization", ana.bearer.as_str()), ("Last-Event-ID", "0"), ("Last-Event-ID", "1")];
    assert_eq!(site.get("/v1/runs/p1/stream", &both).code(), "bad-request");
    for nonsense in ["0x1", "1 2", "+1", "\u{663}", "1e3", "18446744073709551615", "18446744073709551616", "null"] {
        let headers = [("Authorization", ana.bearer.as_str()), ("Last-Event-ID", nonsense)];
        for path in ["/v1/runs/p1/stream", "/v1/stream"] {
            let answer = site.get(path, &headers);
            assert_eq!((answer.status, answer.code().as_str()), (400, "bad-request"), "{path} {nonsense}");
        }
    }
    for name in ["p1%2fevents", "p1%2Fevents", "%2e%2e", "..%5cp1", "p1%00", "p1%0d%0aX:%20y", "%c0%ae", ";p1", "p1."] {
        let answer = ana.get(&format!("/v1/runs/{name}"));
        assert!(matches!(answer.status, 400 | 404), "{name}: {answer:?}");
        answer.code();
    }
    let raw = |target: &str| {
        site.raw(format!("GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.address).as_bytes())
    };
    for target in ["/v1/runs/p1/../../../healthz", "//healthz", "/healthz/", "/healthz%00", "/./healthz", "*"] {
        let answer = raw(target);
        assert!(matches!(answer.status, 400 | 404), "{target}: {answer:?}");
    }
}

/// What HTTP/1.1 itself says about a request that cannot be read has no body.
#[test]
fn what_is_not_http_is_answered_without_a_body() {
    let site = impatient(|_| {});
    let host = site.address;
    for (request, status) in [
        ("NONSENSE\r\n\r\n".to_owned(), 400),
        (format!("GET /a b HTTP/1.1\r\nHost: {host}\r\n\r\n"), 400),
        (format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nX\0: 1\r\n\r\n"), 400),
        (format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "a".repeat(200_000)), 431),
        (format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "a".repeat(200_000)), 431),
        (format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "X: 1\r\n".repeat(200)), 431),
    ] {
        let answer = site.raw(request.as_bytes());
        let begin: String = request.chars().take(40).collect();
        assert_eq!((answer.status, answer.body.as_str()), (status, ""), "{begin:?}: {answer:?}");
    }
    // A head that does not end is not answered: nobody knows what was asked.
    // The same if it is HTTP/2.
    for begin in ["GET /healthz HTTP/1.1\r\nHost:", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut other = TcpStream::connect(host).unwrap();
        other.write_all(begin.as_bytes()).unwrap();
        assert_eq!(rest(&mut other), b"", "{begin:?}");
    }
    // What can be read is answered with a problem.
    let wrong = site.ask("PATCH", "/v1/runs", &[], None);
    assert_eq!((wrong.status, wrong.code().as_str()), (405, "method"));
    assert_eq!(wrong.header("allow"), Some("GET,HEAD,POST"));
    assert_eq!(site.ask("BREW", "/pot", &[], None).code(), "no-such-page");
}

#[test]
fn connections_beyond_the_limit_wait_and_idle_ones_end() {
    let site = impatient(|options| options.limits.connections = 3);
    let mut idle: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(site.address).unwrap()).collect();
    let began = Instant::now();
    let answer = site.get("/healthz", &[]);
    assert_eq!(answer.body, "ok\n", "served when the ones before it have ended");
    assert!(began.elapsed() > Duration::from_millis(300), "there was no room at first");
    for stream in &mut idle {
        assert_eq!(rest(stream), b"");
    }
}

#[test]
fn a_client_that_reads_nothing_loses_its_connection() {
    let site = impatient(|options| {
        options.limits.connections = 2;
        options.limits.head_time = Duration::from_secs(60);
    });
    // More answers than the buffers of a socket hold, and nobody reads them.
    let request = format!("GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n", site.address);
    let deaf: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = TcpStream::connect(site.address).unwrap();
            stream.set_nonblocking(true).unwrap();
            for _ in 0..2_000 {
                if stream.write_all(request.as_bytes()).is_err() {
                    break;
                }
            }
            stream
        })
        .collect();
    assert_eq!(site.get("/healthz", &[]).body, "ok\n", "their places are free again");
    drop(deaf);
}
