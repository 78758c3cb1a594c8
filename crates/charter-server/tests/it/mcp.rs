//! Agents that speak MCP over HTTP.

use charter_kernel::PrincipalKind;
use serde_json::{Value as Json, json};

use crate::site::{Answer, Client, Site};

const ALONE: &str = "2026-07-28";

fn request(id: u64, method: &str, params: &Json) -> Json {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A client without a session.
pub(crate) fn alone(client: &Client<'_>, method: &str, mut params: Json, more: &[(&str, &str)]) -> Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": ALONE, "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params.get("name").or_else(|| params.get("uri")).and_then(Json::as_str).unwrap_or_default().to_owned();
    let mut headers = vec![("MCP-Protocol-Version", ALONE), ("Mcp-Method", method)];
    if !name.is_empty() {
        headers.push(("Mcp-Name", &name));
    }
    headers.retain(|(own, _)| !more.iter().any(|(other, _)| own.eq_ignore_ascii_case(other)));
    headers.extend(more.iter().filter(|(_, value)| !value.is_empty()));
    client.post_with("/mcp/p1", &request(1, method, &params), &headers)
}

/// Begins a session; returns its id.
fn begin(client: &Client<'_>, version: &str) -> String {
    let hello = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = client.post("/mcp/p1", &request(1, "initialize", &hello));
    assert_eq!(answer.json()["result"]["protocolVersion"], version, "{answer:?}");
    let session = answer.header("mcp-session-id").unwrap().to_owned();
    assert!(session.len() >= 32 && session.bytes().all(|b| b.is_ascii_graphic()), "{session}");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(client.post_with("/mcp/p1", &ready, &[("Mcp-Session-Id", &session)]).status, 202);
    session
}

fn ask(client: &Client<'_>, session: &str, method: &str, params: &Json) -> Answer {
    client.post_with("/mcp/p1", &request(2, method, params), &[("Mcp-Session-Id", session)])
}

fn site() -> Site {
    let site = Site::new();
    site.person("ana", &["clerk"]).start("payment", "p1");
    site
}

#[test]
fn each_generation_sends_an_event_and_reads_a_refusal() {
    let site = site();
    let bot = site.agent("bot", &["clerk"]);
    let mut seq = 0;
    for version in ["2025-06-18", "2025-11-25"] {
        let session = begin(&bot, version);
        let call = json!({"name": "send", "arguments": {"type": "NOTE", "data": {}}});
        let answer = ask(&bot, &session, "tools/call", &call);
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        seq += 1;
        let run = answer.json()["result"]["structuredContent"].clone();
        assert_eq!((&run["refusal"]["code"], &run["record"]), (&json!("unhandled"), &json!(seq)), "{run}");
    }
    let sent = alone(&bot, "tools/call", json!({"name": "PROPOSE", "arguments": {"amount": 3}}), &[]);
    let run = sent.json()["result"]["structuredContent"].clone();
    assert_eq!((sent.status, &run["accepted"], &run["state"]), (200, &json!(true), &json!(["review"])));
    let records = site.wait(charter_runtime::backend::Backend::records(&site.host, "p1".into(), 0, 10)).unwrap();
    let verdicts: Vec<(String, String)> =
        records.iter().map(|r| (r.by.id.clone(), format!("{:?}", r.verdict))).collect();
    assert_eq!(
        verdicts[1..],
        [("bot", "Refused"), ("bot", "Refused"), ("bot", "Accepted")].map(|(a, b)| (a.into(), b.into()))
    );
}

#[test]
fn the_news_of_a_session_is_a_stream_that_continues() {
    let site = site();
    let (ana, bot) = (site.person("ana", &["clerk"]), site.agent("bot", &["clerk"]));
    let session = begin(&bot, "2025-11-25");
    let own = [("Mcp-Session-Id", session.as_str()), ("Accept", "text/event-stream")];
    let subscribe = json!({"uri": "charter://runs/p1"});
    assert_eq!(ask(&bot, &session, "resources/subscribe", &subscribe).json()["result"], json!({}));
    let mut events = bot.stream("/mcp/p1", &own);
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    assert_eq!(events.next().unwrap().data["method"], "notifications/tools/list_changed");
    assert_eq!(events.next().unwrap().data["params"]["uri"], "charter://runs/p1");
    drop(events);
    // What happens without a stream is told by the next one.
    ana.post("/v1/runs/p1/events", &json!({"type": "NOTE", "data": {}}));
    let mut events = bot.stream("/mcp/p1", &own);
    assert_eq!(events.next().unwrap().data["method"], "notifications/resources/updated");
    // The end of the session is the end of its streams.
    let end = site.ask("DELETE", "/mcp/p1", &[("Authorization", &bot.bearer), own[0]], None);
    assert_eq!(end.status, 204);
    assert!(events.next().is_none());
    assert_eq!(ask(&bot, &session, "tools/list", &json!({})).status, 404);
}

#[test]
fn a_subscription_without_a_session_is_a_stream() {
    let site = site();
    let (ana, bot) = (site.person("ana", &["clerk"]), site.agent("bot", &["clerk"]));
    let params = json!({
        "notifications": {"toolsListChanged": true},
        "_meta": {"io.modelcontextprotocol/protocolVersion": ALONE, "io.modelcontextprotocol/clientCapabilities": {}},
    });
    let headers = [("MCP-Protocol-Version", ALONE), ("Mcp-Method", "subscriptions/listen")];
    let mut events = bot.post_stream("/mcp/p1", &request(7, "subscriptions/listen", &params), &headers);
    let first = events.next().unwrap().data;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    let news = events.next().unwrap().data;
    assert_eq!(news["method"], "notifications/tools/list_changed");
    assert_eq!(news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    site.close();
    let last = events.next().map(|event| event.data);
    assert!(last.is_none_or(|last| last["id"] == 7 && last["result"]["resultType"] == "complete"));
}

#[test]
fn keys_hosts_and_origins_are_checked_here_too() {
    let site = site();
    let bot = site.agent("bot", &["clerk"]);
    let hello = request(1, "initialize", &json!({"protocolVersion": "2025-11-25"})).to_string();
    let none = site.ask("POST", "/mcp/p1", &[], Some(&hello));
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some("Bearer realm=\"charter\"")));
    assert_eq!(site.ask("POST", "/mcp/p1", &[("Authorization", "Bearer chk_x")], Some(&hello)).status, 401);
    let evil = [("Authorization", bot.bearer.as_str()), ("Origin", "http://evil.example")];
    assert_eq!(site.ask("POST", "/mcp/p1", &evil, Some(&hello)).status, 403);
    let rebound = [("Authorization", bot.bearer.as_str()), ("Host", "evil.example")];
    assert_eq!(site.ask("POST", "/mcp/p1", &rebound, Some(&hello)).status, 421);
    let form = [("Authorization", bot.bearer.as_str()), ("Content-Type", "text/plain")];
    assert_eq!(site.ask("POST", "/mcp/p1", &form, Some(&hello)).status, 415);
    assert_eq!(site.get("/.well-known/oauth-protected-resource/mcp/p1", &[]).status, 404, "without OIDC");
    assert_eq!(bot.get("/mcp").status, 404);
    assert_eq!(bot.post("/mcp/p2", &request(1, "ping", &json!({}))).status, 404);
    let admin = site.agent("root", &["admin"]);
    assert_eq!(admin.post("/mcp/host", &request(1, "ping", &json!({}))).status, 403, "the keys are not for agents");
    let eve = site.agent("eve", &["other/clerk"]);
    assert_eq!(eve.post("/mcp/p1", &request(1, "ping", &json!({}))).status, 404);
    let reader = site.agent("reader", &["reader"]);
    assert_eq!(reader.post("/mcp/p1", &request(1, "ping", &json!({}))).status, 403, "it has no role in the run");
}

