//! Parses JSON and refuses duplicate keys: parsers disagree about which of the two values to keep.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// Why a line is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub(crate) struct JsonError {
    /// The column in bytes, counted from 1.
    pub(crate) column: usize,
    /// What is wrong at that column.
    pub(crate) message: String,
}

/// Parses a line of JSON.
///
/// # Errors
/// Returns an error if the line is not JSON, or if an object contains a key twice.
pub(crate) fn parse(bytes: &[u8]) -> Result<Json, JsonError> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = StrictJson.deserialize(&mut deserializer).and_then(|json| deserializer.end().map(|()| json));
    value.map_err(|error| JsonError { column: error.column(), message: message(&error) })
}

/// Returns the parser's message without its position, because the line number is always 1 here.
pub(crate) fn message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Deserializes a value, and refuses duplicate keys at any depth.
pub(crate) struct StrictJson;

impl<'de> DeserializeSeed<'de> for StrictJson {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, b: bool) -> Result<Json, E> {
        Ok(Json::Bool(b))
    }
    fn visit_i64<E>(self, n: i64) -> Result<Json, E> {
        Ok(Json::Number(n.into()))
    }
    fn visit_u64<E>(self, n: u64) -> Result<Json, E> {
        Ok(Json::Number(n.into()))
    }
    fn visit_f64<E>(self, n: f64) -> Result<Json, E> {
        Ok(Number::from_f64(n).map_or(Json::Null, Json::Number))
    }
    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::String(text.to_owned()))
    }
    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::String(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(StrictJson)? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            // This is checked before the value is read, so that the error points at the key.
            match object.entry(key) {
                serde_json::map::Entry::Vacant(entry) => {
                    entry.insert(map.next_value_seed(StrictJson)?);
                }
                serde_json::map::Entry::Occupied(entry) => return Err(duplicate_key(entry.key())),
            }
        }
        Ok(Json::Object(object))
    }
}

/// Creates the error for a key that occurs twice in an object.
pub(crate) fn duplicate_key<E: de::Error>(key: &str) -> E {
    E::custom(format_args!("duplicate key `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde_json::json;

    #[test]
    fn duplicate_keys_and_invalid_json_are_errors() {
        assert_eq!(parse(br#"{"a": [1, 2.5, "x"]}"#).unwrap(), json!({"a": [1, 2.5, "x"]}));
        let duplicate = parse(br#"{"a": 1, "b": {"c": 1, "c": 2}}"#).unwrap_err();
        assert_eq!(duplicate.to_string(), "column 26: duplicate key `c`");
        assert!(parse(b"{").is_err());
        assert!(parse(b"{} {}").is_err());
        assert!(parse(b"\xff").is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}
