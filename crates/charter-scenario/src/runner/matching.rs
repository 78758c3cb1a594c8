//! Compares a value with the expected value. Objects may have additional fields; everything else
//! must be equal.

use serde_json::Value as Json;

use crate::timestamp::abbreviate;

/// Describes the first difference; `None` if the values match. `at` is the name of the value in
/// messages.
pub(crate) fn difference(expected: &Json, found: Option<&Json>, at: &str) -> Option<String> {
    let Some(found) = found else {
        return Some(format!("there is no `{at}`; expected {}", show(expected)));
    };
    match (expected, found) {
        (Json::Object(fields), Json::Object(values)) => {
            fields.iter().find_map(|(key, value)| difference(value, values.get(key), &below(at, key)))
        }
        (Json::Array(items), Json::Array(values)) if items.len() == values.len() => {
            let pairs = items.iter().zip(values).enumerate();
            let mut pairs = pairs.map(|(i, (item, value))| (format!("{at}[{i}]"), item, value));
            pairs.find_map(|(at, item, value)| difference(item, Some(value), &at))
        }
        _ if same(expected, found) => None,
        _ => Some(format!("`{at}` is {}; expected {}", show(found), show(expected))),
    }
}

fn below(at: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
    if plain { format!("{at}.{key}") } else { format!("{at}[{}]", Json::from(key)) }
}

/// Whether two values are equal. Numbers are compared by value: `1` equals `1.0`.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => a == b,
    }
}

/// Formats a value for messages.
pub(crate) fn show(value: &Json) -> String {
    format!("`{}`", abbreviate(&value.to_string()))
}

/// Formats names in backticks; `none` for an empty list.
pub(crate) fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match names.is_empty() {
        true => "none".into(),
        false => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn diff(expected: Json, found: Json) -> Option<String> {
        difference(&expected, Some(&found), "context")
    }

    #[test]
    fn objects_may_have_additional_fields() {
        assert_eq!(diff(json!({"a": 1}), json!({"a": 1.0, "b": 2})), None);
        assert_eq!(diff(json!({"a": {}}), json!({"a": {"b": 2}})), None);
        assert_eq!(diff(json!([{"a": 1}]), json!([{"a": 1, "b": 2}])), None);
    }

    #[test]
    fn the_first_difference_is_reported_with_its_path() {
        let found = json!({"a": {"b c": [1, 2]}});
        assert_eq!(
            diff(json!({"a": {"b c": [1, 3]}}), found.clone()).unwrap(),
            "`context.a[\"b c\"][1]` is `2`; expected `3`"
        );
        assert_eq!(diff(json!({"x": null}), found.clone()).unwrap(), "there is no `context.x`; expected `null`");
        assert!(diff(json!({"a": []}), found.clone()).is_some());
        assert!(diff(json!("1"), json!(1)).is_some());
        assert!(diff(json!({"a": {"b c": [1]}}), found).is_some());
    }
}
