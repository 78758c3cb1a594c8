//! Charters that import their statechart from an XState config or an SCXML document.

use charter_format::import::Files;
use charter_format::{Diagnostics, Document, ReadOptions, read};
use charter_interop::import::Importer;
use charter_interop::{export, import};
use charter_kernel::{Definition, Machine};

use super::Run;

/// Reads a charter that imports its statechart from `files`.
fn read_importing(charter: &str, name: &str, files: &Files<'_>) -> Result<Document, Diagnostics> {
    read(charter, name, &ReadOptions { files, importer: &Importer, ..ReadOptions::default() })
}

#[test]
fn a_charter_imports_its_statechart_and_reports_errors_there() {
    let charter = "charter: 1\nid: c\nstatechart: {import: door.json, format: xstate}\nguards: {free: \"true\"}\n";
    let files = |text: &'static str| {
        move |name: &str| {
            if name == "door.json" { Ok(text.to_owned()) } else { Err(std::io::Error::other("no")) }
        }
    };
    let good = files(
        r#"{"initial": "shut", "states": {"shut": {"on": {"OPEN": {"target": "open", "guard": "free"}}}, "open": {}}}"#,
    );
    let document = read_importing(charter, "c.yaml", &good).unwrap();
    assert_eq!(Run::start(document.definition).send("OPEN").state(), "open");
    let bad = files(
        r#"{"initial": "shut", "states": {"shut": {"on": {"OPEN": {"target": "open", "guard": "fre"}}}, "open": {}}}"#,
    );
    let errors = read_importing(charter, "c.yaml", &bad).unwrap_err();
    let first = &errors.list[0];
    assert_eq!((first.message.as_str(), first.line, first.column), ("undefined guard `fre`", 1, 84));
    assert_eq!(
        (first.path.as_str(), first.help.as_deref()),
        (
            "states.shut.on.OPEN.guard",
            Some(
                "did you mean `free`? Otherwise, declare the names of the config in the importing charter, for example with these lines"
            )
        )
    );
    assert!(errors.render(false).contains("--> door.json:1:84"), "{}", errors.render(false));
    let errors = read(charter, "c.yaml", &ReadOptions::default()).unwrap_err();
    assert!(errors.list[0].message.starts_with("cannot read `door.json`"), "{}", errors.list[0].message);
    let both = format!("{charter}initial: a\nstates: {{a: {{}}}}\n");
    let errors = read_importing(&both, "c.yaml", &good).unwrap_err();
    assert_eq!(errors.list[0].message, "`initial` conflicts with the imported statechart");
    let scxml = "charter: 1\nid: c\nstatechart: {import: door.json, format: scxml}\n";
    let door = files(
        r#"<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0"><state id="shut"><transition event="open" target="open"/></state><state id="open"/></scxml>"#,
    );
    let document = read_importing(scxml, "c.yaml", &door).unwrap();
    assert_eq!(Run::start(document.definition).send("open").state(), "open");
}

#[test]
fn the_importing_charter_overrides_an_embedded_one() {
    let inner = "charter: 1\nid: inner\nroles: {nobody: {}}\nevents: {OPEN: {}}\nguards: {free: \"false\"}\nstates: {shut: {on: {OPEN: {target: open, guard: free}}}, open: {}}\n";
    let inner = Machine::compile(read(inner, "inner.yaml", &ReadOptions::default()).unwrap().definition).unwrap();
    let exported = export::xstate(&inner);
    // An export that is imported on its own is the original charter.
    let alone = import::xstate(&exported, "inner.json", &Definition::default()).unwrap();
    assert_eq!(alone.definition.digest(), inner.digest());
    // An export that is imported into another charter provides only its states.
    let outer = "charter: 1\nid: outer\nroles: {keeper: {}}\nstatechart: {import: inner.json, format: xstate}\nguards: {free: \"true\"}\n";
    let files = |_: &str| Ok(exported.clone());
    let document = read_importing(outer, "outer.yaml", &files).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(document.definition.id, "outer");
    assert!(document.definition.roles.contains_key("keeper") && !document.definition.roles.contains_key("nobody"));
    assert_eq!(Run::start(document.definition).send("OPEN").state(), "open");
}

#[test]
fn a_problem_of_the_kernel_has_a_place_in_the_imported_file() {
    let charter = "charter: 1\nid: c\nstatechart: {import: door.json, format: xstate}\nguards: {free: \"true\"}\n";
    let door = r#"{"initial": "shut",
      "states": {"shut": {}, "both": {"id": "x", "on": {"E": "shut"}}}}"#;
    let document = read_importing(charter, "c.yaml", &|_| Ok(door.to_owned())).unwrap();
    let place = |pointer: &str| {
        let found = document.placed(pointer, None, charter_format::Diagnostic::error("", Default::default(), "no"));
        let shown = found.render(&document.source, &document.name, false);
        (found.file.map(|file| file.name.clone()), found.line, found.column, found.path, shown)
    };
    let (file, line, column, path, shown) = place("/root/state/states/both/on/0/transitions/0");
    assert_eq!((file.as_deref(), line, column, path.as_str()), (Some("door.json"), 2, 62, "states.both.on.E"));
    assert!(shown.contains("--> door.json:2:62") && shown.contains(r#"2 |       "states""#), "{shown}");
    let (file, line, .., shown) = place("/guards/free");
    assert_eq!((file, line), (None, 4));
    assert!(shown.contains("--> c.yaml:4:"), "{shown}");
}
