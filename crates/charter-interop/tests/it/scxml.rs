//! The conformance suite for SCXML, written from W3C REC 2015-09-01: `tests/scxml/SECTION/*.scxml`,
//! a small document for each requirement. The first comment of a document says what it tests; the
//! second, if there is one, says which outcome is expected instead of `pass`. `docs/conformance.md`
//! is generated from these documents: `UPDATE_DOCS=1 cargo test -p charter-interop scxml`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use charter_interop::import;
use charter_kernel::Machine;

use crate::scxml_clock;

struct Case {
    section: String,
    name: String,
    path: PathBuf,
    shows: String,
    /// `pass`, `refused: CODE`, `refused by the kernel: CODE`.
    expected: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scxml")
}

fn comments(text: &str) -> Vec<String> {
    let parts = text.split("<!--").skip(1);
    parts.map(|part| part.split("-->").next().unwrap_or_default().trim().to_owned()).collect()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for section in fs::read_dir(root()).unwrap() {
        let section = section.unwrap().path();
        for file in fs::read_dir(&section).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "scxml") {
                continue;
            }
            let found = comments(&fs::read_to_string(&path).unwrap());
            let second = found.get(1).map_or("", String::as_str);
            if second.starts_with("part of") {
                continue;
            }
            let expected = if second.starts_with("refused") { second } else { "pass" };
            cases.push(Case {
                section: section.file_name().unwrap().to_string_lossy().into_owned(),
                name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                shows: found.first().cloned().unwrap_or_default(),
                expected: expected.to_owned(),
                path,
            });
        }
    }
    cases.sort_by_key(|case| (order(&case.section), case.name.clone()));
    cases
}

/// Returns the sort key of a section of the REC: numbers come before appendices.
fn order(section: &str) -> (Vec<u32>, String) {
    let number = section.split('-').next().unwrap_or_default();
    let parts = number.split('.').map(|part| part.parse().unwrap_or(100));
    (parts.collect(), section.to_owned())
}

/// Returns the outcome of a document: `pass`, another final configuration, or a refusal with its
/// message.
fn outcome(path: &Path) -> (String, String) {
    let source = fs::read_to_string(path).unwrap();
    let folder = path.parent().unwrap().to_owned();
    let files = |name: &str| fs::read_to_string(folder.join(name));
    let document = match import::scxml(&source, &path.to_string_lossy(), &files) {
        Ok(document) => document,
        Err(problems) => {
            let first = problems.list.iter().find(|d| d.severity == charter_format::Severity::Error).unwrap();
            return (format!("refused: {}", first.code), first.message.clone());
        }
    };
    match Machine::compile(document.definition.clone()) {
        Ok(machine) => (scxml_clock::run(&machine).join(" "), String::new()),
        Err(problems) => {
            let diagnostic = document.diagnose(&problems[0]);
            (format!("refused by the kernel: {}", problems[0].code), diagnostic.message)
        }
    }
}

