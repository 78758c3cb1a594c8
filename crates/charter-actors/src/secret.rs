//! Secrets, and their removal from what actors answer.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use charter_expr::strict_json;
use serde_json::Value as Json;

use crate::encodings::ends;
use crate::error::ConfigError;
use crate::executor::{Executor, Fault, FindSecret, Outcome};
use crate::{BoxFuture, Call, layers};

/// Minimum number of characters of a secret that is found inside of words, and in encodings of the
/// whole secret. Shorter ones are ordinary words or numbers too often.
pub(crate) const MIN_PART: usize = 8;

/// A secret string such as an API key. `Debug` does not show it, and it has no `Display` or
/// `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a string.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for a header or a variable.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Reads a value of a configuration that may name a secret: `{secret: NAME}`. `None`: it names
    /// none. `key` and `what` say where it is, for the error.
    ///
    /// # Errors
    /// The host has no secret of that name.
    pub fn named(value: &Json, find: &FindSecret, key: &str, what: &str) -> Result<Option<Secret>, ConfigError> {
        let name = value.as_object().filter(|map| map.len() == 1).and_then(|map| map.get("secret")?.as_str());
        let Some(name) = name else {
            return Ok(None);
        };
        let missing = || ConfigError::Other(format!("`{key}`: this host has no secret `{name}` for the {what}"));
        find(name).map(|text| Some(Secret::new(text))).ok_or_else(missing)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The secrets that an actor was given, in the forms in which they are removed from what it
/// answers: as they are, as JSON, URLs and HTML write them, in hexadecimal, and in base64, alone or
/// as a part of something longer. An `Authorization` of the form `SCHEME VALUE` counts with and
/// without the scheme, and `Basic` also with the decoded name and password.
///
/// A secret of fewer than 8 characters is only removed where it stands alone, as a word, and not in
/// hexadecimal or base64.
#[derive(Clone, Default)]
pub struct Secrets {
    pub(crate) forms: Vec<Form>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) text: Box<str>,
    /// Whether it is found only as a word.
    pub(crate) word: bool,
}

impl<'a> FromIterator<&'a Secret> for Secrets {
    fn from_iter<T: IntoIterator<Item = &'a Secret>>(secrets: T) -> Secrets {
        let mut all = Secrets::default();
        for secret in secrets {
            let text = secret.expose().trim();
            all.add(text);
            let Some((scheme, value)) = text.split_once(' ') else {
                continue;
            };
            if !scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') || value.contains(char::is_whitespace) {
                continue;
            }
            all.add(value);
            let decoded = STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some(pair) = decoded.filter(|_| scheme.eq_ignore_ascii_case("basic")) {
                all.add(&pair);
                all.add(pair.split_once(':').map_or("", |(_, password)| password));
            }
        }
        all
    }
}

impl Secrets {
    /// What replaces a secret.
    pub const REDACTED: &str = "[secret]";

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Maximum number of bytes that a secret takes in a text.
    #[must_use]
    pub(crate) fn reach(&self) -> usize {
        // An escaped pair of surrogates has 12 bytes, each of which may be encoded again.
        self.forms.iter().map(|form| form.text.chars().count().saturating_mul(64)).max().unwrap_or(0)
    }

    fn add(&mut self, text: &str) {
        let word = text.chars().nth(MIN_PART.saturating_sub(1)).is_none();
        self.push(text.to_owned(), word);
        if word {
            return;
        }
        let hex: String = text.bytes().map(|b| format!("{b:02x}")).collect();
        self.push(hex.to_uppercase(), false);
        self.push(hex, false);
        for before in 0..3_usize {
            // The characters of base64 that do not depend on what is before or after the secret.
            let mut bytes = vec![0; before];
            bytes.extend_from_slice(text.as_bytes());
            let first = before.saturating_mul(8).div_ceil(6);
            let last = bytes.len().saturating_mul(8) / 6;
            for engine in [&STANDARD, &URL_SAFE] {
                let encoded = engine.encode(&bytes);
                self.push(encoded.get(first..last).unwrap_or_default().to_owned(), false);
            }
        }
    }

    fn push(&mut self, text: String, word: bool) {
        let form = Form { text: text.into(), word };
        if !form.text.is_empty() && !self.forms.contains(&form) {
            self.forms.push(form);
        }
    }

