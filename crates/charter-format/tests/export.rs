//! Exports come back as the very same charter; what was edited on the way is read as what it says.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

use std::fs;
use std::path::{Path, PathBuf};

use charter_format::{ReadOptions, export, import, read};
use charter_kernel::{Definition, Machine};

const GOVERNED: &str = r##"
charter: 1
id: governed
title: "Permits & approvals <here>"
roles: {reviewer: {}, founder: {}}
events: {ASK: {by: founder}, YES: {by: reviewer}, STOP: {}}
context: {n: 1, text: "a ]]> b", computed: "= 1 + 1"}
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
    compiled(
        read(GOVERNED, "g.yaml", &ReadOptions::default())
            .unwrap_or_else(|e| panic!("{e}"))
            .definition,
    )
}

/// Every document of the SCXML suite that can be run.
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
            let files =
                |name: &str| fs::read_to_string(folder.join(name)).map_err(|e| e.to_string());
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
fn an_export_comes_back_as_the_same_charter() {
    let mut machines = suite();
    machines.push((PathBuf::from("governed"), governed()));
    for (path, machine) in machines {
        let config = export::xstate(&machine);
        let back = import::xstate(&config, "back.json", &Definition::default())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(
            back.definition.digest(),
            machine.digest(),
            "{} as XState",
            path.display()
        );
        let document = export::scxml(&machine);
        let back = import::scxml(&document, "back.scxml", &import::no_files)
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(
            back.definition.digest(),
            machine.digest(),
            "{} as SCXML",
            path.display()
        );
    }
}

#[test]
fn an_edited_config_is_what_it_says_and_keeps_what_stands_beside() {
    let machine = governed();
    let edited =
        export::xstate(&machine).replacen("\"initial\": \"one\"", "\"initial\": \"two\"", 1);
    let back = import::xstate(&edited, "back.json", &Definition::default())
        .unwrap_or_else(|e| panic!("{e}"))
        .definition;
    assert_ne!(back.digest(), machine.digest());
    assert_eq!(
        (&back.roles, &back.ledger, &back.events),
        (
            &machine.definition().roles,
            &machine.definition().ledger,
            &machine.definition().events
        )
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

#[test]
fn an_edited_document_is_plain_scxml_and_says_so() {
    let source = "charter: 1\nid: c\nevents: {E: {}}\nstates: {a: {on: {E: b}}, b: {}}\n";
    let machine = compiled(
        read(source, "c.yaml", &ReadOptions::default())
            .unwrap()
            .definition,
    );
    let edited = export::scxml(&machine).replace("event=\"E\"", "event=\"F\"");
    let back =
        import::scxml(&edited, "back.scxml", &import::no_files).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        back.warnings[0].message.contains("was edited"),
        "{:?}",
        back.warnings
    );
    assert!(!back.definition.strict);
    assert_eq!(back.definition.root.state.states["a"].on[0].events, ["F.*"]);
}
