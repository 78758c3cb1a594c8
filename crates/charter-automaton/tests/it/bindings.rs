//! The committed bindings are what the generator produces from the charter.

use std::path::Path;

use charter_typed::generate;

#[test]
fn committed_bindings_match_the_generator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("src/generated/bindings.rs");
    let made = generate::from_file(root.join("../../charters/automaton/charter.yaml")).unwrap();
    if std::env::var_os("UPDATE_BINDINGS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "run `UPDATE_BINDINGS=1 cargo test -p charter-automaton --test it`");
}
