//! Ways in that must stay shut.

use serde_json::json;

use crate::site::Site;

#[test]
fn without_keys_names_are_claimed_and_change_no_keys() {
    let site = Site::new();
    assert_eq!(site.get("/v1/runs", &[]).status, 401, "there is no fallback name");
    let eve = [("Charter-As", "eve")];
    let me = site.get("/v1/me", &eve).json();
    assert_eq!((me["id"].as_str(), me["auth"].as_str()), (Some("eve"), Some("none")));
    let start = json!({"charter": "payment", "run": "p1"}).to_string();
    assert_eq!(site.ask("POST", "/v1/runs", &eve, Some(&start)).status, 201);
    // Without authentication nobody adds a key, whatever roles are claimed.
    let admin = [("Charter-As", "eve"), ("Charter-Role", "admin")];
    let key = json!({"id": "eve", "grants": ["admin"]}).to_string();
    assert_eq!(site.ask("POST", "/v1/keys", &admin, Some(&key)).status, 403);
    let event = json!({"type": "KEY_ADDED", "data": {"key": "000000000000", "sha256": "0".repeat(64), "id": "eve", "kind": "person", "grants": [{"role": "admin"}]}});
    for role in ["admin", "owner", "owner, admin"] {
        let headers = [("Charter-As", "uid:1000"), ("Charter-Role", role)];
        let sent = site.ask("POST", "/v1/runs/host/events", &headers, Some(&event.to_string()));
        assert_ne!(sent.status, 200, "{sent:?}");
    }
    for name in ["system", "", "a b", "a\u{7f}"] {
        assert!(matches!(site.get("/v1/me", &[("Charter-As", name)]).status, 400 | 401), "{name:?}");
    }
    // With the first key, claims count for nothing.
    let ana = site.person("ana", &["clerk"]);
    assert_eq!(site.get("/v1/runs/p1", &eve).status, 401);
    assert_eq!(ana.get("/v1/runs/p1").status, 200);
}

#[test]
fn keys_open_what_they_are_for_until_they_are_revoked() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    let made = root.post("/v1/keys", &json!({"id": "bob", "grants": ["payment/boss"], "note": "for review"}));
    assert_eq!(made.status, 201, "{made:?}");
    let (key, secret) =
        (made.json()["key"].as_str().unwrap().to_owned(), made.json()["secret"].as_str().unwrap().to_owned());
    let bearer = format!("Bearer {secret}");
    let me = || site.get("/v1/me", &[("Authorization", &bearer)]);
    assert_eq!(me().json()["roles"], json!(["payment/boss"]));
    let listed = root.get("/v1/keys");
    assert!(!listed.body.contains(&secret) && listed.body.contains(&key), "{listed:?}");
    assert_eq!(site.get("/v1/keys", &[("Authorization", &bearer)]).status, 403);
    assert_eq!(root.delete(&format!("/v1/keys/{key}")).status, 204);
    let gone = me();
    assert_eq!((gone.status, gone.code().as_str()), (401, "unauthenticated"), "{gone:?}");
    assert!(gone.header("www-authenticate").is_some());
    assert_eq!(root.delete(&format!("/v1/keys/{key}")).status, 409, "it is revoked already");
    let soon = root.post("/v1/keys", &json!({"id": "eve", "expires": "4s"}));
    assert_eq!((soon.status, soon.code().as_str()), (422, "schema"), "{soon:?}");
    // An agent with the role does not decide who may use the server.
    let bot = site.agent("bot", &["admin"]);
    assert_eq!(bot.post("/v1/keys", &json!({"id": "eve", "grants": ["admin"]})).status, 403);
    let limited = site.person("lim", &["payment/admin"]);
    assert_eq!(limited.get("/v1/keys").status, 403);
    for wrong in ["Bearer", "Bearer ", "Bearer chk_", "Basic YTpi", "chk_abc", &secret, &format!("Bearer {secret}x")] {
        assert_eq!(site.get("/v1/me", &[("Authorization", wrong)]).status, 401, "{wrong}");
    }
    let two = [("Authorization", root.bearer.as_str()), ("Authorization", bearer.as_str())];
    assert_eq!(site.get("/v1/me", &two).status, 400);
}

#[test]
fn roles_never_come_from_a_body() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    for forged in [
        json!({"type": "PROPOSE", "by": {"id": "bob", "roles": ["boss"]}}),
        json!({"type": "PROPOSE", "as": "bob"}),
        json!({"type": "PROPOSE", "roles": ["boss"]}),
        json!({"type": "PROPOSE", "auth": "key"}),
    ] {
        let answer = ana.post("/v1/runs/p1/events", &forged);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.contains("never from the body"), "{answer:?}");
    }
    assert_eq!(ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "kind": "x"})).status, 400);
    let headers = [("Authorization", ana.bearer.as_str()), ("Charter-As", "bob"), ("Charter-Role", "boss")];
    let me = site.get("/v1/me", &headers).json();
    assert_eq!((me["id"].as_str(), me["roles"].clone()), (Some("ana"), json!(["clerk"])));
    let twice = r#"{"type": "NOTE", "type": "PROPOSE"}"#;
    assert_eq!(site.ask("POST", "/v1/runs/p1/events", &[("Authorization", &ana.bearer)], Some(twice)).status, 400);
}

