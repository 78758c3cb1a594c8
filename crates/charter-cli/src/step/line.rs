//! One line of input: an event, an answer, a tick or a restore. Strict about keys and kinds, so that a slip is not an event without data.

use std::fmt;

use charter_expr::nearest;
use charter_kernel::{EffectId, Event, Principal};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use crate::moment;
use crate::session::Given;

/// What a line asks for.
#[derive(Debug)]
pub(crate) enum Line {
    /// Something happens. `id` is the sender's idempotency key.
    Given {
        /// What.
        given: Box<Given>,
        /// Its key.
        id: Option<String>,
    },
    /// Time passes until this moment.
    Tick(i64),
    /// To JSON and back.
    Restore,
}

const KEYS: [&str; 14] = [
    "type",
    "data",
    "by",
    "at",
    "to",
    "id",
    "expected_seq",
    "done",
    "output",
    "effect",
    "error",
    "failed",
    "tick",
    "restore",
];

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// Says what is wrong with it, with its column where that is known.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Line, String> {
        let mut fields = serde_json::from_slice::<Fields>(bytes).map_err(|e| describe(&e))?;
        let line = fields.line()?;
        match fields.leftover() {
            Some(key) => Err(format!("`{key}` does not belong here")),
            None => Ok(line),
        }
    }
}

/// An error of the JSON reader: its line is always 1 here, so only the column is told.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text.split(" at line ").next().unwrap_or_default();
    match error.classify() {
        serde_json::error::Category::Data if error.column() == 0 => message.to_owned(),
        serde_json::error::Category::Data => message.to_owned(),
        _ => format!("column {}: no JSON: {message}", error.column()),
    }
}

/// The keys of a line, as far as they are there.
#[derive(Default)]
struct Fields {
    kind: Option<String>,
    data: Option<Json>,
    by: Option<Principal>,
    at: Option<i64>,
    to: Option<String>,
    id: Option<String>,
    expected_seq: Option<u64>,
    done: Option<String>,
    output: Option<Json>,
    effect: Option<EffectId>,
    failed: Option<String>,
    error: Option<Json>,
    tick: Option<i64>,
    restore: Option<bool>,
}

