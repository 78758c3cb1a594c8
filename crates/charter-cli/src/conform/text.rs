//! A line as JSON. Keys that come twice are refused: readers differ in which of them they see.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

/// Reads a line.
///
/// # Errors
/// Says what is wrong, and in which column.
pub(crate) fn read(bytes: &[u8]) -> Result<Json, String> {
    match serde_json::from_slice::<Strict>(bytes) {
        Ok(Strict(json)) => Ok(json),
        Err(error) => {
            let text = error.to_string();
            let message = text.split(" at line ").next().unwrap_or_default();
            Err(format!("column {}: {message}", error.column()))
        }
    }
}

/// JSON without repeated keys.
struct Strict(Json);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(Reader).map(Strict)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
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
    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = seq.next_element()? {
            list.push(item);
        }
        Ok(Json::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            // Before its value is read: the error stands at the key.
            match object.entry(key) {
                serde_json::map::Entry::Vacant(place) => {
                    let Strict(value) = map.next_value()?;
                    place.insert(value);
                }
                serde_json::map::Entry::Occupied(place) => {
                    return Err(de::Error::custom(format_args!("the key `{}` comes twice", place.key())));
                }
            }
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::read;
    use serde_json::json;

    #[test]
    fn lines() {
        assert_eq!(read(br#"{"a": [1, 2.5, "x"]}"#), Ok(json!({"a": [1, 2.5, "x"]})));
        assert_eq!(read(br#"{"a": 1, "b": {"c": 1, "c": 2}}"#), Err("column 26: the key `c` comes twice".into()));
        assert!(read(b"{").is_err());
        assert!(read(b"{} {}").is_err());
        assert!(read(b"\xff").is_err());
        assert!(read("[".repeat(100_000).as_bytes()).is_err());
    }
}
