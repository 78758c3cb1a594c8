//! Exports are imported as the same charter; edited exports are imported as edited.

use std::fs;
use std::path::{Path, PathBuf};

use charter_format::import::no_files;
use charter_format::{ReadOptions, read};
use charter_interop::{export, import};
use charter_kernel::definition::Template;
use charter_kernel::{Definition, Envelope, Event, Machine, Principal, Snapshot};
use charter_test_support::cases;
use serde_json::{Value as Json, json};

use crate::xstate_cases::{self, Case, RuntimeEvent};

const GOVERNED: &str = r##"
charter: 1
id: governed
title: "Permits & approvals <here>"
roles: {reviewer: {}, founder: {}}
events: {ASK: {by: founder}, YES: {by: reviewer, unique: {key: event.order}}, STOP: {}}
context: {n: 1, text: "a ]]> b", computed: "= 1 + 1", double: 0.0, list: [1, 2.0]}
guards: {some: context.n > 0}
actions: {count: {assign: {n: "= context.n + 1"}}}
actors: {work: {kind: exec}}
ledger: {token: {}}
states:
  idle: {on: {ASK: {target: asked, guard: {and: [some, {not: some}]}, actions: [count, {log: "= event.type"}]}}}
  asked:
    on:
      YES: {target: busy, by: reviewer, when: "by.id != 'x'", requires: {use: {kind: token, key: t}}, quorum: {count: 2, of: reviewer}}
    after: {24h: idle}
  busy:
    type: parallel
    states:
      a: {initial: one, states: {one: {}, two: {type: final}, h: {type: history, history: deep, target: one}}}
      b: {invoke: {src: work, onDone: {target: "#done"}, onError: {target: "#idle"}}}
    onDone: done
  done: {type: final}
"##;

fn compiled(definition: Definition) -> Machine {
    Machine::compile(definition).unwrap_or_else(|p| panic!("{p:#?}"))
}

fn governed() -> Machine {
    charter_test_support::machine(GOVERNED)
}

/// Returns the documents of the SCXML suite that compile.
fn suite() -> Vec<(PathBuf, Machine)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scxml");
    let mut found = Vec::new();
    for section in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(section.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let Ok(source) = fs::read_to_string(&path) else {
                continue;
            };
            if path.extension().is_none_or(|e| e != "scxml") {
                continue;
            }
            let folder = path.parent().unwrap().to_owned();
            let files = |name: &str| fs::read_to_string(folder.join(name));
            let read = import::scxml(&source, "case.scxml", &files);
            if let Some(machine) = read.ok().and_then(|d| Machine::compile(d.definition).ok()) {
                found.push((path, machine));
            }
        }
    }
    assert!(found.len() > 150, "only {} documents", found.len());
    found
}

#[test]
fn an_export_is_imported_as_the_same_charter() {
    let mut machines = suite();
    machines.push((PathBuf::from("governed"), governed()));
    for (path, machine) in machines {
        let config = export::xstate(&machine);
        let back = import::xstate(&config, "back.json", &Definition::default())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(back.definition.digest(), machine.digest(), "{} as XState", path.display());
        let document = export::scxml(&machine);
        let back =
            import::scxml(&document, "back.scxml", &no_files).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(back.definition.digest(), machine.digest(), "{} as SCXML", path.display());
    }
}

#[test]
fn an_edited_config_keeps_the_rest_of_the_charter() {
    let machine = governed();
    let edited = export::xstate(&machine).replacen("\"initial\": \"one\"", "\"initial\": \"two\"", 1);
    let back =
        import::xstate(&edited, "back.json", &Definition::default()).unwrap_or_else(|e| panic!("{e}")).definition;
    assert_ne!(back.digest(), machine.digest());
    assert_eq!(
        (&back.roles, &back.ledger, &back.events),
        (&machine.definition().roles, &machine.definition().ledger, &machine.definition().events)
    );
    assert!(back.strict);
    let yes = &back.root.state.states["asked"].on[0].transitions[0];
    let before = &machine.definition().root.state.states["asked"].on[0].transitions[0];
    assert_eq!(
        (&yes.by, &yes.when, &yes.requires, &yes.quorum),
        (&before.by, &before.when, &before.requires, &before.quorum)
    );
    let a = &back.root.state.states["busy"].states["a"];
    assert_eq!(a.initial.as_ref().unwrap().target, [".two"]);
    compiled(back);
}

