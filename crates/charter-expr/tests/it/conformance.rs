//! Runs the public CEL conformance cases if `../../../shared/data/cel/cases.jsonl` exists next to
//! the project.

use std::path::PathBuf;

use charter_expr::{Value, typed};
use serde_json::Value as Json;

/// Cases for which Charter returns a different result: file/section/name and expression, with the
/// reason.
const DEVIATIONS: &[(&str, &str)] = &[];

fn cases() -> Option<Vec<Json>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/cel/cases.jsonl");
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn same(expected: &Value<'_>, got: &Value<'_>) -> bool {
    match (expected, got) {
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| same(&a, &b)),
        (Value::Map(a), Value::Map(b)) => {
            let (a, b) = (a.entries(), b.entries());
            a.len() == b.len()
                && a.into_iter().zip(b).all(|((k, v), (l, w))| same(&k.into_value(), &l.into_value()) && same(&v, &w))
        }
        _ => expected.type_name() == got.type_name() && expected == got,
    }
}

#[test]
fn all_cases() {
    let Some(cases) = cases() else {
        println!("SKIPPED: the conformance cases (shared/data/cel/cases.jsonl) are not here");
        return;
    };
    let mut wrong = Vec::new();
    for case in &cases {
        let text = |name: &str| case[name].as_str().unwrap_or_default();
        let name = format!("{}/{}/{}", text("file"), text("section"), text("name"));
        let got = typed::run(case);
        let ok = match (&got, case.get("value")) {
            (Ok(got), Some(expected)) => same(&typed::decode(expected).unwrap(), &typed::decode(got).unwrap()),
            (Err(_), None) => true,
            _ => false,
        };
        if ok == DEVIATIONS.iter().any(|(n, _)| *n == name) {
            wrong.push(format!("{name}: {} gives {got:?}, expected {case}", text("expr")));
        }
    }
    println!("{} conformance cases, {} wrong, {} deviations", cases.len(), wrong.len(), DEVIATIONS.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The checker reports mistakes but does not change results.
#[test]
fn the_same_without_checking() {
    let Some(cases) = cases() else {
        println!("SKIPPED: the conformance cases (shared/data/cel/cases.jsonl) are not here");
        return;
    };
    for mut case in cases {
        let checked = typed::run(&case);
        case["disable_check"] = Json::Bool(true);
        let unchecked = typed::run(&case);
        match checked {
            Ok(value) => assert_eq!(Ok(value), unchecked, "{case}"),
            Err(_) => assert!(unchecked.is_err(), "{case}"),
        }
    }
}
