//! Webhooks: signed, in order, at least once, and nowhere that they must not go.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use charter_actors::VirtualClock;
use charter_journal::{MemoryStore, SqliteStore, Store, export};
use charter_server::Clock;
use serde_json::{Value as Json, json};

use crate::receiver::{Got, Hook};
use crate::site::{Client, Site};

const START: i64 = 1_800_000_000_000;

/// Asks a person.
const ASK: &str = "
charter: 1
id: ask
roles: {asker: {}}
actors: {person: {kind: human, title: Shall it be?, by: asker}}
initial: open
states:
  open: {invoke: {src: person, onDone: closed}}
  closed: {type: final}
";

/// The address stays the same when the server starts again.
fn at(options: &mut charter_server::Options, clock: VirtualClock) {
    options.public_url = Some("https://charter.example".into());
    options.clock = Clock(Arc::new(clock));
}

fn virtual_site(store: Arc<dyn Store>) -> (Site, VirtualClock) {
    let clock = VirtualClock::new(START);
    let of_site = clock.clone();
    (Site::with(store, move |options| at(options, of_site)), clock)
}

/// What `GET /v1/hooks` says of the only hook, once it says what is expected.
fn status(root: &Client<'_>, expected: impl Fn(&Json) -> bool) -> Json {
    let mut last = Json::Null;
    // The clock of the hooks is virtual, but their tasks need time of a machine that may be busy.
    for _ in 0..6_000 {
        last = root.get("/v1/hooks").json()["hooks"][0].clone();
        if expected(&last) {
            return last;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{last}");
}

fn note(ana: &Client<'_>, run: &str) {
    assert_eq!(ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "NOTE", "data": {}})).status, 200);
}

/// A run that accepts `NOTE`.
fn reviewed(ana: &Client<'_>, run: &str) {
    ana.start("payment", run);
    ana.post(&format!("/v1/runs/{run}/events"), &json!({"type": "PROPOSE", "data": {"amount": 5}}));
}

