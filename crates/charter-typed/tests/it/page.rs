//! `docs/typed.md` shows the files of `docs/examples/typed`, a crate of this workspace.

use std::path::Path;

const PAGE: &str = include_str!("../../../../docs/typed.md");

#[test]
fn the_page_shows_the_crate_that_is_compiled() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/typed");
    for (file, language) in
        [("Cargo.toml", "toml"), ("charter.yaml", "yaml"), ("build.rs", "rust"), ("src/main.rs", "rust")]
    {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        // On the page, the clone is beside the crate.
        let shown = format!("```{language}\n{}```\n", text.replace("../../../crates", "../charter/crates"));
        assert!(PAGE.contains(&shown), "docs/typed.md does not show docs/examples/typed/{file} as it is:\n{shown}");
    }
}