impl Fields {
    fn line(&mut self) -> Result<Line, String> {
        let kinds = [
            ("type", self.kind.is_some()),
            ("done", self.done.is_some()),
            ("error", self.failed.is_some()),
            ("tick", self.tick.is_some()),
            ("restore", self.restore.is_some()),
        ];
        let mut found = kinds.iter().filter(|(_, there)| *there).map(|(key, _)| key);
        match (found.next(), found.next()) {
            (Some(a), Some(b)) => return Err(format!("`{a}` and `{b}` exclude each other")),
            (None, _) if self.error.is_some() => {
                return Err("an error names its invocation: `{\"error\": \"ID\", \"error\": {...}}`".into());
            }
            (None, _) => {
                return Err("a line has one of the keys `type`, `done`, `error`, `tick`, `restore`".into());
            }
            _ => {}
        }
        if let Some(until) = self.tick.take() {
            return Ok(Line::Tick(until));
        }
        if let Some(restore) = self.restore.take() {
            return match restore {
                true => Ok(Line::Restore),
                false => Err("`restore` is `true` or not there".into()),
            };
        }
        let event = if let Some(r#type) = self.kind.take() {
            let data = self.data.take().unwrap_or_default();
            Event::External { r#type, data }
        } else if let Some(invocation) = self.done.take() {
            Event::Done { invocation, effect: self.effect.take(), output: self.output.take().unwrap_or_default() }
        } else {
            let invocation = self.failed.take().unwrap_or_default();
            let effect = self.effect.take();
            let nothing_said = || serde_json::json!({"code": "error", "message": "no reason given"});
            let error = self.error.take().unwrap_or_else(nothing_said);
            Event::Failed { invocation, effect, error }
        };
        let answer = !matches!(event, Event::External { .. });
        let given = Given {
            to: self.to.take(),
            by: match answer {
                true => Principal::system(),
                false => self.by.take().unwrap_or_default(),
            },
            at: self.at.take(),
            expected_seq: match answer {
                true => None,
                false => self.expected_seq.take(),
            },
            event,
        };
        let id = self.id.take();
        Ok(Line::Given { given: Box::new(given), id })
    }

    /// A key that this kind of line does not have.
    fn leftover(&self) -> Option<&'static str> {
        let left = [
            ("data", self.data.is_some()),
            ("by", self.by.is_some()),
            ("at", self.at.is_some()),
            ("to", self.to.is_some()),
            ("id", self.id.is_some()),
            ("expected_seq", self.expected_seq.is_some()),
            ("output", self.output.is_some()),
            ("effect", self.effect.is_some()),
            ("error", self.error.is_some()),
        ];
        left.iter().find(|(_, there)| *there).map(|(key, _)| *key)
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
        "type" => once(&mut f.kind, key, text(key, map)?),
        "data" => once(&mut f.data, key, Some(map.next_value_seed(Strict)?)),
        "output" => once(&mut f.output, key, Some(map.next_value_seed(Strict)?)),
        "to" => once(&mut f.to, key, text(key, map)?),
        "id" => once(&mut f.id, key, text(key, map)?),
        "done" => once(&mut f.done, key, text(key, map)?),
        "failed" => once(&mut f.failed, key, text(key, map)?),
        "by" => once(&mut f.by, key, principal(map.next_value_seed(Strict)?)?),
        "at" => once(&mut f.at, key, time(map.next_value_seed(Strict)?)?),
        "tick" => once(&mut f.tick, key, time(map.next_value_seed(Strict)?)?),
        "expected_seq" => {
            let value = map.next_value_seed(Strict)?;
            let number = match &value {
                Json::Null => None,
                value => Some(value.as_u64().ok_or_else(|| wrong(key, "a whole number"))?),
            };
            once(&mut f.expected_seq, key, number)
        }
        "effect" => {
            let id = text(key, map)?;
            let parsed =
                id.map(|id| EffectId::parse(&id).ok_or_else(|| wrong(key, "the id of an effect, such as `RUN/7/0`")));
            once(&mut f.effect, key, parsed.transpose()?)
        }
        // The key stands twice: its text is the invocation, the other value the error.
        "error" => match map.next_value_seed(Strict)? {
            Json::String(id) if f.failed.is_none() => once(&mut f.failed, key, Some(id)),
            error => once(&mut f.error, key, Some(error)),
        },
        "restore" => match map.next_value_seed(Strict)? {
            Json::Bool(restore) => once(&mut f.restore, key, Some(restore)),
            _ => Err(wrong(key, "`true`")),
        },
        _ => {
            let near = nearest(key, KEYS).map(|near| format!("; did you mean `{near}`?"));
            Err(de::Error::custom(format!("there is no key `{}`{}", moment::cut(key), near.unwrap_or_default())))
        }
    }
}

fn once<T, E: de::Error>(place: &mut Option<T>, key: &str, value: Option<T>) -> Result<(), E> {
    if place.is_some() {
        return Err(de::Error::custom(format!("the key `{key}` stands twice")));
    }
    *place = value;
    Ok(())
}

fn wrong<E: de::Error>(key: &str, what: &str) -> E {
    de::Error::custom(format!("`{key}` has to be {what}"))
}

fn text<'de, A: MapAccess<'de>>(key: &str, map: &mut A) -> Result<Option<String>, A::Error> {
    match map.next_value_seed(Strict)? {
        Json::String(text) => Ok(Some(text)),
        Json::Null => Ok(None),
        _ => Err(wrong(key, "text")),
    }
}

fn time<E: de::Error>(value: Json) -> Result<Option<i64>, E> {
    match value {
        Json::Null => Ok(None),
        value => moment::from_json(&value).map(Some).map_err(E::custom),
    }
}

fn principal<E: de::Error>(value: Json) -> Result<Option<Principal>, E> {
    let mut by = Principal::default();
    let fields = match value {
        Json::Null => return Ok(None),
        Json::Object(fields) => fields,
        _ => return Err(wrong("by", "an object with `id` and `roles`")),
    };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("id", Json::String(id)) => by.id = id,
            ("roles", Json::Array(roles)) => {
                for role in roles {
                    match role {
                        Json::String(role) => by.roles.push(role),
                        _ => return Err(wrong("by.roles", "a list of names")),
                    }
                }
            }
            ("id", _) => return Err(wrong("by.id", "text")),
            ("roles", _) => return Err(wrong("by.roles", "a list of names")),
            (other, _) => {
                return Err(E::custom(format!(
                    "`by` has no key `{}`; its keys are `id` and `roles`",
                    moment::cut(other)
                )));
            }
        }
    }
    Ok(Some(by))
}

