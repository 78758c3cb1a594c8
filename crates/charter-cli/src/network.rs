//! The network of the environment: proxy and roots of certificates.

#[cfg(feature = "models")]
use std::path::Path;

use charter_actors::Network;

use crate::io::Failure;
#[cfg(feature = "models")]
use crate::load::plain;

/// Where systems have the roots that they trust, in PEM form.
#[cfg(feature = "models")]
const ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// Reads HTTPS_PROXY, NO_PROXY and SSL_CERT_FILE; `variable` reads the environment. Without the
/// latter: the roots of the system, or built-in ones if it has none.
///
/// # Errors
/// A variable has no usable value.
pub(crate) fn of(variable: &dyn Fn(&str) -> Option<String>, plain_anywhere: bool) -> Result<Network, Failure> {
    let either = |name: &str| {
        let names = [name.to_owned(), name.to_lowercase()];
        names.iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()))
    };
    let mut network = Network::default();
    network.plain_anywhere = plain_anywhere;
    if let Some(proxy) = either("HTTPS_PROXY") {
        let except = either("NO_PROXY").unwrap_or_default();
        network = network.proxy(&proxy, &except).map_err(|e| Failure::new(format!("HTTPS_PROXY: {e}")))?;
    }
    roots(network, either("SSL_CERT_FILE").as_deref())
}

#[cfg(feature = "models")]
fn roots(network: Network, file: Option<&str>) -> Result<Network, Failure> {
    let read = |file: &Path| std::fs::read(file);
    let Some(file) = file else {
        let found = ROOTS.iter().find_map(|path| read(Path::new(path)).ok());
        // If the roots of the system cannot be used, the built-in ones are.
        let usable = found.and_then(|pem| network.clone().roots(&pem).ok());
        return Ok(usable.unwrap_or(network));
    };
    let cannot = |why: String| Failure::new(format!("SSL_CERT_FILE: cannot use `{file}`: {why}"));
    let pem = read(Path::new(file)).map_err(|e| cannot(plain(&e)))?;
    network.own_roots(&pem).map_err(|e| cannot(e.to_string()))
}

#[cfg(not(feature = "models"))]
fn roots(network: Network, _: Option<&str>) -> Result<Network, Failure> {
    Ok(network)
}

#[cfg(test)]
mod tests {
    fn problem(name: &str, value: &str) -> Option<String> {
        super::of(&|n| (n == name).then(|| value.to_owned()), false).err().map(|e| e.to_string())
    }

    #[test]
    fn the_environment() {
        assert_eq!(problem("HTTPS_PROXY", "http://proxy.example:3128"), None);
        assert_eq!(problem("https_proxy", " "), None);
        let wrong = "HTTPS_PROXY: invalid address of a proxy: expected `http://HOST:PORT`";
        assert_eq!(problem("https_proxy", "ftp://me:secret@proxy").as_deref(), Some(wrong));
        #[cfg(feature = "models")]
        {
            let missing = problem("SSL_CERT_FILE", "no such file").unwrap();
            assert!(missing.starts_with("SSL_CERT_FILE: cannot use `no such file`: "), "{missing}");
        }
    }
}
