//! The keyword `format`. Formats that are not listed here are annotations, as in JSON Schema.

mod label;
mod net;
mod time;
mod uri;

use charter_expr::Fuel;

use super::TooCostly;

/// A format that is asserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Date,
    DateTime,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Iri,
    IriReference,
    JsonPointer,
    Regex,
    RelativeJsonPointer,
    Time,
    Uri,
    UriReference,
    UriTemplate,
    Uuid,
}

/// Upper limit of the length of a regular expression as data, in bytes.
const MAX_REGEX: usize = 10_000;

impl Format {
    /// The format with this name, if it is asserted.
    pub(super) fn named(name: &str) -> Option<Format> {
        Some(match name {
            "date" => Format::Date,
            "date-time" => Format::DateTime,
            "duration" => Format::Duration,
            "email" => Format::Email,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "iri" => Format::Iri,
            "iri-reference" => Format::IriReference,
            "json-pointer" => Format::JsonPointer,
            "regex" => Format::Regex,
            "relative-json-pointer" => Format::RelativeJsonPointer,
            "time" => Format::Time,
            "uri" => Format::Uri,
            "uri-reference" => Format::UriReference,
            "uri-template" => Format::UriTemplate,
            "uuid" => Format::Uuid,
            _ => return None,
        })
    }

    /// Whether the text has the format.
    pub(super) fn fits(self, text: &str, fuel: &mut Fuel) -> Result<bool, TooCostly> {
        fuel.spend((text.len() / 64) as u64)?;
        Ok(match self {
            Format::Date => time::is_date(text.as_bytes()),
            Format::DateTime => time::is_date_time(text.as_bytes()),
            Format::Duration => time::is_duration(text),
            Format::Email => net::is_email(text),
            Format::Hostname => net::is_hostname(text),
            Format::Ipv4 => text.parse::<std::net::Ipv4Addr>().is_ok(),
            Format::Ipv6 => text.parse::<std::net::Ipv6Addr>().is_ok(),
            Format::Iri => uri::is_reference(text, true, true),
            Format::IriReference => uri::is_reference(text, false, true),
            Format::JsonPointer => text.is_empty() || text.starts_with('/') && is_pointer(text),
            Format::Regex => {
                // Names of groups are looked up among each other.
                fuel.spend(text.len() as u64)?;
                text.len() <= MAX_REGEX && jsonschema_regex::is_valid_ecma_regex(text)
            }
            Format::RelativeJsonPointer => is_relative_pointer(text),
            Format::Time => time::is_time(text.as_bytes()),
            Format::Uri => uri::is_reference(text, true, false),
            Format::UriReference => uri::is_reference(text, false, false),
            Format::UriTemplate => uri::is_template(text.as_bytes()),
            Format::Uuid => is_uuid(text.as_bytes()),
        })
    }
}

/// Whether each `~` is followed by `0` or `1`.
fn is_pointer(text: &str) -> bool {
    text.split('~').skip(1).all(|after| after.starts_with(['0', '1']))
}

fn is_relative_pointer(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = text.strip_suffix(rest).unwrap_or_default();
    let number = digits == "0" || !digits.is_empty() && !digits.starts_with('0');
    number && (rest.is_empty() || rest == "#" || rest.starts_with('/') && is_pointer(rest))
}

fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().zip(0..).all(|(b, at)| match at {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}
