//! Helpers that turn the text of a charter into its findings.

use charter_check::{Options, Report, check};
use charter_kernel::Machine;
pub(crate) use charter_test_support::{document, machine};

pub(crate) fn report_with(source: &str, options: &Options) -> Report {
    let document = document(source);
    let machine = Machine::compile(document.definition.clone()).unwrap_or_else(|problems| panic!("{problems:#?}"));
    check(&document, &machine, options)
}

/// Returns the report without exploration.
pub(crate) fn lint(source: &str) -> Report {
    report_with(source, &Options { explore: false, ..Options::default() })
}

/// Returns the places and messages of the findings with one code.
pub(crate) fn found(source: &str, code: &str) -> Vec<String> {
    lint(source).findings.iter().filter(|f| f.code == code).map(|f| format!("{}: {}", f.path, f.message)).collect()
}

/// Formats all findings, one per line: `severity code path: message`.
pub(crate) fn all(report: &Report) -> Vec<String> {
    report.findings.iter().map(|f| format!("{} {} {}: {}", f.severity.word(), f.code, f.path, f.message)).collect()
}

/// Asserts that `bad` has a finding with the code whose place starts with `at` and whose message
/// contains `words`, and that `good` has no finding with the code.
#[track_caller]
pub(crate) fn reports(code: &str, bad: &str, at: &str, words: &str, good: &str) {
    let bad = found(bad, code);
    assert!(
        bad.iter().any(|f| f.starts_with(at) && f.contains(words)),
        "{code}: expected `{at}: ..{words}..`, got {bad:#?}"
    );
    assert_eq!(found(good, code), Vec::<String>::new(), "{code}: the good charter");
}
