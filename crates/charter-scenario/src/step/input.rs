//! Parses an input line: an event, an answer, a tick or a restore. Unknown keys and wrong types are
//! errors, so that a misspelled key does not result in an event without data.

use std::fmt;

use charter_expr::nearest;
use charter_expr::strict_json::{StrictJson, duplicate_key, without_place};
use charter_kernel::{EffectId, Event, Principal, Timestamp};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;

use super::principal::principal;
use super::start::{StartLine, start_line};
use crate::session::SessionEvent;
use crate::timestamp::{self, abbreviate};

/// The request in an input line.
#[derive(Debug)]
pub(crate) enum InputLine {
    /// Starts the run; only the first line of a stream can be one.
    Start(StartLine),
    /// An event or an answer.
    Event {
        /// The event; its data is null until the line without data gets that of its event type.
        event: Box<SessionEvent>,
        /// Whether the line has data.
        has_data: bool,
        /// The event id, if the line has one.
        id: Option<String>,
    },
    /// Advances the time to this timestamp.
    Tick(Timestamp),
    /// Replaces the snapshot with the result of its round trip through JSON.
    Restore,
}

const KEYS: [&str; 16] = [
    "start",
    "type",
    "data",
    "by",
    "at",
    "to",
    "id",
    "expected_seq",
    "taken_by",
    "done",
    "output",
    "effect",
    "error",
    "failed",
    "tick",
    "restore",
];

/// Why a line is not a valid input line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InputError {
    #[error("column {column}: invalid JSON: {message}")]
    NotJson { column: usize, message: String },
    /// The error message of the visitor below: an unknown key, or a value of the wrong type.
    #[error("{0}")]
    Value(String),
    #[error("the keys `{0}` and `{1}` are mutually exclusive")]
    Conflict(&'static str, &'static str),
    #[error("missing key: a line has one of `type`, `done`, `error`, `tick`, `restore`")]
    NoKind,
    #[error("missing invocation id: write `{{\"failed\": \"ID\", \"error\": {{...}}}}`")]
    NoInvocation,
    #[error("`restore` must be `true`")]
    RestoreFalse,
    #[error("the run has started: `start` is only possible in the first line")]
    Started,
    #[error("unexpected key `{key}` in a line with `{kind}`")]
    Unexpected { key: &'static str, kind: &'static str },
}

impl InputLine {
    /// Parses a line.
    ///
    /// # Errors
    /// Returns an error if the line is not JSON, or is not one of the four kinds of line.
    pub(crate) fn parse(bytes: &[u8]) -> Result<InputLine, InputError> {
        let mut fields = serde_json::from_slice::<Fields>(bytes).map_err(|e| describe(&e))?;
        let kind = fields.kind()?;
        let line = fields.line()?;
        match fields.leftover() {
            Some(key) => Err(InputError::Unexpected { key, kind }),
            None => Ok(line),
        }
    }
}

/// Describes an error without its line, which is always 1 here.
fn describe(error: &serde_json::Error) -> InputError {
    let message = without_place(error);
    match error.classify() {
        serde_json::error::Category::Data => InputError::Value(message),
        _ => InputError::NotJson { column: error.column(), message },
    }
}

/// The values of a line, by key.
#[derive(Default)]
struct Fields {
    event_type: Option<String>,
    data: Option<Json>,
    by: Option<Principal>,
    at: Option<Timestamp>,
    to: Option<String>,
    id: Option<String>,
    expected_seq: Option<u64>,
    taken_by: Option<String>,
    done: Option<String>,
    output: Option<Json>,
    effect: Option<EffectId>,
    failed: Option<String>,
    error: Option<Json>,
    tick: Option<Timestamp>,
    restore: Option<bool>,
    start: Option<StartLine>,
}

