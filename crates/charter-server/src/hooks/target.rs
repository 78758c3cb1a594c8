//! Which URLs a hook may have.

use std::net::IpAddr;

use axum::http::Uri;
use charter_actors::is_public;

/// Maximum length of a URL.
const MAX_URL: usize = 2_000;

/// Why a URL cannot be that of a hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadUrl {
    /// It is none.
    #[error(
        "this is not the address of a hook: write `https://HOST/PATH`, at most 2,000 characters, without spaces and `#`"
    )]
    Malformed,
    /// It has a user or a password.
    #[error("the address of a hook has no user and no password: the receiver checks the signature")]
    User,
    /// It is not encrypted.
    #[error("the address of a hook begins with `https://`; `http://` needs `--allow-private` (`allow_private`)")]
    Plain,
    /// It is a number that some resolvers take for an IP address.
    #[error("`{0}` is not a name; write an IP address as `192.0.2.1` or `[2001:db8::1]`")]
    Number(String),
    /// It is not public.
    #[error("`{0}` is not a public address; a hook inside needs `--allow-private` (`allow_private`)")]
    Private(String),
}

/// Checks the URL of a hook. What its name resolves to is checked with each connection.
///
/// # Errors
/// See [`BadUrl`].
pub fn check_url(url: &str, private: bool) -> Result<(), BadUrl> {
    if url.len() > MAX_URL || url.contains('#') || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(BadUrl::Malformed);
    }
    let uri: Uri = url.parse().map_err(|_| BadUrl::Malformed)?;
    let authority = uri.authority().ok_or(BadUrl::Malformed)?;
    if authority.as_str().contains('@') {
        return Err(BadUrl::User);
    }
    let host = authority.host();
    let has_port = authority.as_str().len() > host.len();
    if host.is_empty() || (has_port && authority.port_u16().is_none()) {
        return Err(BadUrl::Malformed);
    }
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if private => {}
        Some("http") => return Err(BadUrl::Plain),
        _ => return Err(BadUrl::Malformed),
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let last = bare.trim_end_matches('.').rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let inside = match bare.parse::<IpAddr>() {
        Ok(address) => !is_public(address),
        Err(_) if is_number(&last) => return Err(BadUrl::Number(host.to_owned())),
        Err(_) => last == "localhost",
    };
    match inside && !private {
        true => Err(BadUrl::Private(host.to_owned())),
        false => Ok(()),
    }
}

/// Whether a name that ends with this label is an address to `inet_aton`: `2130706433`, `0x7f.1`.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !label.is_empty() && label.bytes().all(|b| b.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_has_a_public_https_address() {
        for url in
            ["https://a.example/hook", "https://a.example:8443/h?x=1", "https://1.1.1.1/", "https://[2606:4700::1]/"]
        {
            assert_eq!(check_url(url, false), Ok(()), "{url}");
        }
        for url in [
            "",
            "a.example",
            "/hook",
            "ftp://a.example",
            "file:///etc/passwd",
            "https://",
            "https:///x",
            "javascript:1",
            "https://a b.example/",
            "https://a.example/#x",
            "https://a.example/\r\nx: y",
            "https://a.example:/",
            "https://a:99999/",
        ] {
            assert_eq!(check_url(url, true), Err(BadUrl::Malformed), "{url}");
        }
        assert_eq!(check_url(&format!("https://a.example/{}", "x".repeat(2_000)), true), Err(BadUrl::Malformed));
        for url in ["https://u:p@a.example/", "https://u@a.example/", "https://a.example@b.example/"] {
            assert_eq!(check_url(url, true), Err(BadUrl::User), "{url}");
        }
    }

    #[test]
    fn an_address_is_not_written_as_a_number() {
        for host in ["2130706433", "0x7f000001", "0X7F.1", "127.1", "0177.0.0.1", "127.0.0.1.", "1.1.1.256", "a.0x"] {
            for private in [false, true] {
                let url = format!("https://{host}:8080/");
                assert_eq!(check_url(&url, private), Err(BadUrl::Number(host.to_owned())), "{url}");
            }
        }
        for host in ["1password.com", "0x.example", "127.0.0.1.example", "a1"] {
            assert_eq!(check_url(&format!("https://{host}/"), false), Ok(()), "{host}");
        }
    }

    #[test]
    fn an_address_inside_has_to_be_allowed() {
        assert_eq!(check_url("http://a.example/", false), Err(BadUrl::Plain));
        assert_eq!(check_url("http://a.example/", true), Ok(()));
        for host in [
            "127.0.0.1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "169.254.169.254",
            "10.1.2.3:8080",
        ] {
            let url = format!("https://{host}/");
            assert!(matches!(check_url(&url, false), Err(BadUrl::Private(_))), "{url}");
            assert_eq!(check_url(&url, true), Ok(()), "{url}");
        }
    }
}
