//! Sessions of browsers.

use charter_kernel::PrincipalKind;
use serde_json::json;

use crate::site::Site;

#[test]
fn a_session_needs_its_token_to_change_anything() {
    let site = Site::new();
    let secret = site.key("ana", PrincipalKind::Person, &["clerk", "boss"]);
    let body = json!({"key": secret.reveal()}).to_string();
    let opened = site.ask("POST", "/v1/session", &[], Some(&body));
    assert_eq!(opened.status, 201, "{opened:?}");
    let cookie = opened.header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(secret.reveal()) && !cookie.contains("Secure"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let csrf = opened.json()["csrf"].as_str().unwrap().to_owned();
    let start = json!({"charter": "payment", "run": "p1"}).to_string();
    let me = site.get("/v1/me", &[("Cookie", &cookie)]).json();
    assert_eq!((me["auth"].as_str(), me["csrf"].as_str()), (Some("session"), Some(csrf.as_str())));
    assert_eq!(site.ask("POST", "/v1/runs", &[("Cookie", &cookie)], Some(&start)).status, 403);
    assert_eq!(site.ask("POST", "/v1/runs", &[("Cookie", &cookie), ("X-CSRF-Token", "x")], Some(&start)).status, 403);
    let form = [("Cookie", cookie.as_str()), ("X-CSRF-Token", csrf.as_str()), ("Content-Type", "text/plain")];
    assert_eq!(site.ask("POST", "/v1/runs", &form, Some(&start)).status, 415);
    let both = [("Cookie", cookie.as_str()), ("X-CSRF-Token", csrf.as_str())];
    let started = site.ask("POST", "/v1/runs", &both, Some(&start));
    assert_eq!((started.status, started.json()["by"]["auth"].as_str()), (201, Some("session")), "{started:?}");
    assert_eq!(site.ask("DELETE", "/v1/session", &both, None).status, 204);
    assert_eq!(site.get("/v1/me", &[("Cookie", &cookie)]).status, 401);
    let wrong = site.ask("POST", "/v1/session", &[], Some(r#"{"key": "chk_nothing"}"#));
    assert_eq!(wrong.status, 401);
}

/// Opens a session of a new key; returns its cookie and its token.
fn open(site: &Site, id: &str) -> (String, String) {
    let key = site.key(id, PrincipalKind::Person, &["clerk"]);
    let body = json!({"key": key.reveal()}).to_string();
    let opened = site.ask("POST", "/v1/session", &[], Some(&body));
    let cookie = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    (cookie, opened.json()["csrf"].as_str().unwrap().to_owned())
}

#[test]
fn the_token_of_another_session_changes_nothing() {
    let site = Site::new();
    let ((ana, of_ana), (eve, of_eve)) = (open(&site, "ana"), open(&site, "eve"));
    let start = |cookie: &str, csrf: &str| {
        let headers = [("Cookie", cookie), ("X-CSRF-Token", csrf)];
        site.ask("POST", "/v1/runs", &headers, Some(&json!({"charter": "payment"}).to_string())).status
    };
    assert_eq!((start(&ana, &of_eve), start(&eve, &of_ana), start(&ana, "")), (403, 403, 403));
    // Of two cookies the first one counts, with its own token.
    assert_eq!(start(&format!("{eve}; {ana}"), &of_ana), 403);
    assert_eq!((start(&ana, &of_ana), start(&eve, &of_eve)), (201, 201));
}

#[test]
fn a_quiet_stream_ends_with_its_session() {
    let site = Site::new();
    let ((ana, csrf), (bob, _)) = (open(&site, "ana"), open(&site, "bob"));
    let both = [("Cookie", ana.as_str()), ("X-CSRF-Token", csrf.as_str())];
    let start = json!({"charter": "payment", "run": "p1"}).to_string();
    assert_eq!(site.ask("POST", "/v1/runs", &both, Some(&start)).status, 201);
    // The connection ends with the answer, and is not kept for another one.
    let stream = |cookie: &str, path: &str| site.stream(path, &[("Cookie", cookie), ("Connection", "close")]);
    let (mut of_run, mut all) = (stream(&ana, "/v1/runs/p1/stream"), stream(&ana, "/v1/stream"));
    let mut of_bob = stream(&bob, "/v1/runs/p1/stream");
    assert!(of_run.record().is_some() && all.next().is_some() && of_bob.record().is_some());
    let begin = std::time::Instant::now();
    assert_eq!(site.ask("DELETE", "/v1/session", &both, None).status, 204);
    assert_eq!((of_run.record(), all.record()), (None, None), "nothing happens in the run");
    assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
    let clerk = site.person("eve", &["clerk"]);
    clerk.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 1}}));
    assert!(of_bob.record().is_some(), "another session goes on");
}
