//! Properties that hold for all inputs.

use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value, check, json, parse, typed};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

struct Data<'d>(&'d Json);

impl<'a> Scope<'a> for Data<'a> {
    fn root(&self, _: RootId) -> Option<Value<'a>> {
        Some(Value::from_json(self.0))
    }
}

fn env() -> Env {
    let mut env = Env::new();
    env.root("x", Type::Dyn);
    env.root("context", Type::Dyn);
    env
}

/// Runs all operations on a source text; returns the fuel used, if it could be evaluated.
fn everything(source: &str, data: &Json, fuel: u64) -> Option<u64> {
    let ast = parse(source).ok()?;
    let again = ast.unparse();
    if again.len() <= charter_expr::MAX_SOURCE_LENGTH {
        let reparsed = parse(&again).unwrap_or_else(|e| panic!("{source} -> {again}: {e}"));
        assert_eq!(reparsed, ast, "{source} -> {again}");
        assert_eq!(reparsed.unparse(), again);
    }
    for path in ast.reads() {
        assert!(source.get(path.span().start..path.span().end).is_some(), "{source}");
    }
    let _ = (ast.calls(), ast.roots().count());
    let env = env();
    let (_, findings) = check(&ast, &env);
    for finding in findings {
        assert!(source.get(finding.span.start..finding.span.end).is_some(), "{source}");
    }
    let program = Program::compile_lenient(&ast, &env).unwrap();
    let mut tank = Fuel::new(fuel);
    if let Ok(value) = program.eval(&Data(data), &mut tank) {
        let typed_form = typed::encode(&value).unwrap();
        let back = typed::decode(&typed_form).unwrap();
        assert_eq!(typed::encode(&back).unwrap(), typed_form);
        if let Ok(json_form) = value.to_json() {
            assert!(json::is_canonical(&json_form));
        }
        let _ = value.into_owned();
    }
    Some(fuel - tank.left())
}

fn json_value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        (-1000_i32..1000).prop_map(|i| json!(f64::from(i) / 4.0)),
        Just(json!(-0.0)),
        "[a-z]{0,3}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::btree_map("[a-c]{1,2}", inner, 0..4).prop_map(|m| Json::Object(m.into_iter().collect())),
        ]
    })
}

/// Generates random sequences of tokens.
fn soup() -> impl Strategy<Value = String> {
    let words = vec![
        "x",
        "context",
        ".a",
        ".b",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
        "1",
        "2u",
        "1.5",
        "-",
        "-",
        "!",
        "'s'",
        "b'b'",
        "r'\\'",
        "&&",
        "||",
        "==",
        "<",
        "+",
        "*",
        "%",
        " in ",
        "in(",
        ".map(y, ",
        ".all(y, ",
        ".exists(i, v, ",
        "y",
        "has(",
        "cel.bind(y, ",
        "math.greatest(",
        "size(",
        ".size()",
        ".format(",
        "null",
        "true",
        "`a b`",
        ".`a b`",
        " ",
        "\n",
        "// c\n",
        "timestamp(",
        "'1970-01-01T00:00:00Z'",
        ".getHours(",
        "duration('1s')",
        "0x1F",
        "1e3",
        ".5",
        "9223372036854775808",
    ];
    prop::collection::vec(prop::sample::select(words), 0..24).prop_map(|w| w.concat())
}

/// Generates expressions that follow the grammar.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x".to_owned()),
        Just("context".to_owned()),
        Just("y".to_owned()),
        Just(".x".to_owned()),
        any::<i64>().prop_map(|i| i.to_string()),
        any::<u64>().prop_map(|u| format!("{u}u")),
        (-1e6..1e6).prop_map(|d: f64| format!("{d:?}")),
        "[ -~]{0,4}".prop_map(|s| format!("{s:?}").replace("\\'", "'")),
        "[a-z]{0,3}".prop_map(|s| format!("b'{s}'")),
        prop::sample::select(vec!["true", "false", "null", "1", "-1", "'a'", "int"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(6, 48, 4, |e| {
        let binary = vec!["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", " in ", "&&", "||"];
        prop_oneof![
            (e.clone(), prop::sample::select(binary), e.clone()).prop_map(|(a, op, b)| format!("{a}{op}{b}")),
            e.clone().prop_map(|a| format!("({a})")),
            e.clone().prop_map(|a| format!("-{a}")),
            e.clone().prop_map(|a| format!("!{a}")),
            e.clone().prop_map(|a| format!("-({a})")),
            e.clone().prop_map(|a| format!("({a}).a")),
            e.clone().prop_map(|a| format!("has(({a}).b)")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a})[{b}]")),
            (e.clone(), e.clone(), e.clone()).prop_map(|(a, b, c)| format!("{a} ? {b} : {c}")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a}).map(y, {b})")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a}).filter(y, {b})")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a}).exists(i, y, {b})")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("({a}).transformMap(i, y, i == {b}, y)")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("cel.bind(y, {a}, {b})")),
            (e.clone(), e.clone()).prop_map(|(a, b)| format!("math.greatest({a}, {b})")),
            e.clone().prop_map(|a| format!("'%s %d'.format([{a}, 1])")),
            e.prop_map(|a| format!("string({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_number_is_the_same_before_and_after_a_trip(mut data in json_value()) {
        let before = data.clone();
        json::normalize(&mut data);
        prop_assert!(json::is_canonical(&data));
        // Reading the data unchanged returns the same value as reading it in canonical form.
        prop_assert_eq!(Value::from_json(&before), Value::from_json(&data));
        prop_assert_eq!(typed::encode(&Value::from_json(&before)), typed::encode(&Value::from_json(&data)));
        let through: Json = serde_json::from_str(&data.to_string()).unwrap();
        prop_assert_eq!(&through, &data);
        prop_assert_eq!(&Value::from_json(&data).to_json().unwrap(), &data);
        let mut checked = before;
        if json::canonical(&mut checked).is_ok() {
            prop_assert_eq!(checked, data);
        }
    }

    #[test]
    fn any_text(source in any::<String>()) {
        everything(&source, &json!({"a": 1}), 1000);
    }

    #[test]
    fn any_ascii(source in "[ -~]{0,60}") {
        everything(&source, &json!({"a": 1}), 1000);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        everything(&String::from_utf8_lossy(&bytes), &json!({"a": 1}), 1000);
    }

    #[test]
    fn token_soup(source in soup()) {
        everything(&source, &json!({"a": [1, 2, {"b": null}]}), 1000);
    }

    #[test]
    fn expressions(source in expression(), data in json_value()) {
        let used = everything(&source, &data, 2000);
        prop_assert!(used.is_none_or(|used| used <= 2000));
        // Evaluating again returns the same result at the same cost.
        prop_assert_eq!(everything(&source, &data, 2000), used);
    }

    #[test]
    fn what_the_checker_calls_an_error_fails(source in expression()) {
        let Ok(ast) = parse(&source) else { return Ok(()) };
        let env = env();
        let (_, findings) = check(&ast, &env);
        let root = findings.iter().find(|f| {
            f.severity == charter_expr::Severity::Error && f.span.of(&source).trim() == source.trim()
        });
        if root.is_some() {
            let program = Program::compile_lenient(&ast, &env).unwrap();
            for data in [json!(null), json!(1), json!(1.5), json!("a"), json!([1]), json!({"a": {"b": 1}}), json!(true)] {
                let result = program.eval(&Data(&data), &mut Fuel::default());
                prop_assert!(result.is_err(), "{}: {:?} gives {:?}", source, findings, result);
            }
        }
    }
}
