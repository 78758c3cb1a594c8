//! Tests of the results of expressions, one line each. The public conformance cases are in
//! `tests/it/conformance.rs`.

use serde_json::json;

use crate::{Env, ErrorKind, EvalError, Fuel, FunctionId, Object, Program, RootId, Scope, Str, Type, Value};

/// A host with one JSON root, one host object, and the function `in`.
struct Host(serde_json::Value, Actors);

#[derive(Debug)]
struct Actors;

impl Object for Actors {
    fn get(&self, key: &str) -> Option<Value<'_>> {
        match key {
            "root" => Some(Value::from("idle")),
            "child" => Some(Value::from(2)),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<Str<'_>> {
        vec!["root".into(), "child".into()]
    }
}

impl<'a> Scope<'a> for &'a Host {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        match id.0 {
            0 => Some(Value::from_json(&self.0)),
            1 => Some(Value::object(&self.1)),
            _ => None,
        }
    }

    fn call(&self, _: FunctionId, args: &[Value<'a>], fuel: &mut Fuel) -> Result<Value<'a>, EvalError> {
        fuel.spend(5)?;
        match args {
            [Value::String(s)] => Ok(Value::Bool(s.as_str() == "idle")),
            _ => Err(EvalError::new(ErrorKind::Host, "a state path is a string")),
        }
    }
}

fn env() -> Env {
    let mut env = Env::new();
    env.root("context", Type::Dyn);
    env.root("actors", Type::Dyn);
    env.root("nothing", Type::Dyn);
    env.function("in", vec![Type::String], Type::Bool);
    env
}

fn host() -> Host {
    let data = json!({
        "n": 2.0, "big": 9_007_199_254_740_993_i64, "half": 0.5, "s": "text", "null": null,
        "list": [3, 1, 2], "map": {"b": 1, "a": {"deep": true}}, "a b": 1
    });
    Host(data, Actors)
}

#[track_caller]
fn gives(source: &str, expected: &str) {
    let (env, host) = (env(), host());
    let program = Program::compile_lenient(source, &env).unwrap();
    let result = program.eval(&&host, &mut Fuel::default());
    let shown = match result {
        Ok(v) => format!("{v:?}"),
        Err(e) => format!("{} at `{}`: {e}", e.kind().code(), e.span().unwrap_or_default().of(source)),
    };
    assert_eq!(shown, expected, "{source}");
}

#[test]
fn json_numbers_are_ints_by_value() {
    gives("context.n + 1", "3");
    gives("type(context.big)", "double");
    gives("context.half * 2.0", "1.0");
    gives("context.n == 2.0 && context.n == 2u", "true");
}

#[test]
fn an_int_and_a_double_give_a_double() {
    gives("context.n * 1.5", "3.0");
    gives("1.5 * 2 + 1", "4.0");
    gives("5 / 2.0", "2.5");
    gives("5.0 - 2", "3.0");
    gives("5.0 % 2", "no-such-overload at `5.0 % 2`: no such overload: double `%` int (help: convert with `int(x)`)");
    gives(
        "1u + 1.0",
        "no-such-overload at `1u + 1.0`: no such overload: uint `+` double (help: convert with `double(x)`)",
    );
}

#[test]
fn what_is_missing_is_an_error() {
    gives("context.absent", "no-such-field at `.absent`: no such field `absent`");
    gives("context.map.a.deep.er", "no-such-overload at `.er`: no such overload: the field `er` of a bool");
    gives("context['absent']", "no-such-key at `['absent']`: no such key: `absent`");
    gives("context.list[3]", "index-out-of-range at `[3]`: the index 3 is out of range: the list has 3 items");
    gives("context.list[-1]", "index-out-of-range at `[-1]`: the index -1 is out of range: the list has 3 items");
    gives("has(context.map.c) || has(context.map.a)", "true");
    gives("nothing.at.all", "unbound at `nothing.at.all`: `nothing` has no value here");
    gives("unknown", "unbound at `unknown`: `unknown` has no value here");
    gives("context.`a b`", "1");
}

#[test]
fn errors_are_absorbed_by_what_decides() {
    for source in [
        "true || context.absent",
        "context.absent || true",
        "!(context.absent && false)",
        "[1, 2].exists(x, x == 2 || context.absent)",
        "[0, 2].exists(x, 4 / x == 2)",
        "!([0, 1].all(x, 4 / x == 2))",
    ] {
        gives(source, "true");
    }
    gives("false || context.absent", "no-such-field at `.absent`: no such field `absent`");
    gives("[0].all(x, 1 / x == 1)", "divide-by-zero at `1 / x`: division by zero");
    gives(
        "[1].all(x, 'a')",
        "no-such-overload at `'a'`: no such overload: the condition of `all` needs a bool, but this is a string",
    );
}

#[test]
fn maps_are_walked_in_key_order() {
    gives("context.map.map(k, k)", "[\"a\", \"b\"]");
    gives("{'b': 1, 2u: 2, true: 3, 'a': 4, 1: 5}.map(k, k)", "[1, 2u, true, \"a\", \"b\"]");
    gives("actors.map(k, k)", "[\"child\", \"root\"]");
    gives("actors.transformList(k, v, v)", "[2, \"idle\"]");
    gives("size(actors) == 2 && 'root' in actors && actors.root == 'idle' && !has(actors.x)", "true");
    gives("{1: 'a', 1u: 'b'}", "repeated-key at `1: 'a', 1u: 'b'`: duplicate key `1` in a map");
    gives(
        "{1.5: 2}",
        "no-such-overload at `1.5`: a double cannot be the key of a map (help: keys are strings, ints, uints and bools)",
    );
}

#[test]
fn macros_and_their_variables() {
    gives("context.list.filter(x, x > 1).map(x, x * 2)", "[6, 4]");
    gives("context.list.map(x, x > 1, x * 2)", "[6, 4]");
    gives("context.list.exists_one(x, x == 1)", "true");
    gives("context.list.transformMap(i, v, v > 1, v * 10)", "{0: 30, 2: 20}");
    gives("{'a': 1}.transformMapEntry(k, v, {string(v): k})", "{\"1\": \"a\"}");
    gives(
        "[1, 2].transformMapEntry(i, v, {'x': v})",
        "repeated-key at `.transformMapEntry(i, v, {'x': v})`: duplicate key `\"x\"` in a map",
    );
    gives("[1, 2].map(x, [3, 4].map(y, x * y))", "[[3, 4], [6, 8]]");
    gives("[1].map(context, context + 1)", "[2]");
    gives("[1].map(context, .context.n)", "[2]");
    gives("cel.bind(x, 2, cel.bind(y, x * x, y + x))", "6");
    gives("[[1], 2].exists(x, x.all(y, y == 1))", "true");
    // The variables of a failed macro are removed.
    gives("[0, 1].exists(x, [0, 1].map(y, 1 / y) == [x] || x == 1)", "true");
}

#[test]
fn the_host_is_asked() {
    gives("in('idle') && !in('busy')", "true");
    gives("in(1)", "host at `in(1)`: a state path is a string");
    gives("math.greatest(1, 2) == 2 && base64.encode(b'a') == 'YQ=='", "true");
    gives("f(1) || true", "true");
    gives("f(1)", "unbound at `f(1)`: there is no function `f`");
}

#[test]
fn fuel_is_spent_exactly() {
    let (env, host) = (env(), host());
    let used = |source: &str| {
        let mut fuel = Fuel::new(1000);
        Program::compile(source, &env).unwrap().eval(&&host, &mut fuel).unwrap();
        1000 - fuel.left()
    };
    assert_eq!(used("1"), 1);
    assert_eq!(used("1 + 2"), 3);
    assert_eq!(used("context.map.a.deep"), 4);
    assert_eq!(used("in('idle')"), 7);
    // One step each for the chain, the list, its items and the link, and two for each iteration.
    assert_eq!(used("[1, 2, 3].all(x, true)"), 12);
    let program = Program::compile("1 + 2", &env).unwrap();
    assert!(program.eval(&(), &mut Fuel::new(3)).is_ok());
    let error = program.eval(&(), &mut Fuel::new(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfFuel);
}

#[test]
fn what_was_read_can_be_shown() {
    let (env, host) = (env(), host());
    let source =
        "context.map.a.deep && context.list[0] > 2 && has(context.map.x) || context['s'] in ['a'] || actors.root == ''";
    let program = Program::compile(source, &env).unwrap();
    let shown: Vec<String> = program
        .reads()
        .iter()
        .map(|path| match path.eval(&&host) {
            Ok(value) => format!("{path} = {value:?}"),
            Err(e) => format!("{path}: {e}"),
        })
        .collect();
    let expected = [
        "context.map.a.deep = true",
        "context.list[0] = 3",
        "context.map.x: no such field `x`",
        "context[\"s\"] = \"text\"",
        "actors.root = \"idle\"",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_program_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Program>();
    shared::<Env>();
    shared::<EvalError>();
}
