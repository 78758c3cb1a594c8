//! Malformed, truncated, repetitive and huge documents: each is imported, or refused with a place
//! and a message, in bounded time and without a panic.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use charter_format::import::no_files;
use charter_format::{Diagnostics, Document, ReadOptions, read};
use charter_interop::{export, import};
use charter_kernel::{Definition, Envelope, Event, Machine, Principal};
use charter_test_support::cases;
use cpu_time::ThreadTime;
use serde_json::Value as Json;

use crate::{scxml_clock, xstate_cases};

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok().and_then(|n| n.parse().ok());
    set.unwrap_or(default)
}

fn fuzz_cases() -> u64 {
    number("FUZZ_CASES", cases(150, 1_500).into())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n.max(1)).unwrap()).unwrap()
    }
}

/// Collects all documents in a folder.
fn collect(folder: &Path, extension: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// Splits a document into tokens of XML and JSON: words, numbers, spaces, punctuation.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let kind = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c.is_whitespace() {
            2
        } else {
            0
        }
    };
    let (mut start, mut before) = (0, None);
    for (at, c) in text.char_indices() {
        let kind = kind(c);
        if before.is_some_and(|b| b != kind || kind == 0) {
            tokens.push(&text[start..at]);
            start = at;
        }
        before = Some(kind);
    }
    tokens.push(&text[start..]);
    tokens
}

const ODD: [&str; 24] = [
    "",
    "null",
    "-1",
    "1e999",
    "\"",
    "<",
    "&lt;",
    "]]>",
    "\u{0}",
    "é",
    "#",
    ".",
    "*",
    "{",
    "}",
    "[",
    "]",
    "true",
    "9007199254740993",
    "_event.data",
    "\\u0000",
    "..",
    "state",
    "\n",
];

/// Returns a document with some tokens removed, duplicated, swapped, or replaced by tokens from
/// another document.
fn mutated(text: &str, other: &str, r: &mut Random) -> String {
    let other = tokens(other);
    let mut parts: Vec<&str> = tokens(text);
    // Make only one change in most cases: the import of a document with many errors may stop at the
    // first.
    for _ in 0..1 + r.below(10) / 8 * 5 {
        if parts.is_empty() {
            break;
        }
        let at = r.below(parts.len());
        let to = (at + 1 + r.below(4)).min(parts.len());
        match r.below(7) {
            0 => drop(parts.drain(at..to)),
            1 => {
                let again = parts[at..to].to_vec();
                parts.splice(at..at, again);
            }
            2 => {
                let with = r.below(parts.len());
                parts.swap(at, with);
            }
            3 => parts[at] = ODD[r.below(ODD.len())],
            4 => parts[at] = other[r.below(other.len())],
            5 => {
                let from = r.below(other.len());
                let piece = other[from..(from + r.below(30)).min(other.len())].to_vec();
                parts.splice(at..at, piece);
            }
            _ => parts.truncate(to),
        }
    }
    parts.concat()
}

