//! Attacks by schemas and data: the work is limited, and the same on every host.

use charter_expr::Fuel;
use charter_kernel::{Schema, TooCostly};
use serde_json::{Value as Json, json};

use crate::common::Run;

/// Returns the verdict and the fuel that it takes.
fn cost(schema: &Json, value: &Json) -> (Result<bool, TooCostly>, u64) {
    let mut fuel = Fuel::new(Schema::FUEL);
    let fits = Schema::compile(schema).unwrap().fits(value, &mut fuel);
    (fits, Schema::FUEL - fuel.left())
}

/// `depth` lists around a value.
fn nested(depth: usize, inside: Json) -> Json {
    (0..depth).fold(inside, |value, _| Json::Array(vec![value]))
}

#[test]
fn a_recursive_any_of_costs_as_much_as_its_data_is_deep() {
    let schema = json!({"anyOf": [
        {"type": "array", "items": {"$ref": "#"}},
        {"type": "array", "items": {"$ref": "#"}, "minItems": 1},
        {"type": "integer"},
    ]});
    for (inside, fits) in [(json!(1), true), (json!("x"), false)] {
        let (verdict, fuel) = cost(&schema, &nested(20, inside.clone()));
        assert_eq!(verdict, Ok(fits));
        assert!(fuel < 200, "{fuel}");
        let (verdict, deeper) = cost(&schema, &nested(100, inside));
        assert_eq!(verdict, Ok(fits));
        assert!(deeper < 6 * fuel, "{fuel} {deeper}");
    }
    let compiled = Schema::compile(&schema).unwrap();
    let mut fuel = Fuel::new(2_000);
    assert_eq!(compiled.misfit_details(&nested(100, json!("x")), &mut fuel).len(), 1);
}

/// A result that is kept takes memory, and more time than one that is looked up.
#[test]
fn results_that_are_kept_are_charged() {
    let list = |last: Json| {
        let mut list = vec![json!(1); 20_000];
        list.push(last);
        json!(list)
    };
    let mut any: Vec<Json> =
        (0..5).map(|fewest| json!({"type": "array", "items": {"$ref": "#"}, "minItems": fewest})).collect();
    any.push(json!({"type": "integer"}));
    let schema = json!({"anyOf": any});
    for (last, fits) in [(json!(1), true), (json!("x"), false)] {
        let (verdict, fuel) = cost(&schema, &list(last));
        assert_eq!(verdict, Ok(fits));
        assert!((200_000..400_000).contains(&fuel), "{fuel}");
    }
    let mut all = Vec::new();
    let mut defs = json!({});
    for i in 0..8 {
        defs[format!("a{i}")] = json!({"not": {"type": "string", "minLength": i}});
        all.extend([(); 2].map(|()| json!({"items": {"$ref": format!("#/$defs/a{i}")}})));
    }
    assert_eq!(cost(&json!({"$defs": defs, "allOf": all}), &list(json!(1))).0, Err(TooCostly));
}

#[test]
fn an_event_with_a_recursive_any_of_is_decided_at_once() {
    let charter = r##"
types: {tree: {anyOf: [{type: array, items: {$ref: '#/types/tree'}}, {type: array, items: {$ref: '#/types/tree'}}]}}
events: {E: {data: {$ref: '#/types/tree'}}}
states: {s: {on: {E: s}}}
"##;
    let mut run = Run::start(charter);
    let refused = run.try_send("E", nested(100, json!("x"))).map(drop).unwrap_err();
    assert_eq!(refused.code.word(), "schema");
    run.try_send("E", nested(100, json!([]))).map(drop).unwrap();
}

#[test]
fn a_ladder_of_any_ofs_ends() {
    for keyword in ["anyOf", "allOf", "oneOf"] {
        let mut defs = json!({"a40": {"type": "integer"}});
        for i in 0..40 {
            let next = format!("#/$defs/a{}", i + 1);
            defs[format!("a{i}")] = json!({keyword: [{"$ref": next}, {"$ref": next}]});
        }
        let schema = json!({"$ref": "#/$defs/a0", "$defs": defs});
        for (value, fits) in [(json!(1), keyword != "oneOf"), (json!("x"), false)] {
            let (verdict, fuel) = cost(&schema, &value);
            assert_eq!(verdict, Ok(fits), "{keyword}");
            assert!(fuel < 400, "{keyword}: {fuel}");
            let misfits = Schema::compile(&schema).unwrap().misfits(&value);
            assert_eq!(misfits.is_empty(), fits);
            assert!(misfits.len() <= 10);
        }
    }
}

