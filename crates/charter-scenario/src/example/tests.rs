use super::*;

#[test]
fn example_data_matches_its_schema() {
    let defs = json!({"reason": {"type": "object", "required": ["why"],
        "properties": {"why": {"$ref": "#/$defs/text"}}}, "text": {"type": "string", "minLength": 5}});
    let object = |properties: Json| {
        let required: Vec<String> = properties.as_object().unwrap().keys().cloned().collect();
        json!({"type": "object", "required": required, "properties": properties})
    };
    for schema in [
        json!({"$defs": defs, "$ref": "#/$defs/reason"}),
        json!({"$defs": defs, "type": "object", "required": ["r"], "properties": {"r": {"$ref": "#/$defs/reason"}}}),
        object(json!({"n": {"type": "integer", "minimum": 7}, "m": {"type": "number", "exclusiveMaximum": -2}})),
        object(json!({"list": {"type": "array", "minItems": 2, "items": {"type": "integer", "exclusiveMinimum": 0}}})),
        object(json!({"one": {"enum": ["a", "b"]}, "two": {"const": 3}, "text": {"type": "string", "maxLength": 1}})),
        object(json!({"any": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "free": {}})),
        json!({"allOf": [object(json!({"a": {"type": "boolean"}})), object(json!({"b": {"type": ["string", "null"]}}))]}),
        json!({"type": "string", "minLength": 2}),
        object(json!({"at": {"type": "string", "format": "date-time"}, "to": {"format": "email", "minLength": 20}})),
        object(json!({"order": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}$"}, "code": {"pattern": "x$"}})),
        json!({"$ref": "#/$defs/iban", "$defs": {"iban": {"type": "string", "pattern": "^[A-Z]{2}\\d{2}[A-Z0-9]{11,30}$"}}}),
        json!({"required": ["x"]}),
        object(json!({"text": {"type": "string", "default": "", "minLength": 3}, "n": {"const": 2, "default": 1}})),
        json!({"type": "object", "minProperties": 2, "properties": {"a": {"type": "integer"}}}),
        object(json!({"n": {"type": "integer", "minimum": 7, "multipleOf": 5}})),
        object(json!({"n": {"type": "integer", "maximum": -7, "multipleOf": 5}})),
        object(json!({"list": {"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "string"}}})),
        json!({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]},
            "properties": {"b": {"type": "integer"}}}),
        json!({"type": "object", "required": ["kind"], "properties": {"kind": {"enum": ["x", "y"]}},
            "if": {"properties": {"kind": {"const": "x"}}}, "then": {"required": ["why"]}}),
    ] {
        let example = find(Some(&schema), None);
        assert!(Schema::compile(&schema).unwrap().accepts(&example.data), "{schema}: {example:?}");
        assert!(example.fits);
    }
}

#[test]
fn example_data_of_unusual_schemas_matches() {
    for schema in [
        json!({"type": "number", "exclusiveMinimum": 1, "multipleOf": 0.3}),
        json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001}),
        json!({"type": "number", "minimum": 0.25, "maximum": 0.25}),
        json!({"type": "array", "contains": {"const": 5}, "minContains": 2}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "items": false}),
        json!({"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^z"}}),
        json!({"type": "object", "required": ["$(x)"], "additionalProperties": {"const": "`id`"}}),
        json!({"type": "object", "required": ["xa"], "patternProperties": {"^x": {"type": "integer"}}}),
        json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"type": "string", "not": {"const": "..."}}, "b": {"type": "integer", "not": {"const": 0}}}}),
        json!({"not": {"type": "object"}}),
        json!({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 4, "exclusiveMinimum": 3}]}),
        json!({"type": "object", "dependentSchemas": {"a": {"required": ["b"]}}, "required": ["a"]}),
        json!({"oneOf": [{"type": "integer", "minimum": 5}, {"type": "integer"}]}),
        json!({"anyOf": [false, {"type": "string", "minLength": 9}]}),
        json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "boolean"}}),
        json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"enum": ["a", "b", "c"]}}),
        json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"oneOf": [{"const": 1}, {"const": "x"}]}}),
        json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "object", "required": ["k", "n"],
            "properties": {"k": {"const": "line"}, "n": {"type": "string"}}}}),
        json!({"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "object", "required": ["k"],
            "properties": {"k": {"enum": ["a", "b"]}}}}),
        // The alternatives of two fields that fit are at different places.
        json!({"type": "object", "required": ["a", "b"], "properties": {
            "a": {"oneOf": [{"type": "integer", "minimum": 5}, {"const": 7}], "maximum": 7, "minimum": 6},
            "b": {"oneOf": [{"const": 1}, {"const": 2}], "minimum": 2}}}),
        json!({"type": "object", "if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["q"]}, "else": {"required": ["r"]}}),
    ] {
        let example = find(Some(&schema), None);
        assert!(Schema::compile(&schema).unwrap().accepts(&example.data), "{schema}: {example:?}");
    }
}

#[test]
fn where_no_data_is_found_the_example_says_so_after_a_bounded_search() {
    let mut wide = json!({"type": "integer", "minimum": 1, "maximum": 0});
    for _ in 0..20 {
        wide = json!({"allOf": [wide, wide], "anyOf": [wide, wide]});
        if wide.to_string().len() > 100_000 {
            break;
        }
    }
    let unique = json!({"type": "array", "minItems": 4, "uniqueItems": true, "items": {"type": "boolean"}});
    for schema in [wide, unique, json!(false), json!({"type": "array", "minItems": 100_000})] {
        assert!(!find(Some(&schema), None).fits);
        assert_eq!(data(Some(&schema), None), None);
    }
}

#[test]
fn what_needs_no_data_gets_none_and_an_example_is_taken() {
    for schema in [json!({"type": "object"}), json!({"maxProperties": 0}), json!({"examples": [{"a": 1}]})] {
        assert_eq!(data(Some(&schema), None), Some(json!({})));
    }
    let schema = json!({"required": ["a"], "examples": [{"b": 1}, {"a": 1}]});
    assert_eq!(data(Some(&schema), None), Some(json!({"a": 1})));
}
