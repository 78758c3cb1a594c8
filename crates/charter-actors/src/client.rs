//! The HTTP client shared by everything that speaks HTTP: actors, models, tools, the exporter of
//! spans.

use std::time::Duration;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
#[cfg(feature = "tls")]
use ureq::unversioned::transport::{ConnectProxyConnector, Connector as _, TcpConnector};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::address::is_public;
use crate::network::Network;
#[cfg(feature = "tls")]
use crate::tls::OwnTls;

/// Default time limits of a client; a request may override them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// Time limit for connecting.
    pub connect: Option<Duration>,
    /// Time limit of a whole request.
    pub request: Option<Duration>,
    /// Connects to public addresses only ([`is_public`](crate::is_public)), whatever a name
    /// resolves to: a request to another one ends with [`NOT_PUBLIC`].
    pub public_only: bool,
}

/// What the error of a request to an address that is not public says.
pub const NOT_PUBLIC: &str = "the address is not public";

/// Resolves names, and lets only public addresses through. A client connects to what its resolver
/// returns, so a name that resolves differently the next time (DNS rebinding) is checked, too.
#[derive(Debug, Default)]
struct PublicOnly(DefaultResolver);

impl Resolver for PublicOnly {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let found = self.0.resolve(uri, config, timeout)?;
        // One that is not public refuses them all: who publishes such a name wants to get inside.
        match found.iter().all(|address| is_public(address.ip())) {
            true => Ok(found),
            false => Err(ureq::Error::Io(std::io::Error::new(std::io::ErrorKind::PermissionDenied, NOT_PUBLIC))),
        }
    }
}

/// Creates a client.
///
/// It follows no redirects and uses no proxy from the environment, so an API key only reaches the
/// intended server. An error status is a response, not an error. `https` needs the feature `tls`.
#[must_use]
pub fn http_client(options: ClientOptions) -> ureq::Agent {
    client_in(&Network::default(), options)
}

/// Creates a client like [`http_client`], with the proxy and the roots of a network.
#[must_use]
pub fn client_in(network: &Network, options: ClientOptions) -> ureq::Agent {
    let config = ureq::Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(network.proxy.clone())
        .user_agent(concat!("charter/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(options.connect)
        .timeout_global(options.request);
    #[cfg(feature = "tls")]
    let config = match &network.roots {
        Some(roots) => {
            let roots = ureq::tls::RootCerts::Specific(roots.clone());
            config.tls_config(ureq::tls::TlsConfig::builder().root_certs(roots).build())
        }
        None => config,
    };
    let config = config.build();
    #[cfg(feature = "tls")]
    if let Some(tls) = network.roots.as_ref().filter(|_| network.roots_as_servers).and_then(|own| OwnTls::new(own)) {
        // Like the connector of the library, but for TLS.
        let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default()).chain(tls);
        return match options.public_only {
            true => ureq::Agent::with_parts(config, connector, PublicOnly::default()),
            false => ureq::Agent::with_parts(config, connector, DefaultResolver::default()),
        };
    }
    match options.public_only {
        true => ureq::Agent::with_parts(config, DefaultConnector::default(), PublicOnly::default()),
        false => config.into(),
    }
}

/// Whether there is no response because the certificate of the server is not accepted, which
/// another attempt does not change.
#[must_use]
pub fn is_refused_certificate(error: &ureq::Error) -> bool {
    certificate_problem(error).is_some()
}

#[cfg(feature = "tls")]
fn certificate_problem(error: &ureq::Error) -> Option<String> {
    crate::tls::problem(error)
}

#[cfg(not(feature = "tls"))]
fn certificate_problem(_: &ureq::Error) -> Option<String> {
    None
}

/// Describes why there is no response like [`unreachable_server`], and names the proxy of the
/// client if the request was made through it.
#[must_use]
pub fn unreachable_through(client: &ureq::Agent, url: &str, error: &ureq::Error) -> String {
    let said = unreachable_server(url, error);
    let uri = url.parse::<Uri>().ok();
    let used = client.config().proxy().filter(|proxy| uri.is_none_or(|uri| !proxy.is_no_proxy(&uri)));
    match (used, said.split_once("`: ")) {
        (Some(proxy), Some((server, why))) => {
            // Not its user name and password.
            format!("{server}` through the proxy `http://{}:{}`: {why}", proxy.host(), proxy.port())
        }
        _ => said,
    }
}

/// Describes why there is no response, in a clause that names the server: "`http://127.0.0.1:9`:
/// connection refused". Omits paths and queries, because they can contain secrets.
#[must_use]
pub fn unreachable_server(url: &str, error: &ureq::Error) -> String {
    let server = url.parse::<ureq::http::Uri>().ok().and_then(|uri| {
        let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("`{}://{}{port}`", uri.scheme_str()?, uri.host()?))
    });
    let text = match (certificate_problem(error), error) {
        (Some(problem), _) => problem,
        (None, ureq::Error::Io(e)) => e.to_string(),
        (None, other) => other.to_string(),
    };
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    let why: String = chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default();
    format!("{}: {why}", server.as_deref().unwrap_or("the server"))
}
