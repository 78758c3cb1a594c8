//! Which hosts and origins a request may name: the defense against DNS rebinding and against pages
//! of other sites.

use std::net::{IpAddr, SocketAddr};

/// A URL of a site that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a site: write `https://HOST` or `http://HOST:PORT`, without a path")]
pub struct BadSite(pub String);

/// The hosts and origins of a server.
#[derive(Debug, Clone)]
pub struct Sites {
    /// Values of `Host` that are this server, in lower case.
    hosts: Vec<String>,
    /// Values of `Origin` that may use it, in lower case.
    origins: Vec<String>,
    /// Whether browsers reach it by https.
    pub secure: bool,
}

/// Splits `http://host:port`; the host is in lower case and has no default port.
fn site(url: &str) -> Result<(bool, String), BadSite> {
    let bad = || BadSite(url.to_owned());
    let lower = url.trim_end_matches('/').to_ascii_lowercase();
    let (secure, rest) = match (lower.strip_prefix("https://"), lower.strip_prefix("http://")) {
        (Some(rest), _) => (true, rest),
        (_, Some(rest)) => (false, rest),
        _ => return Err(bad()),
    };
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    if rest.is_empty() || !rest.chars().all(ok) {
        return Err(bad());
    }
    let default = if secure { ":443" } else { ":80" };
    Ok((secure, rest.strip_suffix(default).unwrap_or(rest).to_owned()))
}

impl Sites {
    /// The sites of a server that listens at an address.
    ///
    /// # Errors
    /// The public URL, or an origin, is no site.
    pub fn new(listen: SocketAddr, public_url: Option<&str>, origins: &[String]) -> Result<Sites, BadSite> {
        let port = listen.port();
        let mut hosts = Vec::new();
        let mut add = |host: &str| {
            hosts.push(format!("{host}:{port}"));
            if port == 80 {
                hosts.push(host.to_owned());
            }
        };
        match listen.ip() {
            ip if ip.is_loopback() || ip.is_unspecified() => {
                for name in ["localhost", "127.0.0.1", "[::1]"] {
                    add(name);
                }
            }
            _ => {}
        }
        match listen.ip() {
            IpAddr::V4(ip) if !ip.is_unspecified() => add(&ip.to_string()),
            IpAddr::V6(ip) if !ip.is_unspecified() => add(&format!("[{ip}]")),
            _ => {}
        }
        let mut allowed: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
        let mut secure = false;
        if let Some(url) = public_url {
            let (https, host) = site(url)?;
            secure = https;
            allowed.push(format!("{}://{host}", if https { "https" } else { "http" }));
            hosts.push(host);
        }
        for origin in origins {
            let (https, host) = site(origin)?;
            allowed.push(format!("{}://{host}", if https { "https" } else { "http" }));
        }
        Ok(Sites { hosts, origins: allowed, secure })
    }

    /// Whether a value of the header `Host` is this server.
    #[must_use]
    pub fn is_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let default = if self.secure { ":443" } else { ":80" };
        let bare = host.strip_suffix(default).unwrap_or(&host);
        self.hosts.iter().any(|known| *known == host || known == bare)
    }

    /// Whether a page with this value of the header `Origin` may use the server.
    #[must_use]
    pub fn is_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        self.origins.contains(&origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sites(listen: &str, url: Option<&str>, origins: &[&str]) -> Sites {
        let origins: Vec<String> = origins.iter().map(|o| (*o).to_owned()).collect();
        Sites::new(listen.parse().unwrap(), url, &origins).unwrap()
    }

    #[test]
    fn a_rebound_name_is_not_this_server() {
        let local = sites("127.0.0.1:7117", None, &[]);
        for host in ["localhost:7117", "127.0.0.1:7117", "LOCALHOST:7117", "[::1]:7117"] {
            assert!(local.is_host(host), "{host}");
        }
        for host in
            ["evil.example", "evil.example:7117", "localhost", "localhost:80", "127.0.0.1.evil.example:7117", ""]
        {
            assert!(!local.is_host(host), "{host}");
        }
        assert!(local.is_origin("http://localhost:7117"));
        for origin in ["null", "http://evil.example", "https://localhost:7117", "http://localhost:7118", ""] {
            assert!(!local.is_origin(origin), "{origin}");
        }
    }

    #[test]
    fn behind_a_proxy_the_public_url_counts() {
        let public = sites("127.0.0.1:7117", Some("https://Charter.example/"), &["https://tools.example:8443"]);
        assert!(public.secure && public.is_host("charter.example") && public.is_host("charter.example:443"));
        assert!(public.is_origin("https://charter.example") && public.is_origin("https://tools.example:8443"));
        assert!(!public.is_origin("http://charter.example") && !public.is_host("tools.example:8443"));
        for bad in ["charter.example", "https://", "ftp://x", "https://a/b", "https://a b", "https://user@a"] {
            assert!(Sites::new("127.0.0.1:1".parse().unwrap(), Some(bad), &[]).is_err(), "{bad}");
        }
    }
}