/// What XState cannot express is kept beside the parts that were edited.
#[test]
fn an_edited_config_keeps_what_is_computed() {
    let source = "
charter: 1
id: computed
strict: false
context: {n: 1, sum: '= 1 + 1', gone: '= 3'}
output: '= context.sum'
actors: {work: {kind: exec}}
states:
  a:
    invoke: {src: work, id: w, input: {n: '= context.n'}, timeout: 5s, onDone: b}
    after: {'= duration(string(context.n) + \"s\")': b}
  b: {initial: x, states: {x: {type: final, output: {n: '= context.n'}}}, onDone: c}
  c: {type: final, output: '= context.n'}
";
    let machine = charter_test_support::machine(source);
    let edited =
        export::xstate(&machine).replacen("\"n\": 1", "\"n\": 2", 1).replacen("\"gone\": null", "\"gone\": 4", 1);
    let back =
        import::xstate(&edited, "back.json", &Definition::default()).unwrap_or_else(|e| panic!("{e}")).definition;
    let mut expected = machine.definition().clone();
    expected.root.context.insert("n".to_owned(), Template::Literal(json!(2)));
    expected.root.context.insert("gone".to_owned(), Template::Literal(json!(4)));
    assert_eq!(back.root.context, expected.root.context);
    assert_eq!(back.root.output, expected.root.output);
    let (found, states) = (&back.root.state.states, &expected.root.state.states);
    assert_eq!(found["a"].invoke[0].input, states["a"].invoke[0].input);
    assert_eq!(found["a"].invoke[0].timeout, states["a"].invoke[0].timeout);
    assert_eq!(found["a"].after[0].delay, states["a"].after[0].delay);
    assert_eq!(found["b"].states["x"].output, states["b"].states["x"].output);
    assert_eq!(found["c"].output, states["c"].output);
    compiled(back);
}

#[test]
fn an_edited_document_is_plain_scxml_with_a_warning() {
    let source = "charter: 1\nid: c\nevents: {E: {}}\nstates: {a: {on: {E: b}}, b: {}}\n";
    let machine = charter_test_support::machine(source);
    let edited = export::scxml(&machine).replace("event=\"E\"", "event=\"F\"");
    let back = import::scxml(&edited, "back.scxml", &no_files).unwrap_or_else(|e| panic!("{e}"));
    assert!(back.warnings[0].message.contains("was edited"), "{:?}", back.warnings);
    assert!(!back.definition.strict);
    assert_eq!(back.definition.root.state.states["a"].on[0].events, ["F.*"]);
}

#[test]
fn an_edited_document_must_not_lose_what_scxml_cannot_express() {
    let edited = export::scxml(&governed()).replace("event=\"ASK\"", "event=\"ASKED\"");
    let errors = import::scxml(&edited, "back.scxml", &no_files).unwrap_err();
    let found: Vec<&str> = errors.list.iter().map(|d| d.message.as_str()).collect();
    assert!(found.contains(&"`charter:by` is lost in an edited export"), "{found:?}");
    assert!(found.contains(&"`<charter:action>` is lost in an edited export"), "{found:?}");
}

