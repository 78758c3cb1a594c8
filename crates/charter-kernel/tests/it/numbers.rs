//! Numbers have the type of their place.

use std::sync::Arc;

use charter_kernel::Machine;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::common::{Run, machine};

/// A charter that logs the value of an expression for each event.
fn logs(expression: &str) -> Arc<Machine> {
    Arc::new(machine(&format!(
        "
input: {{type: object, properties: {{rate: {{type: number}}}}}}
types:
  context: {{type: object, properties: {{total: {{type: number}}, free: {{}}, tree: {{$ref: '#/types/tree'}}}}}}
  tree: {{type: object, properties: {{n: {{type: number}}, inner: {{type: array, items: {{$ref: '#/types/tree'}}}}}}}}
context: {{total: 0, count: 0, share: 0.0, free: 0, tree: {{}}, nested: {{sum: 0.0, list: [1.5]}}}}
events:
  E:
    data:
      type: object
      properties:
        d: {{type: number}}
        i: {{type: integer}}
        list: {{type: array, items: {{type: number}}}}
        either: {{anyOf: [{{type: number}}, {{type: 'null'}}]}}
        unlike: {{anyOf: [{{type: number}}, {{type: integer}}]}}
        more: {{type: object, additionalProperties: {{type: number}}}}
  SET: {{data: {{type: object}}}}
  LOOP: {{data: {{type: object}}}}
states:
  a:
    on:
      E: {{actions: {{log: {}}}}}
      SET: {{actions: [{{assign: {{total: '= event.total', nested.sum: '= event.total', tree: '= event.tree'}}}}]}}
      LOOP: {{actions: {{each: {{in: context.tree.inner, as: t, do: {{log: '= t.n / 2'}}}}}}}}
",
        Json::from(format!("= {expression}"))
    )))
}

/// Returns what the charter logs for an event whose data has this text.
fn logged(expression: &str, data: &str) -> String {
    let mut run = Run::on(logs(expression), json!({"rate": 2})).unwrap();
    match run.try_send("E", serde_json::from_str(data).unwrap()) {
        Ok(_) => run.log.concat(),
        Err(e) => e.message,
    }
}

#[test]
fn a_number_is_a_double_whatever_its_digits() {
    for (expression, result) in [
        ("event.d * 1.5", "3"),
        ("event.d / 4", "0.5"),
        ("event.data.d / 4", "0.5"),
        ("type(event.d) == double && type(event.i) == int", "true"),
        ("event.i / 4", "0"),
        ("event.i % 4", "2"),
        ("event.list[0] / 4 + event.list.map(x, x / 4)[1]", "1.25"),
        ("event.either / 4", "0.5"),
        ("event.more.any / 4", "0.5"),
        ("event.unlike / 4", "0"),
        ("event.free / 4", "0"),
        ("input.rate / 4", "0.5"),
        ("context.total / 4 + context.share", "0"),
        ("type(context.count) == int && type(context.share) == double", "true"),
        ("actors.root.context.nested.list[0] * 2", "3"),
        ("digest(event.d) == digest(2)", "true"),
        ("event.d == 2 && event.d == event.i && {2: 'x'}[event.d] == 'x'", "true"),
        ("string(event.d) + string(event.i)", "22"),
    ] {
        for two in ["2", "2.0", "2e0", "0.2e1"] {
            let data = format!(
                r#"{{"d": {two}, "i": {two}, "list": [{two}, 3], "either": {two}, "unlike": {two}, "more": {{"any": {two}}}, "free": {two}}}"#
            );
            assert_eq!(logged(expression, &data), result, "{expression} with {two}");
        }
    }
}

#[test]
fn an_assigned_number_has_the_type_of_its_place() {
    let mut run = Run::on(logs("context.total / 2 + context.nested.sum / 2"), json!({})).unwrap();
    let tree = json!({"inner": [{"n": 1}, {"n": 2.5}]});
    run.send_data("SET", json!({"total": 3, "tree": tree})).send("E");
    assert_eq!(run.log, ["3"], "1.5 and 1.5");
    run.log.clear();
    run.send("LOOP");
    assert_eq!(run.log, ["0.5", "1.25"], "the items of `each` keep their type");
}

#[test]
fn answers_and_inputs_of_machines_are_typed() {
    let run = |cel: &str| {
        let yaml = format!(
            "
actors: {{work: {{kind: exec, output: {{type: object, properties: {{n: {{type: number}}}}}}}}}}
machines:
  part:
    input: {{type: object, properties: {{n: {{type: number}}}}}}
    context: {{half: '= input.n / 2'}}
    initial: x
    states: {{x: {{entry: {{log: '= context.half'}}}}}}
events: {{GO: {{data: {{type: object}}}}}}
initial: a
states:
  a: {{on: {{GO: b}}}}
  b:
    invoke: {{src: work, onDone: {{target: c, actions: {{log: '= {cel}'}}}}, onError: c}}
  c: {{entry: {{spawn: {{machine: part, id: p, input: {{n: 1}}}}}}}}
"
        );
        let mut run = Run::start(&yaml);
        run.send("GO");
        run.done("work", json!({"n": 1}));
        run.log
    };
    assert_eq!(run("event.output.n / 2"), ["0.5", "0.5"]);
    assert_eq!(run("event.data.output.n / 2"), ["0.5", "0.5"]);
}

