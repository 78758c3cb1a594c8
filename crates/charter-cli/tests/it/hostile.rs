//! Hostile input through the command line gets a quick, readable answer and never a panic.

use std::time::Duration;

use crate::support::{Ran, Scratch, charter_with};
use charter_test_support::{cases, full};
use cpu_time::ThreadTime;
use serde_json::Value as Json;

/// A generous limit, because these tests run in debug builds. The behavior that they guard against
/// takes minutes, or never ends.
const SOON: Duration = Duration::from_secs(10);

fn soon(args: &[&str], input: &str) -> Ran {
    within(SOON, args, input)
}

fn within(bound: Duration, args: &[&str], input: &str) -> Ran {
    let began = ThreadTime::now();
    let ran = charter_with(args, input);
    let took = began.elapsed();
    assert!(took < bound, "{args:?} took {took:?}");
    ran
}

/// Asserts that `check` reports the code and does not print the whole text.
fn checked(name: &str, text: impl AsRef<[u8]>, code: &str) {
    let scratch = Scratch::new(&format!("hostile-{}", name.replace('.', "-")));
    let file = scratch.file(name, text);
    let ran = soon(&["check", &file, "--json"], "");
    assert!(
        ran.out.contains(&format!("\"code\":\"{code}\"")),
        "{name}: {}{}",
        &ran.out[..ran.out.len().min(2000)],
        ran.err
    );
    assert_eq!(ran.code, 1, "{name}");
    let human = soon(&["check", &file], "");
    assert!(human.out.len() < 100_000, "{name}: {} bytes", human.out.len());
}

#[test]
fn a_megabyte_of_brackets() {
    let text = "[".repeat(1 << 20);
    checked("brackets.json", &text, "too-deep");
    checked("brackets.yaml", &text, "too-deep");
    checked("braces.yaml", "{a: ".repeat(1 << 18), "too-deep");
    checked("indented.yaml", (0..5_000).map(|i| format!("{}a:\n", " ".repeat(i))).collect::<String>(), "too-deep");
}

#[test]
fn an_alias_bomb() {
    let mut text = String::from("charter: 1\nid: bomb\nmeta:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let items = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("  a{i}: &a{i} [{items}]\n"));
    }
    text.push_str("states: {a: {}}\n");
    checked("bomb.yaml", text, "too-large");
}

#[test]
fn many_states() {
    let states = cases(10_000, 100_000);
    let mut text = String::from("charter: 1\nid: many\ninitial: s0\nevents: {GO: {data: {type: object}}}\nstates:\n");
    for i in 0..states {
        text.push_str(&format!("  s{i}: {{on: {{GO: s{}}}}}\n", (i + 1) % states));
    }
    let scratch = Scratch::new("hostile-many");
    let file = scratch.file("many.yaml", text);
    // A large source text in a debug build. With 100,000 states, a quadratic algorithm took half an
    // hour.
    let bound = if full() { 6 * SOON } else { SOON };
    let event = "{\"type\":\"GO\",\"data\":{}}\n";
    let ran = within(bound, &["step", &file, "--events", "-"], event);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("\"state\":[\"s1\"]"), "{}", ran.out);
    let check = ["check", &file, "--max-states", "100", "--json"];
    let ran = within(bound, &check, "");
    assert!(ran.code < 2, "{}", ran.err);
}

#[test]
fn many_unknown_names() {
    // Finding suggestions for unknown names must not compare every name with every other.
    let head = "charter: 1\nid: lost\ninitial: s0\nevents: {GO: {data: {type: object}}}\nstates:\n";
    let states = |line: &dyn Fn(u32) -> String| -> String { (0..cases(4_000, 20_000)).map(line).collect() };
    let events = states(&|i| format!("  s{i}: {{on: {{E{i}: s0}}}}\n"));
    checked("events.yaml", format!("{head}{events}"), "undeclared-event");
    let targets = states(&|i| format!("  s{i}: {{on: {{GO: t{i}}}}}\n"));
    checked("targets.yaml", format!("{head}{targets}"), "missing-target");
}