/// Checks that errors have a place and a message, and that what compiles can be run.
fn survive(source: &str, read: Result<Document, Diagnostics>) -> bool {
    let document = match read {
        Ok(document) => document,
        Err(problems) => {
            assert!(!problems.list.is_empty(), "refused without a reason: {source}");
            for problem in &problems.list {
                assert!(problem.line > 0 && !problem.message.is_empty(), "{problem:?}\n{source}");
                assert!(problem.span.end <= source.len() + 1, "{problem:?}\n{source}");
            }
            assert!(!problems.render(false).is_empty());
            return false;
        }
    };
    let machine = match Machine::compile(document.definition.clone()) {
        Ok(machine) => machine,
        Err(problems) => {
            for problem in &problems {
                assert!(document.diagnose(problem).line > 0);
            }
            return false;
        }
    };
    let Ok(step) = scxml_clock::start(&machine) else {
        return true;
    };
    let mut snapshot = step.snapshot;
    for (seq, event) in (1..).zip(["E", "e", "F", "G.x", "go", "START"]) {
        let mut envelope = Envelope::host(seq, Event::External { r#type: event.into(), data: Json::Null }, 2_000_000);
        envelope.by = Principal::new("u", &[]);
        if let Ok(step) = machine.step(&snapshot, &envelope) {
            snapshot = step.snapshot;
        }
    }
    true
}

#[test]
fn mutated_documents_are_imported_or_refused() {
    let mut documents = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scxml"), "scxml", &mut documents);
    documents.sort();
    let mut r = Random(number("FUZZ_SEED", 1));
    let (count, mut ran) = (fuzz_cases(), 0);
    for _ in 0..count {
        let (one, other) = (r.below(documents.len()), r.below(documents.len()));
        let source = mutated(&documents[one], &documents[other], &mut r);
        ran += u64::from(survive(&source, import::scxml(&source, "mutant.scxml", &no_files)));
    }
    assert!(ran > count / 30, "only {ran} mutants of {count} ran");
}

#[test]
fn mutated_configs_are_imported_or_refused() {
    let fred = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xstate/fred.json")).unwrap();
    let around = xstate_cases::around();
    let mut around = read(&around, "a.yaml", &ReadOptions::default()).unwrap().definition;
    around.root = Default::default();
    let mut r = Random(number("FUZZ_SEED", 1));
    let (count, mut ran) = (fuzz_cases(), 0);
    for seed in 0..count {
        let (mut one, other) = (xstate_cases::case(seed % 300).config, xstate_cases::case(r.below(300) as u64).config);
        let mut around = &around;
        if seed % 10 == 0 {
            one.clone_from(&fred);
        }
        if seed % 7 == 0 {
            // Include an export with an embedded charter.
            let document = import::xstate(&one, "c.json", around);
            let machine = document.ok().and_then(|d| Machine::compile(d.definition).ok());
            one = machine.map_or(one, |m| export::xstate(&m));
            static NOTHING: std::sync::OnceLock<Definition> = std::sync::OnceLock::new();
            around = NOTHING.get_or_init(Definition::default);
        }
        let source = mutated(&one, &other, &mut r);
        ran += u64::from(survive(&source, import::xstate(&source, "mutant.json", around)));
    }
    assert!(ran > count / 30, "only {ran} mutants of {count} ran");
}

/// Measures the time to import and compile a document.
fn timed(what: &str, source: &str, read: impl FnOnce(&str) -> Result<Document, Diagnostics>) -> Duration {
    let begin = ThreadTime::now();
    let document = match read(source) {
        Ok(document) => document,
        Err(problems) => {
            let took = begin.elapsed();
            eprintln!("{what}: {} bytes refused in {took:?}: {}", source.len(), problems.list[0].message);
            return took;
        }
    };
    let read = begin.elapsed();
    let compiled = match Machine::compile(document.definition.clone()) {
        Ok(machine) => format!("{} states", machine.outlines().iter().map(|o| o.states.len()).sum::<usize>()),
        Err(problems) => format!("{} problems, {}", problems.len(), document.diagnose(&problems[0]).message),
    };
    let took = begin.elapsed();
    eprintln!("{what}: {} bytes, read in {read:?}, compiled in {:?}: {compiled}", source.len(), took - read);
    took
}

/// `LARGE_KB=5000 cargo test --release` measures large documents. The default size suffices to
/// detect quadratic time.
#[test]
fn large_documents_take_linear_time() {
    let bytes = usize::try_from(number("LARGE_KB", cases(100, 500).into())).unwrap() << 10;
    let limit = Duration::from_millis(number("LARGE_MS", cases(2_000, 8_000).into()));
    let scxml = |head: &str, tail: &str, part: &dyn Fn(usize) -> String| {
        let mut text = format!(
            "<scxml xmlns=\"http://www.w3.org/2005/07/scxml\" version=\"1.0\" datamodel=\"cel\"><datamodel><data id=\"n\" expr=\"0\"/></datamodel>{head}"
        );
        let mut count = 0;
        while text.len() < bytes {
            text.push_str(&part(count));
            count += 1;
        }
        text + tail + "</scxml>"
    };
    let states = |n: usize| {
        format!(
            "<state id=\"s{n}\"><onentry><assign location=\"n\" expr=\"n + {n}\"/><log expr=\"n\"/></onentry><transition event=\"e{n}.x\" cond=\"n &lt; {n}\" target=\"s{}\"/></state>\n",
            n / 2
        )
    };
    let documents: [(&str, String); 9] = [
        ("states", scxml("", "", &states)),
        ("states on one line", scxml("", "", &|n| states(n).replace('\n', ""))),
        (
            "transitions",
            scxml("<state id=\"s\">", "</state>", &|n| {
                format!("<transition event=\"e{n}\" cond=\"n == {n}\" target=\"s\"/>")
            }),
        ),
        (
            "data",
            scxml("<datamodel>", "</datamodel><state id=\"s\"/>", &|n| format!("<data id=\"v{n}\" expr=\"{n}\"/>")),
        ),
        (
            "actions",
            scxml("<state id=\"s\"><onentry>", "</onentry></state>", &|n| {
                format!("<assign location=\"n\" expr=\"{n}\"/><raise event=\"x{n}\"/>")
            }),
        ),
        (
            "regions",
            scxml("<parallel id=\"p\">", "</parallel>", &|n| {
                format!(
                    "<state id=\"r{n}\"><state id=\"a{n}\"><transition event=\"go\" target=\"b{n}\"/></state><state id=\"b{n}\"/></state>"
                )
            }),
        ),
        (
            "text",
            scxml("<state id=\"s\"><onentry><assign location=\"n\">", "</assign></onentry></state>", &|n| {
                format!("word{n} ")
            }),
        ),
        (
            "mistakes",
            scxml("<state id=\"s\">", "</state>", &|n| {
                format!("<transition event=\"e{n}\" target=\"nowhere{n}\" odd=\"1\"/>")
            }),
        ),
        ("script", scxml("<script>", "</script><state id=\"s\"/>", &|n| format!("n = n + {n}\n"))),
    ];
    for (what, source) in &documents {
        let took = timed(what, source, |s| import::scxml(s, "large.scxml", &no_files));
        assert!(took < limit, "{what}: {took:?}");
    }
    let json = |head: &str, tail: &str, part: &dyn Fn(usize) -> String| {
        let mut text = format!("{{\"id\":\"m\",\"initial\":\"s0\",\"context\":{{}},{head}");
        let mut count = 0;
        while text.len() < bytes {
            let _ = write!(text, "{}{}", if count == 0 { "" } else { "," }, part(count));
            count += 1;
        }
        text + tail + "}"
    };
    let state = |n: usize| {
        format!(
            "\"s{n}\":{{\"entry\":\"hello\",\"on\":{{\"E{n}\":{{\"target\":\"s{}\",\"guard\":\"yes\",\"actions\":[\"hello\",\"hello\"]}},\"*\":\"s0\"}},\"after\":{{\"1000\":\"#m.s0\"}}}}",
            n / 2
        )
    };
    let configs: [(&str, String); 5] = [
        ("config: states", json("\"states\":{", "}", &state)),
        ("config: transitions", json("\"states\":{\"s0\":{\"on\":{", "}}}", &|n| format!("\"e{n}.*\":\"s0\""))),
        (
            "config: params",
            json("\"states\":{\"s0\":{}},\"on\":{\"E\":[", "]}", &|n| {
                format!(
                    "{{\"guard\":{{\"type\":\"yes\",\"params\":{{\"n\":{n}}}}},\"actions\":{{\"type\":\"hello\",\"params\":{{\"n\":{n}}}}}}}"
                )
            }),
        ),
        (
            "config: mistakes",
            json("\"states\":{\"s0\":{}},\"on\":{\"E\":[", "]}", &|n| {
                format!("{{\"guard\":\"no{n}\",\"target\":\"x{n}\",\"odd\":1}}")
            }),
        ),
        (
            "config: ids",
            json("\"states\":{", "}", &|n| {
                format!(
                    "\"s{n}\":{{\"type\":\"parallel\",\"states\":{{\"a\":{{\"id\":\"i{n}\"}},\"b\":{{\"on\":{{\"E\":{{\"target\":[\"#i{n}\"],\"guard\":{{\"type\":\"stateIn\",\"stateValue\":\"#i{n}\"}}}}}}}}}}}}"
                )
            }),
        ),
    ];
    let around =
        "charter: 1\nid: c\nstrict: false\nstates: {a: {}}\nguards: {yes: 'true'}\nactions: {hello: {log: 1}}\n";
    let mut around = read(around, "a.yaml", &ReadOptions::default()).unwrap().definition;
    around.root = Default::default();
    for (what, source) in &configs {
        let took = timed(what, source, |s| import::xstate(s, "large.json", &around));
        assert!(took < limit, "{what}: {took:?}");
    }
}
