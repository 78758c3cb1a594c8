//! The documentation works: examples pass `charter check` and `charter test`.

use std::path::PathBuf;

use crate::support::{Scratch, charter};

/// The root of the repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates a folder with the files of `docs/examples`.
fn examples(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let entries = std::fs::read_dir(root().join("docs/examples")).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| path.is_file()) {
        std::fs::copy(&path, scratch.0.join(path.file_name().unwrap())).unwrap();
    }
    scratch
}

/// Returns the blocks of a page in `docs/` that begin with this info string.
fn blocks(page: &str, info: &str) -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let begin = format!("```{info}\n");
    page.split(begin.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn id(charter: &str) -> &str {
    charter.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().split_whitespace().next().unwrap()
}

#[test]
fn the_charters_of_the_reference_have_no_findings() {
    let scratch = examples("reference");
    let blocks: Vec<String> =
        ["language.md", "scenarios.md"].iter().flat_map(|page| self::blocks(page, "yaml")).collect();
    let charters = blocks.iter().filter(|block| block.starts_with("charter: 1"));
    assert!(charters.clone().count() > 15);
    for block in charters {
        let checked = charter(&["check", &scratch.file(&format!("{}.yaml", id(block)), block)]);
        assert_eq!(checked.code, 0, "{}{}\n{block}", checked.out, checked.err);
        assert!(checked.out.contains(": no findings; explored "), "{}\n{block}", checked.out);
        assert!(checked.out.contains(", complete"), "{}\n{block}", checked.out);
    }
}

#[test]
fn the_scenarios_of_the_reference_pass() {
    let (scratch, mut tested) = (Scratch::new("reference-scenarios"), 0);
    for block in blocks("scenarios.md", "yaml") {
        if block.starts_with("charter: 1") {
            scratch.file(&format!("{}.yaml", id(&block)), &block);
        } else {
            let ran = charter(&["test", &scratch.file("test.yaml", &block)]);
            assert_eq!(ran.code, 0, "{}{}\n{block}", ran.out, ran.err);
            tested += 1;
        }
    }
    assert!(tested > 0);
}
