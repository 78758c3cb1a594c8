//! What an import refuses, and how it says so: undeclared names, other versions of XState, cycles.

use charter_format::Diagnostics;
use charter_interop::import;
use charter_kernel::{Definition, Machine};

use super::{around, refused};

fn errors(json: &str, around: &Definition) -> Diagnostics {
    import::xstate(json, "door.json", around).unwrap_err()
}

#[test]
fn each_undeclared_name_is_reported_once_with_the_lines_that_declare_all() {
    let config = r#"{"initial": "a", "states": {
      "a": {"entry": ["hello", "hello"], "invoke": {"src": "work"}, "after": {"myDelay": "b", "no": "b"},
        "on": {"E": {"guard": "ready", "target": "b"}, "F": {"guard": "ready", "actions": "hello"}}},
      "b": {"entry": {"type": "hello", "params": {"n": 1}}}}}"#;
    let found = errors(config, &Definition::default());
    let messages: Vec<&str> = found.list.iter().map(|d| d.message.as_str()).collect();
    let expected = [
        "undefined action `hello`",
        "undefined actor `work`",
        "undefined delay `myDelay`",
        "undefined delay `no`",
        "undefined guard `ready`",
    ];
    assert_eq!(messages, expected);
    let (help, charter) = (found.list[0].help.as_deref().unwrap(), found.list[0].paste.as_deref().unwrap());
    assert_eq!(help, "import the config into a charter that declares its names, for example this one");
    assert!(found.list[1..].iter().all(|d| d.help.is_none() && d.paste.is_none()));
    // The lines are shown as they are, so that they can be copied.
    assert!(found.render(false).contains(&format!("\n\n{charter}\n")), "{}", found.render(false));
    // The lines are a charter that imports the config.
    let files =
        |name: &str| (name == "door.json").then(|| config.to_owned()).ok_or_else(|| std::io::Error::other("no"));
    let options = charter_format::ReadOptions {
        files: &files,
        importer: &import::Importer,
        ..charter_format::ReadOptions::default()
    };
    let document = charter_format::read(charter, "c.yaml", &options).unwrap_or_else(|e| panic!("{e}\n{charter}"));
    Machine::compile(document.definition).unwrap();
}

/// Lines that declare it would be refused.
#[test]
fn a_delay_whose_name_no_charter_can_have_is_not_declared_but_renamed() {
    for name in ["my delay", "1a", "=x", "-a", ""] {
        let config = format!(r#"{{"initial": "a", "states": {{"a": {{"after": {{"{name}": "b"}}}}, "b": {{}}}}}}"#);
        let found = errors(&config, &Definition::default());
        let [error] = &found.list[..] else { panic!("{found:?}") };
        assert_eq!(error.message, format!("the delay `{name}` cannot be imported under this name"));
        assert!(error.help.as_deref().unwrap().starts_with("rename it in the machine"), "{error:?}");
        assert!(error.paste.is_none());
    }
}

#[test]
fn the_lines_fit_into_a_charter_that_has_the_keys_already() {
    let config = r#"{"initial": "a", "states": {
      "a": {"entry": "hello", "after": {"soon": "b", "late": "b"}, "on": {"E": {"guard": "ready", "target": "b"}}},
      "b": {"invoke": {"src": "work"}}}}"#;
    let files = |_: &str| Ok(config.to_owned());
    let options = charter_format::ReadOptions {
        files: &files,
        importer: &import::Importer,
        ..charter_format::ReadOptions::default()
    };
    let charter = "charter: 1\nid: c\nstatechart: {import: door.json, format: xstate}\nguards:\n    # mine\n    other: 'true'\ndelays: {soon: 1s}\n";
    let found = charter_format::read(charter, "c.yaml", &options).unwrap_err();
    let paste = found.list.iter().find_map(|d| d.paste.as_deref()).unwrap();
    let parts: Vec<&str> = paste.split("\n\n").collect();
    let [new, guards, guard, delays, delay] = parts[..] else { panic!("{paste}") };
    assert_eq!((guards, delays), ("under `guards` in line 4:", "after the `{` of `delays` in line 7:"));
    let whole = charter.replace("    # mine", guard).replace("{soon", &format!("{{\n{delay}\n  soon"));
    let whole = format!("{whole}{new}\n");
    let document = charter_format::read(&whole, "c.yaml", &options).unwrap_or_else(|e| panic!("{e}\n{whole}"));
    Machine::compile(document.definition).unwrap();
}

