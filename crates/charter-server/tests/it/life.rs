//! The life of a run over HTTP.

use serde_json::json;

use crate::site::{PAYMENT, Site};

#[test]
fn a_payment_needs_two_people() {
    let site = Site::new();
    let ana = site.person("ana", &["payment/clerk", "payment/boss"]);
    let bob = site.person("bob", &["payment/boss"]);
    let started = ana.start("payment", "p1");
    assert_eq!((started.status, started.json()["verdict"].as_str()), (201, Some("accepted")), "{started:?}");
    assert_eq!(started.json()["by"], json!({"id": "ana", "roles": ["boss", "clerk"], "kind": "person", "auth": "key"}));
    // The same start again is answered with the same record; it is made once.
    assert_eq!(ana.start("payment", "p1").status, 200);

    let wrong = ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 0}}));
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "schema"), "{wrong:?}");
    let proposed = ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 5}, "id": "e1"}));
    assert_eq!((proposed.status, proposed.json()["state"].clone()), (200, json!(["review"])), "{proposed:?}");
    assert_eq!(proposed.header("etag"), Some("\"2\""));

    // What is legal says what is needed, to each of them.
    let legal = bob.get("/v1/runs/p1/legal").json();
    let approve = legal["events"].as_array().unwrap().iter().find(|e| e["type"] == "APPROVE").unwrap().clone();
    let digest = approve["demands"]["approves"]["digest"].clone();
    let legal = ana.get("/v1/runs/p1/legal").json();
    assert!(legal["events"].as_array().unwrap().iter().all(|e| e["type"] != "APPROVE"), "{legal}");
    let not = legal["not_legal"].as_array().unwrap().iter().find(|e| e["type"] == "APPROVE").unwrap();
    assert_eq!((&not["code"], &not["rule"], &not["to"]), (&json!("authority"), &json!("not-by"), &json!("root")));
    assert!(not["message"].as_str().unwrap().contains("somebody else has to"), "{not}");

    let own = ana.post("/v1/runs/p1/events", &json!({"type": "APPROVE", "data": {"digest": digest}}));
    assert_eq!((own.status, own.code().as_str()), (403, "authority"), "{own:?}");
    assert_eq!(
        (own.json()["refusal"]["rule"].as_str(), own.json()["type"].as_str()),
        (Some("not-by"), Some("/codes/authority"))
    );
    assert_eq!(own.json()["record"]["verdict"], "refused");
    let stale = bob.post_with(
        "/v1/runs/p1/events",
        &json!({"type": "APPROVE", "data": {"digest": digest}}),
        &[("If-Match", "\"1\"")],
    );
    assert_eq!((stale.status, stale.code().as_str()), (409, "stale"), "{stale:?}");
    let paid = bob.post("/v1/runs/p1/events", &json!({"type": "APPROVE", "data": {"digest": digest}}));
    assert_eq!((paid.status, paid.json()["status"].as_str()), (200, Some("done")), "{paid:?}");

    // Everything can be looked at again.
    let now = bob.get("/v1/runs/p1").json();
    assert_eq!((now["status"].as_str(), now["snapshot"]["status"].as_str()), (Some("done"), Some("done")), "{now}");
    let then = bob.get("/v1/runs/p1/at/2").json();
    assert_eq!((then["state"].clone(), then["seq"].clone()), (json!(["review"]), json!(2)));
    let records = bob.get("/v1/runs/p1/records?after=1&limit=2").json();
    let seqs: Vec<_> = records["records"].as_array().unwrap().iter().map(|r| r["seq"].as_u64().unwrap()).collect();
    assert_eq!((seqs, records["after"].clone()), (vec![2, 3], json!(3)));
    assert_eq!(bob.get("/v1/runs/p1/explain/3").json()["refusal"]["rule"], "not-by");
    assert!(bob.get("/v1/runs/p1/graph.svg").body.starts_with("<svg"));
    assert_eq!(bob.get("/v1/runs/p1/at/99").status, 404);
}

