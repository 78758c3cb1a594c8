//! Converts schemas to the form that providers accept: without references, with an object at the
//! top, and for some providers with only the common keywords.

use charter_expr::schema::SchemaNode;
use serde_json::{Map, Value as Json, json};

/// Maximum depth to which references are resolved; below it, a schema that refers to itself allows
/// anything.
const MAX_DEPTH: usize = 24;
/// The keywords that Gemini supports.
const PLAIN: [&str; 12] = [
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "description",
    "minimum",
    "maximum",
    "additionalProperties",
    "anyOf",
    "title",
    "format",
];

/// The schema that is sent to a model, and how its answer is read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WireSchema {
    /// The object schema.
    pub(crate) schema: Json,
    /// Whether the answer is the member `answer` of the model's object.
    pub(crate) wrapped: bool,
}

/// Converts a schema of a charter to the schema to send.
pub(crate) fn wire_schema(schema: &Json) -> WireSchema {
    let flat = inline(schema, schema, 0);
    if flat.get("type").and_then(Json::as_str) == Some("object") {
        return WireSchema { schema: flat, wrapped: false };
    }
    // `properties` without `type` also allows other values; the model is asked for an object.
    if flat.get("type").is_none() && flat.get("properties").is_some() {
        let mut schema = flat;
        if let Some(map) = schema.as_object_mut() {
            map.insert("type".into(), json!("object"));
        }
        return WireSchema { schema, wrapped: false };
    }
    WireSchema {
        schema: json!({"type": "object", "properties": {"answer": flat}, "required": ["answer"], "additionalProperties": false}),
        wrapped: true,
    }
}

/// Returns the schema of the items of a list, with its references resolved.
#[must_use]
pub fn items(schema: &Json) -> Option<Json> {
    let flat = inline(schema, schema, 0);
    flat.get("items").cloned()
}

/// Reduces a schema to the common keywords.
pub(crate) fn plain(schema: &Json) -> Json {
    match schema {
        Json::Object(map) => {
            let mut out = Map::new();
            for (key, value) in map.iter().filter(|(k, _)| PLAIN.contains(&k.as_str())) {
                let value = match (key.as_str(), value) {
                    // Property names are not keywords.
                    ("properties", Json::Object(fields)) => {
                        Json::Object(fields.iter().map(|(k, v)| (k.clone(), plain(v))).collect())
                    }
                    ("enum" | "required", list) => list.clone(),
                    ("anyOf", Json::Array(list)) => Json::Array(list.iter().map(plain).collect()),
                    (_, value) => plain(value),
                };
                out.insert(key.clone(), value);
            }
            Json::Object(out)
        }
        other => other.clone(),
    }
}

fn inline(schema: &Json, root: &Json, depth: usize) -> Json {
    if depth > MAX_DEPTH {
        return json!({});
    }
    let deeper = depth.saturating_add(1);
    match schema {
        Json::Object(map) => {
            let target = SchemaNode::within(root, schema).target();
            let mut out = match target {
                Some(target) => match inline(target.json(), root, deeper) {
                    Json::Object(out) => out,
                    _ => Map::new(),
                },
                None => Map::new(),
            };
            for (key, value) in map {
                if key != "$defs" && !(key == "$ref" && target.is_some()) {
                    out.insert(key.clone(), inline(value, root, deeper));
                }
            }
            Json::Object(out)
        }
        Json::Array(list) => Json::Array(list.iter().map(|v| inline(v, root, deeper)).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{items, plain, wire_schema};

    #[test]
    fn references_are_written_out() {
        let schema = json!({"$ref": "#/$defs/d", "$defs": {"d": {"type": "object", "properties": {"c": {"$ref": "#/$defs/s", "description": "how"}}}, "s": {"type": "number", "maximum": 1}}});
        let wire = wire_schema(&schema);
        assert!(!wire.wrapped);
        assert_eq!(
            wire.schema,
            json!({"type": "object", "properties": {"c": {"type": "number", "maximum": 1, "description": "how"}}})
        );
        let cycle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}});
        assert_eq!(wire_schema(&cycle).schema["type"], "object");
    }

    #[test]
    fn other_schemas_are_wrapped_in_an_object() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/i"}, "$defs": {"i": {"type": "string"}}});
        let wire = wire_schema(&list);
        assert!(wire.wrapped);
        assert_eq!(wire.schema["properties"]["answer"]["items"], json!({"type": "string"}));
        assert_eq!(items(&list), Some(json!({"type": "string"})));
        let open = wire_schema(&json!({"properties": {"summary": {"type": "string"}}}));
        assert_eq!((open.wrapped, &open.schema["type"]), (false, &json!("object")));
    }

    #[test]
    fn names_of_properties_are_kept() {
        let schema = json!({"type": "object", "properties": {"pattern": {"type": "string", "pattern": "x", "minLength": 1}}, "required": ["pattern"], "examples": [1]});
        assert_eq!(
            plain(&schema),
            json!({"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]})
        );
    }
}
