//! Parses JSON from outside and refuses duplicate keys at any depth: parsers disagree about which
//! of the two values to keep, so two programs could read different data from the same text.
//!
//! A value is refused before it needs more than [`MAX_MEMORY`]: a list of small objects can need
//! 100 times the memory of its text.
//!
//! An error is that of `serde_json`, with its line and column: a duplicate key is
//! ``duplicate key `KEY` at line 1 column 26``, which [`is_duplicate_key`] recognizes.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Result, Value as Json};

use crate::json::memory::{ENTRY, NODE};

/// The most characters of a key that an error shows.
const MAX_SHOWN: usize = 60;

/// Upper limit of the memory for a value, in bytes.
pub const MAX_MEMORY: u64 = 40 << 20;

/// Parses a JSON text.
///
/// # Errors
/// The text is not JSON, nests deeper than the default limit of `serde_json` (128), an object
/// contains a key twice, or the value would take more than [`MAX_MEMORY`].
pub fn from_str(text: &str) -> Result<Json> {
    whole(serde_json::Deserializer::from_str(text), StrictJson)
}

/// Parses a JSON text that may not be UTF-8.
///
/// # Errors
/// See [`from_str`].
pub fn from_slice(bytes: &[u8]) -> Result<Json> {
    whole(serde_json::Deserializer::from_slice(bytes), StrictJson)
}

/// Parses a JSON text to a type that may not detect duplicate keys itself, such as one with maps.
///
/// # Errors
/// See [`from_str`]; also, the text does not match the type.
pub fn typed<T: DeserializeOwned>(text: &str) -> Result<T> {
    check(text)?;
    serde_json::from_str(text)
}

/// Checks that a text is JSON without duplicate keys; for texts that another parser reads.
///
/// # Errors
/// See [`from_str`].
pub fn check(text: &str) -> Result<()> {
    whole(serde_json::Deserializer::from_str(text), UniqueKeys(None))
}

/// Like [`check`], for text that nests deeper than the default limit of `serde_json`. The caller
/// has limited its depth, because the parser is recursive.
///
/// # Errors
/// The text is not JSON, or an object contains a key twice.
pub fn check_with<'de, R: serde_json::de::Read<'de>>(reader: serde_json::Deserializer<R>) -> Result<()> {
    whole(reader, UniqueKeys(None))
}

/// Like [`check_with`], but also refuses lists and objects that would take more than [`MAX_MEMORY`]
/// besides their texts, which are no longer than the text that is parsed.
///
/// # Errors
/// See [`check_with`]; also, the value would take too much memory.
pub fn check_request<'de, R: serde_json::de::Read<'de>>(reader: serde_json::Deserializer<R>) -> Result<()> {
    whole(reader, UniqueKeys(Some(Within(&Cell::new(MAX_MEMORY)))))
}

fn whole<'de, R: serde_json::de::Read<'de>, S: DeserializeSeed<'de>>(
    mut reader: serde_json::Deserializer<R>,
    seed: S,
) -> Result<S::Value> {
    let value = seed.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Whether an error of this module is about a duplicate key, and not about invalid JSON.
#[must_use]
pub fn is_duplicate_key(error: &serde_json::Error) -> bool {
    error.is_data() && error.to_string().starts_with(DUPLICATE_KEY)
}

/// Whether an error of this module is about the memory for the value.
#[must_use]
pub fn is_too_large(error: &serde_json::Error) -> bool {
    error.is_data() && error.to_string().starts_with(TOO_LARGE)
}

/// Returns the message of an error without its line and column.
#[must_use]
pub fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) if error.line() > 0 => message.to_owned(),
        _ => text,
    }
}

const DUPLICATE_KEY: &str = "duplicate key `";

const TOO_LARGE: &str = "the value takes more than 40 MiB of memory";

/// Creates the error for a key that occurs twice in an object.
pub fn duplicate_key<E: de::Error>(key: &str) -> E {
    let (shown, more) = match key.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => (key.get(..end).unwrap_or_default(), "…"),
        None => (key, ""),
    };
    E::custom(format_args!("{DUPLICATE_KEY}{}{more}`", shown.escape_debug()))
}