#[test]
fn an_event_with_an_id_is_recorded_once() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let body = json!({"type": "PROPOSE", "data": {"amount": 5}});
    let first = ana.post_with("/v1/runs/p1/events", &body, &[("Idempotency-Key", "k1")]);
    assert_eq!((first.status, first.header("charter-repeated")), (200, None), "{first:?}");
    let again = ana.post_with("/v1/runs/p1/events", &body, &[("Idempotency-Key", "k1")]);
    assert_eq!((again.status, again.header("charter-repeated"), &again.body), (200, Some("true"), &first.body));
    let other = json!({"type": "PROPOSE", "data": {"amount": 6}});
    let other = ana.post_with("/v1/runs/p1/events", &other, &[("Idempotency-Key", "k1")]);
    assert_eq!((other.status, other.code().as_str()), (409, "stale"));
    let both = json!({"type": "PROPOSE", "id": "k3", "data": {"amount": 5}});
    assert_eq!(ana.post_with("/v1/runs/p1/events", &both, &[("Idempotency-Key", "k2")]).status, 400);
    let records = ana.get("/v1/runs/p1/records").json();
    assert_eq!(records["records"].as_array().unwrap().len(), 2);
    assert_eq!(records.get("after"), None, "there are no more");
}

#[test]
fn of_those_who_have_seen_the_same_record_one_is_first() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 5}}));
    let mut seen = 1;
    for round in 0..5 {
        let (ana, tag) = (&ana, format!("\"{seen}\""));
        let send = |n: i32| {
            let body = json!({"type": "NOTE", "data": {"n": n}, "id": format!("{round}-{n}")});
            ana.post_with("/v1/runs/p1/events", &body, &[("If-Match", &tag)])
        };
        let answers: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|n| scope.spawn(move || send(n))).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer.status == 200 || answer.code() == "stale"), "{answers:?}");
        // Refused events have records, too.
        seen = ana.get("/v1/runs/p1").json()["seq"].as_i64().unwrap();
    }
}

