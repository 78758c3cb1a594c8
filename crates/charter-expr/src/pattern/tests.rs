//! Our matcher against the crate `regex`, and what it costs.

use proptest::prelude::*;

use super::{Pattern, size};
use crate::Fuel;

const PLENTY: u64 = 1 << 40;

/// The verdict and the fuel of a search.
fn search(pattern: &Pattern, text: &str) -> (bool, u64) {
    let mut fuel = Fuel::new(PLENTY);
    let found = pattern.is_match(text, &mut fuel).unwrap();
    (found, PLENTY - fuel.left())
}

/// With a table, if it may have one, and without.
fn both(pattern: &str) -> [Pattern; 2] {
    [Pattern::constant(pattern).unwrap(), Pattern::checked(pattern).unwrap()]
}

#[test]
fn the_verdicts_are_those_of_the_crate_regex() {
    let texts =
        ["", "a", "ab", "b\n", "aé", "é", "é ü", "-", "a-b", "aaab", "Straße", "STRASSE", "ab\ncd", "\u{2028}x"];
    for pattern in [
        "",
        "^",
        "$",
        "^$",
        "$^",
        "a*$^",
        "^a|b$",
        r"\b",
        r"\B",
        r"\bab\b",
        r"(?m)^cd$",
        r"\bü",
        r"\w+\s\w",
        "(?i)ß",
        r"(?-u:\b)a",
        r"(?-u:\B)",
        ".",
        "(?s).x",
        r"\p{L}{2}",
        "[^a]",
        "(a|ab)(c|bcd)?$",
        "a{2,3}b",
        "(a?){3}a{3}",
        r"\Aa\z",
        "[a&&b]",
        "(?:)",
        "x*",
        r"(^|-)b",
        r"b($|\n)",
        "[é-ü]",
    ] {
        let known = regex::Regex::new(pattern).unwrap();
        for ours in both(pattern) {
            for text in texts {
                assert_eq!(search(&ours, text).0, known.is_match(text), "{pattern} {text:?} {}", ours.has_table());
            }
        }
    }
}

/// A random pattern of few letters, so that it is often found.
fn patterns() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        "[abé]",
        Just(".".into()),
        Just("[a-b]".into()),
        Just("[^a]".into()),
        Just(r"\w".into()),
        Just("^".into()),
        Just("$".into()),
        Just(r"\b".into()),
        Just(r"\B".into()),
        Just("(?i)A".into()),
        Just(r"(?m)^".into()),
    ];
    atom.prop_recursive(4, 24, 4, |inner: BoxedStrategy<String>| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(?:{a}|{b})")),
            (inner, "[*+?]|\\{2\\}|\\{1,3\\}").prop_map(|(a, times)| format!("(?:{a}){times}")),
        ]
    })
}

proptest! {
    #[test]
    fn random_patterns_give_the_verdicts_of_the_crate_regex(pattern in patterns(), text in "[abé\n]{0,8}") {
        let known = regex::Regex::new(&pattern).unwrap();
        for ours in both(&pattern) {
            prop_assert_eq!(search(&ours, &text).0, known.is_match(&text));
        }
    }
}

#[test]
fn ordinary_patterns_have_a_table_and_cost_the_same_for_every_byte() {
    for pattern in [
        r"^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$",
        r"^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$",
        r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})$",
        r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
        r"^[\p{L} '-]+$",
        r"^https?://[^/\s]+(/[^\s]*)?$",
        "^[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}$",
        "error|warning|fatal|panic",
        "(a+)+$",
        r"^\S.{0,200}$",
    ] {
        let pattern = Pattern::constant(pattern).unwrap();
        assert!(pattern.has_table(), "{pattern:?}");
        assert_eq!(search(&pattern, &"x".repeat(16_000)).1, 1_001);
    }
}

#[test]
fn what_has_no_table_costs_the_states_that_it_visits() {
    let evil = Pattern::constant("^(a+)+(b|a)*(a?){500}a{500}$").unwrap();
    assert!(!evil.has_table());
    let (short, long) = (search(&evil, &"a".repeat(2_000)), search(&evil, &"a".repeat(4_000)));
    assert!(short.0 && long.0);
    assert!((200_000..2_000_000).contains(&short.1), "{short:?}");
    assert!(long.1 > short.1 + 200_000, "{long:?}");
    let mut fuel = Fuel::new(1_000_000);
    assert!(evil.is_match(&"a".repeat(1 << 20), &mut fuel).is_err());
    assert_eq!(fuel.left(), 0);
    // Words at their boundaries in a long text.
    let words = Pattern::constant(r"\b(error|warning|fatal)\b").unwrap();
    let (found, cost) = search(&words, &"an ordinary text. ".repeat(1_000));
    assert!(!found && cost < 18_000, "{cost}");
}

