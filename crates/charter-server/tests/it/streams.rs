//! Live streams resume without a gap or a repetition.

use std::sync::Arc;

use serde_json::json;

use crate::site::{Site, resident};

#[test]
fn a_stream_of_a_run_continues_where_it_was_cut() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let mut events = ana.stream("/v1/runs/p1/stream", &[]);
    assert_eq!(events.record().map(|e| (e.id, e.data["seq"].as_u64())), Some((Some(0), Some(0))));
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    assert_eq!(events.record().and_then(|e| e.id), Some(1));
    drop(events);
    for _ in 0..5 {
        ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {}}));
    }
    let mut events = ana.stream("/v1/runs/p1/stream", &[("Last-Event-ID", "1")]);
    ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {}}));
    let ids: Vec<_> = (0..6).map(|_| events.record().unwrap().id.unwrap()).collect();
    assert_eq!(ids, [2, 3, 4, 5, 6, 7]);
    for nonsense in ["-1", "x", "1.5", "99999999999999999999", "8"] {
        let answer = site.get("/v1/runs/p1/stream", &[("Authorization", &ana.bearer), ("Last-Event-ID", nonsense)]);
        assert_eq!(answer.status, 400, "{nonsense}");
    }
}

#[test]
fn readers_of_a_run_that_begin_anywhere_while_it_is_written_get_every_record_once() {
    const RECORDS: u64 = 60;
    let dir = tempfile::tempdir().unwrap();
    let store = charter_journal::SqliteStore::open(&dir.path().join("j.db")).unwrap();
    let site = Site::with(Arc::new(store), |_| {});
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    // One that reads from the first to the last, so that records of the run are kept in memory.
    let mut first = ana.stream("/v1/runs/p1/stream", &[]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 2..RECORDS {
                ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {}}));
            }
        });
        for reader in 0..6 {
            let ana = &ana;
            scope.spawn(move || {
                let mut next = 0;
                // Cut and continued again and again: before, within and after what is kept.
                while next < RECORDS {
                    let after = next.checked_sub(1).map(|last| last.to_string());
                    let headers: Vec<_> = after.iter().map(|after| ("Last-Event-ID", after.as_str())).collect();
                    let mut events = ana.stream("/v1/runs/p1/stream", &headers);
                    for _ in 0..(reader + 1) * 3 {
                        if next < RECORDS {
                            assert_eq!(events.record().and_then(|event| event.id), Some(next));
                            next += 1;
                        }
                    }
                }
            });
        }
    });
    let ids: Vec<_> = (0..RECORDS).map(|_| first.record().and_then(|event| event.id).unwrap()).collect();
    assert_eq!(ids, (0..RECORDS).collect::<Vec<_>>());
}

#[test]
fn the_stream_of_the_journal_has_every_record_once_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = charter_journal::SqliteStore::open(&dir.path().join("j.db")).unwrap();
    let site = Site::with(Arc::new(store), |_| {});
    let ana = site.person("ana", &["payment/clerk"]);
    let eve = site.person("eve", &["omen/clerk"]);
    let mut all = ana.stream("/v1/stream", &[]);
    let begin = all.next().unwrap();
    assert_eq!(begin.event, "begin");
    let mut blind = eve.stream("/v1/stream", &[]);
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let ana = &ana;
            scope.spawn(move || {
                let run = format!("r{writer}");
                ana.start("payment", &run);
                ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "PROPOSE", "data": {"amount": 1}}));
                for _ in 0..10 {
                    ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "NOTE", "data": {}}));
                }
            });
        }
    });
    let mut seen = Vec::new();
    let mut last = begin.id.unwrap();
    for _ in 0..20 {
        let event = all.record().unwrap();
        seen.push((event.data["run"].as_str().unwrap().to_owned(), event.data["seq"].as_u64().unwrap()));
        assert!(event.id.unwrap() > last);
        last = event.id.unwrap();
    }
    // Cut, and continued.
    drop(all);
    let mut all = ana.stream("/v1/stream", &[("Last-Event-ID", &last.to_string())]);
    for _ in 0..28 {
        let event = all.record().unwrap();
        seen.push((event.data["run"].as_str().unwrap().to_owned(), event.data["seq"].as_u64().unwrap()));
    }
    for writer in 0..4 {
        let of_run: Vec<u64> =
            seen.iter().filter(|(run, _)| *run == format!("r{writer}")).map(|(_, seq)| *seq).collect();
        assert_eq!(of_run, (0..12).collect::<Vec<_>>());
    }
    // From the beginning, out of the file.
    let mut again = ana.stream("/v1/stream?after=0", &[]);
    let first: Vec<_> = (0..48).map(|_| again.record().unwrap().data["run"].as_str().unwrap().to_owned()).collect();
    assert_eq!(first.len(), 48);
    // Somebody else sees that there is a stream, and nothing in it.
    assert_eq!(blind.next().unwrap().event, "begin");
    site.close();
    assert_eq!(blind.next(), None, "the stream ends with the server");
}

