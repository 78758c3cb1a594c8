//! Tests of the findings of the checker, one line each.

use std::collections::BTreeMap;

use super::check;
use crate::{Env, Field, Severity, Type, parse};

fn env() -> Env {
    let decision = Type::object([
        ("confidence", Field::required(Type::Double)),
        ("note", Field::optional(Type::String)),
        ("tags", Field::required(Type::list(Type::String))),
    ]);
    let mut env = Env::new();
    env.root(
        "context",
        Type::object([
            ("decision", Field::required(decision.clone())),
            ("maybe", Field::required(Type::union([decision, Type::Null]))),
            ("count", Field::required(Type::Int)),
            ("spent", Field::required(Type::Number)),
            ("name", Field::required(Type::String)),
            ("any", Field::required(Type::Dyn)),
        ]),
    );
    let known = BTreeMap::from([("amount".to_owned(), Field::required(Type::Int))]);
    let open = Type::Object { fields: known.into(), open: true };
    env.root("open", open.clone());
    let other = BTreeMap::from([("amount_id".to_owned(), Field::required(Type::Int))]);
    env.root("either", Type::union([open, Type::Object { fields: other.into(), open: true }]));
    env.function("in", vec![Type::String], Type::Bool);
    env
}

/// Returns the findings as `E position: message (help)`, joined with newlines.
#[track_caller]
fn finds(source: &str, expected: &str) {
    let env = env();
    let (_, findings) = check(&parse(source).unwrap(), &env);
    let shown: Vec<String> = findings
        .iter()
        .map(|f| {
            let letter = if f.severity == Severity::Error { 'E' } else { 'W' };
            let help = f.help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default();
            format!("{letter} `{}`: {}{help}", f.span.of(source), f.message)
        })
        .collect();
    assert_eq!(shown.join("\n"), expected, "{source}");
}

#[track_caller]
fn gives(source: &str, ty: Type) {
    let (found, findings) = check(&parse(source).unwrap(), &env());
    assert_eq!(findings, vec![], "{source}");
    assert_eq!(found, ty, "{source}");
}

#[test]
fn what_is_right_has_no_findings_and_a_type() {
    gives("context.decision.confidence >= 0.85 && !in('a.b')", Type::Bool);
    gives("context.count + 1", Type::Int);
    gives("context.count * 1.5 + 1", Type::Double);
    gives("context.decision.tags.map(t, t.size())", Type::list(Type::Int));
    gives("context.decision.tags.exists(i, t, i > 1 && t == 'x')", Type::Bool);
    gives("math.greatest(context.count, 3)", Type::Int);
    gives("open.what.ever + 1", Type::Dyn);
    gives("open.what.ever * 0.5", Type::Double);
    gives("1.5 - open.what.ever", Type::Double);
    gives("now_is_unknown || true ? 1 : 2".replace("now_is_unknown", "context.any").as_str(), Type::Int);
    gives("double(context.spent) * 1.5", Type::Double);
    gives("open.amount > 1 && open.other == 2", Type::Bool);
    gives("cel.bind(x, context.count, x * x)", Type::Int);
    gives("{'a': 1, 'b': 2}.transformMap(k, v, k + string(v))", Type::map(Type::String, Type::String));
    gives("timestamp('2026-01-01T00:00:00Z') - duration('1h')", Type::Timestamp);
    gives("type(1) == int", Type::Bool);
}

#[test]
fn numbers_without_a_declared_type() {
    let value = "has no declared type: it is an int or a double by its value";
    finds("context.spent + 1", &format!("W `context.spent`: `context.spent` {value}"));
    finds("2 * context.any.total", &format!("W `context.any.total`: `context.any.total` {value}"));
    let quotient = "and the quotient of two ints is a whole number";
    finds("context.count / context.spent", &format!("W `context.spent`: `context.spent` {value}, {quotient}"));
    finds("context.any.list.map(x, x / 2)", &format!("W `x`: `x` {value}, {quotient} (declare the type of the items)"));
    for fine in [
        "context.count / 2",
        "context.decision.confidence / 2",
        "context.any + 'text'",
        "context.any + context.any",
        "open.other + 1",
        "double(context.spent) / 2",
        "context.spent > 1",
    ] {
        finds(fine, "");
    }
}

