//! Names of hosts (RFC 1123, RFC 5891) and addresses of mail (RFC 5321).

use std::net::{Ipv4Addr, Ipv6Addr};

use email_address::EmailAddress;

use super::label;

pub(super) fn is_email(text: &str) -> bool {
    // `email_address` refuses an empty quoted local part, which RFC 5321 allows.
    if let Some(domain) = text.strip_prefix("\"\"@") {
        return !domain.starts_with("\"\"@") && is_email(&format!("\"a\"@{domain}"));
    }
    let Ok(address) = text.parse::<EmailAddress>() else {
        return false;
    };
    let domain = address.domain();
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    address.local_part().is_ascii()
        && match literal {
            Some(literal) => match literal.get(..5) {
                Some(tag) if tag.eq_ignore_ascii_case("IPv6:") => {
                    literal.get(5..).is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
                }
                _ => literal.parse::<Ipv4Addr>().is_ok(),
            },
            None => is_hostname(domain),
        }
}

pub(super) fn is_hostname(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let ascii = (1..=63).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-');
    // Hyphens in the third and fourth position are reserved for names in other scripts.
    ascii
        && match text.strip_prefix("xn--") {
            Some(encoded) => decode(encoded).is_some_and(|decoded| label::is_valid(&decoded)),
            None => text.get(2..4) != Some("--"),
        }
}

/// Decodes Punycode (RFC 3492).
fn decode(encoded: &str) -> Option<Vec<char>> {
    let (basic, encoded) = match encoded.rsplit_once('-') {
        Some((basic, encoded)) if !basic.is_empty() => (basic, encoded),
        _ => ("", encoded),
    };
    let mut out: Vec<char> = basic.chars().collect();
    let (mut code, mut index, mut bias) = (128u32, 0u32, 72u32);
    let mut digits = encoded.chars().peekable();
    while digits.peek().is_some() {
        let (before, mut weight, mut k) = (index, 1u32, 36u32);
        loop {
            let digit = match digits.next()? {
                c @ 'a'..='z' => u32::from(c).wrapping_sub(97),
                c @ 'A'..='Z' => u32::from(c).wrapping_sub(65),
                c @ '0'..='9' => u32::from(c).wrapping_sub(22),
                _ => return None,
            };
            index = index.checked_add(digit.checked_mul(weight)?)?;
            let threshold = k.saturating_sub(bias).clamp(1, 26);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(36u32.checked_sub(threshold)?)?;
            k = k.checked_add(36)?;
        }
        let count = u32::try_from(out.len()).ok()?.checked_add(1)?;
        bias = adapt(index.checked_sub(before)?, count, before == 0)?;
        code = code.checked_add(index.checked_div(count)?)?;
        index = index.checked_rem(count)?;
        let place = usize::try_from(index).ok()?;
        if place > out.len() {
            return None;
        }
        out.insert(place, char::from_u32(code)?);
        index = index.checked_add(1)?;
    }
    Some(out)
}

fn adapt(delta: u32, count: u32, first: bool) -> Option<u32> {
    let mut delta = delta.checked_div(if first { 700 } else { 2 })?;
    delta = delta.checked_add(delta.checked_div(count)?)?;
    let mut k = 0u32;
    while delta > 455 {
        delta = delta.checked_div(35)?;
        k = k.checked_add(36)?;
    }
    k.checked_add(36u32.checked_mul(delta)?.checked_div(delta.checked_add(38)?)?)
}