#[test]
fn every_document_has_its_expected_outcome() {
    let cases = cases();
    assert!(cases.len() > 200, "only {} documents", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let (found, message) = outcome(&case.path);
        if found != case.expected {
            writeln!(wrong, "{}/{}: expected {}, found {found} {message}", case.section, case.name, case.expected)
                .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

const TITLES: [(&str, &str); 47] = [
    ("3.2", "`<scxml>`"),
    ("3.3", "`<state>`"),
    ("3.4", "`<parallel>`"),
    ("3.5", "`<transition>`"),
    ("3.6", "`<initial>`"),
    ("3.7", "`<final>`"),
    ("3.8", "`<onentry>`"),
    ("3.9", "`<onexit>`"),
    ("3.10", "`<history>`"),
    ("3.11", "Legal state configurations"),
    ("3.12", "Events and their descriptors"),
    ("3.13", "Selecting and executing transitions"),
    ("3.14", "Ids"),
    ("4.2", "`<raise>`"),
    ("4.3", "`<if>`"),
    ("4.4", "`<elseif>`"),
    ("4.5", "`<else>`"),
    ("4.6", "`<foreach>`"),
    ("4.7", "`<log>`"),
    ("4.8", "Other executable content"),
    ("4.9", "Evaluation of executable content"),
    ("4.10", "Extensions of executable content"),
    ("5.2", "`<datamodel>`"),
    ("5.3", "`<data>`"),
    ("5.4", "`<assign>`"),
    ("5.5", "`<donedata>`"),
    ("5.6", "`<content>`"),
    ("5.7", "`<param>`"),
    ("5.8", "`<script>`"),
    ("5.9", "Expressions"),
    ("5.10", "System variables"),
    ("6.2", "`<send>`"),
    ("6.3", "`<cancel>`"),
    ("6.4", "`<invoke>`"),
    ("6.5", "`<finalize>`"),
    ("B.1", "The null data model"),
    ("B.2", "The ECMAScript data model"),
    ("C.1", "The SCXML event processor"),
    ("C.2", "The HTTP event processor"),
    ("D", "The algorithm"),
    ("E", "Schema"),
    ("F", "Conformance"),
    ("G", "Examples"),
    ("3.1", "Overview"),
    ("4.1", "Overview"),
    ("5.1", "Overview"),
    ("6.1", "Overview"),
];

/// Sections without documents, and why they have none.
const ELSEWHERE: [(&str, &str); 9] = [
    ("3.14", "Generated ids: see 3.3, 6.2 and 6.4."),
    ("4.5", "See 4.3 and 4.4."),
    ("4.8", "`<assign>`, `<script>`, `<send>` and `<cancel>`: 5.4, 5.8, 6.2, 6.3."),
    ("4.10", "Actions of other namespaces are refused: see 4.9."),
    (
        "B.2",
        "Not supported: `datamodel=\"ecmascript\"` is refused (3.2). Expressions are CEL; the rules for ECMAScript's variables, \
              conditions, locations and `_event` apply to `datamodel=\"cel\"`, see 5.2 to 5.10.",
    ),
    ("E", "Elements and attributes that are not in the schema are reported; see 3.3."),
    ("F", "This page."),
    ("G", "Informative."),
    ("3.1", "The overviews (3.1, 4.1, 5.1, 6.1) have no requirements."),
];

fn page() -> String {
    let cases = cases();
    let mut out = String::from(
        "# SCXML conformance\n\n\
         <!-- Generated by `UPDATE_DOCS=1 cargo test -p charter-interop scxml`; do not edit. -->\n\n\
         A document in SCXML (W3C Recommendation, 1 September 2015) is imported as a charter with `strict: false`. Data models: `cel` \
         (expressions in the Common Expression Language) and `null`. The suite in `crates/charter-interop/tests/scxml/` covers the \
         Recommendation section by section; each line below is a document that `cargo test` runs.\n\n",
    );
    let refused = cases.iter().filter(|c| c.expected != "pass").count();
    writeln!(
        out,
        "{} documents: {} end in `pass`, {refused} are refused as expected.\n",
        cases.len(),
        cases.len() - refused
    )
    .unwrap();
    out.push_str(
        "Not supported, and reported with a place: the data models ECMAScript and XPath, the HTTP event processor (C.2), actions of \
         other namespaces, document types and entities, `idlocation` inside a variable. `srcexpr` and `<content expr>` of an `<invoke>` \
         choose among the documents that are known at import time: the strings and `<scxml>` elements in `<data>` and `<assign>`; anything \
         else raises `error.execution` at run time.\n\n\
         Where the Recommendation leaves a choice or is inconsistent:\n\n\
         - Content of transitions runs in the order of selection (appendix D), not in document order (prose of 3.13).\n\
         - The completion of an inner parallel counts for the outer one.\n\
         - A macrostep of more than 1,000 microsteps is refused as `runaway` instead of running forever.\n\
         - XML as the content of `<data>`, `<assign>` and `<content>` is its text.\n\
         - Without `datamodel`, the data model is `cel`.\n\n",
    );
    for (section, title) in TITLES {
        let mine: Vec<&Case> = cases.iter().filter(|c| c.section.split('-').next() == Some(section)).collect();
        let elsewhere = ELSEWHERE.iter().find(|(s, _)| *s == section);
        if mine.is_empty() && elsewhere.is_none() {
            continue;
        }
        writeln!(out, "## {section} {title}\n").unwrap();
        if let Some((_, why)) = elsewhere {
            writeln!(out, "{why}\n").unwrap();
        }
        for case in &mine {
            let end = match case.expected.as_str() {
                "pass" => String::new(),
                _ => format!(" *({}: {})*", case.expected, outcome(&case.path).1.replace('|', "\\|")),
            };
            writeln!(out, "- `{}`: {}.{end}", case.name, case.shows).unwrap();
        }
        if !mine.is_empty() {
            out.push('\n');
        }
    }
    out
}

#[test]
fn every_section_is_listed() {
    for case in cases() {
        let section = case.section.split('-').next().unwrap().to_owned();
        assert!(TITLES.iter().any(|(s, _)| *s == section), "section {section} has no title");
        assert!(!case.shows.is_empty(), "{} does not say what it shows", case.name);
    }
}

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance.md");
    let page = page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &page).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/conformance.md is out of date: run with UPDATE_DOCS=1");
}