    /// Removes the secrets from a text.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        without(text, self.find(text))
    }

    /// Finds the secrets in a text, also within several encodings; overlapping ones are one place.
    pub(crate) fn find(&self, text: &str) -> Vec<(usize, usize)> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        self.find_in(text, &mut found);
        layers::visit(text, &mut |decoded, place| {
            let known = found.len();
            self.find_in(decoded, &mut found);
            for (start, end) in found.iter_mut().skip(known) {
                (*start, *end) = (place(*start), place(*end));
            }
        });
        found.sort_unstable();
        found.dedup_by(|next, last| {
            let overlap = next.0 < last.1;
            if overlap {
                last.1 = next.1.max(last.1);
            }
            overlap
        });
        found
    }

    /// Adds the places of secrets in one encoding.
    fn find_in(&self, text: &str, found: &mut Vec<(usize, usize)>) {
        for (start, _) in text.char_indices() {
            let (before, rest) = text.split_at_checked(start).unwrap_or_default();
            if rest.starts_with(Self::REDACTED) {
                // Removing the secrets again changes nothing.
                found.push((start, start.saturating_add(Self::REDACTED.len())));
                continue;
            }
            let end = self.forms.iter().flat_map(|form| form.ends(before, rest)).max();
            if let Some(end) = end.and_then(|length| start.checked_add(length)) {
                found.push((start, end));
            }
        }
    }

    /// Removes the secrets from a value: from its strings, its keys and its numbers.
    #[must_use]
    pub fn redact_json(&self, value: Json) -> Json {
        self.redact_strings(value, &|text| self.redact(text))
    }

    /// Removes the secrets from a document of somebody who may have cut off texts: JSON, which
    /// stays JSON, or any text.
    #[must_use]
    pub fn redact_document(&self, text: &str) -> String {
        let changed = strict_json::from_str(text).ok().and_then(|value| {
            let redacted = self.redact_strings(value.clone(), &|text| self.redact_cut(text));
            (redacted != value).then(|| redacted.to_string())
        });
        self.redact_cut(changed.as_deref().unwrap_or(text)).into_owned()
    }

    fn redact_strings(&self, value: Json, redact: &dyn for<'t> Fn(&'t str) -> Cow<'t, str>) -> Json {
        match value {
            Json::String(text) => Json::String(redact(&text).into_owned()),
            Json::Number(number) => match self.redact(&number.to_string()) {
                Cow::Borrowed(_) => Json::Number(number),
                Cow::Owned(redacted) => Json::String(redacted),
            },
            Json::Array(items) => items.into_iter().map(|item| self.redact_strings(item, redact)).collect(),
            Json::Object(map) => {
                map.into_iter().map(|(key, v)| (redact(&key).into_owned(), self.redact_strings(v, redact))).collect()
            }
            Json::Null | Json::Bool(_) => value,
        }
    }

    /// Removes the secrets from a failure, whose texts may have been cut off.
    #[must_use]
    pub fn redact_fault(&self, mut fault: Fault) -> Fault {
        fault.message = self.redact_cut(&fault.message).into_owned();
        let details = self.redact_strings(Json::Object(fault.details), &|text| self.redact_cut(text));
        if let Json::Object(details) = details {
            fault.details = details;
        } else {
            fault.details = serde_json::Map::new();
        }
        fault
    }
}

/// Replaces places of a text.
pub(crate) fn without(text: &str, found: Vec<(usize, usize)>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (start, end) in found {
        out.push_str(text.get(from..start).unwrap_or_default());
        out.push_str(Secrets::REDACTED);
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

impl Form {
    /// The lengths of this form at the beginning of `rest`.
    fn ends(&self, before: &str, rest: &str) -> Vec<usize> {
        let mut all = ends(&self.text, rest);
        if self.word {
            let inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            all.retain(|end| {
                !inside(before.chars().next_back()) && !inside(rest.get(*end..).and_then(|r| r.chars().next()))
            });
        }
        all
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} forms)", self.forms.len())
    }
}

/// Makes one attempt. The answer or failure, and the events that the actor sends, do not contain
/// the secrets that the actor was given. Hosts, and executors that ask another one, call this, not
/// [`Executor::call`].
#[must_use]
pub fn perform(executor: &dyn Executor, mut call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
    let secrets = Arc::new(executor.secrets_of(call.actor()));
    call.secrets = secrets.clone();
    let work = executor.call(call);
    if secrets.is_empty() {
        return work;
    }
    Box::pin(async move {
        match work.await {
            Ok(Outcome::Done(answer)) => Ok(Outcome::Done(secrets.redact_json(answer))),
            Ok(Outcome::Waits) => Ok(Outcome::Waits),
            Err(fault) => Err(secrets.redact_fault(fault)),
        }
    })
}