#[test]
fn looking_for_what_is_evaluated_at_every_level_is_not_exponential() {
    let mut schema = json!({"properties": {"a": true}});
    for _ in 0..30 {
        schema = json!({"anyOf": [schema], "unevaluatedProperties": {"type": "integer"}});
    }
    let (verdict, fuel) = cost(&schema, &json!({"a": "x", "b": 1}));
    assert_eq!(verdict, Ok(true));
    assert!(fuel < 5_000, "{fuel}");
    let mut schema = json!({"type": "integer"});
    let mut value = json!(1);
    for _ in 0..14 {
        schema = json!({"allOf": [{"unevaluatedProperties": schema}], "unevaluatedProperties": false});
        value = json!({"a": value});
    }
    let (verdict, fuel) = cost(&schema, &value);
    assert_eq!(verdict, Ok(true));
    assert!(fuel < 5_000, "{fuel}");
}

#[test]
fn many_different_items_are_compared_in_time_proportional_to_their_number() {
    let list: Vec<Json> = (0..100_000).map(|i| json!(i)).collect();
    let schema = json!({"uniqueItems": true});
    let (verdict, fuel) = cost(&schema, &json!(list));
    assert_eq!(verdict, Ok(true));
    assert!(fuel < 150_000, "{fuel}");
    let texts: Vec<Json> = (0..100_000).map(|i| json!(format!("{}{i}", "x".repeat(1_000)))).collect();
    assert_eq!(cost(&schema, &json!(texts)).0, Err(TooCostly));
}

#[test]
fn a_large_enum_costs_as_much_as_its_longest_value() {
    let large = json!(vec![json!({"text": "x".repeat(6_400)}); 10]);
    let options: Vec<Json> = (0..100).map(|i| json!([large, i])).collect();
    let schema = json!({"enum": options});
    let (verdict, fuel) = cost(&schema, &json!([large, 99]));
    assert_eq!(verdict, Ok(true));
    assert!(fuel < 10_000, "{fuel}");
    // A value that is longer than every option is not read to its end.
    let long = json!(vec![json!("y".repeat(64)); 1_000_000 / 64]);
    let (verdict, fuel) = cost(&json!({"const": [1, 2]}), &long);
    assert_eq!(verdict, Ok(false));
    assert!(fuel < 10, "{fuel}");
}

#[test]
fn patterns_with_nested_quantifiers_are_linear() {
    let text = format!("{}!", "a".repeat(50_000));
    for pattern in ["^(a+)+$", "^(a|a)*$", "^([a-z]+)*$", "(x+x+)+y"] {
        let (verdict, fuel) = cost(&json!({"pattern": pattern}), &json!(text));
        assert_eq!(verdict, Ok(false), "{pattern}");
        assert!((1_000..100_000).contains(&fuel), "{pattern}: {fuel}");
    }
    let long = json!("a".repeat(1 << 20));
    let schema = json!({"pattern": "^([a-z]{1,50}-?){1,100}$"});
    let (verdict, _) = cost(&schema, &long);
    assert_eq!(verdict, Err(TooCostly));
}

#[test]
fn a_pattern_costs_the_states_that_it_visits() {
    let evil = "^(a+)+(b|a)*(a?){500}a{500}$";
    let text = "a".repeat(1 << 20);
    assert_eq!(cost(&json!({"pattern": evil}), &json!(text)), (Err(TooCostly), Schema::FUEL));
    let names = json!({"patternProperties": {evil: true}});
    assert_eq!(cost(&names, &json!({text.as_str(): 1})), (Err(TooCostly), Schema::FUEL));
    // An ordinary pattern is read once, whatever the text.
    for pattern in [r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$", r"^[\p{L}\p{N} .,'-]+$", r"^\w+( \w+)*$"] {
        let (verdict, fuel) = cost(&json!({"pattern": pattern}), &json!(text));
        assert!(verdict.is_ok() && fuel < 70_000, "{pattern}: {fuel}");
    }
}

#[test]
fn an_event_with_such_a_pattern_is_refused_and_changes_nothing() {
    let charter = "
events: {E: {data: {properties: {x: {pattern: '^(a+)+(b|a)*(a?){500}a{500}$'}}}}, F: {}}
states: {s: {on: {E: s, F: {when: \"event.x.matches('^(a+)+(b|a)*(a?){500}a{500}$')\"}}}}
";
    let mut run = Run::start(charter);
    let text = json!({"x": "a".repeat(500_000)});
    for (event, code) in [("E", "too-costly"), ("F", "guard")] {
        let refused = run.try_send(event, text.clone()).map(drop).unwrap_err();
        assert_eq!(refused.code.word(), code);
    }
    run.try_send("E", json!({"x": "a".repeat(600)})).map(drop).unwrap();
}

#[test]
fn a_schema_that_repeats_itself_for_the_same_value_is_refused() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"type": "integer"}, {"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": {"$ref": "#"}}),
        json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"oneOf": [true, {"$ref": "#/$defs/a"}]}}}),
    ] {
        let why = Schema::compile(&schema).unwrap_err().to_string();
        assert!(why.contains("refers to itself for the same value"), "{schema}: {why}");
    }
    Schema::compile(&json!({"items": {"$ref": "#"}, "propertyNames": {"$ref": "#"}})).unwrap();
}