#[test]
fn pages_of_other_sites_and_rebound_names_are_refused() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    let port = site.address.port();
    let with = |name: &'static str, value: &str| site.get("/v1/me", &[("Authorization", &ana.bearer), (name, value)]);
    assert_eq!(with("Host", &format!("evil.example:{port}")).status, 421);
    assert_eq!(with("Host", "evil.example").status, 421);
    assert_eq!(with("Host", &format!("localhost:{port}")).status, 200);
    assert_eq!(with("Origin", "https://evil.example").status, 403);
    assert_eq!(with("Origin", "null").status, 403);
    let own = with("Origin", &format!("http://localhost:{port}"));
    assert_eq!(own.header("access-control-allow-origin"), Some(format!("http://localhost:{port}").as_str()));
    assert_eq!(with("Origin", "https://evil.example").header("access-control-allow-origin"), None);
    let absolute = format!(
        "GET http://evil.example/v1/me HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nConnection: close\r\n\r\n",
        site.address, ana.bearer
    );
    assert_eq!(site.raw(absolute.as_bytes()).status, 421);
    let two =
        format!("GET /v1/me HTTP/1.1\r\nHost: {0}\r\nHost: evil.example\r\nConnection: close\r\n\r\n", site.address);
    assert_ne!(site.raw(two.as_bytes()).status, 200);
    assert_ne!(site.raw(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").status, 200, "no host");
}

#[test]
fn a_body_that_takes_much_memory_is_refused_while_it_is_read() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let many = vec![json!({"a": 1}); 100_000];
    let answer = ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {"x": many}}));
    assert_eq!((answer.status, answer.code().as_str()), (413, "too-large"), "{answer:?}");
    assert!(answer.body.contains("40 MiB of memory"), "{answer:?}");
}

#[test]
fn large_slow_and_strange_requests_are_answered() {
    let site = Site::with(std::sync::Arc::new(charter_journal::MemoryStore::new()), |options| {
        options.limits.body_bytes = 100_000;
        options.limits.body_time = std::time::Duration::from_millis(300);
        options.limits.head_time = std::time::Duration::from_millis(300);
    });
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let large = json!({"type": "NOTE", "data": {"x": "y".repeat(200_000)}});
    assert_eq!(ana.post("/v1/runs/p1/events", &large).code(), "too-large");
    let deep = format!("{{\"type\": \"NOTE\", \"data\": {}{}}}", "[".repeat(30_000), "]".repeat(30_000));
    assert_eq!(site.ask("POST", "/v1/runs/p1/events", &[("Authorization", &ana.bearer)], Some(&deep)).status, 400);
    let head = format!(
        "POST /v1/runs/p1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{{",
        site.address, ana.bearer
    );
    assert_eq!(site.raw(head.as_bytes()).status, 408, "a body that never ends");
    assert_eq!(site.raw(b"GET /v1/me HTT").body, "", "a head that never ends: the connection is closed");
    let header = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nX-A: {}\r\n\r\n", site.address, "a".repeat(200_000));
    assert_ne!(site.raw(header.as_bytes()).status, 200);
    for path in [
        "/v1/runs/..%2f..%2fetc",
        "/v1/runs/%00",
        "/v1/runs/../../etc/passwd",
        "/v1//runs",
        "/v1/runs/p1/../p1",
        "/codes/..%2f..%2fCargo.toml",
        "/v1/runs/%ff",
    ] {
        let answer = ana.get(path);
        assert!(matches!(answer.status, 400 | 404), "{path}: {answer:?}");
        answer.code();
    }
    let smuggled = format!(
        "POST /v1/runs/p1/events HTTP/1.1\r\nHost: {0}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: {0}\r\n\r\n",
        site.address
    );
    let answer = site.raw(smuggled.as_bytes());
    assert!(answer.status >= 400 && !answer.body.contains("ok\n"), "{answer:?}");
    assert_eq!(site.ask("PUT", "/v1/runs", &[("Authorization", &ana.bearer)], None).status, 405);
    assert_eq!(ana.get("/nothing").code(), "no-such-page");
    assert_eq!(site.get("/healthz", &[]).body, "ok\n");
    assert_eq!(site.get("/readyz", &[]).body, "ready\n");
    assert_eq!(site.get("/metrics", &[]).status, 401);
    let metrics = ana.get("/metrics").body;
    assert!(metrics.ends_with("# EOF\n") && metrics.contains("charter_records_total"), "{metrics}");
}

