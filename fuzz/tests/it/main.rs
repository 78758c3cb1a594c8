//! Runs the corpus through the targets, without an engine.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

use charter_fuzz::{TARGETS, exported, target};

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

#[test]
fn no_input_of_the_corpus_fails() {
    for (name, run) in TARGETS {
        let mut inputs = 0;
        for entry in std::fs::read_dir(corpus(name)).unwrap() {
            let path = entry.unwrap().path();
            // Shown if it fails.
            println!("{}", path.display());
            run(&std::fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{name} has no corpus");
    }
}

/// `UPDATE_FUZZ=1` writes it.
#[test]
fn the_corpus_has_the_run_that_is_exported() {
    let file = corpus("exports").join("original.jsonl");
    if std::env::var_os("UPDATE_FUZZ").is_some() {
        std::fs::write(&file, exported()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), exported());
    // Otherwise, what the targets compare would never be compared.
    target("exports").unwrap()(exported().as_bytes());
}
