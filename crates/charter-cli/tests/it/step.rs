//! `charter step`: input and output, line by line.

use crate::support::{Ran, Scratch, charter, charter_with};
use serde_json::{Value as Json, json};

const REVIEW: &str = r#"
charter: 1
id: review
roles: {author: {}, reviewer: {}}
input: {type: object, properties: {author: {type: string}}}
context: {author: "= has(input.author) ? input.author : ''", draft: null, tries: 0}
events:
  SUBMIT: {by: author, data: {type: object, required: [text], properties: {text: {type: string}}}}
  APPROVE: {by: reviewer}
actors:
  write: {kind: model, output: {type: object, required: [text]}, timeout: 1m}
states:
  idle:
    on:
      SUBMIT: {target: writing, actions: {assign: {draft: "= event.text"}}}
  writing:
    invoke:
      src: write
      input: {text: "= context.draft"}
      onDone: {target: waiting, actions: {assign: {draft: "= event.output.text"}}}
      onError: {target: idle, actions: {assign: {tries: "= context.tries + 1"}}}
  waiting:
    on:
      APPROVE: {target: done, when: "by.id != context.author"}
    after: {1h: idle}
  done: {type: final}
"#;

fn review(args: &[&str], events: &[Json]) -> (Ran, Vec<Json>) {
    let text: String = events.iter().map(|event| format!("{event}\n")).collect();
    review_text(args, &text)
}