#[test]
fn a_fraction_does_not_fit_the_place_of_an_int() {
    let yaml = "
types: {context: {type: object, properties: {n: {type: integer}}}}
context: {n: 0, count: 0, list: [1], free: null}
events: {SET: {data: {type: object}}}
states:
  a:
    on:
      SET:
        - {when: 'event.to == \"n\"', actions: {assign: {n: '= event.value'}}}
        - {when: 'event.to == \"count\"', actions: {assign: {count: '= event.value'}}}
        - {when: 'event.to == \"item\"', actions: {assign: {'list[0]': '= event.value'}}}
        - {when: 'event.to == \"list\"', actions: {assign: {list: '= event.value'}}}
        - {when: 'event.to == \"free\"', actions: {assign: {free: '= event.value'}}}
";
    let mut run = Run::start(yaml);
    for (to, value, place) in [
        ("n", json!(2.5), "`n`"),
        ("count", json!(0.5), "`count`"),
        ("item", json!(1.5), "`list/0`"),
        ("list", json!([1, 2.5]), "`list/1`"),
    ] {
        let e = run.try_send("SET", json!({"to": to, "value": value})).map(drop).unwrap_err();
        assert!(e.message.contains(place) && e.message.contains("holds whole numbers"), "{}", e.message);
    }
    for (to, value) in [
        ("n", json!(2.0)),
        ("count", json!(7)),
        ("item", json!(9.0)),
        ("list", json!([])),
        ("free", json!(0.5)),
        ("n", json!("text")),
    ] {
        run.send_data("SET", json!({"to": to, "value": value}));
    }
}

#[test]
fn imports_have_one_type_of_number() {
    let yaml = "
strict: false
context: {n: 0}
events: {SET: {data: {type: object}}}
states: {a: {on: {SET: {actions: [{assign: {n: '= context.n + 0.5'}}, {log: '= context.n * 3'}]}}}}
";
    let mut run = Run::start(yaml);
    run.send("SET").send("SET");
    assert_eq!(run.log, ["1.5", "3"]);
}

#[test]
fn the_notation_of_a_first_value_is_part_of_the_definition() {
    let charter = |first: &str| {
        let m = machine(&format!("context: {{n: {first}}}\nstates: {{a: {{}}}}\n"));
        let json = serde_json::to_string(m.definition()).unwrap();
        let again = Machine::compile(serde_json::from_str(&json).unwrap()).unwrap();
        assert_eq!(again.digest(), m.digest(), "the definition survives a round trip");
        m.digest()
    };
    assert_eq!(charter("0"), charter("-0"));
    assert_eq!(charter("0.0"), charter("0e0"));
    assert_ne!(charter("0"), charter("0.0"));
}

/// Expressions over typed and untyped places.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("event.d".to_owned()),
        Just("event.i".to_owned()),
        Just("event.list[1]".to_owned()),
        Just("event.more.x".to_owned()),
        Just("event.either".to_owned()),
        Just("event.free".to_owned()),
        Just("context.total".to_owned()),
        Just("context.nested.sum".to_owned()),
        Just("input.rate".to_owned()),
        (-3i64..4).prop_map(|n| format!("({n})")),
        (-3i64..4).prop_map(|n| format!("({n}.5)")),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*", "/", "%"]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} < {b} ? {a} : {b})")),
            inner.clone().prop_map(|a| format!("double(string({a}))")),
            inner.clone().prop_map(|a| format!("math.greatest([{a}, 1])")),
            inner.prop_map(|a| format!("event.list.map(x, x * {a})[0]")),
        ]
    })
}

#[test]
fn an_unsigned_integer_that_json_readers_round_is_written_as_they_read_it() {
    for (n, text) in [
        (0, "0"),
        ((1 << 53) - 1, "9007199254740991"),
        ((1 << 53) + 1, "9007199254740992"),
        (u64::MAX, "18446744073709552000"),
    ] {
        assert_eq!(charter_kernel::digest::canonical(&json!(n)), text);
        let mut out = String::new();
        charter_kernel::canonical::write_uint(&mut out, n);
        assert_eq!(out, text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(charter_test_support::cases(150, 2000)))]
    /// The result of an expression does not depend on how the numbers that it reads are written,
    /// nor on a restart between the events.
    #[test]
    fn notation_does_not_matter(expression in expression(), n in -4i64..5) {
        let machine = logs(&expression);
        let results: Vec<_> = [format!("{n}"), format!("{n}.0"), format!("{n}e0"), format!("{n}.00E+0")].iter().map(|n| {
            let data = format!(
                r#"{{"d": {n}, "i": {n}, "list": [{n}, {n}], "either": {n}, "more": {{"x": {n}}}, "free": {n}}}"#
            );
            let set = format!(r#"{{"total": {n}, "tree": {{}}}}"#);
            let mut run = Run::on(machine.clone(), serde_json::from_str(&format!(r#"{{"rate": {n}}}"#)).unwrap()).unwrap();
            run.send_data("SET", serde_json::from_str(&set).unwrap());
            let text = run.machine.snapshot_json(&run.snapshot).to_string();
            run.snapshot = run.machine.restore(&serde_json::from_str(&text).unwrap()).unwrap();
            let message = run.try_send("E", serde_json::from_str(&data).unwrap()).map(drop).map_err(|e| e.message);
            (message, run.log.clone())
        }).collect();
        for result in &results {
            prop_assert_eq!(result, &results[0], "{}", expression);
        }
    }
}
