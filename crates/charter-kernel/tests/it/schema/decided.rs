//! Verdicts at the edges: keywords beside a reference, multiples, the longest chain and pattern.

use charter_kernel::Schema;
use serde_json::{Value as Json, json};

fn accepts(schema: &Json, value: &Json) -> bool {
    Schema::compile(schema).unwrap().accepts(value)
}

#[test]
fn every_keyword_beside_a_reference_still_applies() {
    for (keyword, rule, value) in [
        ("const", json!(1), json!(2)),
        ("enum", json!([1]), json!(2)),
        ("type", json!("string"), json!(2)),
        ("minimum", json!(3), json!(2)),
        ("minLength", json!(3), json!("ab")),
        ("minItems", json!(3), json!([1, 2])),
        ("required", json!(["a"]), json!({"b": 1})),
        ("allOf", json!([{"minimum": 3}]), json!(2)),
        ("anyOf", json!([{"minimum": 3}, {"maximum": 1}]), json!(2)),
        ("oneOf", json!([{"minimum": 3}, {"maximum": 1}]), json!(2)),
        ("not", json!({"const": 2}), json!(2)),
        ("if", json!({"not": {"const": 2}}), json!(2)),
        ("$dynamicRef", json!("#/$defs/none"), json!(2)),
    ] {
        let both = json!({"$ref": "#/$defs/all", keyword: rule, "else": false});
        let schema = json!({"items": both, "$defs": {"all": true, "none": false}});
        assert!(!accepts(&schema, &json!([value])), "{keyword}");
    }
    let reference = json!({"items": {"$ref": "#/$defs/all"}, "$defs": {"all": true}});
    assert!(accepts(&reference, &json!([2])));
}

#[test]
fn a_multiple_is_one_in_decimal() {
    for (value, of, fits) in [
        (json!(100), json!(4), true),
        (json!(10), json!(4), false),
        (json!(1000), json!(8), true),
        (json!(100), json!(8), false),
        (json!(1e300), json!(64), true),
        (json!(1e300), json!(3), false),
        (json!(30), json!(15), true),
        (json!(0.3), json!(0.1), true),
        (json!(0.35), json!(0.1), false),
        (json!(7), json!(0.5), true),
        (json!(0), json!(7), true),
    ] {
        assert_eq!(accepts(&json!({"multipleOf": of}), &value), fits, "{value} of {of}");
    }
}

#[test]
fn a_chain_of_128_schemas_for_one_value_is_the_longest() {
    // The schema itself, and references behind one another.
    let chain = |length: usize| {
        let reference = |n: usize| json!({"$ref": format!("#/$defs/d{n}")});
        let last = (format!("d{}", length - 2), json!({"type": "null"}));
        let defs: serde_json::Map<_, _> =
            (0..length - 2).map(|n| (format!("d{n}"), reference(n + 1))).chain([last]).collect();
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    };
    Schema::compile(&chain(128)).unwrap();
    let refused = Schema::compile(&chain(129)).map(drop).unwrap_err().to_string();
    assert!(refused.contains("more than 128 schemas apply to the same value"), "{refused}");
}

#[test]
fn a_pattern_of_10_000_bytes_is_the_longest() {
    let pattern = |length: usize| json!({"pattern": "[".to_owned() + &"a".repeat(length - 2) + "]"});
    assert!(Schema::compile(&pattern(10_000)).is_ok());
    let refused = Schema::compile(&pattern(10_001)).map(drop).unwrap_err().to_string();
    assert!(refused.contains("the pattern has more than 10000 bytes"), "{refused}");
}

#[test]
fn items_that_a_schema_beside_them_evaluated_are_not_left_over() {
    let schema = json!({"allOf": [{"prefixItems": [true, true]}], "unevaluatedItems": false});
    assert!(accepts(&schema, &json!([1, 2])));
    assert!(!accepts(&schema, &json!([1, 2, 3])));
}

#[test]
fn formats_have_the_form_of_their_standard() {
    for (format, good, bad) in [
        ("duration", &["P1Y2M3DT4H5M6S", "PT1S", "P1W", "P1M"][..], &["P", "PT", "P1", "P1D1Y", "P1Y1D", "PT1"][..]),
        ("iri", &["http://a/ä?\u{e000}", "http://a/?\u{f0000}"], &["http://a/\u{e000}", "http://a/?\u{ffffe}"]),
        ("uri", &["http://a/b?c=%20"], &["http://a/b c", "http://a/ä", "http://a/%2"]),
    ] {
        for (texts, fits) in [(good, true), (bad, false)] {
            for text in texts {
                assert_eq!(accepts(&json!({"format": format}), &json!(text)), fits, "{format} {text:?}");
            }
        }
    }
}

#[test]
fn a_schema_inside_another_may_only_name_the_same_dialect() {
    let inside = |dialect: &str| Schema::compile(&json!({"items": {"$schema": dialect}})).map(drop);
    assert!(inside("https://json-schema.org/draft/2020-12/schema#").is_ok());
    assert!(inside("http://json-schema.org/draft-07/schema#").unwrap_err().to_string().contains("write 2020-12"));
}

#[test]
fn names_with_the_same_beginning_are_told_apart() {
    let schema =
        json!({"properties": {"same-beginning": {"type": "string"}, "same-beginning-too": {"type": "integer"}}});
    for (name, good, bad) in [("same-beginning", json!("a"), json!(1)), ("same-beginning-too", json!(1), json!("a"))] {
        assert!(accepts(&schema, &json!({name: good})), "{name}");
        assert!(!accepts(&schema, &json!({name: bad})), "{name}");
    }
}