#[test]
fn what_happens_is_told_in_order_and_signed() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::with(store.clone(), |options| options.public_url = Some("https://charter.example".into()));
    let root = site.person("root", &["admin"]);
    let ana = site.person("ana", &["payment/clerk", "ask/asker", "operator"]);
    ana.start("payment", "before");
    let hook = Hook::new(&[]);
    let (id, secret) = hook.add(&root, &["started", "refused", "task", "ended"]);
    assert_eq!(root.post("/v1/charters", &json!({"source": ASK})).status, 201);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 0, "hidden": "tulip"}}));
    reviewed(&ana, "p1");
    assert_eq!(ana.start("ask", "a1").status, 201);
    assert_eq!(ana.post("/v1/runs/p1/events", &json!({"type": "charter.cancel", "data": {}})).status, 200);
    ana.post("/v1/runs/p1/fork", &json!({"at": 1, "run": "p2"}));
    let got: Vec<Got> = (0..5).map(|_| hook.next()).collect();
    let types: Vec<_> = got.iter().map(|got| (got.r#type(), got.seq())).collect();
    let [start, refused] = [("charter.started", 0), ("charter.refused", 1)];
    let expected = [start, refused, ("charter.task", 2), ("charter.task", 0), ("charter.ended", 3)];
    assert_eq!(types, expected.map(|(name, seq)| (name.to_owned(), seq)));
    assert!(hook.is_quiet(), "what a fork shares is told once");
    for message in &got {
        assert!(message.is_signed_with(&secret), "{message:?}");
        assert_eq!(message.header("content-type"), "application/cloudevents+json");
        let event = message.json();
        assert_eq!((event["specversion"].as_str(), event["id"].as_str()), (Some("1.0"), Some(message.id())));
        assert_eq!(event["source"], "https://charter.example");
        assert!(message.id().starts_with(&format!("msg_{id}_")) && !message.body.contains("tulip"), "{message:?}");
    }
    let (refused, task) = (got[1].json(), got[3].json());
    assert_eq!((refused["subject"].as_str(), &refused["data"]["refusal"]["code"]), (Some("p1"), &json!("schema")));
    assert_eq!(task["data"]["tasks"], json!([{"task": "a1/0/0", "src": "person", "title": "Shall it be?"}]));
    let ids: std::collections::BTreeSet<_> = got.iter().map(Got::id).collect();
    assert_eq!(ids.len(), 5);

    // The secret is nowhere but in the file.
    let mut exported = Vec::new();
    for run in ["host", "p1"] {
        export(store.as_ref(), run, &mut exported).unwrap();
    }
    let metrics = root.get("/metrics").body;
    assert!(metrics.contains("charter_hook_deliveries_total 5"), "{metrics}");
    let listed = root.get("/v1/hooks").body;
    assert!(listed.contains(&hook.url), "{listed}");
    let records = root.get("/v1/runs/host/records").body;
    for text in [String::from_utf8(exported).unwrap(), metrics, listed, records, root.get("/openapi.json").body] {
        assert!(!text.contains(&secret) && !text.contains(secret.strip_prefix("whsec_").unwrap()));
    }
    assert!(store.host_state("hook-secret").unwrap().contains(&(id.clone(), secret.clone())));
    assert_eq!(root.delete(&format!("/v1/hooks/{id}")).status, 204);
    assert_eq!(store.host_state("hook-secret").unwrap(), []);
    reviewed(&ana, "p3");
    assert!(hook.is_quiet());
}

#[test]
fn an_approval_that_begins_to_wait_is_told_once_and_without_its_value() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    let (ana, bob) = (site.person("ana", &["clerk"]), site.person("bob", &["boss"]));
    let hook = Hook::new(&[]);
    hook.add(&root, &["task"]);
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 73_519}}));
    note(&ana, "p1");
    let told = hook.next();
    assert_eq!((told.r#type(), told.seq()), ("charter.task".to_owned(), 1));
    assert!(hook.is_quiet(), "a draft waits for nobody, and a note changes nothing");
    let inbox = bob.get("/v1/inbox").json();
    let request = &inbox["requests"][0];
    let decision = request["decisions"].as_array().unwrap().iter().find(|d| d["type"] == "APPROVE").unwrap();
    let digest = &decision["demands"]["approves"]["digest"];
    let expected = json!([{"approval": request["id"], "event": "APPROVE", "to": "root", "digest": digest}]);
    assert_eq!(told.json()["data"]["approvals"], expected, "{request}");
    assert!(!told.body.contains("73519"), "{told:?}");
    assert_eq!(bob.post("/v1/runs/p1/events", &json!({"type": "APPROVE", "data": {"digest": digest}})).status, 200);
    assert!(hook.is_quiet());
}

#[test]
fn a_failed_message_is_repeated_and_those_behind_it_wait() {
    let (site, clock) = virtual_site(Arc::new(MemoryStore::new()));
    let root = site.person("root", &["admin"]);
    let ana = site.person("ana", &["clerk"]);
    reviewed(&ana, "p1");
    let hook =
        Hook::new(&["500 Broken", "302 Found\r\nLocation: http://127.0.0.1:1/", "429 Slow\r\nRetry-After: 7200"]);
    let (_, secret) = hook.add(&root, &["record"]);
    note(&ana, "p1");
    note(&ana, "p1");
    let first = hook.next();
    assert_eq!(first.header("webhook-timestamp"), (START / 1_000).to_string());
    site.wait(clock.advance(4_999));
    assert!(hook.is_quiet());
    site.wait(clock.advance(1_001));
    let second = hook.next();
    assert_eq!((second.id(), &second.body), (first.id(), &first.body));
    assert_ne!(second.header("webhook-timestamp"), first.header("webhook-timestamp"));
    site.wait(clock.advance(360_000));
    assert_eq!(hook.next().id(), first.id());
    // The receiver has asked for two hours; the plan is half an hour.
    site.wait(clock.advance(3_600_000));
    assert!(hook.is_quiet());
    let failing = status(&root, |hook| hook["attempts"] == 3);
    assert_eq!((failing["error"].as_str(), failing["behind"].as_u64()), (Some("the receiver answered 429"), Some(2)));
    site.wait(clock.advance(3_600_000));
    let last = hook.next();
    assert!(last.id() == first.id() && last.is_signed_with(&secret));
    let next = hook.next();
    assert_eq!((next.seq(), next.id() == first.id()), (first.seq() + 1, false));
    assert!(hook.is_quiet());
    status(&root, |hook| hook["behind"] == 0 && hook["attempts"] == 0 && hook["error"].is_null());
}

#[test]
fn what_cannot_be_delivered_is_a_dead_letter_that_can_be_sent_again() {
    let (site, clock) = virtual_site(Arc::new(MemoryStore::new()));
    let root = site.person("root", &["admin"]);
    let ana = site.person("ana", &["clerk"]);
    reviewed(&ana, "p1");
    let hook = Hook::new(&[]);
    hook.plan("400 Bad", 8);
    let (id, _) = hook.add(&root, &["record"]);
    note(&ana, "p1");
    let first = hook.next();
    for _ in 0..7 {
        site.wait(clock.advance(12 * 3_600_000));
        assert_eq!(hook.next().id(), first.id());
    }
    let given_up = status(&root, |hook| hook["dead"] == 1);
    assert_eq!((given_up["behind"].as_u64(), given_up["attempts"].as_u64()), (Some(0), Some(0)), "{given_up}");
    let dead = root.get(&format!("/v1/hooks/{id}/dead")).json()["dead"][0].clone();
    assert_eq!(
        (dead["id"].as_str(), dead["seq"].as_u64(), dead["attempts"].as_u64()),
        (Some(first.id()), Some(2), Some(8))
    );
    assert!(root.get("/metrics").body.contains("charter_hook_dead_letters_total 1"));
    // What comes later is not held up, and is not after it.
    note(&ana, "p1");
    assert_eq!(hook.next().seq(), 3);
    hook.plan("500 Still", 1);
    assert_eq!(root.post(&format!("/v1/hooks/{id}/retry"), &json!({})).status, 202);
    assert_eq!(hook.next().id(), first.id());
    status(&root, |_| root.get(&format!("/v1/hooks/{id}/dead")).json()["dead"][0]["attempts"] == 9);
    assert_eq!(root.post(&format!("/v1/hooks/{id}/retry"), &json!({})).status, 202);
    let again = hook.next();
    assert_eq!((again.id(), &again.body), (first.id(), &first.body));
    status(&root, |hook| hook["dead"] == 0);
    assert!(hook.is_quiet());
}

#[test]
fn a_hook_continues_after_a_restart_with_the_message_that_failed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("j.db");
    let hook = Hook::new(&["500 Broken"]);
    let (clock, first, key) = {
        let (site, clock) = virtual_site(Arc::new(SqliteStore::open(&file).unwrap()));
        let root = site.person("root", &["admin"]);
        let ana = site.person("ana", &["clerk"]);
        reviewed(&ana, "p1");
        hook.add(&root, &["record"]);
        note(&ana, "p1");
        let first = hook.next();
        note(&ana, "p1");
        status(&root, |hook| hook["attempts"] == 1);
        (clock, first, root.bearer.clone())
    };
    let of_site = clock.clone();
    let store = Arc::new(SqliteStore::open(&file).unwrap());
    let site = Site::with(store, move |options| at(options, of_site));
    site.wait(clock.advance(3_000));
    assert!(hook.is_quiet(), "the pause is not over");
    site.wait(clock.advance(3_000));
    let again = hook.next();
    assert_eq!((again.id(), &again.body), (first.id(), &first.body));
    assert_eq!(hook.next().seq(), first.seq() + 1);
    assert_eq!(site.get("/v1/hooks", &[("Authorization", &key)]).status, 200);
}