#[test]
fn runs_are_listed_page_by_page_as_far_as_one_may_see_them() {
    let site = Site::new();
    let admin = site.person("root", &["admin", "clerk"]);
    let ana = site.person("ana", &["payment/clerk"]);
    let one = site.person("one", &["payment/r3/clerk"]);
    let none = site.person("none", &["omen/clerk"]);
    for n in 0..7 {
        assert_eq!(ana.start("payment", &format!("r{n}")).status, 201);
    }
    let ids = |answer: crate::site::Answer| -> Vec<String> {
        answer.json()["runs"].as_array().unwrap().iter().map(|r| r["run"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(ana.get("/v1/runs?limit=3")), ["r0", "r1", "r2"]);
    let page = ana.get("/v1/runs?limit=3").json();
    assert_eq!(page["after"], "r2");
    assert_eq!(ids(ana.get("/v1/runs?limit=3&after=r2")), ["r3", "r4", "r5"]);
    let last = ana.get("/v1/runs?limit=3&after=r5").json();
    assert_eq!((last["runs"].as_array().unwrap().len(), last.get("after")), (1, None));
    assert_eq!(ids(one.get("/v1/runs")), ["r3"]);
    assert_eq!(ids(none.get("/v1/runs")), Vec::<String>::new());
    assert_eq!(ids(admin.get("/v1/runs")).len(), 8, "with the run `host`");
    assert_eq!(ids(ana.get("/v1/runs?charter=payment&status=active&stuck=false")).len(), 7);
    assert_eq!(ids(ana.get("/v1/runs?status=done")).len(), 0);
    assert_eq!(ana.get("/v1/runs?status=open").status, 400);
    assert_eq!(ana.get("/v1/runs?color=red").status, 400);
    for path in [
        "/v1/runs/r0",
        "/v1/runs/r0/legal",
        "/v1/runs/r0/records",
        "/v1/runs/r0/stream",
        "/v1/runs/r0/at/0",
        "/v1/runs/nothing",
    ] {
        let answer = none.get(path);
        assert_eq!((answer.status, answer.code().as_str()), (404, "unknown-run"), "{path}");
    }
    assert_eq!(ana.get("/v1/runs/host").status, 404, "keys are for administrators");
    assert_eq!(admin.get("/v1/runs/host").status, 200);
}

#[test]
fn a_run_whose_start_was_refused_is_in_the_list_and_has_no_state() {
    let site = Site::new();
    let admin = site.person("root", &["admin", "clerk"]);
    let source = "
charter: 1
id: order
roles: {clerk: {}}
input: {type: object, required: [customer]}
initial: open
states: {open: {}}
";
    assert_eq!(admin.post("/v1/charters", &json!({"source": source})).status, 201);
    assert_eq!(admin.start("payment", "p1").status, 201);
    let refused = admin.post("/v1/runs", &json!({"charter": "order", "run": "o1", "input": {}}));
    assert_eq!(refused.status, 422, "{refused:?}");
    for (query, wanted) in
        [("state=true", vec!["host", "o1", "p1"]), ("stuck=false", vec!["host", "o1", "p1"]), ("stuck=true", vec![])]
    {
        let answer = admin.get(&format!("/v1/runs?{query}"));
        assert_eq!(answer.status, 200, "{query}: {answer:?}");
        let runs = answer.json()["runs"].as_array().unwrap().clone();
        let ids: Vec<&str> = runs.iter().map(|run| run["run"].as_str().unwrap()).collect();
        assert_eq!(ids, wanted, "{query}");
        if let Some(run) = runs.iter().find(|run| run["run"] == "o1" && query == "state=true") {
            assert_eq!((run.get("state"), &run["stuck"]), (None, &json!(false)), "{run}");
        }
    }
}

#[test]
fn tasks_are_answered_by_those_they_are_for() {
    let site = Site::new();
    let admin = site.person("root", &["admin"]);
    let source = "
charter: 1
id: greeting
roles: {writer: {}}
actors: {person: {kind: human, by: writer, title: Say hello, output: {type: object, required: [text], properties: {text: {type: string}}}}}
context: {text: ''}
initial: asking
states:
  asking: {invoke: {id: ask, src: person, onDone: {target: done, actions: {assign: {text: '= event.output.text'}}}, onError: declined}}
  declined: {}
  done: {type: final}
";
    assert_eq!(admin.post("/v1/charters", &json!({"source": source})).status, 201);
    let ana = site.person("ana", &["greeting/writer"]);
    let bot = site.agent("bot", &["greeting/writer"]);
    let eve = site.person("eve", &["greeting/reader"]);
    for run in ["g1", "g2"] {
        assert_eq!(ana.start("greeting", run).status, 201);
    }
    let tasks = ana.get("/v1/tasks").json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 2, "{tasks}");
    let task = tasks["tasks"][0]["effect"].as_str().unwrap().to_owned();
    assert_eq!(bot.get("/v1/tasks").json()["tasks"], json!([]));
    assert_eq!(eve.get("/v1/tasks").json()["tasks"], json!([]));
    let answer = json!({"task": task, "output": {"text": "hello"}});
    assert_eq!(bot.post("/v1/runs/g1/answers", &answer).code(), "authority");
    assert_eq!(eve.post("/v1/runs/g1/answers", &answer).code(), "unknown-run");
    assert_eq!(ana.post("/v1/runs/g2/answers", &answer).status, 400, "a task of another run");
    let done = ana.post("/v1/runs/g1/answers", &answer);
    assert_eq!((done.status, done.json()["status"].as_str()), (200, Some("done")), "{done:?}");
    assert_eq!(ana.post("/v1/runs/g1/answers", &answer).status, 409, "it is over");
    let task = tasks["tasks"][1]["effect"].clone();
    let declined = ana.post("/v1/runs/g2/answers", &json!({"task": task, "declined": "no time"}));
    assert_eq!((declined.status, declined.json()["state"].clone()), (200, json!(["declined"])), "{declined:?}");
}

#[test]
fn a_charter_is_checked_and_stepped_without_a_run() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    let report = ana.post("/v1/check", &json!({"source": PAYMENT})).json();
    assert_eq!(
        report["findings"].as_array().unwrap().iter().filter(|f| f["severity"] == "error").count(),
        0,
        "{report}"
    );
    let wrong = ana.post("/v1/check", &json!({"source": "charter: 1\nid: x\nstats: {}"}));
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "charter"));
    assert_eq!(wrong.json()["findings"][0]["line"], 3, "{wrong:?}");
    let events =
        json!([{"type": "PROPOSE", "data": {"amount": 1}, "by": {"id": "a", "roles": ["clerk"]}}, {"type": "NOPE"}]);
    let lines = ana.post("/v1/step", &json!({"source": PAYMENT, "events": events})).json();
    let verdicts: Vec<_> =
        lines["lines"].as_array().unwrap().iter().map(|l| l["verdict"].as_str().unwrap_or("-").to_owned()).collect();
    assert_eq!(verdicts, ["accepted", "accepted", "refused"], "{lines}");
    assert_eq!(ana.get("/v1/runs").json()["runs"], json!([]));
}

