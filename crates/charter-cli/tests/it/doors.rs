//! What the commands do not accept: text with two readings, names that belong to the host.

use crate::support::{Scratch, charter, charter_typed, charter_with, start_at};

const ASKS: &str = "charter: 1\nid: asks\nroles: {clerk: {}}\nevents: {GO: {by: clerk, data: {type: object}}}\n\
    context: {got: null}\nactors: {person: {kind: human, output: {type: object}}}\ninitial: open\n\
    states:\n  open: {on: {GO: {target: asked, actions: {assign: {got: \"= event.data\"}}}}}\n  asked:\n    invoke: {src: person, onDone: ended}\n  ended: {type: final}\n";

const TWICE: &str = r#"{"n": 1, "n": 2}"#;

/// A journal with the run `r` of [`ASKS`].
fn started(scratch: &Scratch) -> (String, String) {
    let file = scratch.file("asks.yaml", ASKS);
    let db = scratch.0.join("journal.db").display().to_string();
    let ran = charter(&["run", &file, "--run", "r", "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    (file, db)
}

#[test]
fn a_duplicate_key_is_refused_by_every_command_that_takes_json() {
    let scratch = Scratch::new("doors-duplicate");
    let (file, db) = started(&scratch);
    let at = format!("@{}", scratch.file("twice.json", TWICE));
    let batch = scratch.file("batch.jsonl", r#"{"expr": "1", "bindings": {"a": 1, "a": 2}}"#);
    let refused = |args: &[&str]| {
        let ran = charter(args);
        assert_ne!(ran.code, 0, "{args:?}: {}", ran.out);
        let said = format!("{}{}", ran.out, ran.err);
        assert!(said.contains("duplicate key `"), "{args:?}: {said}");
        assert!(said.contains("column"), "{args:?}: {said}");
    };
    refused(&["send", "r", "GO", TWICE, "--role", "clerk", "--db", &db]);
    refused(&["send", "r", "GO", &at, "--role", "clerk", "--db", &db]);
    refused(&["run", &file, "--input", TWICE, "--run", "s", "--db", &db]);
    refused(&["run", &file, "--input", &at, "--run", "s", "--db", &db]);
    refused(&["step", &file, "--input", TWICE, "--events", "-"]);
    refused(&["eval", "a", "--with", TWICE]);
    refused(&["eval", "--batch", &batch]);
    // Nothing was recorded.
    let ran = charter(&["log", "r", "--db", &db, "--json"]);
    assert_eq!(ran.out.lines().count(), 1, "{}", ran.out);
    assert_eq!(charter(&["show", "s", "--db", &db]).code, 2);
    // An answer of a person.
    let ran = charter(&["send", "r", "GO", "{}", "--role", "clerk", "--db", &db]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    refused(&["answer", "r/1/0", TWICE, "--role", "clerk", "--db", &db]);
    refused(&["answer", "r/1/0", &at, "--role", "clerk", "--db", &db]);
}

#[test]
fn a_duplicate_key_in_a_scenario_or_a_charter_in_json_is_refused() {
    let scratch = Scratch::new("doors-scenario");
    scratch.file("asks.yaml", ASKS);
    let scenario = scratch.file(
        "twice.scenario.yaml",
        "name: twice\nsteps:\n  - send: {type: GO, data: {n: 1, n: 2}, as: u, roles: [clerk]}\n",
    );
    let ran = charter(&["test", &scenario]);
    assert_ne!(ran.code, 0);
    assert!(format!("{}{}", ran.out, ran.err).contains("duplicate key `n`"), "{}{}", ran.out, ran.err);
    let ran =
        charter(&["check", &scratch.file("twice.json", r#"{"charter": 1, "id": "a", "states": {"a": {}, "a": {}}}"#)]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("duplicate key `a`"), "{}", ran.out);
}

/// A program that answers with a duplicate key fails; what it meant is not guessed.
#[cfg(unix)]
#[test]
fn a_duplicate_key_in_the_output_of_a_command_is_a_failure() {
    let scratch = Scratch::new("doors-exec");
    let file = scratch.file(
        "tool.yaml",
        "charter: 1\nid: tool\ncontext: {why: null}\nactors:\n  tool: {kind: exec, command: [printf, '{\"n\": 1, \"n\": 2}']}\ninitial: work\n\
         states:\n  work:\n    invoke:\n      src: tool\n      onDone: ended\n      onError: {target: failed, actions: {assign: {why: \"= event.error.message\"}}}\n  ended: {type: final}\n  failed: {type: final}\n",
    );
    let db = scratch.0.join("journal.db").display().to_string();
    let ran = charter_with(&["run", &file, "--run", "r", "--db", &db, "--json"], "");
    assert!(ran.out.contains("duplicate key `n` at line 1 column 12"), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("malformed") || ran.out.contains("failed"), "{}", ran.out);
}

#[test]
fn a_duplicate_key_that_is_typed_at_a_prompt_is_asked_for_again() {
    let scratch = Scratch::new("doors-typed");
    let source = ASKS.replace("data: {type: object}", "data: {type: object, required: [x], properties: {x: {}}}");
    let file = scratch.file("asks.yaml", source);
    let db = scratch.0.join("journal.db").display().to_string();
    let ran = charter_typed(&["run", &file, "--run", "r", "--db", &db], "1\n{\"n\": 1, \"n\": 2}\n{\"n\": 3}\n", None);
    assert!(ran.err.contains("duplicate key `n` at line 1 column 12"), "{}", ran.err);
    let ran = charter(&["show", "r", "--db", &db, "--json"]);
    assert!(ran.out.contains(r#""got":{"x":{"n":3}}"#), "{}{}", ran.out, ran.err);
}

#[test]
fn no_sender_can_be_the_host() {
    let scratch = Scratch::new("doors-system");
    let (file, db) = started(&scratch);
    let host = "`system` is the host itself; no sender can have this id or role";
    let refused = |args: &[&str]| {
        let ran = charter(args);
        assert_ne!(ran.code, 0, "{args:?}: {}", ran.out);
        assert!(format!("{}{}", ran.out, ran.err).contains(host), "{args:?}: {}{}", ran.out, ran.err);
    };
    for option in ["--as", "--role"] {
        refused(&["send", "r", "GO", "{}", option, "system", "--db", &db]);
        refused(&["run", &file, option, "system", "--db", &db]);
        refused(&["legal", "r", option, "system", "--db", &db]);
    }
    for by in [r#"{"id":"system"}"#, r#"{"id":"eve","roles":["system"]}"#] {
        let events = scratch.file("events.jsonl", format!(r#"{{"type":"GO","data":{{}},"by":{by}}}"#));
        refused(&["step", &file, "--events", &events]);
    }
    let scenario = "charter: asks.yaml\nsteps:\n  - send: {type: GO, data: {}, as: system, roles: [clerk]}\n";
    refused(&["test", &scratch.file("as.scenario.yaml", scenario)]);
    let scenario = "charter: asks.yaml\nprincipals: {eve: [system]}\nsteps:\n  - send: {type: GO, data: {}, as: eve}\n";
    refused(&["test", &scratch.file("role.scenario.yaml", scenario)]);
    // An actor that sends events cannot be the host either.
    let actor = ASKS.replace("kind: human", "kind: human, id: system");
    let ran = charter(&["run", &scratch.file("actor.yaml", actor), "--db", &db]);
    assert!(ran.err.contains("but not `system`"), "{}{}", ran.out, ran.err);
}

/// The newest record of the journal is far from the system clock.
#[test]
fn a_wrong_clock_is_refused_with_a_hint() {
    let scratch = Scratch::new("doors-clock");
    let path = scratch.0.join("journal.db");
    let db = path.display().to_string();
    let file = scratch.file("asks.yaml", ASKS);
    // The year 2199.
    start_at(&path, ASKS, "r", Some(7_226_582_400_000));
    let send = ["send", "r", "GO", "{}", "--role", "clerk", "--db", &db];
    for args in [&send[..], &["run", &file, "--db", &db], &["answer", "r", "{}", "--db", &db]] {
        let ran = charter(args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("the newest record of this journal is from 2199-01-01T00:00:00Z"), "{}", ran.err);
        assert!(ran.err.contains("`--accept-clock`"), "{}", ran.err);
    }
    // What only reads needs no clock.
    assert_eq!(charter(&["show", "r", "--db", &db]).code, 0);
    assert_eq!(charter(&["verify", &db]).code, 0);
    let ran = charter(&[&send[..], &["--accept-clock"]].concat());
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

/// An older copy of the journal file was put in its place.
#[test]
fn what_only_reads_warns_of_missing_records() {
    let scratch = Scratch::new("doors-head");
    let (_, db) = started(&scratch);
    for args in [&["show", "r"][..], &["log", "r"], &["runs"]] {
        let ran = charter(&[args, &["--db", &db]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    }
    let copy = std::fs::read(&db).unwrap();
    assert_eq!(charter(&["send", "r", "GO", "{}", "--role", "clerk", "--db", &db]).code, 0);
    std::fs::write(&db, copy).unwrap();
    let out = scratch.0.join("r.jsonl").display().to_string();
    let reading = [
        &["show", "r"][..],
        &["log", "r"],
        &["runs"],
        &["explain", "r", "0"],
        &["replay", "r"],
        &["export", "r", "-o", &out],
    ];
    for args in reading {
        let ran = charter(&[args, &["--db", &db]].concat());
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        let warning = "warning: records that were acknowledged are missing";
        assert!(ran.err.starts_with(warning) && ran.err.contains("record 1 of run `r`"), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("`charter verify "), "{}", ran.err);
    }
}

#[test]
fn an_event_without_data_has_the_same_data_however_it_is_sent() {
    let scratch = Scratch::new("doors-absent");
    let file = scratch.file(
        "open.yaml",
        "charter: 1\nid: open\nevents: {ANY: {}, LOOSE: {data: {}}, NONE: {data: {type: object, maxProperties: 0}}, VOID: {data: {type: 'null'}}}\n\
         context: {last: unset}\ninitial: open\nstates: {open: {on: {'*': {actions: {assign: {last: '= event.data'}}}}}}\n",
    );
    let db = scratch.0.join("journal.db").display().to_string();
    assert_eq!(charter(&["run", &file, "--run", "r", "--db", &db]).code, 0);
    for (event, data) in [("ANY", "{}"), ("LOOSE", "{}"), ("NONE", "{}"), ("VOID", "null")] {
        let sent = charter(&["send", "r", event, "--db", &db, "--json"]);
        assert!(sent.code == 0 && sent.out.contains(&format!("\"data\":{data}")), "{}{}", sent.out, sent.err);
        let line = format!("{{\"type\":\"{event}\",\"by\":{{\"id\":\"ana\",\"roles\":[]}}}}\n");
        let step = charter_with(&["step", &file, "--events", "-"], &line);
        assert!(step.out.contains(&format!("\"last\":{data}")), "{}{}", step.out, step.err);
        let scenario = scratch.file(
            "absent.scenario.yaml",
            format!("charter: open.yaml\nname: absent\nsteps:\n  - send: {{type: {event}, as: ana}}\n  - expect: {{context: {{last: {data}}}}}\n"),
        );
        let test = charter(&["test", &scenario]);
        assert_eq!(test.code, 0, "{}{}", test.out, test.err);
    }
}

#[test]
fn a_counterexample_has_the_data_that_an_event_without_data_gets() {
    let scratch = Scratch::new("doors-check");
    for (condition, data) in [("event.data == null", "\"data\":null,"), ("event.data != null", ""), ("true", "")] {
        let file = scratch.file(
            "any.yaml",
            format!(
                "charter: 1\nid: any\nevents: {{ANY: {{}}}}\ninitial: a\nproperties: [{{id: p, never: \"in('b')\"}}]\n\
                 states: {{a: {{on: {{ANY: {{target: b, when: {condition}}}}}}}, b: {{}}}}\n"
            ),
        );
        let ran = charter(&["check", &file]);
        let line =
            ran.out.lines().find(|line| line.contains("\"type\":\"ANY\"")).unwrap_or_else(|| panic!("{}", ran.out));
        assert!(line.contains(&format!("\"roles\":[]}},{data}\"type\"")), "{line}");
        let step = charter_with(&["step", &file, "--events", "-"], &format!("{line}\n"));
        assert!(step.out.contains("\"state\":[\"b\"]"), "{}{}", step.out, step.err);
    }
}

/// Otherwise a stream whose ids are numbers has no duplicates at all.
#[test]
fn items_with_the_same_id_are_duplicates_whatever_an_id_is() {
    let scratch = Scratch::new("ids");
    let charter = "charter: 1\nid: st\nevents: {SCAN: {}}\nstream: {run: '= item.parcel', type: '= item.type', \
        id: '= item.id'}\nstates: {a: {on: {SCAN: {}}}}\n";
    let file = scratch.file("st.yaml", charter);
    for (id, other) in [("\"1\"", "1"), ("1", "2"), ("1.5", "\"1.5\""), ("true", "false"), ("[1]", "[2]")] {
        let item = |id: &str| format!("{{\"parcel\":\"p\",\"type\":\"SCAN\",\"id\":{id}}}\n");
        let items = scratch.file("items.jsonl", [id, id, other].map(item).concat());
        let ran = crate::support::charter(&["conform", &file, &items]);
        let verdicts: Vec<bool> =
            ran.out.lines().filter(|line| line.contains("SCAN")).map(|line| line.contains(" ok ")).collect();
        assert_eq!(verdicts, [true, false, true], "{id}: {} {}", ran.out, ran.err);
    }
}
