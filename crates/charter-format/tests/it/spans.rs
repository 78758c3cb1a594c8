//! Every part of a definition has a place in the source; places within expressions are exact.

use charter_format::{Document, ReadOptions, read};
use charter_kernel::Problem;
use serde_json::Value;

const GOOD: &str = include_str!("good.yaml");

fn document(source: &str) -> Document {
    read(source, "t.yaml", &ReadOptions::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the source of the first occurrence of `part` in the text at a pointer.
fn within<'s>(document: &'s Document, pointer: &str, part: &str) -> &'s str {
    let core = serde_json::to_value(&document.definition).unwrap();
    let text = core.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {pointer}"));
    let start = text.find(part).unwrap();
    let span = document.span_within(pointer, (start, start + part.len()));
    &document.source[span.start..span.end]
}

#[test]
fn expressions_have_places_in_every_quoting_style() {
    let source = r#"
charter: 1
id: t
context:
  plain: = aé.b + cé.d
  single: '= x == ''it''s'' + wanted'
  double: "= x == \"\u00e9\u20ac\uD83D\uDE00\n\" + wanted"
  folded: >-
    = one +
    two + wanted
  block: |
    = one +
      two +
    wanted
  long: = one
    + two
    + wanted
  joined: "= one \
    wanted"
guards:
  bare: "x\t+ wanted"
states:
  a: {after: {"= duration('1s')": a}, always: {when: "= wanted"}}
"#;
    let document = document(source);
    for variable in ["single", "double", "folded", "block", "long", "joined"] {
        assert_eq!(within(&document, &format!("/root/context/{variable}/cel"), "wanted"), "wanted", "{variable}");
    }
    assert_eq!(within(&document, "/root/context/plain/cel", "cé.d"), "cé.d");
    assert_eq!(within(&document, "/root/context/single/cel", "'it's'"), "''it''s''");
    assert_eq!(within(&document, "/guards/bare/cel", "wanted"), "wanted");
    assert_eq!(within(&document, "/root/state/states/a/after/0/delay/cel", "'1s'"), "'1s'");
    assert_eq!(within(&document, "/root/state/states/a/always/0/when", "wanted"), "wanted");
    let span = document.span("/root/context/plain/cel");
    assert_eq!(&source[span.start..span.end], "aé.b + cé.d");
    let span = document.span("/root/context/single");
    assert_eq!(&source[span.start..span.end], "x == ''it''s'' + wanted");
}

#[test]
fn expressions_in_json_have_places() {
    let source = "{\"charter\": 1, \"id\": \"t\",\n\t\"output\": \"= a \\u0026\\u0026 \\\"q\\\" == wanted\"}";
    let document = read(source, "t.json", &ReadOptions::default()).unwrap();
    assert_eq!(within(&document, "/root/output/cel", "wanted"), "wanted");
    assert_eq!(within(&document, "/root/output/cel", "&&"), "\\u0026\\u0026");
}

/// Collects the pointers of all expressions.
fn expressions(value: &Value, pointer: &str, found: &mut Vec<(String, String)>) {
    let is_cel = |key: &str| ["cel", "when", "assert", "approves", "not_by", "in"].contains(&key);
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| expressions(item, &format!("{pointer}/{index}"), found))
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let pointer = charter_expr::pointer::join(pointer, key);
                match value {
                    Value::String(text) if is_cel(key) => found.push((pointer, text.clone())),
                    value => expressions(value, &pointer, found),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_expression_of_a_large_charter_has_a_place() {
    let document = document(GOOD);
    let mut found = Vec::new();
    expressions(&serde_json::to_value(&document.definition).unwrap(), "", &mut found);
    assert!(found.len() > 25, "{}", found.len());
    for (pointer, text) in found {
        let first: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
        let last: String = text.chars().rev().take(3).collect::<Vec<_>>().into_iter().rev().collect();
        assert_eq!(within(&document, &pointer, &first), first, "{pointer}");
        let span = document.span_within(&pointer, (text.len() - last.len(), text.len()));
        assert_eq!(&document.source[span.start..span.end], last, "{pointer}");
    }
}

#[test]
fn every_recorded_pointer_exists_in_the_definition() {
    let document = document(GOOD);
    let core = serde_json::to_value(&document.definition).unwrap();
    let mut count = 0;
    for pointer in document.pointers() {
        // The definition omits defaults such as `type: atomic`.
        assert!(core.pointer(&pointer).is_some() || pointer.ends_with("/kind"), "{pointer}");
        count += 1;
    }
    assert!(count > 200, "{count}");
}

#[test]
fn a_problem_of_the_kernel_is_shown_in_the_source() {
    let document =
        document("charter: 1\nid: t\nstates:\n  idle:\n    on:\n      GO: {target: nowhere, when: \"a && bad\"}\n");
    let problem = |at: &str, span| Problem {
        code: "some-code",
        at: at.to_owned(),
        span,
        message: "is wrong".to_owned(),
        help: Some("do better".to_owned()),
    };
    let shown = document.diagnose(&problem("/root/state/states/idle/on/0/transitions/0/when", Some((5, 8))));
    assert_eq!((shown.line, shown.column, shown.path.as_str()), (6, 41, "states.idle.on.GO.when"));
    insta::assert_snapshot!(shown.render(&document.source, &document.name, false), @r#"
    error[some-code]: is wrong
     --> t.yaml:6:41
      |
    6 |       GO: {target: nowhere, when: "a && bad"}
      |                                         ^^^
      |
      = help: do better
    "#);
    let missing = document.diagnose(&problem("/root/state/states/idle/on/0/transitions/0/target/0", None));
    assert_eq!((missing.line, missing.column, missing.path.as_str()), (6, 20, "states.idle.on.GO.target"));
    // A part without a place of its own has the place of its nearest ancestor.
    let state = document.diagnose(&problem("/root/state/states/idle/kind/what/ever", None));
    assert_eq!((state.line, state.column, state.path.as_str()), (4, 3, "states.idle"));
    assert_eq!(
        (document.diagnose(&problem("", None)).line, document.diagnose(&problem("/no/such/~thing", None)).line),
        (1, 1)
    );
}