#[test]
fn building_a_pattern_is_charged_before_it_is_built() {
    for (pattern, least) in [("a{1000}", 800), ("((a{100}){100}){100}", 8_000), (r"(\w{100}){10}", 8_000)] {
        let mut fuel = Fuel::new(least);
        assert!(Pattern::once(pattern, &mut fuel).is_err(), "{pattern}");
        assert_eq!(fuel.left(), 0, "{pattern}");
    }
    for pattern in ["^[a-z0-9.]+@[a-z]+$", r"^\d{4}-\d{2}$", r"\w+ \w+"] {
        let mut fuel = Fuel::new(10_000);
        assert!(Pattern::once(pattern, &mut fuel).is_ok());
        assert!(fuel.left() > 4_000, "{pattern} {}", fuel.left());
    }
}

/// Prints what a unit of fuel takes, at most 50 ns as everywhere, in a release build.
#[test]
#[ignore = "measures; meant for release builds"]
fn a_unit_of_fuel_takes_at_most_fifty_nanoseconds() {
    let mut slow = Vec::new();
    let mut time = |name: &str, fuel: u64, work: &mut dyn FnMut()| {
        let started = cpu_time::ThreadTime::now();
        work();
        let ns = started.elapsed().as_nanos() as f64;
        println!("{name:60.60} {fuel:>10} units {:>8.1} ns each {:>10.3} ms", ns / fuel as f64, ns / 1e6);
        if ns / fuel as f64 > 500.0 {
            slow.push(name.to_owned());
        }
    };
    let named: String = [r"\p{L}", r"\P{Lu}", r"\w", r"\d", r"\s"].concat();
    for pattern in [
        named.repeat(20),
        format!("(?i){}", named.repeat(20)),
        format!("[{}]", named.repeat(20)),
        "a".repeat(10_000),
        format!("(?i)[{}]", r"\x{0}-\x{10ffff}".repeat(20)),
        format!("(?i){}", "a".repeat(1_000)),
        "(?:a|b)".repeat(1_000),
        "[a-z]".repeat(1_000),
        format!("(?i){}", "[é-ü]".repeat(100)),
        r"[\x{100}-\x{fff0}]".repeat(100),
        "(".repeat(60),
        format!("(?i){}", r"[^a]".repeat(100)),
        r"(?i).".repeat(100),
        "(?i)K".repeat(100),
        format!("(?i){}", "[[^a]b]".repeat(10)),
        format!("(?i){}", r"\p{L}".repeat(20)),
        r"\w".repeat(20),
        r"[\w--\d]".repeat(20),
        "[[:^alpha:]]".repeat(100),
        r"(?i)\PL[^\PL]".repeat(9),
        r"(?i)[\Wa][\Pla]".repeat(3),
        "(?i)[a-鿿]".repeat(9),
        "(?i)[a-é]".repeat(90),
        "(?i)[^鿿][^é]".repeat(9),
    ] {
        time(&format!("parse {pattern}"), size::parsing(&pattern), &mut || drop(size::parse(&pattern)));
        let mut fuel = Fuel::new(PLENTY);
        drop(Pattern::once(&pattern, &mut fuel));
        time(&format!("build {pattern}"), PLENTY - fuel.left(), &mut || drop(Pattern::checked(&pattern)));
    }
    for ordinary in
        [r"^[\p{L} '-]+$", r"^https?://[^/\s]+(/[^\s]*)?$", r"^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$"]
    {
        time(&format!("table {ordinary}"), 10_000, &mut || assert!(Pattern::constant(ordinary).unwrap().has_table()));
    }
    for (pattern, text) in [
        ("^(a+)+(b|a)*(a?){500}a{500}$", "a".repeat(3_000)),
        (r"\b(error|warning|fatal)\b", "an ordinary text. ".repeat(10_000)),
        (r"\bé", "éa ".repeat(30_000)),
        ("(a|b)*a(a|b){30}$", "ab".repeat(30_000)),
        (r"\b\w+$", "aé".repeat(30_000)),
        (r"\b\w{3}", "é ".repeat(30_000)),
        (r"^[a-z ]+$", "a".repeat(1_000_000)),
        (r"\b[\p{L}]{80}", "éäüß".repeat(3_000)),
    ] {
        let pattern = Pattern::constant(pattern).unwrap();
        let cost = search(&pattern, &text).1;
        time(&format!("match {} {}", pattern.has_table(), pattern.nfa.states().len()), cost, &mut || {
            assert!(search(&pattern, &text).1 > 0)
        });
    }
    let small = Pattern::checked("((a{100}){10}){8}").unwrap();
    time("short text, large pattern", search(&small, "b").1 * 1_000, &mut || {
        (0..1_000).for_each(|_| assert!(search(&small, "b").1 > 0))
    });
    assert!(slow.is_empty(), "{slow:?}");
}