#[test]
fn an_endless_expression() {
    let text = format!("1{}", "+1".repeat(1_000_000));
    let line = format!("{{\"expr\":\"{text}\"}}\n");
    let ran = soon(&["eval", "--batch", "-"], &line);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("error"), "{}", ran.out);
    let ran = soon(&["eval", &text], "");
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.len() < 20_000, "{} bytes", ran.err.len());
    let charter =
        format!("charter: 1\nid: t\nstates: {{a: {{always: {{target: b, when: \"{text} > 0\"}}}}, b: {{}}}}\n");
    checked("expression.yaml", charter, "bad-expression");
    for deep in ["(", "[", "-", "!", "{1:", "a.b(", "x ? "] {
        let ran = soon(&["eval", &format!(" {}", deep.repeat(100_000))], "");
        assert_eq!(ran.code, 2, "{deep}");
    }
}

#[test]
fn a_nested_macro_runs_out_of_fuel() {
    let list = format!("[{}]", vec!["1"; 100].join(","));
    let mut expression = String::from("true");
    for _ in 0..6 {
        expression = format!("{list}.all(x, {expression})");
    }
    let ran = soon(&["eval", &expression], "");
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("out-of-fuel"), "{}", ran.err);
}

const ECHO: &str = "charter: 1\nid: echo\ncontext: {last: null}\nevents: {SAY: {data: {}}}\nstates: {a: {on: {SAY: {actions: {assign: {last: '= event.data'}}}}}}\n";

fn echo(events: &str) -> (u8, Vec<Json>) {
    let scratch = Scratch::new(&format!("hostile-{:?}", std::thread::current().id()).replace(['(', ')'], ""));
    let file = scratch.file("echo.yaml", ECHO);
    let ran = soon(&["step", &file, "--events", "-"], events);
    let lines = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ran.code, lines)
}

#[test]
fn events_that_are_too_large_or_too_deep() {
    let large = format!("{{\"type\":\"SAY\",\"data\":\"{}\"}}\n", "x".repeat((1 << 20) + 1));
    let deep = format!("{{\"type\":\"SAY\",\"data\":{}{}}}\n", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let endless = format!("{{\"type\":\"SAY\",\"data\":\"{}\"}}\n", "x".repeat(20 << 20));
    let good = "{\"type\":\"SAY\",\"data\":1}\n";
    let (code, lines) = echo(&format!("{large}{deep}{endless}{good}"));
    assert_eq!((code, lines.len()), (2, 4));
    assert_eq!(lines[0]["code"], "too-large");
    assert!(lines[1]["error"].as_str().unwrap().contains("recursion limit"), "{}", lines[1]);
    assert!(lines[2]["error"].as_str().unwrap().contains("longer than 16 MiB"), "{}", lines[2]);
    assert_eq!((&lines[3]["seq"], &lines[3]["context"]["last"]), (&2.into(), &1.into()));
}

#[test]
fn hostile_numbers_keys_and_bytes_in_events() {
    let events = [
        r#"{"type":"SAY","data":9007199254740993}"#,
        r#"{"type":"SAY","data":1e400}"#,
        r#"{"type":"SAY","data":{"a":1,"a":2}}"#,
        r#"{"type":"SAY","data":1,"type":"SAY"}"#,
        r#"{"type":"SAY","data":"\ud800"}"#,
        r#"{"type":"SAY","data":2,"at":99999999999999999999}"#,
        r#"{"type":"SAY","data":2,"at":"0000-00-00T00:00:00Z"}"#,
        r#"{"type":"SAY","data":2,"at":9223372036854775807}"#,
        r#"{"tick":9223372036854775807}"#,
        r#"{"type":"","data":2}"#,
        r#"{"type":"charter.start"}"#,
        r#"{"type":"done.invoke.x"}"#,
        r#"{"done":"nothing","output":{}}"#,
        "\u{0}",
        "nul",
    ];
    let (code, lines) = echo(&(events.join("\n") + "\n"));
    assert_eq!((code, lines.len()), (2, events.len()));
    let of = |line: &Json| line["code"].as_str().or(line["verdict"].as_str()).unwrap_or("error").to_owned();
    let what: Vec<String> = lines.iter().map(of).collect();
    assert_eq!(
        what,
        [
            "schema",
            "error",
            "error",
            "error",
            "error",
            "error",
            "error",
            "error",
            "error",
            "unknown-event",
            "reserved",
            "reserved",
            "late",
            "error",
            "error"
        ]
    );
}

#[test]
fn bytes_that_are_not_text() {
    let scratch = Scratch::new("hostile-bytes");
    let binary = scratch.file("binary.yaml", [0x00, 0xff, 0xfe, 0x80]);
    for command in ["check", "step", "graph", "test"] {
        let ran = soon(&[command, &binary], "");
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{command}");
        assert!(ran.err.contains("is not text: byte 1 is not valid UTF-8"), "{command}: {}", ran.err);
    }
    let echo = scratch.file("echo.yaml", ECHO);
    let events = scratch
        .file("events.jsonl", [b"{\"type\":\"SAY\",\"data\":\"\xff\"}\n".as_slice(), b"{\"type\":\"SAY\"}\n"].concat());
    let ran = soon(&["step", &echo, "--events", &events], "");
    assert_eq!((ran.code, ran.out.lines().count()), (2, 2), "{}", ran.out);
}

#[test]
fn a_large_file_is_not_read_whole() {
    let scratch = Scratch::new("hostile-large");
    let file = scratch.file("large.yaml", vec![b'#'; (16 << 20) + 1]);
    let ran = soon(&["check", &file], "");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("larger than the limit of 16 MiB"), "{}", ran.err);
}

