//! Generates the JSON Schemas (2020-12) of charters and of scenario files from the grammar tables,
//! for editors and other tools.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use crate::grammar::{Form, Object, scenario, table};

/// Returns the JSON Schema of charters, version 1 of the language, as in `schema/charter-1.json`.
///
/// It covers keys and types of values, but not names: only [`crate::read`] checks that a guard is
/// declared.
#[must_use]
pub fn json_schema() -> Json {
    document(&table::CHARTER, "urn:charter:schema:1", "Charter")
}

/// Returns the JSON Schema of scenario files, as in `schema/scenario-1.json`.
#[must_use]
pub fn scenario_json_schema() -> Json {
    document(&scenario::FILE, "urn:charter:scenario:1", "Scenarios of a charter")
}

fn document(root: &Object, id: &str, title: &str) -> Json {
    let mut defs = BTreeMap::new();
    let root = object(root, &mut defs);
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$id".to_owned(), json!(id));
    schema.insert("title".to_owned(), json!(title));
    if let Json::Object(root) = root {
        schema.extend(root);
    }
    let defs = defs.into_iter().map(|(name, schema)| (name.to_owned(), schema.unwrap_or_default()));
    schema.insert("$defs".to_owned(), Json::Object(defs.collect()));
    Json::Object(schema)
}

/// Definitions by name; `None` while one is being built, for recursive objects.
type Defs = BTreeMap<&'static str, Option<Json>>;

fn reference(kind: &Object, defs: &mut Defs) -> Json {
    if !defs.contains_key(kind.name) {
        defs.insert(kind.name, None);
        let schema = object(kind, defs);
        defs.insert(kind.name, Some(schema));
    }
    json!({"$ref": format!("#/$defs/{}", kind.name)})
}

fn object(kind: &Object, defs: &mut Defs) -> Json {
    let mut properties = Map::new();
    for field in kind.fields() {
        let mut schema = form(field.form, defs);
        if let Json::Object(schema) = &mut schema {
            schema.insert("description".to_owned(), json!(field.doc));
        }
        properties.insert(field.key.to_owned(), schema);
    }
    let required: Vec<&str> = kind.fields().filter(|field| field.required).map(|field| field.key).collect();
    let mut schema =
        json!({"type": "object", "description": kind.doc, "properties": properties, "additionalProperties": kind.open});
    if let Json::Object(schema) = &mut schema {
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        if !kind.one_of.is_empty() {
            let keys: Vec<Json> = kind.one_of.iter().map(|key| json!({"required": [key]})).collect();
            schema.insert("oneOf".to_owned(), json!(keys));
        }
    }
    schema
}

fn form(of: &Form, defs: &mut Defs) -> Json {
    match of {
        Form::Any | Form::Template => json!({}),
        Form::Bool => json!({"type": "boolean"}),
        Form::Text => json!({"type": "string"}),
        Form::Name(_) => json!({"type": "string", "minLength": 1}),
        Form::Pattern(pattern) => json!({"type": "string", "pattern": pattern.regex}),
        Form::Word(words) => json!({"enum": words}),
        Form::Int { min, max } if min == max => json!({"const": min}),
        Form::Int { min, max: i64::MAX } => json!({"type": "integer", "minimum": min}),
        Form::Int { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
        Form::Cel => json!({"type": ["string", "boolean"]}),
        Form::Computed => json!({"type": "string", "pattern": "^= "}),
        Form::Schema => json!({"type": ["object", "boolean"]}),
        Form::Delay => delay(),
        Form::Object(kind) if kind.may_be_empty => {
            json!({"anyOf": [reference(kind, defs), {"type": "null"}]})
        }
        Form::Object(kind) => reference(kind, defs),
        Form::Map { of, .. } => json!({"type": "object", "additionalProperties": form(of, defs)}),
        Form::List(of) => json!({"type": "array", "items": form(of, defs)}),
        Form::OneOf { forms, .. } => {
            let forms: Vec<Json> = forms.iter().map(|of| form(of, defs)).collect();
            json!({"anyOf": forms})
        }
    }
}

/// The schema of a delay as `read::delay` reads it: a duration, milliseconds, an expression, or a
/// name from `delays`.
pub(crate) fn delay() -> Json {
    json!({"anyOf": [
        {"type": "string", "pattern": charter_expr::DELAY_PATTERN},
        {"type": "string", "pattern": "^[0-9]{1,16}$"},
        {"type": "string", "pattern": "^= "},
        {"type": "string", "pattern": r"^[^-+=.0-9\s]\S*$"},
        {"type": "integer", "minimum": 0, "maximum": charter_expr::MAX_DELAY_MS},
    ]})
}
