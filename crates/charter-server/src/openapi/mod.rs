//! The description of the API (OpenAPI 3.1), with the event schemas of the charters that the caller
//! may use.

mod operations;
mod schemas;

use std::sync::PoisonError;

use serde_json::{Map, Value, json};

use crate::http::App;
use crate::identity::{Caller, HOST_RUN};
use operations::{OPERATIONS, Operation, Param};

/// The document. `caller`: whose charters are described; `None`: the API alone.
pub(crate) fn document(app: &App, caller: Option<&Caller>) -> Value {
    let mut schemas = schemas::fixed();
    let mut events = Vec::new();
    if let Some(caller) = caller {
        let charters = app.charters.read().unwrap_or_else(PoisonError::into_inner);
        for (id, charter) in charters.iter().filter(|(id, _)| *id != HOST_RUN) {
            if !crate::http::is_known_to(caller, charter) {
                continue;
            }
            for (event, declared) in &charter.machine().definition().events {
                let name = component(&format!("{id}.{event}"));
                let data = declared.data.clone().map(|data| lifted(data, id, &mut schemas));
                let machine = charter.machine();
                let needs_data = data.is_some() && !machine.surely_fits(event, &machine.absent_data(event));
                let schema = event_schema(event, declared.description.as_deref(), data, needs_data);
                // Two names that differ in characters that a component cannot have.
                if schemas.insert(name.clone(), schema).is_none() {
                    events.push(json!({"$ref": format!("#/components/schemas/{name}")}));
                }
            }
        }
    }
    events.push(json!({"$ref": "#/components/schemas/AnyEvent"}));
    schemas.insert(
        "Event".to_owned(),
        json!({"description": "An event: one of the charters' own, or run control.", "anyOf": events}),
    );
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        if let Some(path) = path.as_object_mut() {
            path.insert(operation.method.to_owned(), described(operation));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Charter",
            "version": app.options.version,
            "summary": "Runs of charters: start, send events, look, follow.",
            "license": {"name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}, {"session": [], "csrf": []}],
        "tags": [
            {"name": "runs", "description": "Start runs, send events, answer tasks"},
            {"name": "look", "description": "The state and the records of runs"},
            {"name": "streams", "description": "Records as they are committed (server-sent events)"},
            {"name": "charters", "description": "The definitions that runs can be started of"},
            {"name": "identity", "description": "Keys, sessions"},
            {"name": "hooks", "description": "Webhooks"},
            {"name": "tools", "description": "The kernel without a run"},
            {"name": "server", "description": "Health and description"},
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key, `chk_...`"},
                "session": {"type": "apiKey", "in": "cookie", "name": "charter_session", "description": "A session, opened with `POST /v1/session`"},
                "csrf": {"type": "apiKey", "in": "header", "name": "X-CSRF-Token", "description": "The token of the session, for requests that change something"},
            },
            "schemas": schemas,
        },
    })
}

/// A name that a component may have.
fn component(name: &str) -> String {
    let ok = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    name.chars().map(ok).collect()
}

/// Makes the definitions inside a schema components of the document, and points its references to
/// them: many tools follow no others. What refers to another place of the schema allows everything.
fn lifted(mut schema: Value, charter: &str, components: &mut Map<String, Value>) -> Value {
    let defs = schema.as_object_mut().and_then(|schema| schema.remove("$defs"));
    let place = |name: &str| component(&format!("{charter}.{name}"));
    if let Some(Value::Object(defs)) = defs {
        for (name, mut def) in defs {
            point(&mut def, &place);
            components.entry(place(&name)).or_insert(def);
        }
    }
    point(&mut schema, &place);
    schema
}

