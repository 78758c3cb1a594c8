//! The part of a record that says what came in: enough to apply it again.

use std::borrow::Cow;

use charter_kernel::{Digest, EffectId, Envelope, Event, Principal};
use serde::Deserialize;
use serde_json::Value as Json;

use super::fields::{EventField, Origin, Source, SourceKind, at, maybe_whole};
use super::{RecordError, moment, skim, text};

/// What came in. Everything else of the record is skipped while reading: replaying needs no more.
#[derive(Debug, Deserialize)]
pub(crate) struct Arrived<'a> {
    #[serde(borrow)]
    pub(crate) run: Cow<'a, str>,
    pub(crate) seq: u64,
    #[serde(deserialize_with = "at")]
    at: i64,
    #[serde(borrow)]
    pub(crate) id: Cow<'a, str>,
    pub(crate) charter: Digest,
    by: Principal,
    #[serde(borrow)]
    source: Source<'a>,
    pub(crate) event: EventField<'a>,
    #[serde(default, deserialize_with = "maybe_whole")]
    expected_seq: Option<u64>,
    #[serde(default)]
    pub(crate) forked_from: Option<Origin<'a>>,
}

/// The texts of what is read.
#[derive(Default)]
struct Parts<'a> {
    at: Option<&'a str>,
    by: Option<&'a str>,
    charter: Option<&'a str>,
    event: Option<&'a str>,
    expected_seq: Option<&'a str>,
    forked_from: Option<&'a str>,
    id: Option<&'a str>,
    run: Option<&'a str>,
    seq: Option<&'a str>,
    source: Option<&'a str>,
    twice: bool,
}

fn words(text: &str) -> Option<Cow<'_, str>> {
    match skim::plain_string(text) {
        // Nothing may follow it.
        Some(inner) if inner.len().checked_add(2) == Some(text.len()) => Some(Cow::Borrowed(inner)),
        _ => json(text).map(Cow::Owned),
    }
}

fn json<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

impl<'a> Arrived<'a> {
    pub(crate) fn read(line: &'a str) -> Result<Arrived<'a>, RecordError> {
        if let Some(arrived) = Arrived::skim(line) {
            return Ok(arrived);
        }
        let not = |e: serde_json::Error| RecordError::NotARecord(e.to_string());
        // The default limit of the parser is enough for almost all; only what it refuses is looked at again.
        match serde_json::from_str(line) {
            Ok(arrived) => Ok(arrived),
            Err(_) if (128..=text::MAX_DEPTH).contains(&text::depth(line)) => {
                let mut reader = serde_json::Deserializer::from_str(line);
                reader.disable_recursion_limit();
                let arrived = Arrived::deserialize(&mut reader).map_err(not)?;
                reader.end().map_err(not)?;
                Ok(arrived)
            }
            Err(e) => Err(not(e)),
        }
    }

    /// The short way, which takes what the journal writes. None: look at it properly.
    fn skim(line: &'a str) -> Option<Arrived<'a>> {
        let mut parts = Parts::default();
        skim::members(line, |name, text| {
            let part = match name {
                "at" => &mut parts.at,
                "by" => &mut parts.by,
                "charter" => &mut parts.charter,
                "event" => &mut parts.event,
                "expected_seq" => &mut parts.expected_seq,
                "forked_from" => &mut parts.forked_from,
                "id" => &mut parts.id,
                "run" => &mut parts.run,
                "seq" => &mut parts.seq,
                "source" => &mut parts.source,
                _ => return,
            };
            // Twice is not what the journal writes.
            parts.twice |= part.replace(text).is_some();
        })?;
        if parts.twice {
            return None;
        }
        Some(Arrived {
            run: words(parts.run?)?,
            seq: parts.seq?.parse().ok()?,
            at: moment::read(skim::plain_string(parts.at?)?)?,
            id: words(parts.id?)?,
            charter: Digest::parse(skim::plain_string(parts.charter?)?)?,
            by: json(parts.by?)?,
            source: json(parts.source?)?,
            event: json(parts.event?)?,
            expected_seq: match parts.expected_seq {
                None => None,
                Some(text) => {
                    let mut reader = serde_json::Deserializer::from_str(text);
                    maybe_whole(&mut reader).ok()?
                }
            },
            forked_from: match parts.forked_from {
                None => None,
                Some(text) => Some(json(text)?),
            },
        })
    }

    /// The envelope, again. Of data that was written in another way than canonically (`2.0`), the canonical form.
    pub(crate) fn envelope(self) -> Result<Envelope, RecordError> {
        if self.event.withheld.is_some() {
            return Err(RecordError::Withheld);
        }
        let mut data = self.event.data.into_owned();
        charter_expr::json::normalize(&mut data);
        let part = |data: Json, key: &str| match data {
            Json::Object(mut map) => map.remove(key).unwrap_or_default(),
            _ => Json::Null,
        };
        let missing = |what: &str| RecordError::NotARecord(format!("`source` has no `{what}`"));
        let invocation = || {
            self.source
                .invocation
                .as_deref()
                .map(str::to_owned)
                .ok_or_else(|| missing("invocation"))
        };
        let effect = || match self.source.effect.as_deref() {
            None => Ok(None),
            Some(text) => EffectId::parse(text).map(Some).ok_or_else(|| {
                RecordError::NotARecord(format!("`{text}` is not the id of an effect"))
            }),
        };
        let event = match self.source.kind {
            SourceKind::Start => Event::Start { input: data },
            SourceKind::External => Event::External {
                r#type: self.event.r#type.into_owned(),
                data,
            },
            SourceKind::Done => Event::Done {
                invocation: invocation()?,
                effect: effect()?,
                output: part(data, "output"),
            },
            SourceKind::Error => Event::Failed {
                invocation: invocation()?,
                effect: effect()?,
                error: part(data, "error"),
            },
            SourceKind::Attempt => Event::Attempt {
                invocation: invocation()?,
                effect: effect()?.ok_or_else(|| missing("effect"))?,
                attempt: data
                    .get("attempt")
                    .and_then(Json::as_u64)
                    .and_then(|n| u32::try_from(n).ok())
                    .ok_or_else(|| missing("attempt"))?,
                retry_at: data
                    .get("retryAt")
                    .and_then(Json::as_i64)
                    .ok_or_else(|| missing("retryAt"))?,
                error: part(data, "error"),
            },
            SourceKind::Timer => Event::Timer {
                timer: self
                    .source
                    .timer
                    .as_deref()
                    .map(str::to_owned)
                    .ok_or_else(|| missing("timer"))?,
                generation: self
                    .source
                    .generation
                    .ok_or_else(|| missing("generation"))?,
            },
        };
        Ok(Envelope {
            seq: self.seq,
            to: self.source.to.map(Cow::into_owned),
            event,
            by: self.by,
            at: self.source.at.unwrap_or(self.at),
            expected_seq: self.expected_seq,
        })
    }
}
