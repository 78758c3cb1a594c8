//! Proxies, roots, and which hosts are this machine.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use charter_actors::{ClientOptions, Network, NetworkError, client_in, is_this_machine, unreachable_through};

/// A proxy that refuses everything: its port, and the first lines of the requests it gets.
fn proxy() -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
            sender.send(lines.next().unwrap()).unwrap();
            lines.find(String::is_empty);
            stream.write_all(b"HTTP/1.1 502 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").unwrap();
        }
    });
    (port, asked)
}

#[test]
fn requests_go_through_the_proxy_unless_their_host_is_excepted() {
    let (port, asked) = proxy();
    let network = Network::default()
        .proxy(&format!("http://127.0.0.1:{port}"), "skipped.invalid, .below.invalid, ported.invalid:80")
        .unwrap();
    let options = ClientOptions { request: Some(Duration::from_secs(5)), ..Default::default() };
    let client = client_in(&network, options);
    for (url, expected) in [
        ("http://model.invalid/v1", Some("CONNECT model.invalid:80 HTTP/1.1")),
        ("http://below.invalid/v1", Some("CONNECT below.invalid:80 HTTP/1.1")),
        ("http://a.below.invalid/v1", None),
        ("http://skipped.invalid/v1", None),
        ("http://a.skipped.invalid/v1", None),
        ("http://ported.invalid/v1", None),
        ("http://a.ported.invalid/v1", None),
        ("http://127.0.0.1:9/v1", None),
    ] {
        client.get(url).call().unwrap_err();
        assert_eq!(asked.try_recv().ok().as_deref(), expected, "{url}");
    }
    for wrong in ["", "ftp://a", "socks5://a:1", "http://"] {
        assert_eq!(Network::default().proxy(wrong, "").unwrap_err(), NetworkError::Proxy, "{wrong}");
    }
}

#[test]
fn a_proxy_that_cannot_be_reached_is_named_without_its_password() {
    let network = Network::default().proxy("http://me:secret@127.0.0.1:9", "skipped.invalid").unwrap();
    let client = client_in(&network, ClientOptions::default());
    let why = |url: &str| unreachable_through(&client, url, &client.get(url).call().unwrap_err());
    let said = why("http://model.invalid/v1?key=k");
    assert!(said.starts_with("`http://model.invalid` through the proxy `http://127.0.0.1:9`: "), "{said}");
    assert!(!said.contains("secret"), "{said}");
    let direct = why("http://skipped.invalid/v1");
    assert!(direct.starts_with("`http://skipped.invalid`: "), "{direct}");
}

#[test]
fn this_machine() {
    for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "[::1]"] {
        assert!(is_this_machine(host), "{host}");
    }
    for host in ["", "localhost.example", "128.0.0.1", "[::2]", "127.0.0.1.example"] {
        assert!(!is_this_machine(host), "{host}");
    }
}

#[cfg(feature = "tls")]
#[test]
fn roots_are_read_or_refused() {
    let roots = |pem: &str| Network::default().roots(pem.as_bytes()).map(drop);
    assert_eq!(roots(""), Err(NetworkError::NoCertificate));
    assert_eq!(roots("-----BEGIN CERTIFICATE-----\n%\n-----END CERTIFICATE-----\n"), Err(NetworkError::Certificate(1)));
    assert_eq!(roots("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"), Ok(()));
}
