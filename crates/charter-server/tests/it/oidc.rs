//! Tokens of an `OpenID` provider: a small one runs here, with keys of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use charter_actors::VirtualClock;
use charter_journal::MemoryStore;
use charter_kernel::PrincipalKind;
use charter_server::{Clock, OidcOptions};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value as Json, json};

use crate::site::{Answer, Site};

/// Seconds since 1970.
const NOW: i64 = 1_800_000_000;

fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key of a provider.
struct Key {
    kid: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    fn new(kid: &'static str) -> Key {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Key { kid, pair }
    }

    fn jwk(&self) -> Json {
        let point = self.pair.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.kid, "x": b64(&point[1..33]), "y": b64(&point[33..])})
    }

    fn sign(&self, head: &Json, claims: &Json) -> String {
        let signed = format!("{}.{}", b64(head.to_string()), b64(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", b64(signature))
    }

    fn token(&self, claims: &Json) -> String {
        self.sign(&json!({"alg": "ES256", "kid": self.kid, "typ": "JWT"}), claims)
    }
}

/// A provider: its discovery document and its keys.
struct Provider {
    url: String,
    keys: Arc<Mutex<String>>,
    /// How often the keys were asked for.
    asked: Arc<AtomicU64>,
    delay: Arc<AtomicU64>,
}

impl Provider {
    fn new(keys: &[&Key]) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let provider =
            Provider { url: url.clone(), keys: Arc::default(), asked: Arc::default(), delay: Arc::default() };
        provider.publish(keys);
        let (keys, asked, delay) = (provider.keys.clone(), provider.asked.clone(), provider.delay.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().and_then(Result::ok).unwrap_or_default();
                while lines.next().and_then(Result::ok).is_some_and(|line| !line.is_empty()) {}
                let body = match first.split(' ').nth(1) {
                    Some("/.well-known/openid-configuration") => {
                        json!({"issuer": url, "jwks_uri": format!("{url}/jwks"), "more": [1, 2]}).to_string()
                    }
                    Some("/jwks") => {
                        asked.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(delay.load(Ordering::SeqCst)));
                        keys.lock().unwrap().clone()
                    }
                    _ => String::new(),
                };
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        });
        provider
    }

    fn publish(&self, keys: &[&Key]) {
        let keys: Vec<Json> = keys.iter().map(|key| key.jwk()).collect();
        *self.keys.lock().unwrap() = json!({"keys": keys}).to_string();
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    fn claims(&self, id: &str) -> Json {
        json!({"iss": self.url, "aud": "charter", "sub": id, "exp": NOW + 300, "iat": NOW})
    }

    fn site(&self, roles_claim: Option<&str>) -> (Site, VirtualClock) {
        let clock = VirtualClock::new(NOW * 1_000);
        let (of_site, issuer) = (clock.clone(), self.url.clone());
        let roles_claim = roles_claim.map(str::to_owned);
        let site = Site::with(Arc::new(MemoryStore::new()), move |options| {
            options.clock = Clock(Arc::new(of_site));
            options.oidc = Some(OidcOptions { issuer, client: "charter".into(), id_claim: None, roles_claim });
        });
        (site, clock)
    }
}

fn with(claims: &Json, more: Json) -> Json {
    let mut claims = claims.clone();
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    claims
}

fn me(site: &Site, token: &str) -> Answer {
    site.get("/v1/me", &[("Authorization", &format!("Bearer {token}"))])
}

fn send(site: &Site, token: &str, path: &str, body: &Json) -> Answer {
    site.ask("POST", path, &[("Authorization", &format!("Bearer {token}"))], Some(&body.to_string()))
}

