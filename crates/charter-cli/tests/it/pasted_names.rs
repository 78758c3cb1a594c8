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