fn review_text(args: &[&str], events: &str) -> (Ran, Vec<Json>) {
    let scratch = Scratch::new(&format!("step-{:?}", std::thread::current().id()).replace(['(', ')'], ""));
    let file = scratch.file("review.yaml", REVIEW);
    let args = [&["step", &file, "--events", "-", "--input", r#"{"author":"ana"}"#], args].concat();
    let ran = charter_with(&args, events);
    let lines = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (ran, lines)
}

fn ana() -> Json {
    json!({"id": "ana", "roles": ["author"]})
}
fn ben() -> Json {
    json!({"id": "ben", "roles": ["reviewer"]})
}
fn submit() -> Json {
    json!({"type": "SUBMIT", "data": {"text": "a"}, "by": ana()})
}

#[test]
fn one_line_out_for_each_line_in() {
    let (ran, lines) = review(
        &[],
        &[submit(), json!({"done": "write", "output": {"text": "b"}}), json!({"type": "APPROVE", "by": ben()})],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0],
        json!({
            "seq": 1, "verdict": "accepted", "code": null, "to": "root", "from": ["idle"], "state": ["writing"], "status": "active",
            "context": {"author": "ana", "draft": "a", "tries": 0},
            "effects": [{"kind": "invoke", "invocation": "write", "src": "write", "input": {"text": "a"}, "id": "run/1/0"}],
            "transitions": ["idle/on/SUBMIT/0"],
            "timers": [{"set": lines[0]["timers"][0]["set"], "generation": 1, "due": 60_000}],
            "refusal": null
        })
    );
    assert_eq!((&lines[1]["state"], &lines[1]["context"]["draft"]), (&json!(["waiting"]), &json!("b")));
    assert_eq!((&lines[2]["state"], &lines[2]["status"]), (&json!(["done"]), &json!("done")));
}

#[test]
fn a_refusal_says_why_and_changes_nothing() {
    let (ran, lines) = review(
        &[],
        &[
            json!({"type": "APPROVE", "by": ben()}),
            json!({"type": "SUBMIT", "data": {}, "by": ana()}),
            json!({"type": "SUBMIT", "data": {"text": "a"}}),
        ],
    );
    assert_eq!(ran.code, 1);
    let codes: Vec<&Json> = lines.iter().map(|line| &line["code"]).collect();
    assert_eq!(codes, [&json!("unhandled"), &json!("schema"), &json!("authority")]);
    for (line, seq) in lines.iter().zip(1..) {
        assert_eq!((&line["seq"], &line["verdict"]), (&json!(seq), &json!("refused")));
        assert_eq!((&line["from"], &line["state"]), (&json!(["idle"]), &json!(["idle"])));
        assert_eq!(line["refusal"]["code"], line["code"]);
        assert!(!line["refusal"]["message"].as_str().unwrap().is_empty());
    }
}

#[test]
fn an_error_may_be_written_with_its_key_twice() {
    for error in [
        r#"{"error":"write","error":{"code":"x"}}"#,
        r#"{"error":{"code":"x"},"error":"write"}"#,
        r#"{"error":"write"}"#,
    ] {
        let (ran, lines) = review_text(&[], &format!("{}\n{error}\n", submit()));
        assert_eq!(ran.code, 0, "{}", ran.out);
        assert_eq!((&lines[1]["state"], &lines[1]["context"]["tries"]), (&json!(["idle"]), &json!(1)), "{error}");
    }
}

#[test]
fn late_and_invalid_answers() {
    let (ran, lines) =
        review(&[], &[json!({"done": "write", "output": {}}), submit(), json!({"done": "write", "output": {}})]);
    assert_eq!((&lines[0]["verdict"], &lines[0]["code"]), (&json!("late"), &Json::Null));
    assert_eq!((&lines[2]["verdict"], &lines[2]["code"]), (&json!("refused"), &json!("schema")));
    assert_eq!(ran.code, 1);
}

#[test]
fn a_tick_fires_what_is_due_and_is_one_line() {
    let (_, lines) = review(
        &[],
        &[
            submit(),
            json!({"done": "write", "output": {"text": "b"}, "at": "1970-01-01T00:00:10Z"}),
            json!({"tick": "1970-01-01T01:00:09Z"}),
            json!({"tick": 3_610_000}),
            json!({"tick": 99_000_000}),
        ],
    );
    let brief: Vec<_> =
        lines.iter().skip(2).map(|l| (&l["fired"], &l["verdict"], &l["seq"], &l["from"], &l["state"])).collect();
    let (waiting, idle) = (json!(["waiting"]), json!(["idle"]));
    assert_eq!(brief[0], (&json!(0), &json!("ignored"), &json!(2), &waiting, &waiting));
    assert_eq!(brief[1], (&json!(1), &json!("accepted"), &json!(3), &waiting, &idle));
    assert_eq!(brief[2], (&json!(0), &json!("ignored"), &json!(3), &idle, &idle));
    assert_eq!(lines[3]["transitions"], json!(["waiting/after/1h/0"]));
}

#[test]
fn restoring_never_changes_anything() {
    let restore = json!({"restore": true});
    let events = [
        submit(),
        json!({"done": "write", "output": {"text": "b"}}),
        json!({"tick": 60_000}),
        json!({"type": "APPROVE", "by": ben()}),
    ];
    let (_, plain) = review(&[], &events);
    let mut with: Vec<Json> = vec![restore.clone()];
    for event in &events {
        with.extend([event.clone(), restore.clone()]);
    }
    let (ran, lines) = review(&[], &with);
    assert_eq!(ran.code, 0, "{}", ran.out);
    let rest: Vec<&Json> = lines.iter().skip(1).step_by(2).collect();
    assert_eq!(rest, plain.iter().collect::<Vec<_>>());
}

#[test]
fn a_repeated_id_returns_the_first_answer_and_other_content_is_stale() {
    let mut first = submit();
    first["id"] = json!("k1");
    let mut other = first.clone();
    other["data"]["text"] = json!("other");
    let (ran, lines) = review(&[], &[first.clone(), first, other]);
    assert_eq!(lines[0], lines[1]);
    assert_eq!((&lines[2]["code"], &lines[2]["seq"]), (&json!("stale"), &json!(2)));
    assert_eq!(ran.code, 1);
}

#[test]
fn an_invalid_line_changes_nothing_and_the_exit_code_is_2() {
    let events =
        format!("nonsense\n{}\n[1]\n{{\"type\":\"APPROVE\",\"who\":\"x\"}}\n\n{{\"restore\":false}}\n", submit());
    let (ran, lines) = review_text(&[], &events);
    assert_eq!(ran.code, 2);
    let lined: Vec<Option<u64>> = lines.iter().map(|line| line["line"].as_u64()).collect();
    assert_eq!(lined, [Some(1), None, Some(3), Some(4), Some(6)]);
    assert!(lines[3]["error"].as_str().unwrap().starts_with("line 4: unknown key `who`"));
    assert_eq!(lines[1]["seq"], 1);
}

#[test]
fn the_start_is_printed_on_request_or_without_events() {
    let (_, lines) = review(&["--start", "--run", "r7", "--at", "5"], &[submit()]);
    assert_eq!((&lines[0]["seq"], &lines[0]["from"], &lines[0]["state"]), (&json!(0), &json!([]), &json!(["idle"])));
    assert_eq!((&lines[1]["effects"][0]["id"], &lines[1]["timers"][0]["due"]), (&json!("r7/1/0"), &json!(60_005)));
    let scratch = Scratch::new("start");
    let file = scratch.file("review.yaml", REVIEW);
    let ran = charter(&["step", &file]);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1));
}