#[test]
fn a_token_names_a_person_whose_roles_are_those_of_its_keys() {
    let key = Key::new("k1");
    let provider = Provider::new(&[&key]);
    let (site, _) = provider.site(None);
    let bob = key.token(&with(&provider.claims("bob"), json!({"roles": ["payment/boss"]})));
    assert_eq!(site.get("/v1/me", &[("Charter-As", "bob")]).status, 401, "with a provider, names are not claimed");
    assert_eq!(me(&site, &bob).json()["roles"], json!([]), "no claim is configured");
    let ana = site.person("ana", &["clerk"]);
    site.key("bob", PrincipalKind::Person, &["payment/boss"]);
    // The roles of an agent are not for a person of the same name.
    let agent = site.agent("bob", &["admin"]);
    // The keys are known once the last one is used; by themselves, a moment later.
    assert_eq!(agent.get("/v1/me").status, 200);
    let who = me(&site, &bob).json();
    assert_eq!((&who["id"], &who["kind"], &who["auth"]), (&json!("bob"), &json!("person"), &json!("oidc")));
    assert_eq!(who["roles"], json!(["payment/boss"]));
    ana.start("payment", "p1");
    ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 5}}));
    let legal = site.get("/v1/runs/p1/legal", &[("Authorization", &format!("Bearer {bob}"))]).json();
    let offer = legal["events"].as_array().unwrap().iter().find(|e| e["type"] == "APPROVE").unwrap().clone();
    let approve = json!({"type": "APPROVE", "data": {"digest": offer["demands"]["approves"]["digest"]}});
    // Four eyes: the same id is the same person, however authenticated.
    let own = key.token(&provider.claims("ana"));
    assert_eq!(send(&site, &own, "/v1/runs/p1/events", &approve).status, 403);
    let done = send(&site, &bob, "/v1/runs/p1/events", &approve);
    assert_eq!((done.status, &done.json()["by"]["auth"]), (200, &json!("oidc")), "{done:?}");
    assert_eq!(provider.asked(), 1, "keys are kept");
    // The page has sessions of keys.
    let session = site.ask("POST", "/v1/session", &[], Some(&json!({"key": bob}).to_string()));
    assert_eq!(session.status, 401, "{session:?}");
}

#[test]
fn roles_come_from_a_claim_only_if_it_is_configured() {
    let key = Key::new("k1");
    let provider = Provider::new(&[&key]);
    let (site, _) = provider.site(Some("realm.roles"));
    let roles = json!({"realm": {"roles": ["payment/boss", "a group", "x/y/z/w", 7, "system"]}});
    let token = key.token(&with(&provider.claims("eve"), roles));
    assert_eq!(me(&site, &token).json()["roles"], json!(["payment/boss"]));
    let words = key.token(&with(&provider.claims("eve"), json!({"realm.roles": "reader payment/clerk"})));
    assert_eq!(me(&site, &words).json()["roles"], json!(["reader", "payment/clerk"]));
    // A token that a program got for itself is not a person, so it approves nothing.
    for more in [json!({"client_id": "eve"}), json!({"azp": "eve"}), json!({"gty": "client-credentials"})] {
        let program = key.token(&with(&provider.claims("eve"), more));
        assert_eq!(me(&site, &program).json()["kind"], "service");
    }
}

