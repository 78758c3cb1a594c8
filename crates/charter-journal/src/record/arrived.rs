//! The part of a record that says what came in: enough to apply it again.

use std::borrow::Cow;

use charter_kernel::{Digest, EffectId, Envelope, Event, Principal};
use serde::Deserialize;
use serde_json::Value as Json;

use super::fields::{EventField, Origin, Source, SourceKind, at, maybe_whole};
use super::{RecordError, text};

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

impl<'a> Arrived<'a> {
    pub(crate) fn read(line: &'a str) -> Result<Arrived<'a>, RecordError> {
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