#[test]
fn hostile_scenarios() {
    let scratch = Scratch::new("hostile-scenarios");
    scratch.file("charter.yaml", ECHO);
    let repeated =
        (0..5).fold("[{expect: {}}]".to_owned(), |steps, _| format!("[{{repeat: {{times: 1000, steps: {steps}}}}}]"));
    let file = scratch.file("repeat.yaml", format!("charter: charter.yaml\nsteps: {repeated}\n"));
    let ran = within(6 * SOON, &["test", &file], "");
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("more than 100000 steps"), "{}", ran.out);
    let deep = scratch
        .file("deep.yaml", format!("charter: charter.yaml\nsteps: {}", "[{repeat: {times: 1, steps: ".repeat(10_000)));
    assert_eq!(soon(&["test", &deep], "").code, 2);
}

#[test]
fn a_guard_that_reads_an_unknown_name_and_a_sender_without_roles() {
    let scratch = Scratch::new("hostile-guard");
    let text = "charter: 1\nid: t\nroles: {guard: {}}\nevents: {GO: {by: guard, data: {type: object, properties: {a: {type: integer}}}}, ANY: {}}\nstates: {a: {on: {GO: {target: b, when: event.typo > 1}, ANY: {target: b, when: event.nothing.there == 1}}}, b: {}}\n";
    let file = scratch.file("guard.yaml", text);
    let ran = soon(&["check", &file, "--json"], "");
    assert!(ran.out.contains("`typo`"), "{}", ran.out);
    let events = [
        r#"{"type":"GO","data":{"a":1}}"#,
        r#"{"type":"GO","data":{"a":1},"by":{"id":"eve"}}"#,
        r#"{"type":"ANY","by":{"id":"eve"}}"#,
    ];
    let ran = soon(&["step", &file, "--events", "-"], &(events.join("\n") + "\n"));
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    let codes: Vec<Json> =
        ran.out.lines().map(|line| serde_json::from_str::<Json>(line).unwrap()["code"].clone()).collect();
    assert_eq!(codes, ["authority", "authority", "guard"]);
}
