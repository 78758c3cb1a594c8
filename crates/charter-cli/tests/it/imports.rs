//! XState configs and SCXML on the command line: stepped, checked, drawn and exported.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;

use crate::support::{Scratch, charter};
use serde_json::Value as Json;

fn fred(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charter-interop/tests/xstate");
    folder.join(file).display().to_string()
}

/// Returns the states of a run after each event.
fn states(file: &str, events: &str) -> Vec<String> {
    let scratch = Scratch::new("imports-step");
    let events = scratch.file("events.jsonl", events);
    let ran = charter(&["step", file, "--events", &events]);
    assert!(ran.err.is_empty(), "{}", ran.err);
    let lines = ran.out.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    lines.map(|line| line["state"][0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_events_that_a_bare_document_names_are_explored() {
    let scratch = Scratch::new("imports-bare");
    let scxml = r#"<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" datamodel="null">
  <state id="a"><transition event="go" target="b"/></state>
  <state id="b"><transition event="back" target="a"/><transition event="stop now" target="c"/></state>
  <final id="c"/>
</scxml>"#;
    let xstate = r#"{"id": "m", "initial": "a", "states": {
  "a": {"on": {"go": "b"}}, "b": {"on": {"back": "a", "stop": "c", "now": "c"}}, "c": {"type": "final"}}}"#;
    for (name, text) in [("bare.scxml", scxml), ("bare.json", xstate)] {
        let ran = charter(&["check", &scratch.file(name, text)]);
        assert!(ran.code == 0 && ran.out.contains("no findings; explored 3 states and 4 events"), "{}", ran.out);
    }
}

const STREAM: &str = r#"{"type":"START"}
{"done":"0.fred.intake","output":{"clarificationNeeded":[]}}
{"done":"0.fred.mental_models","output":[]}
{"done":"0.fred.synthesis","output":{}}
{"done":"0.fred.decide","output":{"confidence":0.99,"requiresHumanApproval":false}}
{"type":"HUMAN_REJECTED","data":{"feedback":"no"}}
{"done":"0.fred.synthesis","output":{}}
{"done":"0.fred.decide","output":{"confidence":0.1,"requiresHumanApproval":true}}
"#;

#[test]
fn fred_as_an_xstate_config_shows_what_xstate_shows() {
    // The guard sees the previous decision, so a confident decision is reviewed and the unconfident
    // one after it is executed. The config does the same in XState, and `charter check` reports it.
    let expected = ["intake", "mental_models", "synthesis", "decide", "human_review", "synthesis", "decide", "execute"];
    assert_eq!(states(&fred("fred.yaml"), STREAM), expected);
    let ran = charter(&["check", &fred("fred.yaml"), "--no-explore"]);
    let stale = "guard `canAutoDecide` reads `context.decision`, which this transition assigns afterwards";
    assert!(ran.out.contains(stale), "{}", ran.out);
    assert!(ran.out.contains("fred.json:26:11"), "{}", ran.out);
    // Its scripted actors have no answers, so `charter run` refuses it.
    assert!(ran.out.contains("missing key `answers`"), "{}", ran.out);
    assert_eq!(ran.code, 1);
}

#[test]
fn a_byte_order_mark_is_not_part_of_a_file() {
    let scratch = Scratch::new("imports-bom");
    let file = scratch.file("m.json", "\u{feff}{\"initial\": \"a\", \"states\": {\"a\": {}}}");
    let ran = charter(&["step", &file, "--events", &scratch.file("none.jsonl", "")]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
}

#[test]
fn missing_implementations_are_listed_with_their_paths() {
    let ran = charter(&["--json", "check", &fred("fred.json")]);
    assert_eq!(ran.code, 1);
    let answer: Json = serde_json::from_str(&ran.out).unwrap();
    let findings = answer["findings"].as_array().unwrap();
    let lacks: Vec<String> = findings
        .iter()
        .map(|f| format!("{} {}", f["path"].as_str().unwrap(), f["message"].as_str().unwrap()))
        .collect();
    // One for each name.
    assert_eq!(lacks.len(), 16);
    assert!(
        lacks.contains(&"states.decide.invoke.onDone[0].guard undefined guard `canAutoDecide`".to_owned()),
        "{lacks:#?}"
    );
    assert!(lacks.contains(&"states.execute.invoke.src undefined actor `execute`".to_owned()), "{lacks:#?}");
    let ran = charter(&["step", &fred("fred.json"), "--events", "/dev/null"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("undefined guard `canAutoDecide`"), "{}", ran.err);
}

#[test]
fn exports_can_be_imported_and_behave_alike() {
    let scratch = Scratch::new("imports-export");
    let there = states(&fred("fred.yaml"), STREAM);
    for (format, file) in [("xstate", "back.json"), ("scxml", "back.scxml")] {
        let ran = charter(&["graph", &fred("fred.yaml"), "--format", format]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let back = scratch.file(file, &ran.out);
        assert_eq!(states(&back, STREAM), there, "{format}");
        let digests = [fred("fred.yaml"), back].map(|file| charter(&["graph", &file, "--format", "charter"]).out);
        assert_eq!(digests[0], digests[1], "{format}");
    }
}

#[test]
fn configs_and_documents_are_accepted_in_place_of_a_charter() {
    let scratch = Scratch::new("imports-plain");
    let config = scratch.file("lamp.json", r#"{"id": "lamp", "initial": "off", "states": {"off": {"on": {"PUSH": "on"}}, "on": {"after": {"1000": "off"}}}}"#);
    let document = scratch.file(
        "lamp.scxml",
        r#"<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"><state id="off"><transition event="PUSH" target="on"/></state>
        <state id="on"><onentry><send event="dark" delay="1s"/></onentry><transition event="dark" target="off"/></state></scxml>"#,
    );
    let events = "{\"type\":\"PUSH\"}\n{\"tick\":\"2100-01-01T00:00:00Z\"}\n";
    for file in [config, document] {
        assert_eq!(charter(&["check", &file]).code, 0);
        assert_eq!(states(&file, events), ["on", "off"], "{file}");
        let picture = charter(&["graph", &file]);
        assert!(picture.out.contains("s1 --> s2 : PUSH"), "{}", picture.out);
    }
}

#[test]
fn params_of_a_config_are_no_findings() {
    let scratch = Scratch::new("imports-params");
    scratch.file(
        "p.json",
        r#"{"id": "p", "context": {"n": 0}, "initial": "a", "states": {"a": {"on": {
            "E": {"target": "b", "guard": {"type": "more", "params": {"than": 2}}, "actions": {"type": "say", "params": {"w": "hi"}}},
            "F": {"target": "b", "guard": {"type": "any", "params": {"unused": 1}}}}}, "b": {"type": "final"}}}"#,
    );
    let charter_text = "charter: 1\nid: p\nstatechart: {import: p.json, format: xstate}\nevents: {E: {}, F: {}}\n\
        guards: {more: \"context.n >= params.than - 2\", any: context.n < 5}\nactions: {say: {log: '= params.w'}}\n";
    let file = scratch.file("p.yaml", charter_text);
    let ran = charter(&["check", &file]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(ran.out.contains(": no errors or warnings, 2 remarks; "), "{}", ran.out);
}

#[test]
fn the_declarations_printed_for_missing_names_work_when_pasted() {
    let scratch = Scratch::new("imports-pasted");
    let config = r#"{"id": "lift", "initial": "idle", "states": {
        "idle": {"entry": "note", "on": {"CALL": {"target": "moving", "guard": "mayMove"}}},
        "moving": {"invoke": {"src": "motor", "id": "motor", "onDone": "top"}, "after": {"tooLong": "top"}},
        "top": {"type": "final"}}}"#;
    let ran = charter(&["--json", "check", &scratch.file("lift.json", config)]);
    let answer: Json = serde_json::from_str(&ran.out).unwrap();
    let pasted = answer["findings"].as_array().unwrap().iter().find_map(|f| f["paste"].as_str()).unwrap();
    let file = scratch.file("lift.yaml", pasted);
    let checked = charter(&["check", &file]);
    assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    assert!(!checked.out.contains("actor-config"), "{}", checked.out);
    // Nothing passes a guard that nobody has written, and it is reported until somebody does.
    assert!(checked.out.contains("constant-condition"), "{}", checked.out);
    let file = scratch.file("lift.yaml", pasted.replace("\"false\"", "context != null"));
    let db = scratch.0.join("l.db").display().to_string();
    let ran = charter(&["run", &file, "--run", "l", "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let sent = charter(&["send", "l", "CALL", "--as", "me", "--db", &db]);
    assert!(sent.code == 0 && sent.out.contains("done"), "{}{}", sent.out, sent.err);
}

#[test]
fn the_example_of_the_page_has_no_warnings_and_without_its_action_gets_help_that_works() {
    let page = include_str!("../../../../docs/xstate.md");
    let block = |kind: &str| page.split(&format!("```{kind}\n")).nth(1).unwrap().split("```").next().unwrap();
    let scratch = Scratch::new("imports-page");
    let (config, yaml) = (block("json"), block("yaml"));
    let check = |config: &str, yaml: &str| {
        scratch.file("review.json", config);
        charter(&["check", &scratch.file("review.yaml", yaml)])
    };
    let ran = check(config, yaml);
    assert!(ran.code == 0 && !ran.out.contains("warning["), "{}{}", ran.out, ran.err);
    let dropped = config.replace("[\"keepError\", \"incrementRetry\"]", "\"incrementRetry\"");
    let ran = check(&dropped, yaml);
    assert!(ran.out.contains("warning[error-dropped]"), "{}", ran.out);
    assert!(ran.out.contains("declare an action under `actions` of the charter"), "{}", ran.out);
    assert!(!ran.out.contains("for example with `actions: {assign"), "{}", ran.out);
}

#[test]
fn a_document_of_the_other_format_is_recognized() {
    let scratch = Scratch::new("imports-format");
    let json = "\u{feff}\n {\"id\": \"m\", \"initial\": \"a\", \"states\": {\"a\": {}}}";
    let xml = "<scxml xmlns=\"http://www.w3.org/2005/07/scxml\" version=\"1.0\"><state id=\"a\"/></scxml>";
    for (text, format, says, helps) in [
        (json, "scxml", "expected an SCXML document, found JSON", "`format: xstate`"),
        (xml, "xstate", "expected an XState config, found XML", "`format: scxml`"),
    ] {
        scratch.file("chart", text);
        let charter_file = format!("charter: 1\nid: c\nstatechart: {{import: chart, format: {format}}}\n");
        let ran = charter(&["check", &scratch.file("c.yaml", charter_file)]);
        assert!(ran.code == 1 && ran.out.contains(says) && ran.out.contains(helps), "{}{}", ran.out, ran.err);
        // Another mistake keeps its own message.
        let other = if format == "scxml" { "xstate" } else { "scxml" };
        scratch.file("chart", text.replacen(['}', '/'], "", 9));
        let charter_file = format!("charter: 1\nid: c\nstatechart: {{import: chart, format: {other}}}\n");
        let ran = charter(&["check", &scratch.file("d.yaml", charter_file)]);
        assert!(ran.code == 1 && ran.out.contains("error[syntax]: invalid "), "{}{}", ran.out, ran.err);
    }
}

#[cfg(unix)]
#[test]
fn what_is_imported_from_another_folder_is_part_of_what_runs() {
    let scratch = Scratch::new("imports-outside");
    for folder in ["own", "other"] {
        std::fs::create_dir(scratch.0.join(folder)).unwrap();
    }
    let chart = |event: &str| {
        format!(
            "{{\"initial\": \"a\", \"states\": {{\"a\": {{\"on\": {{\"{event}\": \"b\"}}}}, \"b\": {{\"type\": \"final\"}}}}}}"
        )
    };
    scratch.file("other/chart.json", chart("GO"));
    std::os::unix::fs::symlink("../other/chart.json", scratch.0.join("own/link.json")).unwrap();
    let absolute = scratch.0.join("other/chart.json").display().to_string();
    for (run, path) in [("a", "../other/chart.json"), ("b", "link.json"), ("c", &absolute)] {
        let text = format!(
            "charter: 1\nid: c\nevents: {{GO: {{}}, OTHER: {{}}}}\nstatechart: {{import: '{path}', format: xstate}}\n"
        );
        let (file, db) = (scratch.file("own/c.yaml", text), scratch.0.join("p.db").display().to_string());
        assert_eq!(charter(&["run", &file, "--run", run, "--db", &db]).code, 0);
        let digest = |run: &str| {
            let first = charter(&["log", run, "--json", "--db", &db]).out;
            serde_json::from_str::<Json>(first.lines().next().unwrap()).unwrap()["charter"].clone()
        };
        // The run keeps what it was started with, and a new one has another digest.
        scratch.file("other/chart.json", chart("OTHER"));
        let next = format!("{run}2");
        assert_eq!(charter(&["run", &file, "--run", &next, "--db", &db]).code, 0);
        assert_ne!(digest(run), digest(&next), "{path}");
        let sent = charter(&["send", run, "GO", "--db", &db]);
        assert!(sent.out.contains(": done in b"), "{}{}", sent.out, sent.err);
        assert_eq!(charter(&["verify", &db]).code, 0);
        scratch.file("other/chart.json", chart("GO"));
    }
}

#[test]
fn variables_that_scripts_and_assigns_of_an_import_declare_are_known() {
    let scratch = Scratch::new("imports-variables");
    let scxml = "<scxml xmlns=\"http://www.w3.org/2005/07/scxml\" version=\"1.0\" datamodel=\"cel\">\n\
        <script>x = 1</script>\n\
        <state id=\"a\"><onentry><script>z = x + 1</script></onentry>\n\
        <transition event=\"go\" cond=\"x == 1 &amp;&amp; z > 1\" target=\"b\"/>\n\
        <transition event=\"no\" cond=\"w == 1\" target=\"b\"/></state><final id=\"b\"/></scxml>";
    let ran = charter(&["check", &scratch.file("s.scxml", scxml)]);
    assert!(!ran.out.contains("may be missing"), "{}", ran.out);
    scratch.file(
        "x.json",
        r#"{"initial": "a", "states": {"a": {"entry": "set", "on": {"GO": {"target": "b", "guard": "ok"}}}, "b": {"type": "final"}}}"#,
    );
    let text = |guard: &str| {
        format!(
            "charter: 1\nid: x\nstatechart: {{import: x.json, format: xstate}}\nguards: {{ok: {guard}}}\n\
             actions: {{set: {{assign: {{m: '= 1'}}}}}}\nevents: {{GO: {{}}}}\n"
        )
    };
    let ran = charter(&["check", &scratch.file("x.yaml", text("context.m > 0"))]);
    assert!(!ran.out.contains("warning["), "{}", ran.out);
    let ran = charter(&["check", &scratch.file("x.yaml", text("context.n > 0"))]);
    assert!(ran.out.contains("`n`"), "nothing sets it: {}", ran.out);
}

#[test]
fn an_expression_of_an_import_has_a_line_and_no_empty_place() {
    let scratch = Scratch::new("imports-place");
    let scxml = "<scxml xmlns=\"http://www.w3.org/2005/07/scxml\" version=\"1.0\" datamodel=\"cel\">\n\
        <state id=\"a\">\n<transition event=\"go\" cond=\"_event.data.n == 2\" target=\"b\"/></state>\n\
        <final id=\"b\"/></scxml>";
    let ran = charter(&["check", &scratch.file("s.scxml", scxml)]);
    assert!(ran.out.contains("`_event.data.n == 2` (line 3): "), "{}", ran.out);
}
