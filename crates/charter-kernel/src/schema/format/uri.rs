//! URIs (RFC 3986), IRIs (RFC 3987) and URI templates (RFC 6570).

/// Whether the text is a URI or a reference to one; with `international`, an IRI.
pub(super) fn is_reference(text: &str, absolute: bool, international: bool) -> bool {
    let scheme = text.split_once(':').filter(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    });
    if absolute && scheme.is_none() {
        return false;
    }
    let rest = scheme.map_or(text, |(_, rest)| rest);
    let (rest, fragment) = rest.split_once('#').map_or((rest, ""), |(rest, fragment)| (rest, fragment));
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    let of = |text: &str, also: &str, private: bool| consists(text, also, international, private);
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            if !is_authority(authority, international) {
                return false;
            }
            path
        }
        // Its first segment would read as a scheme.
        None if scheme.is_none() && rest.split('/').next().is_some_and(|first| first.contains(':')) => return false,
        None => rest,
    };
    of(path, ":@/", false) && of(query, ":@/?", true) && of(fragment, ":@/?", false)
}

/// `[userinfo@]host[:port]`
fn is_authority(text: &str, international: bool) -> bool {
    let (user, host) = text.split_once('@').map_or(("", text), |(user, host)| (user, host));
    let (host, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if is_ip_literal(address) => {
                ("", if port.is_empty() { Some("") } else { port.strip_prefix(':') })
            }
            _ => return false,
        },
        None => host.split_once(':').map_or((host, Some("")), |(host, port)| (host, Some(port))),
    };
    consists(user, ":", international, false)
        && consists(host, "", international, false)
        && port.is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// The inside of the brackets of a host: IPv6, or an address of a later version.
fn is_ip_literal(text: &str) -> bool {
    match text.strip_prefix(['v', 'V']) {
        Some(future) => future.split_once('.').is_some_and(|(version, address)| {
            let hex = !version.is_empty() && version.bytes().all(|b| b.is_ascii_hexdigit());
            hex && !address.is_empty() && !address.contains('%') && consists(address, ":", false, false)
        }),
        None => text.parse::<std::net::Ipv6Addr>().is_ok(),
    }
}

/// Whether the text consists of unreserved characters, delimiters within components, those in
/// `also`, and percent-encoded bytes.
fn consists(text: &str, also: &str, international: bool, private: bool) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let fits = match c {
            '%' => [chars.next(), chars.next()].into_iter().all(|c| c.is_some_and(|c| c.is_ascii_hexdigit())),
            c if c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c) || also.contains(c) => true,
            c => international && (is_international(c) || private && is_private(c)),
        };
        if !fits {
            return false;
        }
    }
    true
}

/// `ucschar` of RFC 3987.
fn is_international(c: char) -> bool {
    let code = u32::from(c);
    let end_of_plane = code & 0xffff >= 0xfffe;
    matches!(code, 0xa0..=0xd7ff | 0xf900..=0xfdcf | 0xfdf0..=0xffef)
        || (matches!(code, 0x1_0000..=0xd_ffff | 0xe_1000..=0xe_ffff) && !end_of_plane)
}

/// `iprivate` of RFC 3987.
fn is_private(c: char) -> bool {
    let code = u32::from(c);
    matches!(code, 0xe000..=0xf8ff) || code >= 0xf_0000 && code & 0xffff < 0xfffe
}

/// Whether the text is a URI template of any level.
pub(super) fn is_template(text: &[u8]) -> bool {
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b'{' => {
                let Some(end) = after.iter().position(|b| *b == b'}') else {
                    return false;
                };
                let (inside, after) = after.split_at(end);
                let inside = match inside.split_first() {
                    Some((operator, variables)) if b"+#./;?&=,!@|".contains(operator) => variables,
                    _ => inside,
                };
                if !inside.split(|b| *b == b',').all(is_variable) {
                    return false;
                }
                after.get(1..).unwrap_or_default()
            }
            b'%' => match after {
                [a, b, after @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
                _ => return false,
            },
            0..=0x20 | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'|' | b'}' | 0x7f => return false,
            _ => after,
        };
    }
    true
}

/// A variable of a template, with its modifier.
fn is_variable(text: &[u8]) -> bool {
    let text = match text.iter().position(|b| *b == b':') {
        Some(colon) => {
            let (name, length) = text.split_at(colon);
            let length = length.get(1..).unwrap_or_default();
            let digits = (1..=4).contains(&length.len()) && length.iter().all(u8::is_ascii_digit);
            if !digits || length.first() == Some(&b'0') {
                return false;
            }
            name
        }
        None => text.strip_suffix(b"*").unwrap_or(text),
    };
    text.split(|b| *b == b'.').all(|part| {
        let mut rest = part;
        while let Some((first, after)) = rest.split_first() {
            rest = match (first, after) {
                (b'%', [a, b, after @ ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
                (b'_', _) => after,
                (b, _) if b.is_ascii_alphanumeric() => after,
                _ => return false,
            };
        }
        !part.is_empty()
    })
}
