//! The error of a failed expression tells which value it failed on and what was expected: in
//! refusals, in the errors that actions raise, and in the output of `charter eval`.

use crate::common::Run;
use charter_expr::{Env, Fuel, Program, Type};
use serde_json::json;

/// Expressions over `event`, and why they fail.
const FAILING: [(&str, &str); 18] = [
    ("timestamp(event.x) == now", "`x` is not a timestamp"),
    ("duration(event.d) == duration('1h')", "`10d` is not a duration"),
    ("int(event.x) == 1", "`x` is not an int"),
    ("double(event.x) == 1.0", "`x` is not a double"),
    ("bool(event.x)", "`x` is not a bool"),
    ("'a'.matches(event.p)", "`(` is not a regular expression"),
    ("base64.decode(event.p) == b''", "`(` is not base64"),
    ("now.getHours(event.z) == 1", "`Nope/Zone` is not a time zone"),
    ("[1, 2][int(event.n)] == 1", "the index 5 is out of range: the list has 2 items"),
    ("event.x + event.n == 'x'", "no such overload: string `+` int"),
    ("size(event.n) == 1", "no such overload: `size` with (int)"),
    ("event.n / 0 == 1", "division by zero"),
    ("event.nothing == 1", "no such field `nothing`"),
    ("event.n.field == 1", "no such overload: the field `field` of an int"),
    ("event[event.d] == 1", "no such key: `10d`"),
    ("event.x.substring(9) == ''", "index out of range: 9"),
    ("event.l == '' || int(event.l) == 1", "`llllllllllllllllllllllllllllllllllllllll...` is not an int"),
    ("dyn(event.n) && true", "no such overload: `&&` needs a bool, but this is an int"),
];

fn data() -> serde_json::Value {
    json!({"x": "x", "d": "10d", "p": "(", "z": "Nope/Zone", "n": 5, "l": "l".repeat(500)})
}

#[test]
fn a_guard_that_fails_says_on_what_in_the_words_of_eval() {
    let mut env = Env::new();
    env.root("event", Type::Dyn);
    env.root("now", Type::Timestamp);
    for (expression, why) in FAILING {
        let mut run = Run::start(&format!(
            "events: {{E: {{}}}}\nstates: {{s: {{on: {{E: {{when: \"{expression}\", target: t}}}}}}, t: {{}}}}"
        ));
        let refused = run.try_send("E", data()).map(drop).unwrap_err();
        assert!(refused.message.contains(why), "{expression}: {}", refused.message);
        if !expression.contains("now") {
            let program = Program::compile(expression, &env).unwrap();
            let data = data();
            let scope = Event(&data);
            let error = program.eval(&scope, &mut Fuel::default()).unwrap_err();
            assert_eq!(error.message(), why, "{expression}");
        }
    }
}

struct Event<'a>(&'a serde_json::Value);

impl<'a> charter_expr::Scope<'a> for Event<'a> {
    fn root(&self, _: charter_expr::RootId) -> Option<charter_expr::Value<'a>> {
        Some(charter_expr::Value::from_json(self.0))
    }
}

#[test]
fn a_record_keeps_the_value_and_what_was_expected() {
    let run = Run::start("events: {E: {}}\nstates: {s: {on: {E: {when: int(event.l) == 1, target: t}}}, t: {}}");
    let details = run.refusal_details("E", data());
    let error = serde_json::to_value(&details.candidates[0].error).unwrap();
    let value = format!("{}...", "l".repeat(40));
    assert_eq!(
        error,
        json!({
            "error": "invalid-argument",
            "expression": "int(event.l) == 1",
            "part": "int(event.l)",
            "detail": {"kind": "not-a", "expected": "int", "value": value},
        })
    );
    let read: charter_kernel::ExpressionError = serde_json::from_value(error).unwrap();
    assert_eq!(Some(read), details.candidates[0].error);
}

#[test]
fn an_action_that_fails_says_on_what() {
    let charter = "events: {E: {}}\ncontext: {a: 0}\nstates: {s: {on: {E: {target: t, actions: {assign: {a: '= int(event.x)'}}}}}, t: {}}";
    let refused = Run::start(charter).try_send("E", data()).map(drop).unwrap_err();
    assert!(refused.message.ends_with("`x` is not an int"), "{}", refused.message);
}

#[test]
fn computed_delays_are_judged_like_written_ones() {
    for (delay, why) in [
        ("= '-1h'", "invalid duration `-1h`: it cannot be negative"),
        ("= '1h30'", "invalid duration `1h30`"),
        ("= -1", "invalid duration `-1`: it cannot be negative"),
        ("= context.negative", "invalid duration `-3600000`: it cannot be negative"),
        ("= duration('-1h')", "invalid duration `-3600s`: it cannot be negative"),
        ("= duration('1us')", "invalid duration `0.000001s`: it is not a whole number of milliseconds"),
        ("= '1.0000001ms'", "invalid duration `1.0000001ms`: it is not a whole number of milliseconds"),
        ("= '365001d'", "invalid duration `365001d`: it is longer than 1,000 years"),
        ("= 31536000000001", "invalid duration `31536000000001`: it is longer than 1,000 years"),
        ("= [1]", "invalid duration `[1]`"),
    ] {
        let charter = format!(
            "events: {{E: {{}}, F: {{}}}}
context: {{negative: -3600000}}
states:
  s: {{on: {{E: {{target: t, actions: {{send: {{type: F, delay: \"{delay}\"}}}}}}}}}}
  t: {{on: {{F: s}}}}"
        );
        let refused = Run::start(&charter).try_send("E", json!({})).map(drop).unwrap_err();
        assert!(refused.message.contains(why), "{delay}: {}", refused.message);
    }
}

#[test]
fn a_refusal_shows_a_long_value_up_to_500_characters() {
    let run = Run::start("events: {E: {}}\nstates: {s: {on: {E: {when: event.x == 1, target: t}}}, t: {}}");
    let shown = |x: serde_json::Value| run.refusal_details("E", json!({"x": x})).candidates[0].read["event.x"].clone();
    // A list of one string: its text is four characters longer.
    for (longest, list) in [(500, false), (496, true)] {
        let value = |length: usize| match list {
            false => json!("l".repeat(length)),
            true => json!(["l".repeat(length)]),
        };
        assert_eq!(shown(value(longest)), value(longest));
        let text = match list {
            false => "l".repeat(500),
            true => format!("[\"{}\"", "l".repeat(497)),
        };
        assert_eq!(shown(value(longest + 1)), json!(format!("{text}…")));
    }
}
