//! The messages for values that do not match their schema say what the schema requires.

use crate::common::Run;
use charter_kernel::Schema;
use serde_json::{Value as Json, json};

/// Every assertion keyword of JSON Schema 2020-12: a value that fails it, where, and the message.
fn table() -> Vec<(Json, Json, &'static str, &'static str)> {
    vec![
        (json!({"type": "integer"}), json!("a"), "", r#""a" is not of type "integer""#),
        (json!({"type": ["integer", "null"]}), json!("a"), "", r#""a" is not of types "null", "integer""#),
        (json!({"enum": [1, 2]}), json!(3), "", "3 is not one of 1, 2"),
        (json!({"const": 1}), json!(3), "", "3 is not 1"),
        (json!({"multipleOf": 2}), json!(3), "", "3 is not a multiple of 2"),
        (json!({"maximum": 2}), json!(3), "", "3 is greater than the maximum of 2"),
        (json!({"exclusiveMaximum": 3}), json!(3), "", "3 is greater than or equal to the maximum of 3"),
        (json!({"minimum": 4}), json!(3), "", "3 is less than the minimum of 4"),
        (json!({"exclusiveMinimum": 3}), json!(3), "", "3 is less than or equal to the minimum of 3"),
        (json!({"maxLength": 1}), json!("ab"), "", r#""ab" is longer than 1 character"#),
        (json!({"minLength": 3}), json!("ab"), "", r#""ab" is shorter than 3 characters"#),
        (json!({"pattern": "^b"}), json!("ab"), "", r#""ab" does not match the pattern "^b""#),
        (json!({"format": "date"}), json!("ab"), "", r#""ab" is not a valid date"#),
        (json!({"maxItems": 1}), json!([1, 2]), "", "the list has more than 1 item"),
        (json!({"minItems": 3}), json!([1, 2]), "", "the list has fewer than 3 items"),
        (json!({"uniqueItems": true}), json!([1, 1]), "", "the list has equal items"),
        (json!({"contains": {"const": 1}}), json!([2]), "", "no item of the list matches the schema under `contains`"),
        (
            json!({"contains": {"const": 1}, "minContains": 2}),
            json!([1, 2]),
            "",
            "fewer than 2 items of the list match the schema under `contains`",
        ),
        (
            json!({"contains": {"const": 1}, "maxContains": 1}),
            json!([1, 1]),
            "",
            "more than 1 item of the list match the schema under `contains`",
        ),
        (
            json!({"contains": {"const": 1}, "minContains": 2, "maxContains": 3}),
            json!([1]),
            "",
            "fewer than 2 items of the list match the schema under `contains`",
        ),
        (
            json!({"contains": {"const": 1}, "minContains": 1, "maxContains": 2}),
            json!([1, 1, 1]),
            "",
            "more than 2 items of the list match the schema under `contains`",
        ),
        (
            json!({"contains": {"const": 1}, "maxContains": 0}),
            json!([1]),
            "",
            "more than 0 items of the list match the schema under `contains`",
        ),
        (json!({"prefixItems": [{"const": 1}], "items": false}), json!([1, 2]), "/1", "not allowed"),
        (json!({"items": false}), json!([1]), "/0", "not allowed"),
        (json!({"prefixItems": [false]}), json!([1]), "/0", "not allowed"),
        (
            json!({"prefixItems": [{"const": 1}], "unevaluatedItems": false}),
            json!([1, 2]),
            "",
            "the list has too many items",
        ),
        (json!({"maxProperties": 1}), json!({"a": 1, "b": 1}), "", "the object has more than 1 property"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "", "the object has more than 0 properties"),
        (json!({"minProperties": 2}), json!({"a": 1}), "", "the object has fewer than 2 properties"),
        (json!({"required": ["b"]}), json!({"a": 1}), "", r#""b" is a required property"#),
        (
            json!({"dependentRequired": {"x": ["b"], "a": ["c", "b"]}}),
            json!({"a": 1, "c": 1}),
            "",
            r#""b" is required where "a" is present"#,
        ),
        (json!({"dependencies": {"a": ["b"]}}), json!({"a": 1}), "", r#""b" is required where "a" is present"#),
        (json!({"dependentSchemas": {"a": {"required": ["b"]}}}), json!({"a": 1}), "", r#""b" is a required property"#),
        (json!({"dependentSchemas": {"a": false}}), json!({"a": 1}), "", "not allowed"),
        (
            json!({"additionalProperties": false, "properties": {"b": {}}}),
            json!({"a": 1}),
            "",
            r#"unexpected properties: "a""#,
        ),
        (json!({"unevaluatedProperties": false}), json!({"a": 1}), "", r#"unexpected properties: "a""#),
        (json!({"properties": {"a": false}}), json!({"a": 1}), "/a", "not allowed"),
        (json!({"properties": {"required": false}}), json!({"required": 1}), "/required", "not allowed"),
        (json!({"patternProperties": {"^a": false}}), json!({"a": 1}), "/a", "not allowed"),
        (json!({"propertyNames": false}), json!({"a": 1}), "", r#"the property name "a" is not allowed"#),
        (
            json!({"propertyNames": {"maxLength": 5}}),
            json!({"toolongname": 1}),
            "",
            r#"the property name "toolongname" is longer than 5 characters"#,
        ),
        (
            json!({"propertyNames": {"minLength": 2}}),
            json!({"a": 1}),
            "",
            r#"the property name "a" is shorter than 2 characters"#,
        ),
        (
            json!({"propertyNames": {"pattern": "^b"}}),
            json!({"a": 1}),
            "",
            r#"the property name "a" does not match the pattern "^b""#,
        ),
        (json!({"propertyNames": {"enum": ["b"]}}), json!({"a": 1}), "", r#"the property name "a" is not one of "b""#),
        (json!({"propertyNames": {"const": "b"}}), json!({"a": 1}), "", r#"the property name "a" is not "b""#),
        (
            json!({"propertyNames": {"format": "date"}}),
            json!({"a": 1}),
            "",
            r#"the property name "a" is not a valid date"#,
        ),
        (
            json!({"propertyNames": {"not": {"const": "a"}}}),
            json!({"a": 1}),
            "",
            r#"the property name "a" matches the schema under `not`"#,
        ),
        (
            json!({"propertyNames": {"anyOf": [{"const": "b"}, {"const": "c"}]}}),
            json!({"a": 1}),
            "",
            r#"the property name "a" matches none of the schemas under `anyOf`"#,
        ),
        (
            json!({"propertyNames": {"type": "integer"}}),
            json!({"a": 1}),
            "",
            r#"the property name "a" is not of type "integer""#,
        ),
        (json!({"allOf": [{"minimum": 4}]}), json!(3), "", "3 is less than the minimum of 4"),
        (json!({"allOf": [false]}), json!(3), "", "not allowed"),
        (json!({"anyOf": [{"minimum": 4}, {"const": 1}]}), json!(3), "", "3 matches none of the schemas under `anyOf`"),
        (json!({"oneOf": [{"minimum": 4}]}), json!(3), "", "3 matches none of the schemas under `oneOf`"),
        (
            json!({"oneOf": [{"minimum": 1}, {"minimum": 2}]}),
            json!(3),
            "",
            "3 matches more than one of the schemas under `oneOf`",
        ),
        (json!({"not": {"minimum": 1}}), json!(3), "", "3 matches the schema under `not`"),
        (json!({"if": true, "then": false}), json!(3), "", "not allowed"),
        (json!({"if": {"const": 3}, "then": {"const": 4}}), json!(3), "", "3 is not 4"),
        (json!({"if": false, "else": false}), json!(3), "", "not allowed"),
        (json!(false), json!(3), "", "not allowed"),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": false}}), json!(3), "", "not allowed"),
        (
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"contains": {"const": 1}, "minContains": 2}}}),
            json!([1]),
            "",
            "fewer than 2 items of the list match the schema under `contains`",
        ),
    ]
}

#[test]
fn every_keyword_names_its_limit() {
    let mut wrong = Vec::new();
    for (schema, value, at, message) in table() {
        let misfits = Schema::compile(&schema).unwrap().misfits(&value);
        let found: Vec<_> = misfits.iter().map(|m| (m.at.as_str(), m.message.as_str())).collect();
        if found != [(at, message)] {
            wrong.push(format!("{schema}: {found:?}, {:?}", misfits.first().map(|m| &m.rule)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_that_are_too_long_to_keep_are_cut() {
    let closed = Schema::compile(&json!({"additionalProperties": false, "properties": {"b": {}}})).unwrap();
    let long = "n".repeat(300);
    let message = |schema: &Schema| schema.misfits(&json!({long.as_str(): 1})).remove(0).message;
    assert!(message(&closed).starts_with(r#"unexpected properties: ["nnnn"#), "{}", message(&closed));
    let names = Schema::compile(&json!({"propertyNames": {"maxLength": 5}})).unwrap();
    assert!(message(&names).starts_with(r#"the property name "nnnn"#), "{}", message(&names));
    assert!(message(&names).chars().count() < 200);
}

#[test]
fn a_value_is_shown_up_to_100_characters() {
    let schema = Schema::compile(&json!({"const": 1})).unwrap();
    let message = |text: &str| schema.misfits(&json!(text)).remove(0).message;
    let longest = "é".repeat(100);
    assert_eq!(message(&longest), format!("\"{longest}\" is not 1"));
    assert_eq!(message(&format!("{longest}é")), format!("\"{longest}…\" is not 1"));
}

#[test]
fn a_misfit_of_earlier_records_reads_as_before() {
    let kept = json!({"at": "/n", "limit": 5, "rule": "/properties/n/maxLength", "value": "abcdef"});
    let misfit: charter_kernel::MisfitDetails = serde_json::from_value(kept.clone()).unwrap();
    assert_eq!(misfit.message(), r#""abcdef" is longer than 5 characters"#);
    assert_eq!(serde_json::to_value(&misfit).unwrap(), kept);
}

#[test]
fn the_sentence_of_a_rule_comes_with_its_own_misfit() {
    let charter = "
rules: {R1: rule one}
events:
  E:
    data:
      type: object
      properties: {a: {type: integer}, b: {type: integer, rule: R1}, c: {type: integer}}
states: {s: {on: {E: s}}}
";
    let mut run = Run::start(charter);
    let refused = run.try_send("E", json!({"a": "x", "b": "y", "c": "z"})).map(drop).unwrap_err();
    assert_eq!(refused.message, r#"rule one: at `/b`: "y" is not of type "integer""#);
    let at: Vec<&str> = refused.misfits.iter().map(|m| m.at.as_str()).collect();
    assert_eq!(at, ["/b", "/a", "/c"]);
    let refused = run.try_send("E", json!({"a": "x"})).map(drop).unwrap_err();
    assert_eq!(refused.message, r#"the data of `E` does not match its schema: at `/a`: "x" is not of type "integer""#);
}
