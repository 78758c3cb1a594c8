//! What a prompt for a value says, and values that are chosen by number.

use charter_scenario::example;
use serde_json::{Value as Json, json};

use crate::journal::text::{clean, short_text};

/// Maximum length of the listed values of an enum, in characters.
const MAX_VALUES: usize = 300;

/// Maximum length of an example, in characters.
const MAX_EXAMPLE: usize = 120;

/// Says what to type for a type of JSON Schema.
pub(super) fn typed_as(kind: &str, schema: &Json) -> String {
    let or = |example: Option<Json>, other: &str| {
        let text = example.filter(|example| *example != json!({})).map(|example| example.to_string());
        text.filter(|text| text.chars().count() <= MAX_EXAMPLE).unwrap_or_else(|| other.to_owned())
    };
    match kind {
        "array" => format!("a list as JSON, such as {}", or(list(schema), "[\"a\", \"b\"]")),
        "object" => format!("an object as JSON, such as {}", or(example::data(Some(schema), None), "{\"a\": 1}")),
        "any" => "JSON; what is not JSON is text".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "yes or no".to_owned(),
        kind => kind.to_owned(),
    }
}

/// An example of a list whose items have a schema that is not that of any text.
fn list(schema: &Json) -> Option<Json> {
    let items = schema.get("items")?;
    let is_text = items.as_object().is_none_or(|items| items.len() == 1 && items.get("type") == Some(&json!("string")));
    let mut whole = schema.clone();
    if schema.get("minItems").and_then(Json::as_u64).unwrap_or(0) < 1 {
        whole.as_object_mut()?.insert("minItems".to_owned(), json!(1));
    }
    example::data(Some(&whole), None).filter(|_| !is_text)
}

/// What is typed for a schema: its type; `string` if it accepts only texts, and `any` if it accepts
/// several types.
pub(super) fn kind_of(schema: &Json) -> &str {
    let values = schema.get("enum").and_then(Json::as_array);
    let only_text = || {
        schema.get("const").is_some_and(Json::is_string)
            || values.is_some_and(|values| values.iter().all(Json::is_string))
    };
    match schema.get("type").and_then(Json::as_str) {
        Some(kind) => kind,
        None if only_text() => "string",
        None => "any",
    }
}

/// Whether the values of an enum can be chosen by number: not if a number may be one of them.
fn has_numbers(values: &[Json]) -> bool {
    values.iter().all(|value| value.as_str().is_some_and(|text| text.parse::<f64>().is_err()))
}

/// Renders the values of an enum: `1 good, 2 bad; type a value or its number`.
pub(super) fn enumerated(values: &[Json]) -> String {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), clean);
    if !has_numbers(values) {
        let all: Vec<String> = values.iter().map(text).collect();
        return format!("{}; type a value", short_text(&all.join(", "), MAX_VALUES));
    }
    let all: Vec<String> =
        (1..).zip(values).map(|(number, value): (usize, _)| format!("{number} {}", text(value))).collect();
    format!("{}; type a value or its number", short_text(&all.join(", "), MAX_VALUES))
}

/// Returns the value of an enum that is chosen by its number.
pub(super) fn by_number<'v>(line: &str, values: &'v [Json]) -> Option<&'v Json> {
    let number = line.parse::<usize>().ok().filter(|_| has_numbers(values))?;
    values.get(number.checked_sub(1)?)
}