#[test]
fn what_the_provider_has_not_signed_for_this_server_opens_nothing() {
    let (key, wrong) = (Key::new("k1"), Key::new("k1"));
    let provider = Provider::new(&[&key]);
    let (site, _) = provider.site(Some("roles"));
    let claims = with(&provider.claims("eve"), json!({"roles": ["admin"]}));
    assert_eq!(me(&site, &key.token(&claims)).status, 200);
    let head = |more: Json| with(&json!({"alg": "ES256", "kid": "k1"}), more);
    let none = format!("{}.{}.", b64(json!({"alg": "none"}).to_string()), b64(claims.to_string()));
    // A public key as the shared secret: whatever the signature, the algorithm is refused.
    let hs256 = key.sign(&head(json!({"alg": "HS256"})), &claims);
    let good = key.token(&claims);
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let other =
        format!("{}.{}.{signature}", signed.split('.').next().unwrap(), b64(claims.to_string().replace("eve", "ana")));
    let cases = [
        ("alg none", none, "`alg`"),
        ("alg none with a signature", key.sign(&head(json!({"alg": "none"})), &claims), "`alg`"),
        ("alg HS256", hs256, "`alg`"),
        ("alg RS256 with another key's kind", key.sign(&head(json!({"alg": "RS256"})), &claims), "no such key"),
        ("wrong key", wrong.token(&claims), "signature"),
        ("other claims", other, "signature"),
        ("no signature", format!("{signed}."), "signature"),
        ("kid of another issuer", Key::new("theirs").token(&claims), "no such key"),
        ("other issuer", key.token(&with(&claims, json!({"iss": "https://evil.example"}))), "`iss`"),
        ("issuer with a slash", key.token(&with(&claims, json!({"iss": format!("{}/", provider.url)}))), "`iss`"),
        ("other audience", key.token(&with(&claims, json!({"aud": "shop"}))), "`aud`"),
        ("other party", key.token(&with(&claims, json!({"aud": ["charter", "shop"], "azp": "shop"}))), "`azp`"),
        ("no audience", key.token(&with(&claims, json!({"aud": null}))), "`aud`"),
        ("expired", key.token(&with(&claims, json!({"exp": NOW - 61}))), "`exp`"),
        ("no end", key.token(&with(&claims, json!({"exp": null}))), "`exp`"),
        ("an end that is text", key.token(&with(&claims, json!({"exp": "9999999999"}))), "`exp`"),
        ("not yet", key.token(&with(&claims, json!({"nbf": NOW + 61}))), "`nbf`"),
        ("a begin that is text", key.token(&with(&claims, json!({"nbf": "0"}))), "`nbf`"),
        ("a logout token", key.sign(&head(json!({"typ": "logout+jwt"})), &claims), "`typ`"),
        ("extensions", key.sign(&head(json!({"crit": ["b64"], "b64": false})), &claims), "`crit`"),
        ("bound", key.token(&with(&claims, json!({"cnf": {"jkt": "x"}}))), "`cnf`"),
        ("the host", key.token(&with(&claims, json!({"sub": "system"}))), "`sub`"),
        ("no id", key.token(&with(&claims, json!({"sub": ""}))), "`sub`"),
        ("a strange id", key.token(&with(&claims, json!({"sub": "a b"}))), "`sub`"),
        ("huge", key.token(&with(&claims, json!({"more": "x".repeat(20_000)}))), "16 KiB"),
        ("not a token", "a.b.c".to_owned(), "not a JWT"),
        ("four parts", format!("{good}.x"), "this is not a key"),
    ];
    for (name, token, why) in cases {
        let answer = me(&site, &token);
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthenticated"), "{name}: {answer:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(why), "{name}: {answer:?}");
        assert!(!answer.body.contains("kid of"), "{answer:?}");
    }
    // Clocks may differ by a minute.
    for more in [json!({"exp": NOW - 59}), json!({"nbf": NOW + 59}), json!({"exp": NOW as f64 + 0.5})] {
        assert_eq!(me(&site, &key.token(&with(&claims, more.clone()))).status, 200, "{more}");
    }
    assert_eq!(provider.asked(), 1, "unknown names of keys make at most one request a minute");
}

#[test]
fn keys_are_fetched_again_when_they_change_and_at_most_once_a_minute() {
    let (old, new) = (Key::new("old"), Key::new("new"));
    let provider = Provider::new(&[&old]);
    let (site, clock) = provider.site(None);
    let status =
        |key: &Key| me(&site, &key.token(&with(&provider.claims("ana"), json!({"exp": NOW + 999_999})))).status;
    assert_eq!((status(&old), status(&new), provider.asked()), (200, 401, 1), "just asked");
    provider.publish(&[&new]);
    assert_eq!((status(&new), provider.asked()), (401, 1));
    site.wait(clock.advance(60_000));
    assert_eq!((status(&new), status(&old), provider.asked()), (200, 401, 2));
    // A key that was withdrawn ends within an hour, without an unknown one.
    provider.publish(&[&old]);
    site.wait(clock.advance(3_600_000));
    let begin = Instant::now();
    while status(&new) != 401 {
        assert!(begin.elapsed() < Duration::from_secs(60), "the keys are not fetched again");
        std::thread::sleep(Duration::from_millis(20));
    }
    // What the provider answers now is not understood; its keys are used for a day.
    *provider.keys.lock().unwrap() = "<html>".to_owned();
    site.wait(clock.advance(23 * 3_600_000));
    assert_eq!(status(&old), 200);
    site.wait(clock.advance(3_600_000));
    let answer = me(&site, &old.token(&with(&provider.claims("ana"), json!({"exp": NOW + 999_999}))));
    assert_eq!((answer.status, answer.code().as_str()), (503, "unavailable"), "{answer:?}");
    assert!(answer.body.contains("is not understood") && answer.header("retry-after").is_some(), "{answer:?}");
}