#[test]
fn guessing_keys_is_slowed_down() {
    let site = Site::with(std::sync::Arc::new(charter_journal::MemoryStore::new()), |options| {
        options.limits.failures_per_second = 5;
        // A clock that stands still: all attempts are in one second.
        options.clock =
            charter_server::Clock(std::sync::Arc::new(charter_actors::VirtualClock::new(1_800_000_000_000)));
    });
    let statuses: Vec<u16> = (0..8).map(|_| site.get("/v1/me", &[("Authorization", "Bearer chk_x")]).status).collect();
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429, 429, 429]);
}

#[test]
fn a_server_for_other_machines_needs_a_key() {
    use charter_runtime::Runtime;
    use charter_server::{Options, Server, StartError};
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(async {
        let (host, _) =
            Runtime::open(std::sync::Arc::new(charter_journal::MemoryStore::new()), Default::default()).await.unwrap();
        let options = Options::local("0.0.0.0:0".parse().unwrap(), "uid:1000");
        let refused = Server::start(std::sync::Arc::new(host), Vec::new(), options).await;
        assert!(matches!(refused, Err(StartError::NoKeys(_))), "{refused:?}");
    });
}

#[test]
fn the_run_with_the_keys_is_not_ended() {
    let site = Site::new();
    for event in ["charter.cancel", "charter.pause", "charter.resume"] {
        let body = json!({"type": event}).to_string();
        let sent = site.ask("POST", "/v1/runs/host/events", &[("Charter-As", "nob")], Some(&body));
        assert_eq!(sent.status, 403, "{sent:?}");
    }
    let root = site.person("root", &["admin", "operator"]);
    let bot = site.agent("bot", &["admin", "operator"]);
    for client in [&root, &bot] {
        assert_eq!(client.post("/v1/runs/host/events", &json!({"type": "charter.cancel"})).status, 403);
    }
    site.person("ana", &["clerk"]);
}

#[test]
fn webhooks_are_not_added_with_events() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    for (private, url) in
        [(false, "http://a.example/"), (true, "http://127.0.0.1/"), (false, "https://169.254.169.254/")]
    {
        let data = json!({"hook": "0123456789ab", "url": url, "on": ["record"], "private": private});
        let sent = root.post("/v1/runs/host/events", &json!({"type": "HOOK_ADDED", "data": data}));
        assert_eq!((sent.status, sent.code().as_str()), (403, "forbidden"), "{sent:?}");
        assert!(sent.body.contains("/v1/hooks"), "{sent:?}");
    }
    assert_eq!(root.get("/v1/hooks").json()["hooks"], json!([]));
    let number = root.post("/v1/hooks", &json!({"url": "https://2130706433/", "on": ["record"]}));
    assert!((400..500).contains(&number.status), "{number:?}");
}

#[test]
fn a_role_that_a_charter_does_not_know_opens_nothing() {
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    let zed = site.person("zed", &["zzz"]);
    let reader = site.person("rea", &["reader"]);
    assert_eq!(ana.start("payment", "p1").status, 201);
    assert_eq!(zed.get("/v1/runs/p1").status, 404);
    assert_eq!(zed.start("payment", "p2").status, 404);
    assert_eq!(zed.get("/v1/charters").json()["charters"], json!([]));
    assert_eq!(zed.post("/v1/runs/p1/fork", &json!({"at": 0})).status, 404);
    // What is refused in any case leaves no record.
    let noise = json!({"type": "NOPE", "data": {"d": "x".repeat(100_000)}});
    assert_eq!(zed.post("/v1/runs/p1/events", &noise).status, 404);
    assert_eq!(reader.get("/v1/runs/p1").status, 200);
    for answer in [
        reader.post("/v1/runs/p1/events", &noise),
        reader.post("/v1/runs/p1/fork", &json!({"at": 0})),
        reader.start("payment", "p3"),
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{answer:?}");
    }
    assert_eq!(ana.get("/v1/runs/p1").json()["seq"], 0);
}

#[test]
fn a_charter_over_http_reaches_nothing_but_its_run() {
    let site = Site::new();
    let root = site.person("root", &["admin"]);
    let bot = site.agent("bot", &["admin"]);
    let source = |kind: &str| {
        format!(
            "charter: 1\nid: x\nactors: {{a: {{{kind}}}}}\ninitial: s\nstates: {{s: {{invoke: {{src: a, onDone: d, onError: d}}}}, d: {{type: final}}}}\n"
        )
    };
    for kind in [
        "kind: exec, command: [id]",
        "kind: http, url: 'http://127.0.0.1:1/', method: GET",
        "kind: workspace, do: curate",
        "kind: journal, type: x",
        "kind: model, prompt: x",
        "kind: tool, server: x, tool: y",
    ] {
        let answer = root.post("/v1/charters", &json!({"source": source(kind)}));
        assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"), "{kind}: {answer:?}");
    }
    let plain = json!({"source": source("kind: human")});
    assert_eq!(bot.post("/v1/charters", &plain).status, 403);
    assert_eq!(root.post("/v1/charters", &plain).status, 201);
}

