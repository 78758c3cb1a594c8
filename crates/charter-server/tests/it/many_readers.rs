//! As many readers as the limits allow.

use charter_test_support::cases;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::site::{Events, Site, resident};

const NOTES: u64 = 30;

/// Both ends of every stream are in this process.
fn allow_files(files: u64) {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.map(|now| now.max(files));
    setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }).expect("too few files are allowed");
}

/// A thousand with `CHARTER_TESTS=full`.
#[test]
fn every_reader_gets_every_record_once() {
    let readers = u64::from(cases(20, 1_000));
    allow_files(readers * 2 + 200);
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    let before = resident();
    let mut of_run: Vec<Events> = Vec::new();
    let mut of_journal: Vec<Events> = Vec::new();
    for n in 0..readers {
        match n % 2 {
            0 => of_run.push(ana.stream("/v1/runs/p1/stream", &[])),
            _ => {
                let mut events = ana.stream("/v1/stream", &[]);
                assert_eq!(events.next().map(|e| e.event), Some("begin".to_owned()));
                of_journal.push(events);
            }
        }
    }
    for n in 0..NOTES {
        let sent = ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {"n": n}}));
        assert_eq!(sent.status, 200);
    }
    let during = resident();
    let next = |events: &mut Events| events.record().and_then(|record| record.data["seq"].as_u64());
    for events in &mut of_run {
        let seen: Vec<_> = (0..NOTES + 2).map(|_| next(events)).collect();
        assert_eq!(seen, (0..NOTES + 2).map(Some).collect::<Vec<_>>());
    }
    for events in &mut of_journal {
        let seen: Vec<_> = (0..NOTES).map(|_| next(events)).collect();
        assert_eq!(seen, (2..NOTES + 2).map(Some).collect::<Vec<_>>());
    }
    // Nothing more comes, and the streams end with the server.
    site.close();
    for events in of_run.iter_mut().chain(&mut of_journal) {
        assert_eq!(events.record(), None);
    }
    assert!(during.saturating_sub(before) < 150, "{before} MB before, {during} MB during");
    eprintln!("{readers} readers: {before} MB before, {during} MB during");
}