/// Deserializes a value, and refuses duplicate keys at any depth and what takes too much memory.
#[derive(Debug, Clone, Copy)]
pub struct StrictJson;

impl<'de> DeserializeSeed<'de> for StrictJson {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Json, D::Error> {
        Within(&Cell::new(MAX_MEMORY)).deserialize(deserializer)
    }
}

/// Deserializes a value with the memory that is left for it.
#[derive(Clone, Copy)]
struct Within<'m>(&'m Cell<u64>);

/// The memory of an item of a list.
const ITEM: u64 = size_of::<Json>() as u64;

/// The memory of a text or a key beside its bytes.
const TEXT: u64 = 16;

impl Within<'_> {
    fn spend<E: de::Error>(self, bytes: u64) -> std::result::Result<(), E> {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.ok_or_else(|| {
            E::custom(format_args!(
                "{TOO_LARGE}; send fewer small objects, or store them elsewhere and send their digest"
            ))
        })?);
        Ok(())
    }

    fn spend_text<E: de::Error>(self, text: &str) -> std::result::Result<(), E> {
        self.spend(TEXT.saturating_add(text.len() as u64))
    }
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> std::result::Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E>(self, b: bool) -> std::result::Result<Json, E> {
        Ok(Json::Bool(b))
    }
    fn visit_i64<E>(self, n: i64) -> std::result::Result<Json, E> {
        Ok(Json::Number(n.into()))
    }
    fn visit_u64<E>(self, n: u64) -> std::result::Result<Json, E> {
        Ok(Json::Number(n.into()))
    }
    fn visit_f64<E>(self, n: f64) -> std::result::Result<Json, E> {
        Ok(Number::from_f64(n).map_or(Json::Null, Json::Number))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> std::result::Result<Json, E> {
        self.spend_text(text)?;
        Ok(Json::String(text.to_owned()))
    }
    fn visit_string<E: de::Error>(self, text: String) -> std::result::Result<Json, E> {
        self.spend_text(&text)?;
        Ok(Json::String(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            self.spend(ITEM)?;
            list.push(item);
        }
        // The list may have taken twice the memory that it needs.
        list.shrink_to_fit();
        Ok(Json::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.spend(if object.is_empty() { NODE } else { ENTRY })?;
            self.spend_text(&key)?;
            // This is checked before the value is read, so that the error points at the key.
            match object.entry(key) {
                serde_json::map::Entry::Vacant(entry) => {
                    entry.insert(map.next_value_seed(self)?);
                }
                serde_json::map::Entry::Occupied(entry) => return Err(duplicate_key(entry.key())),
            }
        }
        Ok(Json::Object(object))
    }
}

/// Reads a value and keeps nothing of it but the keys of the objects it is in. Spends the memory of
/// lists and objects, if there is a limit.
#[derive(Clone, Copy)]
struct UniqueKeys<'m>(Option<Within<'m>>);

impl UniqueKeys<'_> {
    fn spend<E: de::Error>(self, bytes: u64) -> std::result::Result<(), E> {
        self.0.map_or(Ok(()), |within| within.spend(bytes))
    }
}

