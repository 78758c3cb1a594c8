//! Tests of peers that do not behave, and of the place of the socket.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use charter_local::{Client, ConnectError, Server};
use charter_runtime::SendEvent;
use charter_runtime::backend::Backend as _;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::common::*;

/// A connection after the greeting.
async fn connected(site: &Site) -> BufReader<UnixStream> {
    let mut stream = BufReader::new(UnixStream::connect(site.address()).await.unwrap());
    let greeting = line(&mut stream).await;
    assert_eq!((&greeting["protocol"], &greeting["pid"]), (&json!(4), &json!(std::process::id())));
    stream
}

async fn line(stream: &mut BufReader<UnixStream>) -> Json {
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap_or_default()
}

async fn ask(stream: &mut BufReader<UnixStream>, request: &str) -> Json {
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.write_all(b"\n").await.unwrap();
    line(stream).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_answered_with_an_error() {
    let site = Site::new().await;
    let client = site.client().await;
    start(&client, "r").await;
    let mut stream = connected(&site).await;
    let deep = format!("{{\"send\":{}", "[".repeat(100_000));
    let requests = [
        "",
        "x",
        "[]",
        "{}",
        "{\"open\":{}}",
        "{\"view\":{}}",
        "{\"view\":{\"run\":1}}",
        "{\"send\":{\"run\":\"r\"}}",
        &deep,
    ];
    for request in requests {
        let answer = ask(&mut stream, request).await;
        assert_eq!(answer["error"]["code"], "request", "{request:.40}: {answer}");
    }
    assert_eq!(ask(&mut stream, "{\"view\":{\"run\":\"x\"}}").await["error"]["code"], "unknown-run");
    assert!(ask(&mut stream, "{\"view\":{\"run\":\"r\"}}").await["ok"]["snapshot"].is_string());
    // A principal cannot claim how it was authenticated.
    let send =
        json!({"send": {"run": "r", "type": "GO", "data": {}, "by": {"id": "eve", "roles": ["boss"], "auth": "key"}}});
    let record = ask(&mut stream, &send.to_string()).await["ok"]["record"].as_str().unwrap().to_owned();
    assert_eq!(serde_json::from_str::<Json>(&record).unwrap()["by"]["auth"], "local");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_slow_and_half_closed_peers_do_not_disturb_the_holder() {
    let site = Site::new().await;
    let client = site.client().await;
    start(&client, "r").await;
    // Too long: answered, and cut off.
    let mut huge = connected(&site).await;
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..16 {
        if huge.write_all(&chunk).await.is_err() {
            break;
        }
    }
    assert_eq!(line(&mut huge).await["error"]["code"], "request");
    // In the middle of a request.
    let mut slow = connected(&site).await;
    slow.write_all(b"{\"view\":").await.unwrap();
    // Closed for writing after a request, and a client that reads nothing.
    let mut half = connected(&site).await;
    half.write_all(b"{\"view\":{\"run\":\"r\"}}\n").await.unwrap();
    half.get_mut().shutdown().await.unwrap();
    assert!(line(&mut half).await["ok"]["snapshot"].is_string());
    let mut deaf = connected(&site).await;
    for _ in 0..2_000 {
        let view = tokio::time::timeout(Duration::from_millis(200), deaf.write_all(b"{\"view\":{\"run\":\"r\"}}\n"));
        if view.await.is_err() {
            break;
        }
    }
    let begin = Instant::now();
    for n in 0..20 {
        let send = SendEvent::new("r", "GO", json!({}), boss()).id(&n.to_string());
        client.send(send).await.unwrap();
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_connections_is_limited() {
    let site = Site::new().await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(connected(&site).await);
    }
    let refused = Client::connect(&site.holder()).await.unwrap_err();
    assert!(refused.to_string().contains("already has 64 connections"), "{refused}");
    open.pop();
    let begin = Instant::now();
    while Client::connect(&site.holder()).await.is_err() {
        assert!(begin.elapsed() < Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_holder_of_another_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("socket");
    let listener = UnixListener::bind(&address).unwrap();
    let holder = charter_journal::Holder { pid: 4_711, address: Some(address.clone()), starting: false };
    let greet = async |text: &str| {
        let (connected, _) = tokio::join!(Client::connect(&holder), async {
            listener.accept().await.unwrap().0.write_all(text.as_bytes()).await.unwrap();
        });
        connected.unwrap_err()
    };
    let other = greet("{\"protocol\":1,\"version\":\"9.9\",\"pid\":4711}\n").await;
    assert_eq!(
        other.to_string(),
        "process 4711 holds the journal and is another version of this program (9.9); use that version, or stop the process"
    );
    assert!(matches!(greet("hello\n").await, ConnectError::Version { pid: 4_711, .. }));
    assert!(matches!(greet("{\"prot").await, ConnectError::Gone { .. }));
    drop(listener);
    assert!(matches!(Client::connect(&holder).await, Err(ConnectError::Gone { pid: 4_711, .. })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_socket_is_private_and_replaces_only_a_socket() {
    let mut site = Site::new().await;
    let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&site.address()), 0o600);
    let journal = site.folder.path().join("journal.db");
    let open = |journal: &Path, folders: &[&Path]| {
        let folders: Vec<_> = folders.iter().map(|f| (*f).to_owned()).collect();
        Server::open(journal, &folders, site.service.clone(), json!({}))
    };
    // A path that is too long: in a folder of its own.
    let long = site.folder.path().join("x".repeat(100));
    let private = site.folder.path().join("private");
    let server = open(&long, &[&private]).unwrap();
    assert_eq!((server.address().parent(), mode(&private)), (Some(private.as_path()), 0o700));
    assert_eq!(mode(server.address()), 0o600);
    // A folder that others may enter, or that is a link, is not used.
    let public = site.folder.path().join("public");
    std::fs::create_dir(&public).unwrap();
    std::fs::set_permissions(&public, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(open(&long, &[&public]).unwrap_err().to_string().contains("closed to others"));
    let link = site.folder.path().join("link");
    std::os::unix::fs::symlink(&private, &link).unwrap();
    assert!(open(&long, &[&link]).is_err());
    drop(server);
    // What is left of a killed process is replaced, another file is not.
    let address = site.address();
    site.server.take();
    drop(std::os::unix::net::UnixListener::bind(&address).unwrap());
    let server = Server::open(&journal, &[], site.service.clone(), json!({})).unwrap();
    assert_eq!(server.address(), address);
    drop(server);
    std::fs::write(&address, "mine").unwrap();
    assert!(Server::open(&journal, &[], site.service.clone(), json!({})).is_err());
    assert_eq!(std::fs::read_to_string(&address).unwrap(), "mine");
}