#[test]
fn a_fork_is_dry_unless_an_operator_says_otherwise() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 5}}));
    let fork = ana.post("/v1/runs/p1/fork", &json!({"at": 0, "run": "p2"}));
    assert_eq!((fork.status, fork.json()["dry"].clone()), (201, json!(true)), "{fork:?}");
    assert_eq!(ana.get("/v1/runs/p2").json()["state"], json!(["draft"]));
    assert_eq!(ana.post("/v1/runs/p1/fork", &json!({"at": 0, "run": "p2"})).status, 409);
    assert_eq!(ana.post("/v1/runs/p1/fork", &json!({"at": 99})).status, 404);
    assert_eq!(ana.post("/v1/runs/p1/fork", &json!({"at": 0, "live": true})).status, 403);
}

#[test]
fn the_answer_to_a_fork_has_the_record_to_expect() {
    const WAITING: &str = "charter: 1\nid: waiting\nroles: {clerk: {}}\nevents: {NOTE: {by: clerk}}\n\
        states: {s: {on: {NOTE: {}}, after: {1h: s}}}\n";
    let store = std::sync::Arc::new(charter_journal::MemoryStore::new());
    let site = Site::offering(&[WAITING], store, |_| {});
    let ana = site.person("ana", &["clerk"]);
    ana.start("waiting", "w");
    assert_eq!(ana.post("/v1/runs/w/events", &json!({"type": "NOTE"})).status, 200);
    let fork = ana.post("/v1/runs/w/fork", &json!({"at": 1, "run": "f"}));
    let tag = fork.header("etag").unwrap().to_owned();
    assert_eq!((fork.status, tag.as_str()), (201, "\"1\""), "{fork:?}");
    let send = |tag: &str| ana.post_with("/v1/runs/f/events", &json!({"type": "NOTE"}), &[("If-Match", tag)]);
    // The time of the fork begins at some moment between the two.
    let noted = send(&tag);
    assert_eq!((noted.status, noted.json()["verdict"].clone()), (200, json!("accepted")), "{noted:?}");
    let late = send(&tag);
    assert_eq!((late.status, late.code().as_str()), (409, "stale"), "{late:?}");
}