#[test]
fn a_provider_that_is_slow_or_too_large_holds_up_nobody_with_a_key() {
    let key = Key::new("k1");
    let provider = Provider::new(&[&key]);
    provider.delay.store(3_000, Ordering::SeqCst);
    let (site, clock) = provider.site(None);
    let ana = site.person("ana", &["clerk"]);
    let token = key.token(&provider.claims("bob"));
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..20).map(|_| scope.spawn(|| me(&site, &token).status)).collect();
        while provider.asked() == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let begin = Instant::now();
        assert_eq!(ana.get("/v1/me").status, 200);
        assert!(begin.elapsed() < Duration::from_millis(2_500), "somebody with a key waits");
        assert!(waiting.into_iter().all(|thread| thread.join().unwrap() == 200));
    });
    assert_eq!(provider.asked(), 1, "all wait for the same answer");
    provider.delay.store(0, Ordering::SeqCst);
    *provider.keys.lock().unwrap() = format!("{{\"keys\": [{}1]}}", "1,".repeat(200_000));
    site.wait(clock.advance(25 * 3_600_000));
    let answer = me(&site, &token);
    assert!(answer.status == 503 && answer.body.contains("256 KiB"), "{answer:?}");
}

#[test]
fn a_stream_ends_with_its_token() {
    let key = Key::new("k1");
    let provider = Provider::new(&[&key]);
    let (site, clock) = provider.site(None);
    let ana = site.person("ana", &["clerk"]);
    ana.start("payment", "p1");
    let token = format!("Bearer {}", key.token(&provider.claims("ana")));
    let mut events = site.stream("/v1/runs/p1/stream", &[("Authorization", &token)]);
    assert_eq!(events.record().and_then(|event| event.id), Some(0));
    site.wait(clock.advance(360_000));
    assert_eq!(ana.post("/v1/runs/p1/events", &json!({"type": "PROPOSE", "data": {"amount": 5}})).status, 200);
    assert_eq!(events.record(), None, "the token has expired");
}

#[test]
fn an_address_that_is_not_safe_is_no_provider() {
    for issuer in
        ["http://issuer.example", "https://user@issuer.example", "issuer", "ftp://localhost", "https://a/?x=1"]
    {
        let (issuer, client) = (issuer.to_owned(), "charter".to_owned());
        let options = OidcOptions { issuer, client, id_claim: None, roles_claim: None };
        let started = Site::refused(|all| all.oidc = Some(options));
        assert!(started.contains("cannot be the issuer of tokens"), "{started}");
    }
    // The document is of somebody else.
    let key = Key::new("k1");
    let provider = Provider::new(&[&key]);
    let issuer = provider.url.replace("127.0.0.1", "localhost");
    let site = Site::with(Arc::new(MemoryStore::new()), |options| {
        let client = "charter".to_owned();
        options.oidc = Some(OidcOptions { issuer: issuer.clone(), client, id_claim: None, roles_claim: None });
    });
    let answer =
        me(&site, &key.token(&with(&provider.claims("ana"), json!({"iss": issuer, "exp": 9_999_999_999_i64}))));
    assert!(answer.status == 503 && answer.body.contains("says that its issuer is"), "{answer:?}");
}

/// With `OIDC_PROVIDER=FOLDER`, where `npm install oidc-provider` was called: a real provider.
#[test]
fn a_certified_provider() {
    let Ok(folder) = std::env::var("OIDC_PROVIDER") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc-provider.mjs");
    let mut node = std::process::Command::new("node");
    node.args([script, &folder]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut node = node.spawn().unwrap();
    // The provider warns on its output, too.
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Json = serde_json::from_str(&lines.find(|line| line.starts_with('{')).unwrap()).unwrap();
    let text = |name: &str| said[name].as_str().unwrap().to_owned();
    let (issuer, client) = (text("issuer"), "charter".to_owned());
    let site = Site::with(Arc::new(MemoryStore::new()), |options| {
        let roles_claim = Some("groups".to_owned());
        options.oidc = Some(OidcOptions { issuer, client, id_claim: None, roles_claim });
    });
    let who = me(&site, &text("person"));
    let (status, who) = (who.status, who.json());
    assert_eq!((status, &who["id"], &who["kind"]), (200, &json!("bob"), &json!("person")), "{who}");
    assert_eq!((&who["auth"], &who["roles"]), (&json!("oidc"), &json!(["payment/boss"])));
    let program = me(&site, &text("program")).json();
    assert_eq!((&program["id"], &program["kind"], &program["roles"]), (&json!("robot"), &json!("service"), &json!([])));
    drop(node.stdin.take());
    node.wait().unwrap();
}
