//! The schemas of the tools: what they take, and what every result has.

use serde_json::{Map, Value as Json, json};

/// Keywords that models do not accept at the root of what a tool takes.
const NOT_AT_ROOT: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "enum"];
/// Bytes of a schema that a list shows; a larger one is replaced.
const MAX_BYTES: usize = 64 << 10;

/// Whether the tool of an event takes the data itself, and not a member `data`.
pub(super) fn is_flat(schema: Option<&Json>) -> bool {
    schema.is_none_or(|schema| {
        schema.get("type").and_then(Json::as_str) == Some("object")
            && !NOT_AT_ROOT.iter().any(|k| schema.get(k).is_some())
    })
}

/// What the tool of an event takes.
pub(super) fn of_event(schema: Option<&Json>) -> Json {
    let Some(schema) = schema else { return json!({"type": "object"}) };
    let flat = is_flat(Some(schema));
    if serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len()) > MAX_BYTES {
        let note = "The schema is too large to be listed; the charter has it.";
        return match flat {
            true => json!({"type": "object", "description": note}),
            false => json!({"type": "object", "properties": {"data": {"description": note}}, "required": ["data"]}),
        };
    }
    if flat {
        return schema.clone();
    }
    let mut data = schema.clone();
    let defs = data.as_object_mut().and_then(|data| data.remove("$defs"));
    let mut whole =
        json!({"type": "object", "properties": {"data": data}, "required": ["data"], "additionalProperties": false});
    if let (Some(whole), Some(defs)) = (whole.as_object_mut(), defs) {
        // References of the schema begin at its root.
        whole.insert("$defs".to_owned(), defs);
    }
    whole
}

/// What a tool that is always there takes. `objects`: the data of every event is an object.
pub(super) fn of_static(name: &str, objects: bool) -> Json {
    let data = |what: &str| match objects {
        true => json!({"type": "object", "description": what}),
        // Models write text where any type is allowed, so that is said only if it is needed.
        false => json!({"description": what}),
    };
    let text = |what: &str| json!({"type": "string", "description": what});
    let to = || text("The actor of the run that it is for; without it, the root actor.");
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    if matches!(name, "send" | "why_not") {
        properties.insert("type".to_owned(), text("The type of the event, as `legal` lists it."));
        required.push("type");
    }
    match name {
        "send" => {
            properties.insert("data".to_owned(), data("The data of the event; `legal` shows its schema."));
            let seq =
                "The `seq` that you have seen last: if the run has changed since, the event is refused as `stale`.";
            properties.insert("expected_seq".to_owned(), json!({"type": "integer", "minimum": 0, "description": seq}));
            properties.insert("to".to_owned(), to());
            properties.insert(
                "id".to_owned(),
                text("An id of your choice: the same event with the same id is applied once."),
            );
        }
        "why_not" => {
            let try_it = data("Data to try, if it is the data that decides. Nothing is sent.");
            properties.insert("data".to_owned(), try_it);
            properties.insert("to".to_owned(), to());
        }
        _ => {}
    }
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// What every result has.
pub(super) fn of_results() -> Json {
    let legal = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string"}, "to": {"type": "string"}, "tool": {"type": "string"},
            "description": {"type": "string"}, "depends_on_data": {"type": "boolean"},
            "conditions": {"type": "array", "items": {"type": "string"}},
            "data": {"description": "JSON Schema of the data"},
        },
        "required": ["type", "to", "depends_on_data"],
    });
    let refusal = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"}, "message": {"type": "string"},
            "legal": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["code", "message"],
    });
    json!({
        "type": "object",
        "properties": {
            "run": {"type": "string"},
            "charter": {"type": "string"},
            "seq": {"type": "integer", "description": "Number of the last record that has changed the run"},
            "status": {"type": "string", "description": "active, paused, done, failed or cancelled"},
            "state": {"type": "array", "items": {"type": "string"}},
            "legal": {"type": "array", "items": legal, "description": "Events that you may send now"},
            "more_legal": {"type": "integer"},
            "waiting": {"type": "array", "items": {"type": "object"}, "description": "What the run waits for besides you"},
            "message": {"type": "string"},
            "accepted": {"type": "boolean", "description": "Whether the event was accepted"},
            "would_be_accepted": {"type": "boolean"},
            "record": {"type": "integer", "description": "Number of the record of the event"},
            "repeated": {"type": "boolean", "description": "Whether it was recorded earlier under the same id"},
            "refusal": refusal,
            "details": {"type": "object", "description": "Data, actors, timers and output of the run"},
        },
        "required": ["run", "charter", "seq", "status", "state", "legal", "waiting", "message"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_without_an_object_at_its_root_is_a_member() {
        let plain = json!({"type": "object", "properties": {"amount": {"type": "integer"}}});
        assert_eq!(of_event(Some(&plain)), plain);
        assert_eq!(of_event(None), json!({"type": "object"}));
        let choice = json!({"oneOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"type": "string"}}});
        let taken = of_event(Some(&choice));
        assert_eq!(taken["properties"]["data"], json!({"oneOf": [{"$ref": "#/$defs/A"}]}));
        assert_eq!(taken["$defs"], choice["$defs"], "references begin at the root");
        assert_eq!(taken["type"], "object");
        let number = of_event(Some(&json!({"type": "integer"})));
        assert_eq!(number["required"], json!(["data"]));
    }

    #[test]
    fn a_schema_that_is_too_large_is_not_listed() {
        let large = json!({"type": "object", "description": "x".repeat(MAX_BYTES)});
        assert!(of_event(Some(&large)).to_string().len() < 200);
        let wrapped = json!({"type": "string", "description": "x".repeat(MAX_BYTES)});
        assert_eq!(of_event(Some(&wrapped))["required"], json!(["data"]));
    }
}
