//! Schemas that are refused, with the place and what to write instead.

use charter_kernel::Schema;
use serde_json::{Value as Json, json};

fn why(schema: &Json) -> String {
    Schema::compile(schema).map(drop).unwrap_err().to_string()
}

#[test]
fn every_keyword_with_the_wrong_form_is_refused_at_its_place() {
    for (schema, message) in [
        (json!(7), "a schema is an object, `true` or `false`, not a number"),
        (json!({"items": 7}), "at `/items`: a schema is an object, `true` or `false`, not a number"),
        (json!({"$defs": {"a/b": 7}}), "at `/$defs/a~1b`: a schema is an object, `true` or `false`, not a number"),
        (json!({"type": []}), "at `/type`: a type is a name or a list of names, not a list"),
        (json!({"type": ["null", "null"]}), "at `/type`: [\"null\",\"null\"] has a type twice"),
        (json!({"minLength": -1}), "at `/minLength`: `minLength` is a whole number from 0, not -1"),
        (json!({"maxItems": 1.5}), "at `/maxItems`: `maxItems` is a whole number from 0, not 1.5"),
        (json!({"minContains": "1"}), "at `/minContains`: `minContains` is a whole number from 0, not text"),
        (json!({"minimum": "1"}), "at `/minimum`: `minimum` is a number, not text"),
        (json!({"multipleOf": 0}), "at `/multipleOf`: `multipleOf` must be greater than 0, not 0"),
        (json!({"enum": 1}), "at `/enum`: `enum` is a list, not a number"),
        (json!({"uniqueItems": 1}), "at `/uniqueItems`: `uniqueItems` is `true` or `false`, not 1"),
        (json!({"required": "a"}), "at `/required`: `required` is a list, not text"),
        (json!({"required": [1]}), "at `/required`: `required` lists names, not a number"),
        (json!({"required": ["a", "a"]}), "at `/required`: `required` lists a name twice"),
        (
            json!({"dependentRequired": {"a": 1}}),
            "at `/dependentRequired`: `dependentRequired` is a list, not a number",
        ),
        (json!({"properties": []}), "at `/properties`: `properties` is an object, not a list"),
        (json!({"anyOf": []}), "at `/anyOf`: `anyOf` needs at least one schema"),
        (json!({"format": 1}), "at `/format`: `format` is text, not a number"),
        (json!({"title": 1}), "at `/title`: `title` is text, not a number"),
        (json!({"then": 1}), "at `/then`: a schema is an object, `true` or `false`, not a number"),
        (json!({"$anchor": "1"}), "at `/$anchor`: invalid anchor `1`: use letters, digits, `-`, `_` and `.`"),
        (json!({"$id": "a#b"}), "at `/$id`: `a#b` has a fragment; remove it, and use `$anchor` to name a subschema"),
        (json!({"items": [true]}), "at `/items`: `items` is one schema in 2020-12; write the list as `prefixItems`"),
        (json!({"pattern": "("}), "at `/pattern`: `(` is not a regular expression: unclosed group"),
    ] {
        assert_eq!(why(&schema), message, "{schema}");
    }
}

#[test]
fn what_is_not_supported_is_refused_with_what_to_write_instead() {
    for (schema, parts) in [
        (json!({"pattern": "^(?!a)"}), ["at `/pattern`: look-around", "`not`"]),
        (json!({"patternProperties": {"(a)\\1": true}}), ["at `/patternProperties`: a back-reference", "`allOf`"]),
        (
            json!({"$ref": "https://example.com/a"}),
            ["at `/$ref`: `https://example.com/a` is not in this schema", "`$defs`"],
        ),
        (json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}), ["nothing is fetched", "`#/$defs/NAME`"]),
        (json!({"$ref": "#/$defs/none"}), ["`#/$defs/none` has no target", "`$defs`"]),
        (json!({"$ref": "#none"}), ["no `$anchor` is named `none`", "`#none`"]),
        (json!({"$recursiveRef": "#"}), ["`$recursiveRef` is not part of 2020-12", "`$ref`"]),
        (json!({"prefixItems": [true], "additionalItems": false}), ["`additionalItems` is not part", "use `items`"]),
        (
            json!({"$defs": {"a": {"$id": "a", "$schema": "http://json-schema.org/draft-07/schema#"}}}),
            ["at `/$defs/a/$schema`: `http://json-schema.org/draft-07/schema` is not supported", "2020-12"],
        ),
        (
            json!({
                "$ref": "a",
                "$dynamicAnchor": "x",
                "$defs": {"a": {"$id": "a", "$dynamicAnchor": "x", "items": {"$dynamicRef": "#x"}}},
            }),
            ["at `/$defs/a/items/$dynamicRef`", "use `$ref`"],
        ),
    ] {
        let why = why(&schema);
        assert!(parts.iter().all(|part| why.contains(part)), "{schema}: {why}");
    }
}

#[test]
fn references_by_id_anchor_and_pointer_find_their_targets() {
    let integer = json!({"type": "integer"});
    for schema in [
        json!({"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": integer}}),
        json!({"$ref": "#n", "$defs": {"a": {"$anchor": "n", "type": "integer"}}}),
        json!({"$ref": "item", "$defs": {"a": {"$id": "item", "type": "integer"}}}),
        json!({"$id": "https://e.org/s/root", "$ref": "item#/$defs/b",
            "$defs": {"a": {"$id": "item", "$defs": {"b": integer}}}}),
        json!({"$id": "https://e.org/s/root", "$ref": "/s/item#n",
            "$defs": {"a": {"$id": "item", "$defs": {"b": {"$anchor": "n", "type": "integer"}}}}}),
        // A pointer without URI begins at the nearest `$id`.
        json!({"$ref": "#/$defs/a", "$defs": {"b": true,
            "a": {"$id": "x", "$ref": "#/$defs/b", "$defs": {"b": integer}}}}),
        json!({"$dynamicRef": "#n", "$defs": {"a": {"$dynamicAnchor": "n", "type": "integer"}}}),
        json!({"allOf": [{"$ref": "#/types/a"}], "types": {"a": integer}}),
    ] {
        let compiled = Schema::compile(&schema).unwrap_or_else(|e| panic!("{schema}: {e}"));
        assert!(compiled.accepts(&json!(1)) && !compiled.accepts(&json!("x")), "{schema}");
        let theirs = super::oracle::compile(&schema).unwrap();
        assert!(theirs.is_valid(&json!(1)) && !theirs.is_valid(&json!("x")), "{schema}");
        assert!(!compiled.misfits(&json!("x")).is_empty());
    }
}

#[test]
fn bad_schemas_are_bad_for_the_oracle_and_for_us() {
    let values =
        [json!(7), json!(-1), json!("x"), json!(["x", 1]), json!({"x": 1}), json!([]), json!(null), json!([[1]])];
    let keywords = [
        "$anchor",
        "$comment",
        "$defs",
        "$id",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "default",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "deprecated",
        "description",
        "else",
        "enum",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "readOnly",
        "required",
        "then",
        "title",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "writeOnly",
    ];
    for keyword in keywords {
        for value in &values {
            let schema = json!({keyword: value});
            let (ours, theirs) = (Schema::compile(&schema).map(drop), super::oracle::compile(&schema).map(drop));
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{schema}: {ours:?} {theirs:?}");
        }
    }
}