fn point(schema: &mut Value, place: &impl Fn(&str) -> String) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|item| point(item, place)),
        Value::Object(map) => {
            let to = match map.get("$ref") {
                Some(Value::String(to)) => Some(to.strip_prefix("#/$defs/").map(str::to_owned)),
                _ => None,
            };
            match to {
                Some(Some(name)) => {
                    let name = place(&name.replace("~1", "/").replace("~0", "~"));
                    map.insert("$ref".to_owned(), format!("#/components/schemas/{name}").into());
                }
                Some(None) => {
                    map.remove("$ref");
                }
                None => {}
            }
            // Generators of clients want to know of what an array is.
            if map.get("type").is_some_and(|kind| kind == "array") && !map.contains_key("prefixItems") {
                map.entry("items").or_insert_with(|| json!({}));
            }
            map.values_mut().for_each(|value| point(value, place));
        }
        _ => {}
    }
}

/// The schema of an event with its data, which may be absent unless the event needs it.
fn event_schema(event: &str, description: Option<&str>, data: Option<Value>, needs_data: bool) -> Value {
    let mut properties = json!({
        "type": {"const": event, "type": "string"},
        "to": {"type": "string", "description": "The actor of the run; the root actor if it is absent"},
        "id": {"type": "string", "description": "The id of the event"},
    });
    let required = if needs_data { json!(["type", "data"]) } else { json!(["type"]) };
    if let (Some(data), Some(properties)) = (data, properties.as_object_mut()) {
        properties.insert("data".to_owned(), data);
    }
    let mut schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    if let (Some(text), Some(schema)) = (description, schema.as_object_mut()) {
        schema.insert("description".to_owned(), text.into());
    }
    schema
}

fn described(operation: &Operation) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for part in operation.path.split('/').filter_map(|part| part.strip_prefix('{')) {
        let name = part.trim_end_matches('}');
        let schema = match name {
            "seq" => json!({"type": "integer", "minimum": 0}),
            _ => json!({"type": "string"}),
        };
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
    }
    for Param { name, place, kind, text } in operation.params {
        let schema = match *kind {
            "integer" => json!({"type": "integer", "minimum": 0}),
            kind => json!({"type": kind}),
        };
        parameters.push(json!({"name": name, "in": place, "required": false, "schema": schema, "description": text}));
    }
    let mut responses = Map::new();
    let (status, media, schema) = operation.answer;
    let mut answer = json!({"description": operation.gives});
    if !schema.is_empty() {
        let schema = match schema {
            "string" => json!({"type": "string"}),
            "binary" => json!({"type": "string", "format": "binary"}),
            name => json!({"$ref": format!("#/components/schemas/{name}")}),
        };
        answer = json!({"description": operation.gives, "content": {media: {"schema": schema}}});
    }
    responses.insert(status.to_owned(), answer);
    let problem = |text: &str| json!({"description": text, "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}});
    for status in operation.problems {
        responses.insert((*status).to_owned(), problem(meaning(status)));
    }
    let mut described = json!({
        "operationId": operation.id, "summary": operation.summary, "tags": [operation.tag],
        "parameters": parameters, "responses": responses,
    });
    if let Some(described) = described.as_object_mut() {
        if let Some(name) = operation.body {
            let schema = json!({"$ref": format!("#/components/schemas/{name}")});
            described.insert(
                "requestBody".to_owned(),
                json!({"required": true, "content": {"application/json": {"schema": schema}}}),
            );
        }
        if operation.open {
            described.insert("security".to_owned(), json!([]));
        }
    }
    described
}

/// What a status means.
fn meaning(status: &str) -> &'static str {
    match status {
        "400" => "The request is wrong; the detail says what to change",
        "401" => "Nobody is authenticated",
        "403" => "The sender may not do this",
        "404" => "There is no such thing, or the caller may not see it",
        "409" => "Refused now; the refusal is in the answer",
        "413" => "Too large",
        "422" => "The data does not match its schema",
        "429" => "Too many requests; try again after `Retry-After` seconds",
        _ => "Not ready; try again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_have_names_that_are_allowed() {
        assert_eq!(component("fred.START"), "fred.START");
        assert_eq!(component("a/b c\u{e9}"), "a_b_c_");
    }
}
