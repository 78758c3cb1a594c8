//! Two schemas as one that demands both.

use serde_json::{Value as Json, json};

/// Merges two schemas. Where both cannot be expressed by one keyword, the first one wins; examples
/// are checked against the whole schema.
pub(super) fn both(whole: Json, part: &Json) -> Json {
    let (Json::Object(mut whole), Json::Object(part)) = (whole.clone(), part) else {
        // `true` demands nothing, `false` cannot be met.
        return if whole.is_object() { whole } else { part.clone() };
    };
    for (key, new) in part {
        let Some(old) = whole.get_mut(key) else {
            whole.insert(key.clone(), new.clone());
            continue;
        };
        match key.as_str() {
            "properties" | "patternProperties" | "dependentSchemas" => {
                let (Some(old), Some(new)) = (old.as_object_mut(), new.as_object()) else {
                    continue;
                };
                for (name, schema) in new {
                    let known = old.remove(name);
                    let all = known.map_or_else(|| schema.clone(), |known| json!({"allOf": [known, schema]}));
                    old.insert(name.clone(), all);
                }
            }
            "items" | "additionalProperties" | "unevaluatedProperties" | "propertyNames" if old != new => {
                *old = json!({"allOf": [old.take(), new]});
            }
            "not" if old != new => *old = json!({"anyOf": [old.take(), new]}),
            "required" => {
                if let Some(old) = old.as_array_mut() {
                    old.extend(new.as_array().into_iter().flatten().cloned());
                }
            }
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" | "minContains"
            | "multipleOf"
                if new.as_f64() > old.as_f64() =>
            {
                *old = new.clone();
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" | "maxContains"
                if new.as_f64() < old.as_f64() =>
            {
                *old = new.clone();
            }
            "type" => *old = types(old, new),
            "enum" => {
                if let (Some(old), Some(new)) = (old.as_array_mut(), new.as_array()) {
                    old.retain(|value| new.contains(value));
                }
            }
            _ => {}
        }
    }
    Json::Object(whole)
}

/// The types that both allow; an integer is a number.
fn types(one: &Json, other: &Json) -> Json {
    let list = |types: &Json| types.as_array().cloned().unwrap_or_else(|| vec![types.clone()]);
    let (one, other) = (list(one), list(other));
    let has =
        |types: &[Json], kind: &Json| types.contains(kind) || (kind == "integer" && types.contains(&"number".into()));
    let mut all: Vec<Json> = one.iter().filter(|kind| has(&other, kind)).cloned().collect();
    all.extend(other.iter().filter(|kind| has(&one, kind) && !one.contains(kind)).cloned());
    all.into()
}
