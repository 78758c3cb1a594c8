//! Hostile inputs: each evaluation ends quickly with an error or a value, on a small stack and
//! within its fuel.

use std::time::{Duration, Instant};

use charter_expr::{
    Env, ErrorKind, EvalError, Fuel, MAX_DEPTH, MAX_SOURCE_LENGTH, Program, RootId, Scope, Type, Value, check, parse,
};
use cpu_time::ThreadTime;
use serde_json::{Value as Json, json};

struct Data(Json);

impl<'a> Scope<'a> for &'a Data {
    fn root(&self, _: RootId) -> Option<Value<'a>> {
        Some(Value::from_json(&self.0))
    }
}

fn env() -> Env {
    let mut env = Env::new();
    env.root("x", Type::Dyn);
    env
}

/// Runs `f` on a thread with a stack of 1 MiB, as in a wasm module, and asserts that it takes
/// little time.
fn small_stack(f: impl FnOnce() + Send + 'static) {
    let timed = || {
        let begin = ThreadTime::now();
        f();
        begin.elapsed()
    };
    let took = std::thread::Builder::new().stack_size(1 << 20).spawn(timed).unwrap().join().unwrap();
    assert!(took < Duration::from_secs(10), "took {took:?}");
}

/// Runs all operations on a source text; returns the result of the evaluation, if the text
/// compiles.
fn everything(source: &str, data: Json) -> Option<Result<String, EvalError>> {
    let ast = parse(source).ok()?;
    let _ = format!("{ast:?}").len();
    assert_eq!(parse(&ast.unparse()).ok().as_ref().unwrap_or(&ast), &ast);
    let _ = (ast.reads(), ast.calls(), ast.roots().count());
    let _ = ast.rename_roots(|name| Some(vec!["context".to_owned(), name.to_owned()]));
    let env = env();
    let _ = check(&ast, &env);
    let program = Program::compile_lenient(&ast, &env).unwrap();
    let data = Data(data);
    let mut fuel = Fuel::default();
    Some(program.eval(&&data, &mut fuel).map(|v| v.type_name().to_owned()))
}

#[test]
fn long_texts_are_refused_at_once() {
    for source in ["[".repeat(1 << 20), "1+".repeat(1 << 20), "!".repeat(1 << 20), "(".repeat(MAX_SOURCE_LENGTH + 1)] {
        let error = parse(&source).unwrap_err();
        assert!(error.message.contains("the limit is 4096"), "{error}");
    }
}

#[test]
fn deep_texts_are_refused() {
    small_stack(|| {
        for open in [
            "(",
            "[",
            "{",
            "f(",
            "x.f(",
            "x[",
            "!(",
            "-(",
            "[[",
            "{1:",
            "1+(",
            "a?(",
            "has(",
            "x.all(y,",
            "cel.bind(a,",
        ] {
            let source = open.repeat(MAX_SOURCE_LENGTH / open.len());
            assert!(parse(&source).is_err(), "{open}");
        }
        let error = parse(&"(".repeat(MAX_SOURCE_LENGTH)).unwrap_err();
        assert!(error.message.contains("nested deeper than 64"), "{error}");
    });
}

#[test]
fn the_deepest_text_fits_a_small_stack() {
    let nested = |open: &str, close: &str, core: &str, n: usize| format!("{}{core}{}", open.repeat(n), close.repeat(n));
    small_stack(move || {
        let n = MAX_DEPTH;
        let paren = nested("(", ")", "1", n);
        assert_eq!(everything(&paren, json!(1)).unwrap().unwrap(), "int");
        assert!(parse(&nested("(", ")", "1", n + 1)).is_err());
        assert_eq!(everything(&nested("[", "]", "1", n), json!(1)).unwrap().unwrap(), "list");
        assert_eq!(everything(&nested("{1:", "}", "1", n), json!(1)).unwrap().unwrap(), "map");
        // Every level of precedence in every level of nesting.
        let all = nested("false ? x : x || x && x < x + x * !(", ")", "x", n - 1);
        assert!(everything(&all, json!(true)).is_some());
        let evaluated = nested("!x || x && x == !(", ")", "x", n - 1);
        assert_eq!(everything(&evaluated, json!(true)).unwrap().unwrap(), "bool");
        let sums = nested("1 < 2 && 3 > 1 - 1 * (true ? 1 : 2) ? 1 + 0 * (", ") : 2", "x", (n - 1) / 2);
        assert_eq!(everything(&sums, json!(1)).unwrap().unwrap(), "int");
        let macros = nested("[1].all(y, ", ")", "true", n - 1);
        assert_eq!(everything(&macros, json!(1)).unwrap().unwrap(), "bool");
        let binds = nested("cel.bind(y, 1, ", ")", "y", n - 1);
        assert_eq!(everything(&binds, json!(1)).unwrap().unwrap(), "int");
    });
}

#[test]
fn long_chains_do_not_nest() {
    small_stack(|| {
        let chain = |first: &str, link: &str| {
            let n = (MAX_SOURCE_LENGTH - first.len()) / link.len();
            format!("{first}{}", link.repeat(n))
        };
        for (first, link) in [
            ("1", "+1"),
            ("1", "*1"),
            ("true", "||true"),
            ("true", "&&true"),
            ("1", "<1"),
            ("x", ".a"),
            ("x", "[0]"),
            ("x", ".size()"),
            ("[]", ".map(y,y)"),
            ("1", "-1"),
        ] {
            assert!(everything(&chain(first, link), json!({})).is_some(), "{first}{link}");
        }
        assert!(everything(&format!("{}x", "true?1:".repeat(580)), json!(1)).is_some());
        assert!(everything(&format!("{}true", "!".repeat(4000)), json!(1)).is_some());
        assert!(everything(&format!("{}x", "-".repeat(4000)), json!(1)).is_some());
    });
}