/// Returns the active states, the variables and the refusals after the start and after each event.
fn records(machine: &Machine, case: &Case) -> Vec<Json> {
    let mut seen = Vec::new();
    let look = |snapshot: &Snapshot| {
        let root = snapshot.actor("root").unwrap();
        let log = root.variable("log").cloned();
        json!({"states": root.state().collect::<Vec<_>>(), "log": log, "done": snapshot.status().is_finished()})
    };
    let start = Envelope::host(0, Event::Start { input: Json::Null }, 0);
    let mut snapshot = match machine.start("run", &start) {
        Ok(step) => step.snapshot,
        Err(refusal) => return vec![json!(format!("{:?}", refusal.code))],
    };
    seen.push(look(&snapshot));
    let (mut seq, mut now) = (0, 0);
    let mut step = |snapshot: &mut Snapshot, event: Event, at: i64, seen: &mut Vec<Json>| {
        seq += 1;
        let mut envelope = Envelope::host(seq, event, at);
        envelope.by = Principal::new("u", &[]);
        match machine.step(snapshot, &envelope) {
            Ok(step) => *snapshot = step.snapshot,
            Err(refusal) => seen.push(json!(format!("{:?}", refusal.code))),
        }
        seen.push(look(snapshot));
    };
    for event in &case.events {
        match event {
            RuntimeEvent::Event(kind) => {
                let event = Event::External { r#type: kind.as_str().into(), data: Json::Null };
                step(&mut snapshot, event, now, &mut seen);
            }
            RuntimeEvent::Done(n) | RuntimeEvent::Failed(n) => {
                let waits: Vec<String> = snapshot.invocations().map(|(_, i)| i.id.to_string()).collect();
                let Some(id) = n.checked_rem(waits.len()).map(|n| waits[n].clone()) else {
                    continue;
                };
                let event = match event {
                    RuntimeEvent::Done(_) => Event::Done { invocation: id, effect: None, output: json!(n) },
                    _ => Event::Failed { invocation: id, effect: None, error: json!({"message": "no"}) },
                };
                step(&mut snapshot, event, now, &mut seen);
            }
            RuntimeEvent::Wait(ms) => {
                now += ms;
                for _ in 0..50 {
                    let Some(timer) = snapshot.next_timer().filter(|t| t.due.0 <= now) else {
                        break;
                    };
                    let event = Event::Timer { timer: timer.id.to_string(), generation: timer.generation };
                    step(&mut snapshot, event, now, &mut seen);
                }
            }
        }
    }
    seen
}

fn supplied() -> Definition {
    let source = xstate_cases::around();
    let mut around = read(&source, "around.yaml", &ReadOptions::default()).unwrap().definition;
    around.root = Definition::default().root;
    around
}

/// Converts a generated config to a charter: the same states with SCXML semantics.
fn as_charter(case: &Case) -> Definition {
    let mut charter = format!("{{\"charter\":1,\"strict\":{},", case.seed.is_multiple_of(2)) + &case.config[1..];
    charter = charter.replace("\"#m.", "\"#");
    let around = supplied();
    // Add the declarations that the charter needs.
    let parts = charter_format::json(&Definition {
        id: "m".into(),
        root: read("charter: 1\nid: m\nstates: {x: {}}", "x.yaml", &ReadOptions::default()).unwrap().definition.root,
        charter: 1,
        ..around
    })
    .unwrap();
    let parts: serde_json::Map<String, Json> = serde_json::from_str(&parts).unwrap();
    for key in ["guards", "actions", "actors", "delays"] {
        charter = charter.replacen('{', &format!("{{\"{key}\":{},", parts[key]), 1);
    }
    let events: String =
        ["E", "F", "G", "G.x", "G.x.y", "H", "P0", "P1", "P2", "P3"].map(|e| format!("\"{e}\":{{}}")).join(",");
    charter = charter.replacen('{', &format!("{{\"events\":{{{events}}},"), 1);
    read(&charter, "case.json", &ReadOptions::default())
        .unwrap_or_else(|e| panic!("seed {}: {e}\n{charter}", case.seed))
        .definition
}

/// Exporting and importing a charter or an imported config preserves its digest and its behavior.
#[test]
fn generated_charters_round_trip() {
    let around = supplied();
    let (count, mut ran) = (cases(12, 99), 0);
    for seed in 1..=count {
        let seed = u64::from(seed);
        let case = xstate_cases::case(seed);
        let imported = import::xstate(&case.config, "case.json", &around).unwrap_or_else(|e| panic!("{e}")).definition;
        for definition in [imported, as_charter(&case)] {
            let Ok(machine) = Machine::compile(definition) else {
                continue;
            };
            ran += 1;
            let expected = records(&machine, &case);
            let back = import::xstate(&export::xstate(&machine), "back.json", &Definition::default())
                .unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(back.definition.digest(), machine.digest(), "seed {seed}");
            assert_eq!(records(&compiled(back.definition), &case), expected, "seed {seed} as XState");
            let back =
                import::scxml(&export::scxml(&machine), "back.scxml", &no_files).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(back.definition.digest(), machine.digest(), "seed {seed}");
            assert_eq!(records(&compiled(back.definition), &case), expected, "seed {seed} as SCXML");
        }
    }
    assert!(ran > count * 11 / 10, "only {ran} charters from {count} cases");
}

/// An exported config behaves the same without the embedded charter if its names are declared.
#[test]
fn a_config_behaves_the_same_without_the_embedded_charter() {
    let around = supplied();
    let count = cases(12, 149);
    let (mut ran, mut differ) = (0, Vec::new());
    for seed in 1..=count {
        let seed = u64::from(seed);
        let case = xstate_cases::case(seed);
        let imported = import::xstate(&case.config, "case.json", &around).unwrap_or_else(|e| panic!("{e}")).definition;
        let Ok(machine) = Machine::compile(imported) else {
            continue;
        };
        let exported = export::xstate(&machine);
        // `meta` is the last key of the config.
        let plain = exported.rsplit_once(",\n  \"meta\": {").unwrap().0.to_owned() + "\n}";
        let back =
            import::xstate(&plain, "plain.json", &around).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{plain}"));
        let back = compiled(back.definition);
        ran += 1;
        if records(&back, &case) != records(&machine, &case) {
            differ.push(seed);
        }
    }
    assert!(ran > count * 8 / 10, "only {ran} configs from {count} cases");
    assert!(differ.is_empty(), "seeds {differ:?} of {ran}");
}

#[test]
fn the_timer_and_the_end_of_the_root_keep_their_names_beside_a_wildcard() {
    let config = r##"{"id": "m", "initial": "a", "on": {"*": {"target": "#m.a"}}, "onDone": {"actions": "x"},
        "after": {"1000": {"target": "#m.b"}}, "states": {"a": {}, "b": {"type": "final"}}}"##;
    let around = read("{charter: 1, id: m, actions: {x: []}, states: {s: {}}}", "m.yaml", &ReadOptions::default());
    let around = Definition { root: Definition::default().root, ..around.unwrap().definition };
    let imported = import::xstate(config, "m.json", &around).unwrap_or_else(|e| panic!("{e}")).definition;
    let exported: Json = serde_json::from_str(&export::xstate(&Machine::compile(imported).unwrap())).unwrap();
    let named: Vec<&str> = exported["on"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(named.contains(&"xstate.after.1000.m"), "{exported}");
    assert!(!named.iter().any(|name| name.ends_with('.')), "{named:?}");
    assert_eq!(exported["after"]["1000"], json!([]), "the timer itself");
}