#[test]
fn a_receiver_that_does_not_answer_holds_up_nobody_else() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    let ana = site.person("ana", &["clerk"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let made = root.post("/v1/hooks", &json!({"url": url, "on": ["record"], "allow_private": true}));
    assert_eq!(made.status, 201);
    let hook = Hook::new(&[]);
    hook.add(&root, &["record"]);
    reviewed(&ana, "p1");
    assert_eq!((hook.next().seq(), hook.next().seq()), (0, 1));
    // The server ends while the other one still waits.
    site.close();
}

#[test]
fn a_receiver_that_is_gone_is_asked_no_more() {
    let (site, clock) = virtual_site(Arc::new(MemoryStore::new()));
    let root = site.person("root", &["admin"]);
    let ana = site.person("ana", &["clerk"]);
    reviewed(&ana, "p1");
    let hook = Hook::new(&["410 Gone"]);
    let (id, _) = hook.add(&root, &["record"]);
    note(&ana, "p1");
    let first = hook.next();
    let closed = status(&root, |hook| !hook["closed"].is_null());
    assert_eq!(closed["closed"], "the receiver answered 410 (gone)");
    site.wait(clock.advance(24 * 3_600_000));
    note(&ana, "p1");
    assert!(hook.is_quiet());
    assert_eq!(root.post(&format!("/v1/hooks/{id}/retry"), &json!({})).status, 202);
    assert_eq!(hook.next().id(), first.id(), "nothing is lost");
    assert_eq!(hook.next().seq(), first.seq() + 1);
}

#[test]
fn hooks_are_for_administrators_and_addresses_inside_are_refused() {
    let site = Site::with(Arc::new(MemoryStore::new()), |options| options.private_hooks = false);
    let root = site.person("root", &["admin"]);
    let add = |client: &Client<'_>, url: &str, more: Json| {
        let mut body = json!({"url": url, "on": ["task"]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        client.post("/v1/hooks", &body)
    };
    for other in [site.person("ana", &["clerk", "operator", "reader"]), site.agent("bot", &["admin"])] {
        assert_eq!(add(&other, "https://a.example/", json!({})).status, 403);
        assert_eq!(other.get("/v1/hooks").status, 403);
        assert_eq!(other.delete("/v1/hooks/0123456789ab").status, 403);
        assert_eq!(other.get("/v1/hooks/0123456789ab/dead").status, 403);
        assert_eq!(other.post("/v1/hooks/0123456789ab/retry", &json!({})).status, 403);
    }
    assert_eq!(site.get("/v1/hooks", &[]).status, 401);
    for url in [
        "http://a.example/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::ffff:7f00:1]/",
        "https://169.254.169.254/",
        "https://10.0.0.1:8443/",
        "https://user:password@a.example/",
        "file:///etc/passwd",
        "gopher://a.example/",
        "//a.example/",
        "",
    ] {
        let refused = add(&root, url, json!({}));
        assert_eq!((refused.status, refused.code().as_str()), (400, "bad-request"), "{url}");
    }
    for more in [json!({"on": []}), json!({"on": ["task", "task"]}), json!({"note": "x".repeat(501)})] {
        assert_eq!(add(&root, "https://a.example/", more).status, 422);
    }
    for more in
        [json!({"on": ["everything"]}), json!({"private": true}), json!({"secret": "whsec_AAAA"}), json!({"by": "eve"})]
    {
        assert_eq!(add(&root, "https://a.example/", more).status, 400);
    }
    for url in ["http://a.example/", "https://127.0.0.1/", "https://a.example/"] {
        assert_eq!(add(&root, url, json!({"allow_private": true})).status, 403, "who has no access to the machine");
    }
    assert_eq!(root.get("/v1/hooks").json()["hooks"], json!([]));
    for (method, path) in [("DELETE", ""), ("GET", "/dead"), ("POST", "/retry")] {
        let path = format!("/v1/hooks/0123456789ab{path}");
        let answer = site.ask(method, &path, &[("Authorization", &root.bearer)], None);
        assert_eq!((answer.status, answer.code().as_str()), (404, "no-hook"), "{method} {path}");
    }
}