#[track_caller]
fn runs_dry(source: &str, data: Json) {
    let program = Program::compile(source, &env()).unwrap();
    let data = Data(data);
    let start = Instant::now();
    let error = program.eval(&&data, &mut Fuel::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfFuel, "{source}: {error}");
    assert!(start.elapsed() < Duration::from_secs(2), "{source}: {:?}", start.elapsed());
}

#[test]
fn work_is_bounded_by_fuel() {
    let many: Vec<i64> = (0..100_000).collect();
    runs_dry("x.all(a, x.all(b, x.all(c, a + b + c >= 0)))", json!(many));
    runs_dry("x.map(a, x)", json!(many));
    runs_dry("x + x == x", json!(many));
    runs_dry("x == x", json!(many));
    runs_dry("-1 in x", json!(many));
    runs_dry("math.greatest(x) > 0", json!(many));
    let doubling = (0..40).fold("a".to_owned(), |body, _| format!("cel.bind(a, a + a, {body})"));
    runs_dry(&format!("cel.bind(a, x, {doubling})"), json!("0123456789abcdef"));
    let doubling = (0..40).fold("a".to_owned(), |body, _| format!("cel.bind(a, a + a, {body})"));
    runs_dry(&format!("cel.bind(a, x, {doubling})"), json!([1, 2, 3]));
    let text = "a".repeat(1 << 20);
    for source in [
        "x + x == x",
        "x == x + ''",
        "x < x",
        "x.contains('b')",
        "x.size() > 0",
        "x.replace('a', 'bb') == ''",
        "x.split('') == []",
        "x.matches('a*b')",
        "'%s %s'.format([x, x]) == ''",
        "'%x'.format([x]) == ''",
        "bytes(x) == b''",
        "x.upperAscii() == x",
        "x.reverse() == x",
        "x in {x: 1}",
        "strings.quote(x) == x",
    ] {
        runs_dry(source, json!(text.as_str()));
    }
    let fields: serde_json::Map<String, Json> = (0..100_000).map(|i| (format!("k{i}"), json!(i))).collect();
    runs_dry("x.all(k, true)", Json::Object(fields.clone()));
    runs_dry("'%s'.format([x]) == ''", Json::Object(fields));
}

#[test]
fn what_is_small_because_it_is_shared_stays_small() {
    small_stack(|| {
        // Each level contains the previous one twice, so walking all of them would visit 2^40
        // leaves.
        for pair in [
            "[a, a]",
            "{'x': a, 'y': a}",
            "[a, [a]]",
            "[{'x': a}, a]",
            "[a].map(b, [b, b])",
            "true ? [a] : [[a]]",
            "[a] + [[a]]",
        ] {
            let source = (0..40).fold("a".to_owned(), |body, _| format!("cel.bind(a, {pair}, {body})"));
            let source = format!("cel.bind(a, x, {source})");
            let ast = parse(&source).unwrap();
            let _ = check(&ast, &env());
            let program = Program::compile(ast, &env()).unwrap();
            let data = Data(json!(1));
            let value = program.eval(&&data, &mut Fuel::default()).unwrap();
            let kind = value.to_json().map_err(|e| e.kind());
            assert!(kind.is_ok() || matches!(kind, Err(ErrorKind::TooLarge | ErrorKind::TooDeep)), "{pair}");
            let _ = charter_expr::typed::encode(&value);
            assert!(format!("{value:?}").len() < 100_000);
            let owned = value.clone().into_owned();
            assert!(format!("{owned:?}").len() < 100_000);
            let equal = Program::compile(format!("cel.bind(a, x, {source}) == 1").as_str(), &env()).unwrap();
            let _ = equal.eval(&&data, &mut Fuel::default());
        }
    });
}

#[test]
fn nothing_absorbs_an_empty_tank() {
    let many: Vec<i64> = (0..100_000).collect();
    runs_dry("x.all(a, true) || true", json!(many));
    runs_dry("true && x.exists(a, false) && false", json!(many));
    runs_dry("[1, 2].exists(i, x.all(a, true) || i == 2)", json!(many));
    runs_dry("[1, 2].exists(i, i == 1 ? x.all(a, true) : true)", json!(many));
}

#[test]
fn regular_expressions_are_bounded() {
    for source in [
        r"x.matches('(a{1000}){1000}')",
        r"x.matches('(a*)*b')",
        r"x.matches('(\\w{100}){10}')",
        r"x.matches('((((((((((a?){9}){9}){9}){9}){9}){9}){9}){9}){9}){9}')",
        r"x.matches('[')",
    ] {
        let start = Instant::now();
        let _ = everything(source, json!("a".repeat(10_000)));
        assert!(start.elapsed() < Duration::from_secs(2), "{source}: {:?}", start.elapsed());
    }
}

#[test]
fn deep_data_is_an_error() {
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = json!([deep]);
    }
    let program = Program::compile("x == x", &env()).unwrap();
    let data = Data(deep.clone());
    let error = program.eval(&&data, &mut Fuel::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooDeep);
    assert_eq!(Value::from_json(&deep).to_json().unwrap_err().kind(), ErrorKind::TooDeep);
    assert!(charter_expr::json::canonical(&mut deep.clone()).is_err());
    charter_expr::json::normalize(&mut deep);
}