#[test]
fn misspelt_names() {
    finds("contxt.count > 1", "E `contxt`: unknown name `contxt` (did you mean `context`?)");
    finds(
        "context.decision.confidnce > 1",
        "E `.confidnce`: there is no field `confidnce` in `context.decision` (did you mean `confidence`?)",
    );
    finds("context['cuont'] > 1", "E `['cuont']`: there is no field `cuont` in `context` (did you mean `count`?)");
    finds(
        "context.name.startWith('x')",
        "E `.startWith('x')`: there is no function `startWith` (did you mean `startsWith`?)",
    );
    finds("length(context.name) > 1", "E `length(context.name)`: there is no function `length`");
    finds("open.ammount > 1", "W `.ammount`: `ammount` is not a declared field of `open` (did you mean `amount`?)");
    finds(
        "has(context.decision.nte)",
        "W `context.decision.nte`: `has` is always false: there is no field `nte` in `context.decision` (did you mean `note`?)",
    );
}

#[test]
fn a_field_of_one_alternative_is_declared() {
    gives("has(either.amount_id) ? either.amount_id == 1 : either.amount == 1", Type::Bool);
}

#[test]
fn wrong_types() {
    finds("'a' + 1", "E `'a' + 1`: no such overload: `+` with (string, int) (convert with `string(x)`)");
    finds(
        "context.decision.confidence % 2",
        "E `context.decision.confidence % 2`: no such overload: `%` with (double, int) (convert with `int(x)`)",
    );
    finds("context.name ? 1 : 2", "E `context.name`: a condition needs a bool, but this is a string");
    finds("context.count && true", "E `context.count`: `&&` needs a bool, but this is an int");
    finds(
        "context.name.all(x, true)",
        "E `context.name.all(x, true)`: `all` needs a list or a map, but this is a string",
    );
    finds("size(1)", "E `size(1)`: no such overload: `size` with (int)");
    finds("in(1)", "E `in(1)`: `in` takes a string here, not an int");
    finds("in('a', 'b')", "E `in('a', 'b')`: `in` takes 1 argument, not 2");
    finds("'abc'.substring()", "E `'abc'.substring()`: `substring` takes 1 to 2 arguments, not 0");
    finds("context.count < context.name", "E `context.count < context.name`: no such overload: `<` with (int, string)");
    finds("context.name == 1", "W `context.name == 1`: `==` is always false: string and int are never equal");
    finds(
        "timestamp('yesterday')",
        "E `'yesterday'`: `yesterday` is not a timestamp (write it as RFC 3339, e.g. `2026-01-31T23:59:59Z`)",
    );
    finds("context.name.matches('(')", "E `'('`: `(` is not a regular expression (the syntax is RE2's)");
}

#[test]
fn fields_that_may_be_missing() {
    let warning = "W `.note`: the field `note` of `context.decision` may be missing (check first: `has(context.decision.note) && ...`)";
    finds("context.decision.note == 'x'", warning);
    finds("has(context.decision.note) && context.decision.note == 'x'", "");
    finds("context.decision.note == 'x' && has(context.decision.note)", "");
    finds("!has(context.decision.note) || context.decision.note == 'x'", "");
    finds("has(context.decision.note) ? context.decision.note : ''", "");
    finds("has(context.decision.note) ? '' : context.decision.note", warning);
    finds("'note' in context.decision && context.decision.note == 'x'", "");
    finds("[context.decision].filter(d, has(d.note) && d.note != '')", "");
}

#[test]
fn values_that_may_be_null() {
    let warning = "W `.confidence`: for some values: `context.maybe` is a null, which has no fields (check `context.maybe != null` first)";
    finds("context.maybe.confidence > 1", warning);
    finds("context.maybe != null && context.maybe.confidence > 1", "");
    finds("context.maybe == null || context.maybe.confidence > 1", "");
    finds("context.maybe != null ? context.maybe.confidence : 0", "");
    finds("null == context.maybe ? 0 : context.maybe.confidence", "");
}