#[test]
fn a_refused_start_is_a_line_and_an_explanation() {
    let scratch = Scratch::new("no-start");
    let file = scratch.file("review.yaml", REVIEW);
    let ran = charter(&["step", &file, "--input", r#"{"author":7}"#]);
    let line: Json = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &line["verdict"], &line["code"]), (1, &json!("refused"), &json!("schema")));
    assert_eq!(
        ran.err,
        "refused (schema): the input does not match the charter's `input` schema: at `/author`: 7 is not of type \"string\"\n"
    );
    // Each violation is listed once.
    let input = r#"{"loop":1,"wake":2}"#;
    let ran = charter(&["step", "automaton", "--input", input]);
    let lines: Vec<&str> = ran.err.lines().collect();
    let [first, second] = lines.as_slice() else {
        panic!("{}", ran.err);
    };
    assert!(first.ends_with(": at `/loop`: 1 is not of type \"boolean\""));
    assert_eq!(*second, "  at `/wake`: 2 is not of type \"string\"");
}

#[test]
fn the_virtual_clock_runs_to_the_end() {
    let scratch = Scratch::new("clock");
    let chart = "
charter: 1
id: clock
context: {n: 0}
states:
  a: {after: {10s: b}}
  b: {after: {1h: {target: b, reenter: true, when: context.n < 3, actions: {assign: {n: '= context.n + 1'}}}, 2h: c}}
  c: {type: final}
";
    let file = scratch.file("clock.yaml", chart);
    let human = charter(&["step", &file, "--scxml-clock"]);
    assert_eq!((human.code, human.out.as_str()), (0, "c\n"), "{}", human.err);
    let json_out = charter(&["step", &file, "--scxml-clock", "--json"]);
    assert_eq!(json_out.out, "{\"context\":{\"n\":3},\"state\":[\"c\"],\"status\":\"done\"}\n");

    let endless =
        scratch.file("endless.yaml", "{charter: 1, id: e, states: {a: {after: {0s: {target: a, reenter: true}}}}}");
    let ran = charter(&["step", &endless, "--scxml-clock"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("100000 timers"), "{}", ran.err);
    let events = scratch.file("events.jsonl", "{\"tick\":0}\n{\"restore\":true}\n");
    let ran = charter(&["step", &endless, "--events", &events]);
    let lines: Vec<Json> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((ran.code, &lines[0]["line"], &lines[1]["seq"]), (2, &json!(1), &json!(0)));
}

#[test]
fn event_ids_have_the_rule_of_send() {
    let with_id = |id: &str| json!({"type": "SUBMIT", "data": {"text": "x"}, "by": ana(), "id": id});
    let long = "x".repeat(257);
    for (id, wrong) in [
        ("", "an event id has 1 to 256 bytes, and this one has 0"),
        (&*long, "and this one has 257"),
        ("r/1", "event ids that begin with `r/` are reserved for the host"),
    ] {
        let (ran, lines) = review(&["--run", "r"], &[with_id(id)]);
        let error = lines.last().unwrap()["error"].to_string();
        assert!(ran.code == 2 && error.contains(wrong), "{id}: {}", ran.out);
    }
    let (ran, _) = review(&["--run", "r"], &[with_id("rr/1")]);
    assert_eq!(ran.code, 0, "{}", ran.out);
}

#[test]
fn with_json_every_error_is_json() {
    let scratch = Scratch::new("step-json");
    let file = scratch.file("review.yaml", REVIEW);
    let step = |more: &[&str], events: &str| charter_with(&[&["step", &file, "--json"], more].concat(), events);
    // A refused start is a line of the output only.
    let ran = step(&["--input", r#"{"author": 1}"#], "");
    let line: Json = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, &line["verdict"], &line["code"], ran.err.as_str()),
        (1, &json!("refused"), &json!("schema"), "")
    );
    // So is a line that cannot be read; the next one is read.
    let ran = step(&["--events", "-"], "{\n{\"type\": \"APPROVE\"}\n");
    let lines: Vec<Json> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((ran.code, ran.err.as_str()), (2, ""));
    assert!(lines[0]["error"].is_string() && lines[0].get("verdict").is_none(), "{}", ran.out);
    assert_eq!((&lines[0]["line"], &lines[1]["seq"], &lines[1]["verdict"]), (&json!(1), &json!(1), &json!("refused")));
    // What keeps it from starting is on standard error.
    for args in [["--events", "nowhere"], ["--input", "{"], ["--at", "x"]] {
        let ran = step(&args, "");
        let error: Json = serde_json::from_str(&ran.err).unwrap();
        assert!(ran.code == 2 && ran.out.is_empty() && error["error"]["message"].is_string(), "{args:?}: {}", ran.err);
    }
}
