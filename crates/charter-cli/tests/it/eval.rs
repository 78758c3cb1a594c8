//! `charter eval`: single expressions, and the public conformance cases with `--batch`.

use std::path::PathBuf;

use crate::support::{charter, charter_with};
use charter_expr::{Value, typed};
use serde_json::{Value as Json, json};

fn same(expected: &Value<'_>, got: &Value<'_>) -> bool {
    match (expected, got) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a, &b)),
        (Value::Map(a), Value::Map(b)) => {
            let (a, b) = (a.entries(), b.entries());
            let pairs = || a.iter().zip(&b);
            a.len() == b.len()
                && pairs().all(|((k, v), (l, w))| same(&k.clone().into_value(), &l.clone().into_value()) && same(v, w))
        }
        _ => expected.type_name() == got.type_name() && expected == got,
    }
}

#[test]
fn all_conformance_cases_pass() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/cel/cases.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("SKIPPED: the conformance cases (shared/data/cel/cases.jsonl) are not here");
        return;
    };
    let cases: Vec<Json> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ran = charter(&["eval", "--batch", &path.display().to_string()]);
    let answers: Vec<Json> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .zip(&answers)
        .filter(|(case, answer)| match (case.get("value"), answer.get("value")) {
            (Some(expected), Some(got)) => !same(&typed::decode(expected).unwrap(), &typed::decode(got).unwrap()),
            (None, None) => !answer["error"].is_string(),
            _ => true,
        })
        .map(|(case, answer)| format!("{case}\n  gave {answer}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    // Some cases expect an error.
    assert_eq!(ran.code, 1);
}

fn batch(lines: &[Json]) -> (u8, Vec<Json>) {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = charter_with(&["eval", "--batch", "-"], &input);
    (ran.code, ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn the_checker_runs_first_unless_it_is_disabled() {
    let lines = [
        json!({"expr": "true || 'a' + 1 == 2"}),
        json!({"expr": "true || 'a' + 1 == 2", "disable_check": true}),
        json!({"expr": "x + 1", "bindings": {"x": {"t": "int", "v": "2"}}}),
        json!({"expr": "x + 1", "bindings": {"x": {"t": "int", "v": "2"}}, "check_only": true}),
        json!({"expr": "x + 'a'", "bindings": {"x": {"t": "int", "v": "2"}}, "check_only": true}),
    ];
    let (code, answers) = batch(&lines);
    assert_eq!(code, 1);
    assert!(answers[0]["error"].is_string(), "{}", answers[0]);
    assert_eq!(answers[1], json!({"value": {"t": "bool", "v": true}}));
    assert_eq!(answers[2], json!({"value": {"t": "int", "v": "3"}}));
    assert_eq!(answers[3], json!({"value": {"t": "type", "v": "int"}}));
    assert!(answers[4]["error"].is_string(), "{}", answers[4]);
}

#[test]
fn an_invalid_line_is_reported_and_the_rest_is_evaluated() {
    let ran =
        charter_with(&["eval", "--batch", "-"], "{\"expr\":\"1\"}\nnonsense\n\n{\"exp\":\"1\"}\n{\"expr\":\"2\"}\n");
    let answers: Vec<Json> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(ran.code, 2);
    assert_eq!(answers.len(), 4);
    assert_eq!(answers[1]["line"], 2);
    assert_eq!(answers[2]["line"], 4);
    assert_eq!(answers[3], json!({"value": {"t": "int", "v": "2"}}));
}

#[test]
fn variables_are_the_keys_of_with() {
    let ran = charter(&["eval", "digest(x) == digest({'b': 1, 'a': [2.0]})", "--with", r#"{"x":{"a":[2],"b":1}}"#]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "true\n"));
    // They have no schema: a number has the type it is written with.
    for (with, result) in [(r#"{"x": 2}"#, "0\n"), (r#"{"x": 2.0}"#, "0.5\n")] {
        assert_eq!(charter(&["eval", "x / 4", "--with", with]).out, result, "{with}");
    }
}

#[test]
fn evaluation_errors_are_1_and_syntax_errors_2() {
    for (expr, code, caret) in [("1 / 0", 1, "^"), ("size(1", 2, "^"), ("nope + 1", 2, "^^^^"), ("0.0 / 0.0", 1, "^")] {
        let ran = charter(&["eval", expr]);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{expr}");
        assert!(ran.err.contains(expr) && ran.err.contains(caret), "{expr}: {}", ran.err);
    }
}

#[test]
fn errors_are_json_with_json() {
    for (expression, code, kind) in [("1 / 0", 1, "divide-by-zero"), ("1 +", 2, "expression")] {
        let ran = charter(&["eval", "--json", expression]);
        let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap_or_else(|_| panic!("{}", ran.err));
        assert_eq!((ran.code, error["error"]["code"].as_str()), (code, Some(kind)), "{error}");
        assert_eq!((&ran.out, error["error"]["diagnostics"][0]["line"].as_u64()), (&String::new(), Some(1)), "{error}");
    }
}
