//! The input part of a record, from which its envelope is restored.

use std::borrow::Cow;

use charter_kernel::{Digest, EffectId, Envelope, Event, Principal, Timestamp, Unique};
use serde::Deserialize;
use serde_json::Value as Json;

use super::fields::{EventField, Origin, Source, SourceKind};
use super::scanner::Scanner;
use super::values::{at, maybe_whole};
use super::{Manifest, RecordError, json, timestamp};

/// The input of a record. Parsing skips all other fields: a replay does not need them.
#[derive(Debug, PartialEq, Deserialize)]
pub(crate) struct RecordInput<'a> {
    #[serde(borrow)]
    pub(crate) run: Cow<'a, str>,
    pub(crate) seq: u64,
    #[serde(deserialize_with = "at")]
    at: Timestamp,
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
    pub(crate) unique: Option<Box<Unique>>,
    #[serde(default)]
    pub(crate) forked_from: Option<Origin<'a>>,
    #[serde(default)]
    pub(crate) manifest: Option<Box<Manifest>>,
}

/// Scans a principal in the form that records contain.
fn principal(s: &mut Scanner<'_>) -> Option<Principal> {
    s.word("{")?;
    let auth = if s.has("\"auth\":\"") { Some(s.string()?.parse().ok()?) } else { None };
    if auth.is_some() {
        s.word(",")?;
    }
    s.word("\"id\":\"")?;
    let id = s.string()?.to_owned();
    let kind = if s.has(",\"kind\":\"") { Some(s.string()?.parse().ok()?) } else { None };
    s.word(",\"roles\":[")?;
    let mut roles = Vec::new();
    while s.has("\"") {
        roles.push(s.string()?.to_owned());
        if !s.has(",") {
            break;
        }
    }
    s.word("]}")?;
    Some(Principal { id, roles, kind, auth })
}

/// Scans the unique key of an event, and what is before it.
fn unique(s: &mut Scanner<'_>) -> Option<Option<Box<Unique>>> {
    s.word(",\"state\":")?;
    s.skip()?;
    if s.has(",\"status\":\"") {
        s.string()?;
    }
    if s.has(",\"timers\":") {
        s.skip()?;
    }
    s.word(",\"to\":\"")?;
    s.string()?;
    s.word(",\"transitions\":")?;
    s.skip()?;
    Some(if s.has(",\"unique\":") { Some(s.value()?) } else { None })
}

