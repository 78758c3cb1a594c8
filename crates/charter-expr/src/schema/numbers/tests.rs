use serde_json::{Value, json};

use super::{NumberType, Numbers};

/// The type at a path of fields and indices.
fn at(schema: &Value, path: &[&str]) -> Option<NumberType> {
    let mut numbers = Numbers::from_schema(schema)?;
    for name in path {
        let inner = match name.parse() {
            Ok(index) => numbers.item(index),
            Err(_) => numbers.field(name),
        };
        numbers = inner?.clone();
    }
    numbers.number()
}

const INT: Option<NumberType> = Some(NumberType::Int);
const DOUBLE: Option<NumberType> = Some(NumberType::Double);

#[test]
fn a_schema_declares_its_places() {
    let schema = json!({
        "properties": {
            "n": {"type": "integer"},
            "list": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "number"}},
            "text": {"type": "string"},
            "point": {"$ref": "#/$defs/point"},
        },
        "additionalProperties": {"type": "number"},
        "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}}},
    });
    assert_eq!(at(&schema, &["n"]), INT);
    assert_eq!(at(&schema, &["list", "0"]), INT);
    assert_eq!(at(&schema, &["list", "7"]), DOUBLE);
    assert_eq!(at(&schema, &["point", "x"]), DOUBLE);
    assert_eq!(at(&schema, &["point", "y"]), None);
    assert_eq!(at(&schema, &["text"]), None);
    assert_eq!(at(&schema, &["other"]), DOUBLE);
    let text = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    assert!(Numbers::from_schema(&text).is_none());
}

#[test]
fn alternatives_have_to_agree() {
    assert_eq!(at(&json!({"type": ["number", "null"]}), &[]), DOUBLE);
    assert_eq!(at(&json!({"type": ["integer", "number"]}), &[]), None);
    assert_eq!(at(&json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}), &[]), INT);
    assert_eq!(at(&json!({"anyOf": [{"type": "integer"}, {}]}), &[]), None);
    assert_eq!(at(&json!({"anyOf": [{"type": "integer"}, {"type": "number"}]}), &[]), None);
    assert_eq!(at(&json!({"allOf": [{"type": "integer"}, {"type": "number"}]}), &[]), INT);
    assert_eq!(at(&json!({"type": "number", "anyOf": [{"minimum": 1}, {"maximum": -1}]}), &[]), DOUBLE);
    let shapes = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "number"}, "y": {"type": "integer"}}},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "number"}}},
    ]});
    assert_eq!(at(&shapes, &["x"]), DOUBLE, "the other alternative does not mention it");
    assert_eq!(at(&shapes, &["y"]), None);
}

#[test]
fn values_in_a_schema_have_the_type_they_are_written_with() {
    assert_eq!(at(&json!({"enum": [1, 2]}), &[]), INT);
    assert_eq!(at(&json!({"enum": [1.0, 2.5]}), &[]), DOUBLE);
    assert_eq!(at(&json!({"enum": [1, 2.5]}), &[]), None);
    assert_eq!(at(&json!({"const": 1.0}), &[]), DOUBLE);
    assert_eq!(at(&json!({"type": "number", "enum": [1, 2]}), &[]), DOUBLE);
}

#[test]
fn recursive_schemas_are_typed_on_every_level() {
    let tree = json!({
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"type": "object", "properties": {
            "weight": {"type": "number"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        }}},
    });
    assert_eq!(at(&tree, &["weight"]), DOUBLE);
    assert_eq!(at(&tree, &["children", "3", "children", "0", "weight"]), DOUBLE);
    assert_eq!(at(&json!({"$ref": "#"}), &[]), None);
    // Doubling on every level would take forever.
    let wide =
        json!({"type": "object", "properties": {"n": {"type": "integer"}, "a": {"$ref": "#"}, "b": {"$ref": "#"}}});
    assert_eq!(at(&wide, &["a", "b", "a", "n"]), INT);
    let all = json!({"allOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}], "$defs": {"t": {
        "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, "b": {"$ref": "#"}, "n": {"type": "integer"}},
    }}});
    assert_eq!(at(&all, &["n"]), INT);
}

#[test]
fn examples_have_the_type_they_are_written_with() {
    let example: Value =
        serde_json::from_str(r#"{"n": 0, "d": 0.0, "e": 2e0, "l": [1, null], "m": [1, 1.5]}"#).unwrap();
    let numbers = Numbers::of_example(&example).unwrap();
    let of = |name: &str| numbers.field(name).and_then(Numbers::number);
    assert_eq!((of("n"), of("d"), of("e")), (INT, DOUBLE, DOUBLE));
    assert_eq!(numbers.field("l").unwrap().item(5).unwrap().number(), INT);
    assert!(numbers.field("m").is_none());
    assert!(Numbers::of_example(&json!(null)).is_none());
}

#[test]
fn a_variable_without_a_schema_has_the_type_of_its_first_value() {
    let schema = json!({"properties": {"a": {"type": "number"}, "free": {}}});
    let examples = [("a", json!(0)), ("free", json!(0)), ("b", json!(0)), ("c", json!(null))];
    let types = Numbers::of_fields(Some(&schema), examples);
    let types: Vec<_> = types.iter().map(|n| n.as_ref().and_then(Numbers::number)).collect();
    assert_eq!(types, [DOUBLE, None, INT, None]);
}

#[test]
fn a_fraction_does_not_fit_an_int() {
    let numbers = Numbers::from_schema(&json!({"properties": {"a/b": {"items": {"type": "integer"}}}})).unwrap();
    assert_eq!(numbers.fraction(&json!({"a/b": [1, 2.0]})), None);
    let odd = json!({"a/b": [1, 2.5], "x": 0.5});
    assert_eq!(numbers.fraction(&odd).unwrap().0, "/a~1b/1");
}
