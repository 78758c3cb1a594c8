//! The keys of a provider, at the address that its discovery document names.

use std::io::Read as _;
use std::time::Duration;

use charter_actors::{ClientOptions, http_client, unreachable_server};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::keys::Keys;

const CONNECT_TIME: Duration = Duration::from_secs(5);
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Bytes of a document of the provider.
const MAX_BYTES: u64 = 256 << 10;

/// Fetches the keys of an issuer.
#[derive(Debug)]
pub(super) struct Fetcher {
    issuer: String,
    agent: ureq::Agent,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Whether an address can be that of a provider: `https`, or `http` on this machine.
fn is_safe(url: &str) -> bool {
    let Ok(uri) = url.parse::<ureq::http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_local = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let no_user = uri.authority().is_some_and(|a| !a.as_str().contains('@'));
    let scheme = uri.scheme_str().unwrap_or_default();
    no_user && !host.is_empty() && (scheme == "https" || (scheme == "http" && is_local))
}

pub(super) fn check_issuer(issuer: &str) -> Result<(), String> {
    match is_safe(issuer) && !issuer.contains(['?', '#']) {
        true => Ok(()),
        false => Err(format!(
            "`{issuer}` cannot be the issuer of tokens: write `https://HOST` or `https://HOST/PATH` as the provider does (`http` on this machine only)"
        )),
    }
}

impl Fetcher {
    pub(super) fn new(issuer: &str) -> Fetcher {
        let options = ClientOptions { connect: Some(CONNECT_TIME), request: Some(REQUEST_TIME), public_only: false };
        Fetcher { issuer: issuer.to_owned(), agent: http_client(options) }
    }

    /// Asks for the discovery document, then for the keys.
    pub(super) fn keys(&self) -> Result<Keys, String> {
        let address = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let Discovery { issuer, jwks_uri } = self.get(&address)?;
        if issuer != self.issuer {
            return Err(format!("the provider says that its issuer is `{issuer}`, not `{}`", self.issuer));
        }
        if !is_safe(&jwks_uri) {
            return Err(format!("the keys of the provider are at `{jwks_uri}`, which is neither https nor local"));
        }
        Ok(Keys::read(self.get(&jwks_uri)?))
    }

    fn get<T: DeserializeOwned>(&self, url: &str) -> Result<T, String> {
        let answer = self.agent.get(url).header("accept", "application/json").call();
        let mut answer = answer.map_err(|e| match e {
            ureq::Error::Timeout(_) => format!("`{url}` does not answer in time"),
            e => unreachable_server(url, &e),
        })?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(format!("`{url}` answers {status}"));
        }
        let mut text = Vec::new();
        let reader = answer.body_mut().as_reader();
        let read = reader.take(MAX_BYTES.saturating_add(1)).read_to_end(&mut text);
        read.map_err(|_| format!("the answer of `{url}` does not arrive in time"))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(format!("the answer of `{url}` has more than {} KiB", MAX_BYTES >> 10));
        }
        serde_json::from_slice(&text).map_err(|e| format!("the answer of `{url}` is not understood: {e}"))
    }
}