#[test]
fn deep_schemas_and_deep_data_do_not_exhaust_the_stack() {
    let around = |schema| Json::Object([("not".to_owned(), schema)].into_iter().collect());
    let not = (0..10_000).fold(json!(true), |schema, _| around(schema));
    let why = Schema::compile(&not).unwrap_err().to_string();
    assert!(why.contains("nests deeper than 128"), "{why}");
    // Dropping the value is recursive, and not what this test is about.
    std::mem::forget(not);
    let mut defs = json!({"a10000": {"type": "integer"}});
    for i in 0..10_000 {
        defs[format!("a{i}")] = json!({"allOf": [{"$ref": format!("#/$defs/a{}", i + 1)}]});
    }
    let why = Schema::compile(&json!({"$ref": "#/$defs/a0", "$defs": defs})).unwrap_err().to_string();
    assert!(why.contains("more than 128 schemas apply to the same value"), "{why}");
    // Five schemas for each level of the data, and more levels than events have.
    let schema = json!({
        "allOf": [{"anyOf": [{"oneOf": [{"type": "integer"}, {"not": {"not": {"type": "array", "items": {"$ref": "#"}}}}]}]}],
    });
    assert_eq!(cost(&schema, &nested(60, json!(1))).0, Ok(true));
    let wrong = nested(60, json!("x"));
    assert_eq!(cost(&schema, &wrong).0, Ok(false));
    assert!(!Schema::compile(&schema).unwrap().misfits(&wrong).is_empty());
    let deep = nested(5_000, json!(1));
    assert_eq!(cost(&schema, &deep).0, Err(TooCostly));
    assert_eq!(cost(&json!({"const": [1]}), &deep).0, Ok(false));
    assert_eq!(cost(&json!({"items": {"uniqueItems": true}}), &deep).0, Err(TooCostly));
    assert!(Schema::compile(&schema).unwrap().misfits(&deep).is_empty());
    std::mem::forget(deep);
}

#[test]
fn many_properties_and_names_are_charged() {
    let wide: serde_json::Map<String, Json> = (0..50_000).map(|i| (format!("n{i}"), json!(i))).collect();
    let wide = Json::Object(wide);
    let all: Vec<Json> = (0..100).map(|i| json!({"propertyNames": {"pattern": format!("^n[0-9]+{i}?$")}})).collect();
    assert_eq!(cost(&json!({"allOf": all}), &wide).0, Err(TooCostly));
    let (verdict, fuel) = cost(&json!({"additionalProperties": {"type": "integer"}}), &wide);
    assert_eq!(verdict, Ok(true));
    assert!((50_000..100_000).contains(&fuel), "{fuel}");
}

#[test]
fn integers_that_doubles_round_are_no_integers() {
    let integer = json!({"type": "integer"});
    let value = |text: &str| serde_json::from_str::<Json>(text).unwrap();
    for (text, fits) in [
        ("1.0", true),
        ("-0.0", true),
        ("9007199254740991.0", true),
        ("9007199254740992.0", false),
        ("18446744073709551616", false),
        ("1e300", false),
        ("1.5", false),
    ] {
        assert_eq!(cost(&integer, &value(text)).0, Ok(fits), "{text}");
    }
    let misfits = Schema::compile(&integer).unwrap().misfits(&value("18446744073709551616"));
    let told = "is not of type \"integer\": beyond 2^53-1, readers round integers; send it as a string";
    assert!(misfits[0].message.ends_with(told), "{misfits:?}");
    for (schema, text, fits) in [
        (json!({"minimum": 9_007_199_254_740_993i64}), "9007199254740992.0", false),
        (json!({"maximum": 9_007_199_254_740_993i64}), "9007199254740992.0", true),
        (json!({"exclusiveMaximum": 9_007_199_254_740_992.0}), "9007199254740991", true),
        (json!({"const": 9_007_199_254_740_993i64}), "9007199254740992.0", false),
        (json!({"enum": [1.0]}), "1", true),
        (json!({"uniqueItems": true}), "[1, 1.0]", false),
        (json!({"multipleOf": 0.1}), "0.3", true),
        (json!({"multipleOf": 0.1}), "1e300", true),
        (json!({"multipleOf": 0.1}), "0.35", false),
        (json!({"multipleOf": 3}), "1e300", false),
    ] {
        assert_eq!(cost(&schema, &value(text)).0, Ok(fits), "{schema} {text}");
    }
}