impl<'a> RecordInput<'a> {
    pub(crate) fn read(line: &'a str) -> Result<RecordInput<'a>, RecordError> {
        if let Some(input) = RecordInput::scan(line) {
            return Ok(input);
        }
        let not_a_record = |e: serde_json::Error| RecordError::NotARecord(json::why(&e));
        // The default depth limit of the parser suffices for almost all records; retry without it
        // only if that fails.
        match serde_json::from_str(line) {
            Ok(input) => Ok(input),
            Err(_) if (128..=json::MAX_DEPTH).contains(&json::depth(line)) => {
                let mut reader = serde_json::Deserializer::from_str(line);
                reader.disable_recursion_limit();
                let input = RecordInput::deserialize(&mut reader).map_err(not_a_record)?;
                reader.end().map_err(not_a_record)?;
                Ok(input)
            }
            Err(e) => Err(not_a_record(e)),
        }
    }

    /// Scans a record that is exactly in the form that the journal writes, which is faster than
    /// parsing it. Returns `None` for other records, which need the parser.
    fn scan(line: &'a str) -> Option<RecordInput<'a>> {
        let mut s = Scanner::new(line);
        s.word("{\"")?;
        if s.has("answers\":\"") {
            s.string()?;
            s.word(",\"")?;
        }
        if s.has("approvals\":") {
            s.skip()?;
            s.word(",\"")?;
        }
        s.word("at\":\"")?;
        let at = timestamp::read(s.string()?)?;
        s.word(",\"by\":")?;
        let by = principal(&mut s)?;
        s.word(",\"charter\":\"")?;
        let charter = s.string()?;
        s.word(",\"effects\":")?;
        s.skip()?;
        s.word(",\"event\":{\"data\":")?;
        let data = s.value()?;
        s.word(",\"type\":\"")?;
        let r#type = s.string()?;
        s.word("}")?;
        let expected_seq = if s.has(",\"expected_seq\":") { Some(s.number()?) } else { None };
        s.word(",\"from\":")?;
        s.skip()?;
        s.word(",\"hash\":\"")?;
        s.string()?;
        s.word(",\"id\":\"")?;
        let id = s.string()?;
        for list in [",\"ledger\":", ",\"notes\":"] {
            if s.has(list) {
                s.skip()?;
            }
        }
        s.word(",\"prev\":\"")?;
        s.string()?;
        if s.has(",\"refusal\":") {
            s.skip()?;
        }
        s.word(",\"run\":\"")?;
        let run = s.string()?;
        s.word(",\"seq\":")?;
        let seq = s.number()?;
        s.word(",\"snapshot\":\"")?;
        s.string()?;
        s.word(",\"source\":")?;
        let source = if s.has("{\"kind\":\"external\"}") { Source::EXTERNAL } else { s.value()? };
        let unique = if s.contains(",\"unique\":") { unique(&mut s)? } else { None };
        Some(RecordInput {
            run: Cow::Borrowed(run),
            seq,
            at,
            id: Cow::Borrowed(id),
            charter: Digest::parse(charter)?,
            by,
            source,
            event: EventField { r#type: Cow::Borrowed(r#type), data: Cow::Owned(data), redacted: None },
            expected_seq,
            unique,
            forked_from: None,
            manifest: None,
        })
    }

    /// Restores the envelope. Data is returned in canonical form, even if it was written
    /// differently (`2.0`).
    pub(crate) fn envelope(self) -> Result<Envelope, RecordError> {
        if self.event.redacted.is_some() {
            return Err(RecordError::Redacted);
        }
        let mut data = self.event.data.into_owned();
        charter_expr::json::normalize(&mut data);
        let part = |data: Json, key: &str| match data {
            Json::Object(mut map) => map.remove(key).unwrap_or_default(),
            _ => Json::Null,
        };
        let missing = |what: &str| RecordError::NotARecord(format!("`source` has no `{what}`"));
        let invocation = || self.source.invocation.as_deref().map(str::to_owned).ok_or_else(|| missing("invocation"));
        let effect = || match self.source.effect.as_deref() {
            None => Ok(None),
            Some(text) => EffectId::parse(text)
                .map(Some)
                .ok_or_else(|| RecordError::NotARecord(format!("`{text}` is not an effect id"))),
        };
        let event = match self.source.kind {
            SourceKind::Start => Event::Start { input: data },
            SourceKind::External => Event::External { r#type: self.event.r#type.into_owned(), data },
            SourceKind::Done => {
                Event::Done { invocation: invocation()?, effect: effect()?, output: part(data, "output") }
            }
            SourceKind::Error => {
                Event::Failed { invocation: invocation()?, effect: effect()?, error: part(data, "error") }
            }
            SourceKind::Attempt => Event::Attempt {
                invocation: invocation()?,
                effect: effect()?.ok_or_else(|| missing("effect"))?,
                attempt: data
                    .get("attempt")
                    .and_then(Json::as_u64)
                    .and_then(|n| u32::try_from(n).ok())
                    .ok_or_else(|| missing("attempt"))?,
                retry_at: data.get("retryAt").and_then(Json::as_i64).ok_or_else(|| missing("retryAt"))?.into(),
                error: part(data, "error"),
            },
            SourceKind::Timer => Event::Timer {
                timer: self.source.timer.as_deref().map(str::to_owned).ok_or_else(|| missing("timer"))?,
                generation: self.source.generation.ok_or_else(|| missing("generation"))?,
            },
        };
        Ok(Envelope {
            seq: self.seq,
            to: self.source.to.map(Cow::into_owned),
            event,
            by: self.by,
            at: self.source.at.unwrap_or(self.at),
            expected_seq: self.expected_seq,
            unique: self.unique.map(|unique| *unique),
        })
    }
}

#[cfg(test)]
mod tests {
    use charter_kernel::{Auth, PrincipalKind, Status};
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::{Approval, FORMAT, Fields, GENESIS, TimerField, TimerWord, Verdict};
    use super::*;

    /// A record with every required field, and the optional ones whose bit is set.
    fn record<'a>(word: &'a str, n: u64, by: &'a Principal, bits: u32) -> Fields<'a> {
        let has = |bit: u32| bits & (1 << bit) != 0;
        let words = |bit: u32| (0..bits >> bit & 3).map(|_| Cow::Borrowed(word)).collect();
        let data = json!({word: [n, word, {"event": {"data": 1}}], "to": "x\"]}"});
        let list = |bit: u32| {
            if has(bit) { vec![data.clone(); 2] } else { vec![] }
        };
        Fields {
            v: FORMAT,
            run: word.into(),
            seq: n >> 11,
            at: Timestamp(i64::from(bits) * 1_000),
            id: word.into(),
            charter: Digest::of_bytes(word.as_bytes()),
            to: "root".into(),
            by: Cow::Borrowed(by),
            source: Source {
                kind: SourceKind::Timer,
                to: has(0).then(|| word.into()),
                timer: has(1).then(|| word.into()),
                generation: has(1).then_some(n),
                at: has(2).then_some(Timestamp::MIN),
                ..Source::EXTERNAL
            },
            event: EventField { r#type: word.into(), data: Cow::Owned(data.clone()), redacted: None },
            expected_seq: has(3).then_some(n),
            verdict: Verdict::Accepted,
            refusal: None,
            from: words(4),
            state: words(6),
            transitions: words(8),
            effects: list(10),
            timers: vec![TimerField { what: TimerWord::Fired, timer: word.into(), generation: 7, due: None }],
            ledger: list(11),
            approvals: if has(12) {
                vec![Approval {
                    actor: word.into(),
                    transition: word.into(),
                    approves: word.into(),
                    digest: word.into(),
                }]
            } else {
                vec![]
            },
            notes: list(13),
            answers: has(14).then(|| word.to_owned()),
            unique: has(18).then(|| Box::new(Unique { key: word.into(), taken_by: has(19).then(|| word.to_owned()) })),
            status: Some(Status::Active),
            forked_from: has(15).then(|| Origin { run: word.into(), seq: n >> 11, hash: GENESIS, dry: has(17) }),
            manifest: has(16)
                .then(|| Box::new(Manifest { files: [(word.into(), GENESIS)].into(), ..Manifest::default() })),
            snapshot: GENESIS,
            prev: GENESIS,
            hash: GENESIS,
        }
    }

    proptest! {
        #[test]
        fn the_fast_path_gives_the_same_input(
            word in prop_oneof!["[a-z/-]{0,8}", any::<String>()],
            n in any::<u64>(),
            id in "[a-z]{0,3}",
            roles in prop::collection::vec("[a-z]{1,3}", 0..3),
            kind in prop::option::of(prop::sample::select(PrincipalKind::ALL.to_vec())),
            auth in prop::option::of(prop::sample::select(Auth::ALL.to_vec())),
            bits in any::<u32>(),
        ) {
            let by = Principal { id, roles, kind, auth };
            let mut text = String::new();
            record(&word, n, &by, bits).write_hashed(&mut text);
            let parsed: RecordInput<'_> = serde_json::from_str(&text).unwrap();
            let scanned = RecordInput::scan(&text);
            // Escaped strings, and the start of a fork, use the parser.
            let plain = !word.contains(|c: char| c < ' ' || c == '"' || c == '\\');
            let large = bits & 8 != 0 && n >= 1 << 53;
            prop_assert_eq!(scanned.is_some(), plain && !large && bits & 3 << 15 == 0, "{}", text);
            if let Some(scanned) = scanned {
                prop_assert_eq!(scanned, parsed);
            }
        }
    }
}