#[test]
fn a_check_over_http_is_bounded() {
    use std::fmt::Write as _;
    let site = Site::new();
    let ana = site.person("ana", &["clerk"]);
    let mut source = String::from("charter: 1\nid: wide\nevents: {");
    let mut regions = String::new();
    for n in 0..40 {
        let _ = write!(source, "E{n}: {{}}, ");
        let _ =
            writeln!(regions, "      r{n}: {{initial: a, states: {{a: {{on: {{E{n}: b}}}}, b: {{on: {{E{n}: a}}}}}}}}");
    }
    let _ = write!(source, "}}\ninitial: p\nstates:\n  p:\n    type: parallel\n    states:\n{regions}");
    let report = ana.post("/v1/check", &json!({"source": source}));
    assert_eq!(report.status, 200, "{report:?}");
    assert!(report.json()["explored"]["states"].as_u64().unwrap() <= 20_000);
}

#[test]
fn a_login_link_opens_one_session_of_the_owner() {
    let clock = charter_actors::VirtualClock::new(1_800_000_000_000);
    let site = Site::with(std::sync::Arc::new(charter_journal::MemoryStore::new()), |options| {
        options.clock = charter_server::Clock(std::sync::Arc::new(clock.clone()));
    });
    let link = || {
        let link = site.login_link();
        let (address, code) = link.split_once("/#login=").unwrap();
        assert_eq!(address, format!("http://{}", site.address));
        json!({"code": code}).to_string()
    };
    let open = |body: &str| site.ask("POST", "/v1/session", &[], Some(body));
    let code = link();
    // Looking at it changes nothing: the code is not even sent.
    assert_eq!(site.get("/", &[("Accept", "text/html,*/*;q=0.8")]).status, 200);
    let opened = open(&code);
    assert_eq!((opened.status, opened.json()["id"].as_str()), (201, Some("uid:1000")), "{opened:?}");
    assert_eq!(open(&code).code(), "unauthenticated", "it was used");
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let csrf = opened.json()["csrf"].as_str().unwrap().to_owned();
    let session = [("Cookie", cookie.as_str()), ("X-CSRF-Token", csrf.as_str())];
    let me = site.get("/v1/me", &session).json();
    assert_eq!(
        (me["kind"].as_str(), me["auth"].as_str(), me["roles"].is_null()),
        (Some("person"), Some("session"), true)
    );
    // The owner adds keys, and still has a session afterwards; what it did has its name.
    let key = json!({"id": "ana", "grants": ["clerk"]}).to_string();
    assert_eq!(site.ask("POST", "/v1/keys", &[session[0]], Some(&key)).status, 403, "without the token");
    assert_eq!(site.ask("POST", "/v1/keys", &session, Some(&key)).status, 201);
    let start = json!({"charter": "payment", "run": "p1"}).to_string();
    let started = site.ask("POST", "/v1/runs", &session, Some(&start)).json();
    assert_eq!((started["by"]["id"].as_str(), started["by"]["auth"].as_str()), (Some("uid:1000"), Some("session")));
    // A person who is authenticated counts, but is one person: it does not approve its own.
    let send = |body: &serde_json::Value| site.ask("POST", "/v1/runs/p1/events", &session, Some(&body.to_string()));
    assert_eq!(send(&json!({"type": "PROPOSE", "data": {"amount": 5}})).status, 200);
    let legal = site.get("/v1/runs/p1/legal", &session).body;
    assert!(!legal.contains("\"digest\""), "{legal}");
    let guess = json!({"type": "APPROVE", "data": {"digest": "0".repeat(64)}});
    assert!(send(&guess).status >= 400);
    // The session's streams end with it.
    let mut stream = site.stream("/v1/runs/p1/stream", &session);
    assert!(stream.record().is_some() && stream.record().is_some());
    assert_eq!(site.ask("DELETE", "/v1/session", &session, None).status, 204);
    let ana = site.person("bob", &["boss"]);
    ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {}}));
    while stream.record().is_some() {}
    // Ten minutes.
    let late = link();
    site.wait(clock.advance(600_000));
    assert_eq!(open(&late).code(), "unauthenticated");
    for body in [r#"{"code": ""}"#, r#"{"code": "x"}"#] {
        assert_eq!(open(body).status, 401);
    }
    for body in [r#"{}"#, r#"{"code": "x", "key": "y"}"#, r#"{"code": 1}"#] {
        assert_eq!(open(body).status, 400, "{body}");
    }
}