/// Reads a JSON value in which no object has a key twice: readers of JSON disagree about what such an object means.
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Json, E> {
        Ok(Json::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Json, E> {
        Ok(v.into())
    }
    fn visit_u64<E>(self, v: u64) -> Result<Json, E> {
        Ok(v.into())
    }
    fn visit_f64<E>(self, v: f64) -> Result<Json, E> {
        Ok(v.into())
    }
    fn visit_str<E>(self, v: &str) -> Result<Json, E> {
        Ok(Json::String(v.to_owned()))
    }
    fn visit_string<E>(self, v: String) -> Result<Json, E> {
        Ok(Json::String(v))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(Strict)? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(Strict)?;
            if let Some(before) = object.insert(key, value) {
                drop(before);
                return Err(de::Error::custom("an object has the same key twice"));
            }
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(text: &str) -> String {
        match Line::parse(text.as_bytes()) {
            Ok(line) => panic!("{text} was read as {line:?}"),
            Err(message) => message,
        }
    }

    fn given(text: &str) -> Given {
        match Line::parse(text.as_bytes()) {
            Ok(Line::Given { given, .. }) => *given,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn events_and_answers() {
        let g = given(
            r#"{"type":"GO","data":{"x":1},"by":{"id":"ana","roles":["a"]},"at":"1970-01-01T00:00:01Z","to":"p","expected_seq":3}"#,
        );
        assert_eq!((g.at, g.to.as_deref(), g.expected_seq), (Some(1000), Some("p"), Some(3)));
        assert_eq!(g.by, Principal::new("ana", &["a"]));
        let g = given(r#"{"done":"d","output":null,"effect":"r/1/2","at":5}"#);
        let effect = Some(EffectId { seq: 1, index: 2 });
        assert_eq!(g.event, Event::Done { invocation: "d".into(), effect, output: Json::Null });
    }

    #[test]
    fn the_error_key_stands_twice() {
        for line in [
            r#"{"error":"d","error":{"code":"x"}}"#,
            r#"{"error":{"code":"x"},"error":"d"}"#,
            r#"{"failed":"d","error":{"code":"x"}}"#,
            r#"{"error":{"code":"x"},"failed":"d"}"#,
        ] {
            let Event::Failed { invocation, error, .. } = given(line).event else { panic!("{line}") };
            assert_eq!((invocation.as_str(), error["code"].as_str()), ("d", Some("x")), "{line}");
        }
        let Event::Failed { error, .. } = given(r#"{"error":"d"}"#).event else { panic!() };
        assert_eq!(error["code"], "error");
        assert!(failed(r#"{"error":{"code":"x"}}"#).contains("names its invocation"));
        assert!(failed(r#"{"error":"d","error":{},"error":{}}"#).contains("twice"));
    }

    #[test]
    fn slips_are_told() {
        assert_eq!(failed(r#"{"typ":"GO"}"#), "there is no key `typ`; did you mean `type`?");
        assert_eq!(failed(r#"{"type":"GO","output":1}"#), "`output` does not belong here");
        assert_eq!(failed(r#"{"tick":1,"to":"x"}"#), "`to` does not belong here");
        assert_eq!(failed(r#"{"type":"A","done":"b"}"#), "`type` and `done` exclude each other");
        assert_eq!(failed(r#"{"type":7}"#), "`type` has to be text");
        assert_eq!(
            failed(r#"{"type":"A","by":{"role":"x"}}"#),
            "`by` has no key `role`; its keys are `id` and `roles`"
        );
        assert_eq!(failed(r#"{"type":"A","data":{"x":1,"x":2}}"#), "an object has the same key twice");
        assert!(failed(r#"[1]"#).contains("expected a JSON object"));
        assert!(failed(r#"{"type":"A""#).contains("no JSON"));
        assert!(failed("{}").contains("one of the keys"));
    }

    #[test]
    fn deep_data_is_an_error_and_no_abort() {
        let deep = format!(r#"{{"type":"A","data":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(failed(&deep).contains("recursion limit"));
    }
}
