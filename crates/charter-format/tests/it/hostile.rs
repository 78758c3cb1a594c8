//! No input makes the reader panic, recurse without limit, or take too long.

use std::time::{Duration, Instant};

use charter_format::{Diagnostics, Document, ReadOptions, Syntax, codes, read};
use charter_test_support::cases;
use proptest::prelude::*;

const GOOD: &str = include_str!("good.yaml");

fn timed(source: &str) -> Result<Document, Diagnostics> {
    let started = Instant::now();
    let answer = read(source, "t", &ReadOptions::default());
    // Quadratic behavior would take minutes. A release build takes well under a second, a debug
    // build on a busy machine longer.
    assert!(started.elapsed() < Duration::from_secs(30), "took {:?}", started.elapsed());
    answer
}

fn code(source: &str) -> &'static str {
    timed(source).unwrap_err().list[0].code
}

#[test]
fn deep_nesting() {
    assert_eq!(code(&"[".repeat(1 << 20)), codes::TOO_DEEP);
    assert_eq!(code(&"{\"a\":".repeat(1 << 18)), codes::TOO_DEEP);
    assert_eq!(code(&format!("a: {}", "[".repeat(1 << 20))), codes::TOO_DEEP);
    assert_eq!(code(&"- ".repeat(1 << 18)), codes::TOO_DEEP);
    assert_eq!(code(&format!("a: {}x", "{b: ".repeat(1 << 18))), codes::TOO_DEEP);
    let indented: String = (0..2_000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(code(&indented), codes::TOO_DEEP);
    let states = |depth: usize| {
        format!(
            "{{\"charter\":1,\"id\":\"t\"{}{}",
            ",\"states\":{\"a\":{\"tags\":[]".repeat(depth),
            "}".repeat(2 * depth + 1)
        )
    };
    assert!(timed(&states(63)).is_ok());
    assert_eq!(code(&states(64)), codes::TOO_DEEP);
}

#[test]
fn alias_bombs() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", ")));
    }
    assert_eq!(code(&bomb), codes::TOO_LARGE);
    let wide = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(100_000));
    assert_eq!(code(&wide), codes::TOO_LARGE);
    // Nested anchors are copied, too: here 100 of them are around 50,000 items.
    let anchors: String = (0..100).map(|n| format!("&n{n} [")).collect();
    assert_eq!(code(&format!("a: {anchors}{}", "x, ".repeat(50_000) + &"]".repeat(100))), codes::TOO_LARGE);
    assert_eq!(code("a: &a [*a]"), codes::ALIAS);
    assert_eq!(code("a: *nothing"), codes::ALIAS);
}

fn many_states(count: usize) -> String {
    let state = |n: usize| format!("  s{n}: {{on: {{E: {{target: s{}, guard: g}}}}}}\n", (n + 1) % count);
    "charter: 1\nid: t\nguards: {g: 'true'}\nstates:\n".to_owned() + &(0..count).map(state).collect::<String>()
}

#[test]
fn a_large_charter_is_read() {
    let count = cases(20_000, 100_000) as usize;
    let states = timed(&many_states(count)).unwrap().definition.root.state.states.len();
    assert_eq!(states, count);
}

#[test]
fn only_the_first_hundred_errors_are_kept() {
    let source = many_states(20_000);
    for wrong in ["guard: h", "gaurd: g"] {
        let errors = timed(&source.replace("guard: g", wrong)).unwrap_err();
        assert_eq!((errors.list.len(), errors.omitted), (100, 19_900));
    }
}

#[test]
fn too_much_text() {
    assert_eq!(code(&" ".repeat((16 << 20) + 1)), codes::TOO_LARGE);
    assert_eq!(code(&format!("[{}1]", "1,".repeat(1_000_000))), codes::TOO_LARGE);
    let many_keys: String = (0..200_000).map(|n| format!("k{n}: {{}}\n")).collect();
    assert_eq!(timed(&many_keys).unwrap_err().list.len(), 100);
}

#[test]
fn types_that_refer_to_each_other() {
    let mut source = "charter: 1\nid: t\ntypes:\n  big: {enum: [".to_owned();
    source.push_str(&"x, ".repeat(100_000));
    source.push_str("]}\nevents:\n");
    source.push_str(&(0..10_000).map(|n| format!("  E{n}: {{data: {{$ref: '#/types/big'}}}}\n")).collect::<String>());
    assert_eq!(code(&source), codes::TOO_LARGE);
}

fn any_syntax() -> impl Strategy<Value = Syntax> {
    prop_oneof![Just(Syntax::Auto), Just(Syntax::Yaml), Just(Syntax::Json)]
}

/// Reads, renders and serializes the source. Nothing may panic.
fn survive(source: &str, syntax: Syntax) {
    match read(source, "t", &ReadOptions { syntax, ..ReadOptions::default() }) {
        Ok(document) => {
            for pointer in document.pointers() {
                let span = document.span(&pointer);
                assert!(source.get(span.start..span.end).is_some(), "{pointer}: {span:?}");
                let span = document.span_within(&pointer, (1, 5));
                assert!(source.get(span.start..span.end).is_some(), "{pointer}: {span:?}");
            }
        }
        Err(errors) => {
            assert!(!errors.list.is_empty());
            let text = errors.render(true) + &serde_json::to_string(&errors).unwrap();
            assert!(!text.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(100, 300), ..ProptestConfig::default() })]

    #[test]
    fn random_text(source in "\\PC{0,200}", syntax in any_syntax()) {
        survive(&source, syntax);
    }

    #[test]
    fn soup(words in proptest::collection::vec(prop_oneof![
        Just("charter: 1\nid: t\n"), Just("states"), Just(": "), Just("\n"), Just("  "), Just("- "), Just("{"), Just("}"), Just("["), Just("]"), Just(","),
        Just("\""), Just("'"), Just("&a "), Just("*a"), Just("!t "), Just("|\n"), Just(">-\n"), Just("# c\n"), Just("? "), Just("on"), Just("= x"), Just("é😀"),
        Just("\t"), Just("\r\n"), Just("---\n"), Just("...\n"), Just("%YAML 1.2\n"), Just("<<: "), Just("\\u"), Just("\u{feff}"), Just("0x"), Just("1e999"), Just("literal"),
        Just("after"), Just("entry"), Just("actions"), Just("type: history"), Just("null"),
    ], 0..60), syntax in any_syntax()) {
        survive(&words.concat(), syntax);
    }

    #[test]
    fn mutated(at in 0..GOOD.len(), cut in 0..30_usize, with in prop_oneof![Just(""), Just("\n"), Just(": "), Just("'"), Just("["), Just("}"), Just("&x "), Just("*x"), Just("  "), Just("\t"), Just("7"), Just("{a: 1}"), Just("é")]) {
        let floor = |at: usize| (0..=at.min(GOOD.len())).rev().find(|at| GOOD.is_char_boundary(*at)).unwrap();
        let (start, end) = (floor(at), floor(at + cut));
        survive(&format!("{}{with}{}", &GOOD[..start], &GOOD[end..]), Syntax::Auto);
    }
}