#[test]
fn a_stream_ends_with_its_key() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    let made = root.post("/v1/keys", &json!({"id": "ana", "grants": ["clerk"]})).json();
    let bearer = format!("Bearer {}", made["secret"].as_str().unwrap());
    let ana = [("Authorization", bearer.as_str())];
    let start = json!({"charter": "payment", "run": "p1"}).to_string();
    assert_eq!(site.ask("POST", "/v1/runs", &ana, Some(&start)).status, 201);
    let mut events = site.stream("/v1/runs/p1/stream", &ana);
    assert!(events.record().is_some());
    assert_eq!(root.delete(&format!("/v1/keys/{}", made["key"].as_str().unwrap())).status, 204);
    let clerk = site.person("bob", &["clerk"]);
    clerk.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    assert_eq!(events.record(), None);
}

#[test]
fn a_quiet_stream_ends_soon_after_its_key() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    let made = root.post("/v1/keys", &json!({"id": "ana", "grants": ["clerk"]})).json();
    let bearer = format!("Bearer {}", made["secret"].as_str().unwrap());
    // The connection ends with the answer, and is not kept for another one.
    let ana = [("Authorization", bearer.as_str()), ("Connection", "close")];
    let start = json!({"charter": "payment", "run": "p1"}).to_string();
    assert_eq!(site.ask("POST", "/v1/runs", &ana, Some(&start)).status, 201);
    let mut of_run = site.stream("/v1/runs/p1/stream", &ana);
    let mut all = site.stream("/v1/stream", &ana);
    assert!(of_run.record().is_some() && all.next().is_some());
    let begin = std::time::Instant::now();
    assert_eq!(root.delete(&format!("/v1/keys/{}", made["key"].as_str().unwrap())).status, 204);
    assert_eq!((of_run.record(), all.record()), (None, None), "nothing happens in the run");
    assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[test]
fn there_are_not_more_streams_than_the_limit() {
    let site = Site::with(Arc::new(charter_journal::MemoryStore::new()), |options| options.limits.streams_of_one = 2);
    let ana = site.person("ana", &["clerk"]);
    let first = ana.stream("/v1/stream", &[]);
    let _second = ana.stream("/v1/stream", &[]);
    assert_eq!(site.get("/v1/stream", &[("Authorization", &ana.bearer)]).code(), "too-many");
    let bob = site.person("bob", &["clerk"]);
    let _other = bob.stream("/v1/stream", &[]);
    drop(first);
    for _ in 0..100 {
        let mut stream = std::net::TcpStream::connect(site.address).unwrap();
        use std::io::{Read, Write};
        write!(stream, "GET /v1/stream HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n", site.address, ana.bearer)
            .unwrap();
        let mut head = [0u8; 12];
        stream.read_exact(&mut head).unwrap();
        if head.ends_with(b"200") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("a stream that was left still counts");
}

#[test]
fn readers_that_do_not_read_hold_little() {
    use std::io::Write as _;
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    for _ in 0..20 {
        ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {"d": "x".repeat(900_000)}}));
    }
    let before = resident();
    let idle: Vec<_> = (0..150)
        .map(|n| {
            let path = if n % 2 == 0 { "/v1/runs/p1/stream" } else { "/v1/stream?after=0" };
            let mut stream = std::net::TcpStream::connect(site.address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n", site.address, ana.bearer)
                .unwrap();
            stream
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(700));
    let during = resident();
    // 150 streams of 18 MB each; the buffers of the sockets are the system's.
    assert!(during.saturating_sub(before) < 150, "{before} MB before, {during} MB during");
    // Others are not held up.
    let bob = site.person("bob", &["clerk"]);
    let mut stream = bob.stream("/v1/runs/p1/stream", &[]);
    assert_eq!((0..22).map(|_| stream.record().unwrap().id.unwrap()).collect::<Vec<_>>(), (0..22).collect::<Vec<_>>());
    assert_eq!(bob.get("/v1/me").status, 200);
    drop(idle);
}