#[test]
fn a_session_belongs_to_its_key_and_its_run() {
    let site = site();
    let (one, two) = (site.agent("one", &["clerk"]), site.agent("two", &["clerk"]));
    site.person("ana", &["clerk"]).start("payment", "p2");
    let session = begin(&one, "2025-11-25");
    assert_eq!(ask(&two, &session, "tools/list", &json!({})).status, 404);
    let elsewhere = one.post_with("/mcp/p2", &request(2, "ping", &json!({})), &[("Mcp-Session-Id", &session)]);
    assert_eq!(elsewhere.status, 404);
    assert_eq!(one.post("/mcp/p1", &request(2, "ping", &json!({}))).status, 400, "no session");
    let version = |value: &str| {
        let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", value)];
        one.post_with("/mcp/p1", &request(2, "ping", &json!({})), &headers)
    };
    assert_eq!(version("2025-11-25").status, 200);
    assert_eq!(version("2025-06-18").status, 400, "not what was agreed on");
    assert_eq!(version("2030-01-01").json()["error"]["code"], -32_022);
    let get = |headers: &[(&str, &str)]| {
        let mut all = vec![("Authorization", one.bearer.as_str())];
        all.extend(headers);
        site.get("/mcp/p1", &all)
    };
    assert_eq!(get(&[("Mcp-Session-Id", &session)]).status, 406);
    assert_eq!(get(&[("Accept", "text/event-stream")]).status, 400);
    let old = get(&[("MCP-Protocol-Version", ALONE), ("Accept", "text/event-stream")]);
    assert_eq!((old.status, old.header("allow")), (405, Some("POST")));
    // The one that was not used for longest makes room.
    let other = begin(&two, "2025-11-25");
    for _ in 0..64 {
        begin(&one, "2025-11-25");
    }
    assert_eq!(ask(&one, &session, "ping", &json!({})).status, 404);
    assert_eq!(ask(&two, &other, "ping", &json!({})).status, 200, "not the sessions of others");
}

