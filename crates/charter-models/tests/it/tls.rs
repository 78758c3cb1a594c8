//! Models behind TLS: the certificate of a server is checked against the roots of the network
//! before anything is sent.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use charter_actors::Network;
use charter_models::{HttpTransport, codes};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::servers::{Server, anthropic, gemini, openai, server};
use crate::wire::{GOOD, asked_within, model};

const TIME: Duration = Duration::from_secs(20);

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server for `localhost` that decrypts what arrives and passes it on.
fn behind_tls(plain: &Server, authority: &Issuer, name: &str) -> Server {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    presenting(plain, &certificate, &key)
}

fn presenting(plain: &Server, certificate: &Certificate, key: &KeyPair) -> Server {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // A server may have a certificate whose key it does not have.
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let presented = rustls::sign::CertifiedKey::new(vec![certificate.der().clone()], key);
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(presented)));
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let target = plain.url.trim_start_matches("http://").to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (config, target) = (config.clone(), target.clone());
            std::thread::spawn(move || drop(pass_on(stream.unwrap(), config, &target)));
        }
    });
    Server { url, asked: plain.asked.clone() }
}

/// Passes one request on. Its body is complete when its announced length has arrived.
fn pass_on(stream: TcpStream, config: Arc<ServerConfig>, target: &str) -> std::io::Result<()> {
    let mut tls = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let (mut request, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        let read = tls.read(&mut part)?;
        request.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break;
        }
    }
    let mut plain = TcpStream::connect(target)?;
    plain.write_all(&request)?;
    let mut response = Vec::new();
    plain.read_to_end(&mut response)?;
    tls.write_all(&response)?;
    tls.conn.send_close_notify();
    tls.flush()
}

#[test]
fn a_server_with_a_certificate_of_the_roots_is_asked_and_no_other() {
    let (ours, theirs) = (authority(), authority());
    let network = Network::default().roots(ours.pem().as_bytes()).unwrap();
    for (provider, answer) in [("openai", openai(GOOD)), ("anthropic", anthropic(GOOD)), ("gemini", gemini(GOOD))] {
        let plain = server(vec![answer]);
        for (issuer, name, good) in
            [(&ours, "localhost", true), (&theirs, "localhost", false), (&ours, "other.example", false)]
        {
            let server = behind_tls(&plain, issuer, name);
            let (answer, exchange) =
                asked_within(&model(provider, &server), &HttpTransport::new(&network), 100_000, TIME);
            let received = std::mem::take(&mut *plain.asked.lock().unwrap());
            if good {
                assert_eq!(answer.unwrap()["sure"], 0.9, "{provider}");
                assert_eq!((received.len(), exchange.requests), (1, 1));
                continue;
            }
            let fault = answer.unwrap_err();
            assert_eq!((fault.code.as_str(), fault.retryable), (codes::UNAVAILABLE, false), "{fault:?}");
            assert_eq!(exchange.requests, 1, "it is not asked again");
            assert!(fault.message.contains("certificate"), "{}", fault.message);
            assert!(received.is_empty(), "no key is sent to a server that nobody vouches for");
        }
        // Without the roots, a certificate of our own authority is unknown.
        let server = behind_tls(&plain, &ours, "localhost");
        let (answer, _) = asked_within(&model(provider, &server), &HttpTransport::default(), 100_000, TIME);
        assert!(answer.unwrap_err().message.contains("certificate"));
    }
}

/// A certificate of an authority, signed by itself, like those of `openssl req -x509`.
fn self_signed(name: &str, years: std::ops::Range<i32>, key: &KeyPair) -> Certificate {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
    params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
    params.self_signed(key).unwrap()
}

#[test]
fn a_certificate_of_an_authority_is_taken_from_a_server_only_if_it_is_the_very_same() {
    let [key, other] = [(); 2].map(|()| KeyPair::generate().unwrap());
    let good = self_signed("localhost", 2020..2199, &key);
    let another = self_signed("localhost", 2020..2199, &other);
    let misnamed = self_signed("other.example", 2020..2199, &key);
    let expired = self_signed("localhost", 2020..2021, &key);
    let own = [&good, &misnamed, &expired].map(Certificate::pem).concat();
    let network = Network::default().own_roots(own.as_bytes()).unwrap();
    let roots_only = Network::default().roots(own.as_bytes()).unwrap();
    for (certificate, key, network, why) in [
        (&good, &key, &network, None),
        (&good, &key, &roots_only, Some("set SSL_CERT_FILE to a PEM file with exactly this certificate")),
        (&another, &other, &network, Some("it is that of an authority, and not in SSL_CERT_FILE")),
        (&misnamed, &key, &network, Some("it is not for this name")),
        (&expired, &key, &network, Some("it has expired")),
        // Who has the certificate and not its key.
        (&good, &other, &network, Some("")),
    ] {
        let plain = server(vec![openai(GOOD)]);
        let server = presenting(&plain, certificate, key);
        let (answer, exchange) = asked_within(&model("openai", &server), &HttpTransport::new(network), 100_000, TIME);
        let Some(why) = why else {
            assert_eq!(answer.unwrap()["sure"], 0.9);
            continue;
        };
        let fault = answer.unwrap_err();
        assert!(fault.message.contains(why), "{why}: {}", fault.message);
        assert!(plain.asked.lock().unwrap().is_empty(), "nothing is sent");
        assert!(why.is_empty() || (exchange.requests == 1 && !fault.retryable), "{fault:?}");
    }
    // Certificates of an authority among the own ones are accepted as before.
    let issuer = authority();
    let network = Network::default().own_roots((own + &issuer.pem()).as_bytes()).unwrap();
    let plain = server(vec![openai(GOOD)]);
    for (name, good) in [("localhost", true), ("other.example", false)] {
        let server = behind_tls(&plain, &issuer, name);
        let (answer, _) = asked_within(&model("openai", &server), &HttpTransport::new(&network), 100_000, TIME);
        assert_eq!(answer.is_ok(), good, "{answer:?}");
    }
}