impl Fields {
    /// The key that determines the kind of the line.
    fn kind(&self) -> Result<&'static str, InputError> {
        let kinds = [
            ("type", self.event_type.is_some()),
            ("done", self.done.is_some()),
            ("error", self.failed.is_some()),
            ("tick", self.tick.is_some()),
            ("restore", self.restore.is_some()),
            ("start", self.start.is_some()),
        ];
        let mut found = kinds.iter().filter(|(_, present)| *present).map(|(key, _)| *key);
        match (found.next(), found.next()) {
            (Some(a), Some(b)) => Err(InputError::Conflict(a, b)),
            (Some(kind), None) => Ok(kind),
            (None, _) if self.error.is_some() => Err(InputError::NoInvocation),
            (None, _) => Err(InputError::NoKind),
        }
    }

    fn line(&mut self) -> Result<InputLine, InputError> {
        if let Some(start) = self.start.take() {
            return Ok(InputLine::Start(start));
        }
        if let Some(until) = self.tick.take() {
            return Ok(InputLine::Tick(until));
        }
        if let Some(restore) = self.restore.take() {
            return match restore {
                true => Ok(InputLine::Restore),
                false => Err(InputError::RestoreFalse),
            };
        }
        let has_data = self.data.is_some();
        let event = if let Some(r#type) = self.event_type.take() {
            let data = self.data.take().unwrap_or_default();
            Event::External { r#type, data }
        } else if let Some(invocation) = self.done.take() {
            Event::Done { invocation, effect: self.effect.take(), output: self.output.take().unwrap_or_default() }
        } else {
            let invocation = self.failed.take().unwrap_or_default();
            let effect = self.effect.take();
            let default = || serde_json::json!({"code": "error", "message": "no reason given"});
            let error = self.error.take().unwrap_or_else(default);
            Event::Failed { invocation, effect, error }
        };
        let answer = !matches!(event, Event::External { .. });
        let event = SessionEvent {
            to: self.to.take(),
            by: match answer {
                true => self.by.take().unwrap_or_else(Principal::system),
                false => self.by.take().unwrap_or_default(),
            },
            at: self.at.take(),
            expected_seq: match answer {
                true => None,
                false => self.expected_seq.take(),
            },
            taken_by: match answer {
                true => None,
                false => self.taken_by.take(),
            },
            event,
        };
        let id = self.id.take();
        Ok(InputLine::Event { event: Box::new(event), has_data, id })
    }

    /// The first key that is not allowed in this kind of line.
    fn leftover(&self) -> Option<&'static str> {
        let left = [
            ("data", self.data.is_some()),
            ("by", self.by.is_some()),
            ("at", self.at.is_some()),
            ("to", self.to.is_some()),
            ("id", self.id.is_some()),
            ("expected_seq", self.expected_seq.is_some()),
            ("taken_by", self.taken_by.is_some()),
            ("output", self.output.is_some()),
            ("effect", self.effect.is_some()),
            ("error", self.error.is_some()),
        ];
        left.iter().find(|(_, present)| *present).map(|(key, _)| *key)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            read(&mut fields, &key, &mut map)?;
        }
        Ok(fields)
    }
}

fn read<'de, A: MapAccess<'de>>(f: &mut Fields, key: &str, map: &mut A) -> Result<(), A::Error> {
    match key {
        "type" => once(&mut f.event_type, key, text(key, map)?),
        "data" => once(&mut f.data, key, Some(map.next_value_seed(StrictJson)?)),
        "output" => once(&mut f.output, key, Some(map.next_value_seed(StrictJson)?)),
        "to" => once(&mut f.to, key, text(key, map)?),
        "id" => once(&mut f.id, key, text(key, map)?),
        "taken_by" => once(&mut f.taken_by, key, text(key, map)?),
        "done" => once(&mut f.done, key, text(key, map)?),
        "failed" => once(&mut f.failed, key, text(key, map)?),
        "by" => once(&mut f.by, key, principal(map.next_value_seed(StrictJson)?)?),
        "at" => once(&mut f.at, key, time(map.next_value_seed(StrictJson)?)?),
        "tick" => once(&mut f.tick, key, time(map.next_value_seed(StrictJson)?)?),
        "expected_seq" => {
            let value = map.next_value_seed(StrictJson)?;
            let number = match &value {
                Json::Null => None,
                value => Some(value.as_u64().ok_or_else(|| wrong_type(key, "a whole number"))?),
            };
            once(&mut f.expected_seq, key, number)
        }
        "effect" => {
            let id = text(key, map)?;
            let parsed =
                id.map(|id| EffectId::parse(&id).ok_or_else(|| wrong_type(key, "an effect id, such as `RUN/7/0`")));
            once(&mut f.effect, key, parsed.transpose()?)
        }
        // This key may occur twice: a string is the id of the invocation, any other value is the
        // error.
        "error" => match map.next_value_seed(StrictJson)? {
            Json::String(id) if f.failed.is_none() => once(&mut f.failed, key, Some(id)),
            error => once(&mut f.error, key, Some(error)),
        },
        "start" => {
            let start = start_line(map.next_value_seed(StrictJson)?)?;
            once(&mut f.start, key, Some(start))
        }
        "restore" => match map.next_value_seed(StrictJson)? {
            Json::Bool(restore) => once(&mut f.restore, key, Some(restore)),
            _ => Err(wrong_type(key, "`true`")),
        },
        _ => {
            let near = nearest(key, KEYS).map(|near| format!("; did you mean `{near}`?"));
            Err(de::Error::custom(format!("unknown key `{}`{}", abbreviate(key), near.unwrap_or_default())))
        }
    }
}