#[test]
fn headers_agree_with_the_message() {
    let site = site();
    let bot = site.agent("bot", &["clerk"]);
    let call = || json!({"name": "status", "arguments": {}});
    assert_eq!(alone(&bot, "tools/call", call(), &[]).status, 200);
    assert_eq!(alone(&bot, "tools/call", call(), &[("Mcp-Name", "=?base64?c3RhdHVz?=")]).status, 200);
    for wrong in [
        ("Mcp-Method", ""),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "TOOLS/CALL"),
        ("Mcp-Name", ""),
        ("Mcp-Name", "send"),
        ("Mcp-Name", "=?base64?!!?="),
        ("MCP-Protocol-Version", ""),
        ("MCP-Protocol-Version", "2025-11-25"),
    ] {
        let answer = alone(&bot, "tools/call", call(), &[wrong]);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32_020)), "{wrong:?}");
        assert_eq!(answer.json()["id"], 1);
    }
    let unknown = alone(&bot, "no/method", json!({}), &[]);
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32_601)));
    let bare = bot.post_with("/mcp/p1", &request(3, "tools/list", &json!({})), &[("MCP-Protocol-Version", ALONE)]);
    assert_eq!((bare.status, &bare.json()["error"]["code"]), (400, &json!(-32_602)));
}

#[test]
fn what_is_not_a_message_is_refused() {
    let site = site();
    let bot = site.agent("bot", &["clerk"]);
    let own = [("Authorization", bot.bearer.as_str())];
    for (body, code) in [("", -32_700), ("x", -32_700), ("[]", -32_600), (r#"{"a":1,"a":1}"#, -32_700)] {
        let answer = site.ask("POST", "/mcp/p1", &own, Some(body));
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(code)), "{body}");
    }
    let large = " ".repeat((8 << 20) + 1);
    assert_eq!(site.ask("POST", "/mcp/p1", &own, Some(&large)).status, 413);
    assert_eq!(site.ask("PUT", "/mcp/p1", &own, Some("{}")).status, 405);
    let tools = bot.post("/mcp/p1?tools=all", &request(1, "ping", &json!({})));
    assert_eq!(tools.code(), "bad-request");
}

#[test]
fn a_persons_key_decides_nothing_through_an_agent() {
    let site = site();
    let (ana, boss) = (site.person("ana", &["clerk"]), site.person("boss", &["boss"]));
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    let waiting = alone(&boss, "tools/call", json!({"name": "legal"}), &[]).json();
    let digest = waiting["result"]["structuredContent"]["waiting"][0]["digest"].clone();
    assert!(digest.is_string(), "{waiting}");
    let approve = json!({"name": "send", "arguments": {"type": "APPROVE", "data": {"digest": digest}}});
    let answer = alone(&boss, "tools/call", approve, &[]).json();
    assert_eq!(answer["result"]["structuredContent"]["refusal"]["code"], "authority", "{answer}");
    let records = site.wait(charter_runtime::backend::Backend::records(&site.host, "p1".into(), 2, 1)).unwrap();
    assert_eq!((records[0].by.id.as_str(), records[0].by.kind()), ("boss", PrincipalKind::Agent));
    let person = boss.post("/v1/runs/p1/events", &json!({"type": "APPROVE", "data": {"digest": digest}}));
    assert_eq!(person.status, 200, "{person:?}");
}

#[cfg(feature = "oidc")]
#[test]
fn with_oidc_a_client_learns_where_tokens_come_from() {
    let issuer = "https://login.example";
    let site = Site::with(std::sync::Arc::new(charter_journal::MemoryStore::new()), |options| {
        options.oidc = Some(charter_server::OidcOptions {
            issuer: issuer.to_owned(),
            client: "charter".to_owned(),
            id_claim: None,
            roles_claim: None,
        });
    });
    let none = site.ask("POST", "/mcp/p1", &[], Some("{}"));
    let (address, path) = (site.address, "/.well-known/oauth-protected-resource/mcp/p1");
    let told = format!("Bearer realm=\"charter\", resource_metadata=\"http://{address}{path}\"");
    assert_eq!((none.status, none.header("www-authenticate")), (401, Some(told.as_str())));
    let metadata = site.get(path, &[]).json();
    assert_eq!(metadata["resource"], format!("http://{address}/mcp/p1"));
    assert_eq!(metadata["authorization_servers"], json!([issuer]));
}
