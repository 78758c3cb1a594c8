//! Expressions.

use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value, check, parse};
use serde_json::{Value as Json, json};

struct Data(Json);

impl<'a> Scope<'a> for &'a Data {
    fn root(&self, _: RootId) -> Option<Value<'a>> {
        Some(Value::from_json(&self.0))
    }
}

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(ast) = parse(text) else {
        return;
    };
    let written = ast.unparse();
    match parse(&written) {
        Ok(again) => assert_eq!(again, ast, "{written}"),
        // The written form has parentheses and spaces, so it can be longer than the limit.
        Err(e) => assert!(written.len() > charter_expr::MAX_SOURCE_LENGTH, "{e}: {written}"),
    }
    let _ = (ast.reads(), ast.calls(), ast.roots().count());
    let mut env = Env::new();
    env.root("x", Type::Dyn);
    let _ = check(&ast, &env);
    let Ok(program) = Program::compile_lenient(&ast, &env) else {
        return;
    };
    let data = Data(json!({"a": [1, 2.5, "text", null, true], "b": {"c": {"d": -7}}, "s": "2026-01-01T00:00:00Z"}));
    let mut results = (0..2).map(|_| {
        let value = program.eval(&&data, &mut Fuel::default());
        value.map(|v| format!("{v:?}")).map_err(|e| e.to_string())
    });
    assert_eq!(results.next(), results.next(), "not deterministic");
}
