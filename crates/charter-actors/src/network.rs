//! How clients reach the network: a proxy, roots of certificates, and whether plain `http` may
//! leave this machine.

use std::net::IpAddr;
#[cfg(feature = "tls")]
use std::sync::Arc;

/// Maximum number of roots.
#[cfg(feature = "tls")]
const MAX_ROOTS: usize = 2_000;

/// How clients reach the network. By default: without a proxy, with built-in roots.
#[derive(Debug, Clone, Default)]
pub struct Network {
    /// Whether `http`, which is not encrypted, may be used for other machines.
    pub plain_anywhere: bool,
    pub(crate) proxy: Option<ureq::Proxy>,
    #[cfg(feature = "tls")]
    pub(crate) roots: Option<Arc<Vec<ureq::tls::Certificate<'static>>>>,
    /// Whether a server may present one of the roots itself.
    #[cfg(feature = "tls")]
    pub(crate) roots_as_servers: bool,
}

/// Why a setting of the network cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The address of the proxy is invalid. It is not shown, because it may have a password.
    #[error("invalid address of a proxy: expected `http://HOST:PORT`")]
    Proxy,
    /// There is no certificate.
    #[error("no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// A certificate is broken.
    #[error("invalid certificate {0}, counted from 1")]
    Certificate(usize),
    /// There are too many certificates.
    #[error("more than {0} certificates")]
    TooMany(usize),
}

impl Network {
    /// Sets a proxy, `http://HOST:PORT`, for all hosts but this machine and those in `except`:
    /// names separated by commas, each with the names below it (`example.org`), or only those
    /// (`.example.org`), or `*`. A port of such a name (`example.org:8080`) is not looked at: all
    /// ports are excepted.
    ///
    /// # Errors
    /// The address is invalid.
    pub fn proxy(mut self, address: &str, except: &str) -> Result<Network, NetworkError> {
        let given = ureq::Proxy::new(address.trim()).map_err(|_| NetworkError::Proxy)?;
        if !matches!(given.protocol(), ureq::ProxyProtocol::Http | ureq::ProxyProtocol::Https) {
            return Err(NetworkError::Proxy);
        }
        let mut proxy = ureq::Proxy::builder(given.protocol()).host(given.host()).port(given.port());
        if let Some(name) = given.username() {
            proxy = proxy.username(name);
        }
        if let Some(password) = given.password() {
            proxy = proxy.password(password);
        }
        let local = ["localhost", "127.0.0.1", "[::1]"];
        let names = except.split(',').map(|name| without_port(name.trim()));
        for name in names.filter(|name| !name.is_empty()).chain(local) {
            proxy = proxy.no_proxy(name);
            if !name.starts_with(['.', '*']) {
                proxy = proxy.no_proxy(&format!(".{name}"));
            }
        }
        self.proxy = Some(proxy.build().map_err(|_| NetworkError::Proxy)?);
        Ok(self)
    }

    /// Sets the roots that certificates of servers are checked against, in PEM form, instead of the
    /// built-in ones.
    ///
    /// # Errors
    /// There is no certificate, or one is broken.
    #[cfg(feature = "tls")]
    pub fn roots(mut self, pem: &[u8]) -> Result<Network, NetworkError> {
        let mut all = Vec::new();
        for (item, number) in ureq::tls::parse_pem(pem).zip(1usize..) {
            match item {
                Ok(ureq::tls::PemItem::Certificate(certificate)) => all.push(certificate),
                Ok(_) => {}
                Err(_) => return Err(NetworkError::Certificate(number)),
            }
            if all.len() > MAX_ROOTS {
                return Err(NetworkError::TooMany(MAX_ROOTS));
            }
        }
        if all.is_empty() {
            return Err(NetworkError::NoCertificate);
        }
        self.roots = Some(Arc::new(all));
        Ok(self)
    }

    /// Sets roots like [`Network::roots`], of which a server may also present one itself, though it
    /// is that of an authority: it must be the same byte by byte, valid, and for the server's name.
    ///
    /// # Errors
    /// See [`Network::roots`].
    #[cfg(feature = "tls")]
    pub fn own_roots(self, pem: &[u8]) -> Result<Network, NetworkError> {
        Ok(Network { roots_as_servers: true, ..self.roots(pem)? })
    }
}

/// The name in `NAME:PORT`. What has several colons is an address without a port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if (name.ends_with(']') || !name.contains(':')) && port.bytes().all(|b| b.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    }
}

/// Whether the host of a URL is this machine, by its name or address.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