impl<'de> DeserializeSeed<'de> for UniqueKeys<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        Ok(())
    }
    fn visit_bool<E>(self, _: bool) -> std::result::Result<(), E> {
        Ok(())
    }
    fn visit_i64<E>(self, _: i64) -> std::result::Result<(), E> {
        Ok(())
    }
    fn visit_u64<E>(self, _: u64) -> std::result::Result<(), E> {
        Ok(())
    }
    fn visit_f64<E>(self, _: f64) -> std::result::Result<(), E> {
        Ok(())
    }
    fn visit_str<E>(self, _: &str) -> std::result::Result<(), E> {
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<(), A::Error> {
        while seq.next_element_seed(self)?.is_some() {
            self.spend(ITEM)?;
        }
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(Key(key)) = map.next_key()? {
            if keys.contains(&key) {
                return Err(duplicate_key(&key));
            }
            self.spend(if keys.is_empty() { NODE } else { ENTRY })?;
            keys.insert(key);
            map.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// A key, borrowed from the text unless it contains escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicate_keys_and_invalid_json_are_errors() {
        let text = r#"{"a": [1, 2.5, "x", -3, true, null, {}]}"#;
        assert_eq!(from_str(text).unwrap(), json!({"a": [1, 2.5, "x", -3, true, null, {}]}));
        check(text).unwrap();
        let invalid: [&[u8]; 5] = [b"{", b"{} {}", b"\xff", b"", b"[1,]"];
        for bytes in invalid {
            let error = from_slice(bytes).unwrap_err();
            assert!(!is_duplicate_key(&error), "{error}");
            assert!(check(&String::from_utf8_lossy(bytes)).is_err());
        }
        assert!(from_str(&"[".repeat(100_000)).is_err());
        assert!(check(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn a_duplicate_key_is_found_at_any_depth_and_named_with_its_place() {
        let cases = [
            (r#"{"a": 1, "b": {"c": 1, "c": 2}}"#, "duplicate key `c` at line 1 column 26"),
            (r#"[{"a": null, "a": null}]"#, "duplicate key `a` at line 1 column 16"),
            // The same key, written in two ways.
            ("{\"a\": 1,\n \"\\u0061\": 1}", "duplicate key `a` at line 2 column 9"),
            (r#"{"\n": 1, "\n": 1}"#, "duplicate key `\\n` at line 1 column 14"),
        ];
        for (text, expected) in cases {
            for error in [from_str(text).unwrap_err(), check(text).unwrap_err(), typed::<Json>(text).unwrap_err()] {
                assert!(is_duplicate_key(&error), "{error}");
                assert_eq!(error.to_string(), expected);
            }
        }
        let odd = from_str(r#"{" at line 7": 1, " at line 7": 1}"#).unwrap_err();
        assert_eq!(without_place(&odd), "duplicate key ` at line 7`");
        let long = "k".repeat(1000);
        let error = from_str(&format!("{{{long:?}: 1, {long:?}: 1}}")).unwrap_err().to_string();
        assert!(error.len() < 200, "{error}");
    }

    #[test]
    fn a_value_that_takes_too_much_memory_is_refused_before_it_takes_it() {
        let objects = |n: usize| format!("[{}0]", r#"{"a":1},"#.repeat(n));
        assert!(from_str(&objects(50_000)).is_ok());
        let error = from_str(&objects(125_000)).unwrap_err();
        assert!(is_too_large(&error) && !is_duplicate_key(&error), "{error}");
        let (place, most) = (error.column(), objects(63_000).len());
        assert!(place < most, "{place}");
        for text in ["[".repeat(100) + &"0,".repeat(1_400_000), format!("[{}", "\"\",".repeat(1_100_000))] {
            assert!(is_too_large(&from_str(&text).unwrap_err()));
        }
        let fields: String = (0..500_000).map(|i| format!("\"{i}\":0,")).collect();
        assert!(is_too_large(&from_str(&format!("{{{fields}")).unwrap_err()));
        // Ordinary data of a megabyte: long texts, numbers, objects with several fields.
        assert!(from_str(&format!("[{}0]", "1,".repeat(500_000))).is_ok());
        assert!(from_str(&format!("[{}0]", r#"{"id": 1234, "name": "Maria"},"#.repeat(35_000))).is_ok());
        assert!(from_str(&format!("{:?}", "x".repeat(20_000_000))).is_ok());
    }

    #[test]
    fn a_typed_error_is_not_about_a_duplicate_key() {
        let error = typed::<Vec<u8>>(r#"["duplicate key `"]"#).unwrap_err();
        assert!(!is_duplicate_key(&error), "{error}");
    }

    proptest! {
        #[test]
        fn text_without_duplicate_keys_is_read_as_by_serde_json(text in r#"[\[\]{}:,"ab0-9.e\\-]{0,24}"#) {
            let (ours, theirs) = (from_str(&text), serde_json::from_str::<Json>(&text));
            match (&ours, &theirs) {
                (Err(e), _) if is_duplicate_key(e) => {}
                (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
                _ => prop_assert!(ours.is_err() && theirs.is_err(), "{text}: {ours:?} {theirs:?}"),
            }
            prop_assert_eq!(check(&text).map_err(|e| e.to_string()), ours.map(drop).map_err(|e| e.to_string()));
        }
    }
}
