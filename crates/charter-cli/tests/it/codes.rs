//! The pages of `docs/codes/`: every code has a page, every page has a code, and every example
//! produces its code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Scratch, charter};
use charter_cli::codes::PAGES;
use charter_scenario::runner;
use serde_json::Value as Json;

/// Codes of findings that only the exploration reports.
const EXPLORED: &[&str] = &[
    "cannot-start",
    "deadlock",
    "property-fails",
    "property-holds",
    "property-undecided",
    "property-violated",
    "state-not-reached",
    "stuck",
    "transition-not-taken",
];

fn crates() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Collects the string literals after each `marker` in the sources below a path.
fn literals(path: &Path, marker: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            found.extend(literals(&entry.unwrap().path(), marker));
        }
        return found;
    }
    let source = fs::read_to_string(path).unwrap();
    for (at, _) in source.match_indices(marker) {
        let rest = source[at + marker.len()..].trim_start();
        if let Some(code) = rest.strip_prefix('"').and_then(|r| r.split('"').next()) {
            found.insert(code.to_owned());
        }
    }
    found
}

fn codes() -> BTreeSet<String> {
    let mut codes: BTreeSet<String> = ["expression".to_owned()].into();
    let words = charter_kernel::Code::ALL.iter().map(|code| code.word());
    let findings = charter_check::codes::ALL.iter().map(|(code, _)| *code);
    let actors = charter_cli::check::actors::codes::ALL;
    let known = words.chain(findings).chain(runner::codes::ALL);
    let known = known.chain(actors).chain(charter_actors::codes::ALL).chain(charter_kernel::SENDER_RULES);
    codes.extend(known.map(str::to_owned));
    // Errors that the kernel and the core of a run make themselves; those of executors are listed
    // in `docs/actors.md`.
    let faults = literals(&crates().join("charter-kernel/src/fault.rs"), "=>");
    codes.extend(faults.into_iter().filter(|word| !word.contains(' ')));
    codes.extend(literals(&crates().join("charter-run/src"), "Fault::new("));
    let compile = crates().join("charter-kernel/src/compile");
    codes.extend(literals(&compile, "problem("));
    codes.extend(literals(&compile, "problem_in("));
    let reader = crates().join("charter-format/src/diagnostic.rs");
    codes.extend(literals(&reader, ": &str ="));
    let expressions = crates().join("charter-expr/src/error.rs");
    codes.extend(literals(&expressions, "=>"));
    codes
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let (codes, pages) = (codes(), PAGES.iter().map(|(code, _)| (*code).to_owned()));
    let pages: BTreeSet<String> = pages.collect();
    assert!(codes.len() > 100, "only {} codes were found", codes.len());
    let missing: Vec<_> = codes.difference(&pages).collect();
    let superfluous: Vec<_> = pages.difference(&codes).collect();
    assert!(
        missing.is_empty() && superfluous.is_empty(),
        "without a page: {missing:?}\nwithout a code: {superfluous:?}"
    );
}

#[test]
fn every_page_has_a_kind_an_example_and_advice() {
    for (code, page) in PAGES {
        assert!(page.starts_with(&format!("# `{code}`\n\n*")), "{code}");
        for part in ["## Example", "## What to do"] {
            assert!(page.contains(part), "{code} has no `{part}`");
        }
    }
}

/// Returns the code block with this info string.
fn block<'p>(page: &'p str, begin: &str) -> Option<&'p str> {
    page.split_once(&format!("```{begin}\n")).map(|(_, rest)| rest.split("```").next().unwrap())
}

/// Returns the output of an example that does not show its code; `None` if it does.
fn wrong(code: &str, page: &str, scratch: &Scratch) -> Option<String> {
    if let Some(cel) = block(page, "cel") {
        let ran = charter(&["eval", cel.trim_end()]);
        let right = ran.err.contains(&format!("error[{code}]"));
        return (!right).then(|| format!("{}{}", ran.out, ran.err));
    }
    let text = block(page, "yaml charter")?;
    let file = scratch.file("charter.yaml", text);
    if let Some(steps) = block(page, "yaml scenario") {
        let steps = format!("charter: charter.yaml\n{steps}");
        let ran = charter(&["test", &scratch.file("scenario.yaml", &steps)]);
        let shown = ["code", "rule"].iter().any(|key| steps.contains(&format!("{key}: {code}")));
        return (ran.code != 0 || !shown).then(|| format!("{}{}", ran.out, ran.err));
    }
    let ran = charter(&["check", &file, "--json"]);
    let report: Json = serde_json::from_str(&ran.out).unwrap_or_default();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let right = findings.iter().any(|finding| finding["code"] == code);
    (!right).then(|| format!("{}{}", ran.out, ran.err))
}

#[test]
fn every_example_produces_its_code() {
    let scratch = Scratch::new("codes");
    let pages = PAGES.iter().filter(|(code, _)| !EXPLORED.contains(code));
    let wrong: Vec<String> =
        pages.filter_map(|(code, page)| Some(format!("{code}: {}", wrong(code, page, &scratch)?))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let examples = PAGES.iter().filter(|(_, page)| page.contains("```"));
    assert!(examples.count() > 80);
}