fn once<T, E: de::Error>(place: &mut Option<T>, key: &str, value: Option<T>) -> Result<(), E> {
    if place.is_some() {
        return Err(duplicate_key(key));
    }
    *place = value;
    Ok(())
}

pub(super) fn wrong_type<E: de::Error>(key: &str, what: &str) -> E {
    de::Error::custom(format!("`{key}` must be {what}"))
}

fn text<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Option<String>, A::Error> {
    match map.next_value_seed(StrictJson)? {
        Json::String(text) => Ok(Some(text)),
        Json::Null => Ok(None),
        _ => Err(wrong_type(key, "a string")),
    }
}

pub(super) fn time<E: de::Error>(value: Json) -> Result<Option<Timestamp>, E> {
    match value {
        Json::Null => Ok(None),
        value => timestamp::from_json(&value).map(Some).map_err(E::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(text: &str) -> String {
        match InputLine::parse(text.as_bytes()) {
            Ok(line) => panic!("{text} was parsed as {line:?}"),
            Err(error) => error.to_string(),
        }
    }

    fn event(text: &str) -> SessionEvent {
        match InputLine::parse(text.as_bytes()) {
            Ok(InputLine::Event { event, .. }) => *event,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn events_and_answers() {
        let g = event(
            r#"{"type":"GO","data":{"x":1},"by":{"id":"ana","roles":["a"]},"at":"1970-01-01T00:00:01Z","to":"p","expected_seq":3}"#,
        );
        assert_eq!((g.at, g.to.as_deref(), g.expected_seq), (Some(Timestamp(1000)), Some("p"), Some(3)));
        assert_eq!(g.by, Principal::new("ana", &["a"]));
        let g = event(r#"{"done":"d","output":null,"effect":"r/1/2","at":5}"#);
        let effect = Some(EffectId { seq: 1, index: 2 });
        assert_eq!(g.event, Event::Done { invocation: "d".into(), effect, output: Json::Null });
    }

    #[test]
    fn the_error_key_may_occur_twice() {
        for line in [
            r#"{"error":"d","error":{"code":"x"}}"#,
            r#"{"error":{"code":"x"},"error":"d"}"#,
            r#"{"failed":"d","error":{"code":"x"}}"#,
            r#"{"error":{"code":"x"},"failed":"d"}"#,
        ] {
            let Event::Failed { invocation, error, .. } = event(line).event else { panic!("{line}") };
            assert_eq!((invocation.as_str(), error["code"].as_str()), ("d", Some("x")), "{line}");
        }
        let Event::Failed { error, .. } = event(r#"{"error":"d"}"#).event else { panic!() };
        assert_eq!(error["code"], "error");
        assert!(failed(r#"{"error":{"code":"x"}}"#).contains("missing invocation id"));
        assert!(failed(r#"{"error":"d","error":{},"error":{}}"#).contains("duplicate key `error`"));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(failed(r#"{"typ":"GO"}"#), "unknown key `typ`; did you mean `type`?");
        assert_eq!(failed(r#"{"type":"GO","output":1}"#), "unexpected key `output` in a line with `type`");
        assert_eq!(failed(r#"{"tick":1,"to":"x"}"#), "unexpected key `to` in a line with `tick`");
        assert_eq!(failed(r#"{"type":"A","done":"b"}"#), "the keys `type` and `done` are mutually exclusive");
        assert_eq!(failed(r#"{"type":7}"#), "`type` must be a string");
        assert_eq!(failed(r#"{"type":"A","data":{"x":1,"x":2}}"#), "duplicate key `x`");
        assert!(failed(r#"[1]"#).contains("expected a JSON object"));
        assert!(failed(r#"{"type":"A""#).contains("invalid JSON"));
        assert!(failed("{}").contains("missing key"));
    }

    #[test]
    fn deeply_nested_data_is_an_error() {
        let deep = format!(r#"{{"type":"A","data":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(failed(&deep).contains("recursion limit"));
    }
}