#[test]
fn the_last_use_of_a_key_survives_a_restart() {
    use charter_journal::{SqliteStore, Store};
    use std::sync::Arc;
    let clock = |ms: i64| charter_server::Clock(Arc::new(charter_actors::VirtualClock::new(ms)));
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&dir.path().join("j.db")).unwrap());
    let site = Site::with(store.clone(), |options| options.clock = clock(1_800_000_000_000));
    let root = site.person("root", &["admin"]);
    assert_eq!(root.get("/v1/me").status, 200);
    let root = root.bearer;
    let ana = site.person("ana", &["clerk"]);
    let (bearer, key) = (ana.bearer.clone(), ana.get("/v1/me").json()["key"].as_str().unwrap().to_owned());
    let records = store.run("host").unwrap().unwrap().seq;
    site.close();
    assert_eq!(store.host_state("keys-used").unwrap().len(), 2, "written at the end");
    let site = Site::with(store.clone(), |options| options.clock = clock(1_800_003_600_000));
    let last = |site: &Site| {
        let all = site.get("/v1/keys", &[("Authorization", &root)]).json();
        let found = all["keys"].as_array().unwrap().iter().find(|k| k["key"] == key.as_str()).unwrap().clone();
        found["last_used"].as_str().unwrap().to_owned()
    };
    assert_eq!(last(&site), "2027-01-15T08:00:00Z");
    assert_eq!(site.get("/v1/me", &[("Authorization", &bearer)]).status, 200);
    assert_eq!(last(&site), "2027-01-15T09:00:00Z");
    assert_eq!(store.run("host").unwrap().unwrap().seq, records + 2, "closed and opened, and nothing else");
    let report = charter_journal::verify(store.as_ref(), None).unwrap();
    assert!(report.is_verified(), "{:?}", report.findings);
}

#[test]
fn an_event_without_data_is_one_with_empty_data_if_its_schema_says_so() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    let noted = ana.post("/v1/runs/p1/events", &json!({"type": "NOTE"}));
    assert_eq!((noted.status, &noted.json()["event"]["data"]), (200, &json!({})), "{noted:?}");
    let null = ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": null}));
    assert_eq!((null.status, null.code().as_str()), (422, "schema"), "null is data: {null:?}");
    let bot = site.agent("bot", &["clerk"]);
    let call = json!({"name": "send", "arguments": {"type": "NOTE"}});
    let sent = crate::mcp::alone(&bot, "tools/call", call, &[]).json();
    assert_eq!(sent["result"]["structuredContent"]["accepted"], true, "{sent}");
}

#[test]
fn votes_without_data_agree_whoever_sends_them() {
    let ballot = "charter: 1\nid: ballot\nroles: {voter: {}}\nevents: {PASS: {by: voter}, VOID: {by: voter, data: {type: 'null'}}}\n\
        initial: open\nstates:\n  open: {on: {VOID: {}, PASS: {target: passed, quorum: 3, agents: true}}}\n  passed: {type: final}\n";
    let site = Site::offering(&[ballot], std::sync::Arc::new(charter_journal::MemoryStore::new()), |_| {});
    let (ana, ben) = (site.person("ana", &["voter"]), site.person("ben", &["voter"]));
    ana.start("ballot", "p1");
    let void = ana.post("/v1/runs/p1/events", &json!({"type": "VOID"}));
    assert_eq!((void.status, &void.json()["event"]["data"]), (200, &json!(null)), "{void:?}");
    ana.post("/v1/runs/p1/events", &json!({"type": "PASS"}));
    let bot = site.agent("bot", &["voter"]);
    let call = json!({"name": "send", "arguments": {"type": "PASS"}});
    let sent = crate::mcp::alone(&bot, "tools/call", call, &[]).json();
    assert_eq!(sent["result"]["structuredContent"]["accepted"], true, "{sent}");
    // What the page sends.
    let passed = ben.post("/v1/runs/p1/events", &json!({"type": "PASS", "data": {}}));
    assert_eq!((passed.status, &passed.json()["state"]), (200, &json!(["passed"])), "{passed:?}");
}