#[test]
fn what_is_not_a_name_is_called_that() {
    for (part, message) in [
        (r#""entry": {"assign": {"a": 1}}"#, "an action is a name or an object with `type`"),
        (r#""entry": 5"#, "an action is a name or an object with `type`"),
        (r#""entry": [{"params": {}}]"#, "an action is a name or an object with `type`"),
        (r#""entry": [null]"#, "an action is `null`"),
        (r#""on": {"E": {"guard": 5}}"#, "a guard is a name or an object with `type`"),
        (r#""on": {"E": {"target": 5}}"#, "a target is a string"),
        (r#""invoke": {"src": 5}"#, "the `src` of an invocation is the name of an actor"),
        (r#""invoke": {}"#, "an invocation needs `src`"),
    ] {
        let config = format!(r#"{{"initial": "a", "states": {{"a": {{{part}}}}}}}"#);
        let found = errors(&config, &Definition::default());
        assert_eq!(found.list[0].message, message, "{part}");
        assert!(found.list[0].help.is_some(), "{part}");
    }
}

#[test]
fn a_misspelt_name_is_corrected() {
    let around = around("guards: {ready: \"true\"}");
    let config = r#"{"initial": "a", "states": {"a": {"on": {"E": {"guard": "raedy", "target": "b"}, "F": {"guard": "other", "target": "b"}}}, "b": {}}}"#;
    let found = errors(config, &around);
    assert_eq!(found.list[0].help.as_deref(), Some("did you mean `ready`?"));
    // It may also be a name of its own: the lines declare all names. A guard that nobody has
    // written lets nothing through.
    let lines = found.list[1].paste.as_deref().unwrap();
    let guards = "\nguards:\n  raedy: \"false\"  # never holds: write the condition  # or `ready`, if that is meant\n  other: \"false\"  # never";
    assert!(lines.contains(guards), "{lines}");
    let only = config.replace("other", "raedy");
    let found = errors(&only, &around);
    assert_eq!(found.list.len(), 1);
    assert!(found.list[0].help.as_deref().unwrap().starts_with("did you mean `ready`? Otherwise, "));
    assert!(found.list[0].paste.as_deref().unwrap().contains("\n  raedy: \"false\""));
}

#[test]
fn machines_of_xstate_6_and_definitions_are_recognized() {
    let six = r#"{"initial": "a", "states": {"a": {"entry": {"@code": "() => {}", "@lang": "ts"}, "exit": {"@code": "() => {}", "@lang": "ts"}}}}"#;
    let message =
        "this is a machine of XState 6, which contains program code; only configs of XState 5 can be imported";
    assert_eq!(refused(six), [format!("states.a.entry.\"@code\": {message}")]);
    let definition = r##"{"id": "m", "key": "m", "type": "compound", "initial": {"target": ["#m.a"]}, "states": {"a": {"id": "m.a"}}, "on": {}, "transitions": [], "order": -1}"##;
    let message = "this is the definition of a machine, which lacks `always` and `after`, not its config";
    assert_eq!(refused(definition), [format!("transitions: {message}")]);
}

#[test]
fn a_history_state_that_leads_to_itself_has_a_place() {
    for (config, line) in [
        (r#"{"initial":"h","states":{"h":{"type":"history"},"a":{}}}"#, "c.json:1:26"),
        (
            r#"{"initial":"a","states":{"a":{},"p":{"initial":"h","states":{"x":{},"h":{"history":true}}}}}"#,
            "c.json:1:69",
        ),
    ] {
        let document = import::xstate(config, "c.json", &Definition::default()).unwrap();
        let problem = Machine::compile(document.definition.clone()).unwrap_err().remove(0);
        let shown = document.diagnose(&problem);
        assert_eq!(shown.message, "the default of history state `h` leads to no state that can be active");
        assert_eq!(format!("c.json:{}:{}", shown.line, shown.column), line);
    }
}
