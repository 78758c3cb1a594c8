//! The JSON Schema of the language is up to date and valid, and agrees with the reader.

use charter_format::{ReadOptions, json_schema, read, scenario_json_schema};
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema");

#[test]
fn the_committed_files_are_up_to_date() {
    for (name, schema) in [("charter-1.json", json_schema()), ("scenario-1.json", scenario_json_schema())] {
        let file = format!("{FOLDER}/{name}");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&file, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
        }
        let committed: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert!(committed == schema, "{name}: run `UPDATE_SCHEMA=1 cargo test -p charter-format schema`");
    }
}

#[test]
fn they_are_valid_schemas() {
    assert!(jsonschema::meta::is_valid(&json_schema()));
    assert!(jsonschema::meta::is_valid(&scenario_json_schema()));
}

fn both(charter: &Value) -> (bool, bool) {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    let by_reader = read(&charter.to_string(), "t.json", &ReadOptions::default()).is_ok();
    (validator.is_valid(charter), by_reader)
}

#[test]
fn good_charters_are_good_for_both() {
    for body in [
        json!({}),
        json!({"states": {"a": {"on": {"E": "b", "F": ["b", {"target": "a", "when": true}], "G": {}}}, "b": null}}),
        json!({"type": "parallel", "states": {"a": {"type": "history", "history": "deep", "target": ["b"]}, "b": {"initial": {"target": "c", "actions": []}, "states": {"c": {}}}}}),
        json!({"states": {"a": {"entry": [[{"log": 1, "label": "x"}], []], "after": {"1s": [], "5": "a"}, "on": [{"E": "a"}, {"*": "a"}]}}}),
        json!({"actors": {"x": {"kind": "model", "anything": [1]}}, "states": {"a": {"invoke": {"src": "x", "timeout": "5s", "onDone": {"actions": {"raise": "R"}}}}}}),
        json!({"roles": {"r": {}}, "actors": {"x": {"kind": "exec", "as": ["r"], "id": "bo", "idempotent": true, "attemptTimeout": "1m30s", "retry": {"attempts": 3, "backoff": 200, "factor": 1.5, "max": "1h", "jitter": 0}}}}),
        json!({"ledger": {"t": {}}, "states": {"a": {"on": {"E": {"requires": {"use": {"kind": "t", "key": 1}}, "quorum": 2, "actions": [{"revoke": {"kind": "t", "all": true}}]}}}}}),
        json!({"interlocks": [{"id": "i", "assert": "true"}], "properties": [{"id": "p", "never": "x", "unless-before": "E"}], "stream": {"run": "= item.r"}}),
    ] {
        assert_eq!(both(&with_head(&body)), (true, true), "{body}");
    }
}

#[test]
fn bad_charters_are_bad_for_both() {
    for body in [
        json!({"sates": {}}),
        json!({"id": "Upper"}),
        json!({"charter": 2}),
        json!({"version": 1.2}),
        json!({"strict": "yes"}),
        json!({"states": {"a": {"on": {"E": 7}}}}),
        json!({"states": {"a": {"on": {"E": null}}}}),
        json!({"states": {"a": {"type": "finale"}}}),
        json!({"states": {"a": {"invoke": {"id": "x"}}}}),
        json!({"states": {"a": {"entry": {"assign": {}, "raise": "X"}}}}),
        json!({"actors": {"a": {}}}),
        json!({"actors": {"a": {"kind": "k", "retry": 3}}}),
        json!({"actors": {"a": {"kind": "k", "retry": {"attempts": 0}}}}),
        json!({"actors": {"a": {"kind": "k", "retry": {"attempt": 2}}}}),
        json!({"actors": {"a": {"kind": "k", "attemptTimeout": "soon"}}}),
        json!({"actors": {"a": {"kind": "k", "idempotent": "yes"}}}),
        json!({"interlocks": [{"id": "i", "assert": "true", "allow": {}}]}),
        json!({"stream": {"run": "item.r"}}),
        json!({"limits": {"microsteps": 0}}),
    ] {
        assert_eq!(both(&with_head(&body)), (false, false), "{body}");
    }
}

fn with_head(body: &Value) -> Value {
    let mut charter = json!({"charter": 1, "id": "t"});
    charter.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
    charter
}
