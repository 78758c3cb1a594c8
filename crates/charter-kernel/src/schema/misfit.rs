//! Where a value does not match its schema: as a record stores it, and as a message.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Where a value does not match its schema, without a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(expecting = "an object with `at`, `rule`")]
pub struct MisfitDetails {
    /// JSON pointer into the value; empty for the whole value.
    pub at: String,
    /// JSON pointer into the schema; it ends with the keyword.
    pub rule: String,
    /// What the keyword requires: a limit, a type, the names of properties, ...
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub limit: Json,
    /// The value, truncated if it is long.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub value: Json,
    /// The keyword that failed, if it is not the last part of `rule`: `false` for the schema
    /// `false`, or `dependentRequired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword: Option<String>,
    /// The name of the property, if the name itself does not match (`propertyNames`), truncated if
    /// it is long. `value` and `limit` then refer to the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The property whose presence requires another one (`dependentRequired`), truncated if it is
    /// long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<String>,
}

/// Where a value does not match its schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfit {
    /// JSON pointer into the value; empty for the whole value.
    pub at: String,
    /// JSON pointer into the schema.
    pub rule: String,
    /// What is wrong.
    pub message: String,
}

impl From<&MisfitDetails> for Misfit {
    fn from(m: &MisfitDetails) -> Misfit {
        Misfit { at: m.at.clone(), rule: m.rule.clone(), message: m.message() }
    }
}

impl MisfitDetails {
    /// A violation of the keyword at the end of `rule`.
    pub(super) fn new(at: &str, rule: String, limit: Json, value: Json) -> MisfitDetails {
        let (limit, value) = (short(limit), short(value));
        MisfitDetails { at: at.to_owned(), rule, limit, value, keyword: None, name: None, given: None }
    }

    /// The keyword that failed; `false` for the schema `false`.
    #[must_use]
    pub fn keyword(&self) -> &str {
        let last = || self.rule.rsplit_once('/').map_or(self.rule.as_str(), |(_, keyword)| keyword);
        self.keyword.as_deref().unwrap_or_else(last)
    }

    /// Describes what is wrong, in one sentence.
    #[must_use]
    pub fn message(&self) -> String {
        let limit = &self.limit;
        let value = match &self.name {
            Some(name) => format!("the property name {}", Json::from(name.as_str())),
            None => self.value.to_string(),
        };
        match self.keyword() {
            "false" if self.name.is_some() => format!("{value} is not allowed"),
            "false" => "not allowed".to_string(),
            "required" => format!("{limit} is a required property"),
            "dependentRequired" => match &self.given {
                Some(given) => format!("{limit} is required where {} is present", Json::from(given.as_str())),
                None => format!("{limit} is a required property"),
            },
            "type" => match limit {
                Json::Array(types) => format!("{value} is not of types {}", listed(types)),
                _ if *limit == "integer" && self.value.as_f64().is_some_and(|d| d.fract() == 0.0) => {
                    format!(
                        "{value} is not of type {limit}: beyond 2^53-1, readers round integers; send it as a string"
                    )
                }
                _ => format!("{value} is not of type {limit}"),
            },
            "additionalProperties" | "unevaluatedProperties" => match limit {
                Json::Array(names) => format!("unexpected properties: {}", listed(names)),
                Json::String(cut) => format!("unexpected properties: {cut}"),
                _ => "unexpected properties".to_string(),
            },
            "additionalItems" | "unevaluatedItems" => "the list has too many items".to_string(),
            "enum" => match limit {
                Json::Array(options) => format!("{value} is not one of {}", listed(options)),
                _ => format!("{value} is not one of {limit}"),
            },
            "const" => format!("{value} is not {limit}"),
            "minimum" => format!("{value} is less than the minimum of {limit}"),
            "maximum" => format!("{value} is greater than the maximum of {limit}"),
            "exclusiveMinimum" => format!("{value} is less than or equal to the minimum of {limit}"),
            "exclusiveMaximum" => format!("{value} is greater than or equal to the maximum of {limit}"),
            "multipleOf" => format!("{value} is not a multiple of {}", plain(limit)),
            "minLength" => format!("{value} is shorter than {limit} {}", plural("character", limit)),
            "maxLength" => format!("{value} is longer than {limit} {}", plural("character", limit)),
            "minItems" => format!("the list has fewer than {limit} {}", plural("item", limit)),
            "maxItems" => format!("the list has more than {limit} {}", plural("item", limit)),
            "minProperties" => format!("the object has fewer than {limit} properties"),
            "maxProperties" if *limit == 1 => "the object has more than 1 property".to_string(),
            "maxProperties" => format!("the object has more than {limit} properties"),
            "uniqueItems" => "the list has equal items".to_string(),
            "contains" => "no item of the list matches the schema under `contains`".to_string(),
            "minContains" => {
                let items = plural("item", limit);
                format!("fewer than {limit} {items} of the list match the schema under `contains`")
            }
            "maxContains" => {
                let items = plural("item", limit);
                format!("more than {limit} {items} of the list match the schema under `contains`")
            }
            "pattern" if limit.is_null() => format!("{value} takes too long to compare with the pattern"),
            "pattern" => format!("{value} does not match the pattern {limit}"),
            "format" => format!("{value} is not a valid {}", limit.as_str().unwrap_or_default()),
            "anyOf" => format!("{value} matches none of the schemas under `anyOf`"),
            "oneOf" if limit == "several" => format!("{value} matches more than one of the schemas under `oneOf`"),
            "oneOf" => format!("{value} matches none of the schemas under `oneOf`"),
            "not" => format!("{value} matches the schema under `not`"),
            keyword => format!("{value} does not match `{keyword}`"),
        }
    }
}

fn listed(items: &[Json]) -> String {
    items.iter().map(Json::to_string).collect::<Vec<_>>().join(", ")
}

/// Renders a whole number without a fraction.
fn plain(limit: &Json) -> String {
    let text = limit.to_string();
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

fn plural(noun: &str, count: &Json) -> String {
    if *count == 1 { noun.to_string() } else { format!("{noun}s") }
}

/// Upper limit of the part of a value that a schema violation keeps: a hostile value must not cause
/// a large refusal.
const MAX_SHOWN: usize = 100;

fn short(value: Json) -> Json {
    match &value {
        Json::String(s) => short_text(s).into(),
        Json::Array(_) | Json::Object(_) => {
            let text = value.to_string();
            if text.len() > MAX_SHOWN { cut(&text).into() } else { value }
        }
        _ => value,
    }
}

pub(super) fn short_text(text: &str) -> String {
    if text.chars().count() > MAX_SHOWN { cut(text) } else { text.to_string() }
}

fn cut(text: &str) -> String {
    format!("{}…", text.chars().take(MAX_SHOWN).collect::<String>())
}
