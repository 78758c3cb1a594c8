//! Reads the values of keywords that hold no schemas.

use charter_expr::Fuel;
use serde_json::{Map, Value as Json};

use super::super::error::SchemaError;
use super::super::node::Options;
use super::super::number::ExactNumber;
use super::super::same;
use super::super::view::Kind;
use super::keywords::Reader;

impl<'s> Reader<'_, 's, '_> {
    pub(super) fn kinds(&self, value: &Json) -> Result<u8, SchemaError> {
        let list = match value {
            Json::Array(list) if !list.is_empty() => list.as_slice(),
            Json::String(_) => std::slice::from_ref(value),
            other => return self.error("type", format!("a type is a name or a list of names, not {}", kind(other))),
        };
        let mut kinds = 0;
        for word in list {
            let more = match word.as_str() {
                Some("null") => Kind::Null.bit(),
                Some("boolean") => Kind::Bool.bit(),
                Some("integer") => Kind::Int.bit(),
                Some("number") => Kind::Int.bit() | Kind::Float.bit(),
                Some("string") => Kind::Text.bit(),
                Some("array") => Kind::List.bit(),
                Some("object") => Kind::Object.bit(),
                _ => {
                    let known = "`null`, `boolean`, `integer`, `number`, `string`, `array`, `object`";
                    return self.error("type", format!("{word} is not a type; use one of {known}"));
                }
            };
            kinds |= more;
        }
        let twice = (0..list.len())
            .any(|i| list.get(..i).is_some_and(|before| list.get(i).is_some_and(|w| before.contains(w))));
        if twice { self.error("type", format!("{value} has a type twice")) } else { Ok(kinds) }
    }

    pub(super) fn options(&self, keyword: &str, list: &[Json]) -> Result<Options, SchemaError> {
        let mut options = Options::default();
        for value in list {
            match value {
                Json::String(text) => options.words.push(text.as_str().into()),
                other => match same::bytes(other, usize::MAX, &mut Fuel::new(u64::MAX)) {
                    Ok(Some(bytes)) => options.others.push(bytes),
                    _ => return self.error(keyword, "a value nests too deeply".into()),
                },
            }
        }
        options.words.sort();
        options.others.sort();
        options.longest = options.others.iter().map(|bytes| bytes.len()).max().unwrap_or(0);
        Ok(options)
    }

    pub(super) fn a_number(&self, keyword: &str, value: &Json) -> Result<ExactNumber, SchemaError> {
        match value {
            Json::Number(number) => Ok(number.into()),
            other => self.error(keyword, format!("`{keyword}` is a number, not {}", kind(other))),
        }
    }

    pub(super) fn size(&self, keyword: &str, value: &Json) -> Result<u64, SchemaError> {
        let number = match value {
            Json::Number(number) => ExactNumber::from(number).whole().filter(|size| *size >= 0),
            _ => None,
        };
        match number {
            Some(size) => Ok(u64::try_from(size).unwrap_or(u64::MAX)),
            None => self.error(keyword, format!("`{keyword}` is a whole number from 0, not {}", shown(value))),
        }
    }

    pub(super) fn truth(&self, keyword: &str, value: &Json) -> Result<bool, SchemaError> {
        match value {
            Json::Bool(truth) => Ok(*truth),
            other => self.error(keyword, format!("`{keyword}` is `true` or `false`, not {}", shown(other))),
        }
    }

    pub(super) fn text_of(&self, keyword: &str, value: &'s Json) -> Result<&'s str, SchemaError> {
        match value {
            Json::String(text) => Ok(text),
            other => self.error(keyword, format!("`{keyword}` is text, not {}", kind(other))),
        }
    }

    pub(super) fn array(&self, keyword: &str, value: &'s Json) -> Result<&'s [Json], SchemaError> {
        match value {
            Json::Array(list) => Ok(list),
            other => self.error(keyword, format!("`{keyword}` is a list, not {}", kind(other))),
        }
    }

    pub(super) fn map_of(&self, keyword: &str, value: &'s Json) -> Result<&'s Map<String, Json>, SchemaError> {
        match value {
            Json::Object(map) => Ok(map),
            other => self.error(keyword, format!("`{keyword}` is an object, not {}", kind(other))),
        }
    }
}

/// A kind of JSON, with its article.
pub(super) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

fn shown(value: &Json) -> String {
    match value {
        Json::Number(number) => number.to_string(),
        other => kind(other).to_owned(),
    }
}
