//! Printed commands with names that look like options work when they are pasted.

use crate::pasted::Shell;

#[test]
fn names_that_look_like_options_are_no_options() {
    let shell = Shell::new("paste-options");
    let source = "
charter: 1
id: odd
roles: {u: {}, operator: {}}
events:
  '--role=operator': {by: u, data: {const: 5}}
  '5': {by: operator}
  '--json': {by: u, data: {const: charter.cancel}}
  '-h': {by: u}
  '--': {by: u}
initial: a
states:
  a: {on: {'--role=operator': b, '5': c, '--json': d, '-h': e, '--': f}}
  b: {type: final}
  c: {type: final}
  d: {type: final}
  e: {type: final}
  f: {type: final}
";
    shell.site.0.file("odd.yaml", source);
    let started = shell.here("charter run odd.yaml --run o");
    let pasted = shell.paste(&[started, shell.here("charter show o"), shell.here("charter legal o")]);
    for (event, does) in [
        ("'--role=operator'", "a → b"),
        (" 5 ", "a → c"),
        (" -- '--json'", "a → d"),
        (" -- '-h'", "a → e"),
        (" -- '--'", "a → f"),
    ] {
        let of_event: Vec<_> = pasted.iter().filter(|(command, ..)| command.contains(event)).collect();
        // The start of a list may be all that is suggested.
        for (command, code, said) in of_event {
            assert!(*code == 0 && said.contains(does), "{command}\n{code} {said}");
        }
    }
    assert!(pasted.iter().any(|(command, ..)| command.contains(" -- ")), "{pasted:#?}");
}

#[test]
fn a_schema_without_an_example_has_words_instead_of_a_command() {
    let shell = Shell::new("paste-nothing");
    let source = "
charter: 1
id: hard
events: {GO: {data: {type: object, required: [n], properties: {n: {type: string, pattern: '^(?:ab){7}c[0-9]{3}$', not: {pattern: 'abc'}}}}}}
initial: a
states: {a: {on: {GO: a}}}
";
    shell.site.0.file("hard.yaml", source);
    let (_, out, _) = shell.here("charter run hard.yaml --run h");
    assert!(out.contains("for GO (depends on the data)  (no example") || out.contains("for GO  (no example"), "{out}");
    assert!(out.contains("send `GO` with JSON that fits its schema)") && !out.contains("charter send h GO"), "{out}");
}

#[test]
fn roles_like_options_can_be_pasted_and_control_characters_are_no_names() {
    let shell = Shell::new("paste-control");
    let source = r#"
charter: 1
id: odd
roles: {"--db": {}}
events: {GO: {by: "--db"}}
initial: a
states: {a: {on: {GO: b}}, b: {type: final}}
"#;
    shell.site.0.file("odd.yaml", source);
    let (_, out, _) = shell.here("charter run odd.yaml --run o");
    let (code, out, err) = shell.here(&sent(&out, "for GO"));
    assert!(code == 0 && out.contains("a → b"), "{out} {err}");
    for name in [r"GO\n", r"GO\u001b[31m"] {
        shell.site.0.file("odd.yaml", source.replace("GO", &format!("\"{name}\"")));
        let (code, _, err) = shell.here("charter run odd.yaml --run p");
        assert!(code == 2 && err.contains("bad-event-name") && !err.contains('\u{1b}'), "{err:?}");
    }
}

/// The printed command that sends an event.
fn sent(printed: &str, event: &str) -> String {
    let line = printed.lines().find(|line| line.contains("  for ") && line.contains(event));
    let (_, command) = line.and_then(|line| line.split_once("  charter send")).unwrap_or_else(|| panic!("{printed}"));
    format!("charter send{command}")
}
