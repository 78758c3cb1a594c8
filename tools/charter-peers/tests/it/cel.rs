//! Compares generated expressions with the `cel` crate, where that crate follows the CEL
//! specification.

use ::cel::objects::Value as Theirs;
use charter_expr::{Env, Fuel, Program, RootId, Scope, Type, Value};
use proptest::prelude::*;

struct Data;

const X: i64 = 7;

impl<'a> Scope<'a> for Data {
    fn root(&self, id: RootId) -> Option<Value<'a>> {
        match id.0 {
            0 => Some(Value::Int(X)),
            1 => Some(Value::str("abc")),
            _ => Some(Value::list((1..4).map(Value::Int).collect())),
        }
    }
}

/// Evaluates an expression with our implementation; returns a comparable form, or `None` for any
/// error.
fn ours(source: &str) -> Option<String> {
    let mut env = Env::new();
    env.root("x", Type::Int);
    env.root("s", Type::String);
    env.root("l", Type::list(Type::Int));
    let program = Program::compile(source, &env).unwrap_or_else(|e| panic!("{source}: {e}"));
    program.eval(&Data, &mut Fuel::new(1_000_000)).ok().map(|v| format!("{v:?}"))
}

/// Like [`ours`], with the peer, whose parser needs more stack than a test thread has.
fn theirs(source: &str) -> Option<String> {
    let source = source.to_owned();
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(move || evaluated_by_peer(&source));
    thread.unwrap().join().unwrap()
}

fn evaluated_by_peer(source: &str) -> Option<String> {
    fn show(v: &Theirs) -> String {
        match v {
            Theirs::Int(i) => i.to_string(),
            Theirs::UInt(u) => format!("{u}u"),
            Theirs::Float(d) => format!("{d:?}"),
            Theirs::Bool(b) => b.to_string(),
            Theirs::String(s) => format!("{:?}", s.as_str()),
            Theirs::List(l) => format!("[{}]", l.iter().map(show).collect::<Vec<_>>().join(", ")),
            other => format!("{other:?}"),
        }
    }
    let program = ::cel::Program::compile(source).unwrap_or_else(|e| panic!("{source}: {e}"));
    let mut scope = ::cel::Context::default();
    scope.add_variable("x", X).unwrap();
    scope.add_variable("s", "abc").unwrap();
    scope.add_variable("l", vec![1_i64, 2, 3]).unwrap();
    program.execute(&scope).ok().map(|v| show(&v))
}

fn int() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        (0_i64..10).prop_map(|i| i.to_string()),
        Just("x".to_owned()),
        Just("9223372036854775807".to_owned()),
        Just("size(l)".to_owned()),
        Just("l[1]".to_owned()),
        Just("size(s)".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*", "/", "%"]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} < {b} ? {b} : {c})")),
            inner.clone().prop_map(|a| format!("-({a})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("size([{a}, {b}])")),
        ]
    })
    .boxed()
}

fn text() -> BoxedStrategy<String> {
    let leaf = prop_oneof![Just("s".to_owned()), "[a-c]{0,3}".prop_map(|t| format!("'{t}'"))];
    (leaf.clone(), leaf, any::<bool>()).prop_map(|(a, b, both)| if both { format!("({a} + {b})") } else { a }).boxed()
}

fn boolean() -> BoxedStrategy<String> {
    let comparison = (int(), prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]), int())
        .prop_map(|(a, op, b)| format!("({a} {op} {b})"));
    let texts = (text(), prop::sample::select(vec!["<", "==", "!=", ">="]), text())
        .prop_map(|(a, op, b)| format!("({a} {op} {b})"));
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("false".to_owned()),
        comparison,
        texts,
        (int(), int()).prop_map(|(a, b)| format!("({a} in [{b}, 3])")),
        (text(), text()).prop_map(|(a, b)| format!("{a}.startsWith({b})")),
        (text(), text()).prop_map(|(a, b)| format!("{a}.contains({b})")),
        int().prop_map(|a| format!("l.all(i, i < {a})")),
        int().prop_map(|a| format!("l.exists(i, i * 2 == {a})")),
        int().prop_map(|a| format!("l.filter(i, i != {a}) == [1, 3]")),
        int().prop_map(|a| format!("(l.map(i, i + {a}) == [{a} + 1, 9, 10])")),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_the_cel_crate(source in prop_oneof![int(), boolean(), text()]) {
        prop_assert_eq!(ours(&source), theirs(&source), "{}", source);
    }
}
