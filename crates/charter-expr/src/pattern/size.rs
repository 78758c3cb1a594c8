//! How large the automaton of a pattern is, and what it costs to build it.

use regex_automata::nfa::thompson::{NFA, State};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use super::PatternError;

/// Upper limit of groups and classes within each other.
const MAX_NESTING: u32 = 64;

/// The bytes of a state without its transitions.
const STATE: u64 = 24;

/// The fuel for parsing a pattern. A class by name is a table of hundreds of ranges; if case does
/// not matter, each character of other classes is looked up in the table of cases.
pub(super) fn parsing(pattern: &str) -> u64 {
    let pairs = || pattern.bytes().zip(pattern.bytes().skip(1));
    let count = |is: &dyn Fn(u8, u8) -> bool| pairs().filter(|(c, next)| is(*c, *next)).count() as u64;
    let named = count(&|c, next| c == b'\\' && b"pwds".contains(&next));
    let others = count(&|c, next| c == b'\\' && b"PWDS".contains(&next));
    let ranges = count(&|c, next| c == b'-' || (c, next) == (b'[', b'^'));
    let (by_name, by_other, by_range) = if has_flag_i(pattern) {
        let in_brackets = if pattern.contains('[') { EVERYTHING } else { 0 };
        (2_500, in_brackets.saturating_add(2_500), widest_range(pattern).saturating_add(20))
    } else {
        (200, 200, 1)
    };
    let classes = [(named, by_name), (others, by_other), (ranges, by_range)];
    let classes = classes.into_iter().map(|(count, each)| count.saturating_mul(each)).fold(0, u64::saturating_add);
    (pattern.len() as u64).saturating_mul(5).saturating_add(100).saturating_add(classes)
}

/// The fuel for looking up every character in the table of cases.
const EVERYTHING: u64 = 150_000;

/// Whether a pattern may have a part in which case does not matter.
fn has_flag_i(pattern: &str) -> bool {
    let groups = pattern.split("(?").skip(1);
    groups.map(|after| after.split([')', ':']).next().unwrap_or(after)).any(|flags| flags.contains('i'))
}

/// The fuel for looking up the characters of a range: up to the last character of the pattern, or
/// all, if a range may be given by numbers or be what another class leaves.
fn widest_range(pattern: &str) -> u64 {
    let mut brackets = pattern.bytes().filter(|c| matches!(c, b'[' | b']')).peekable();
    let nested = std::iter::from_fn(|| Some((brackets.next()?, brackets.peek().copied())));
    let nested = nested.into_iter().any(|pair| pair == (b'[', Some(b'[')));
    let by_number = pattern.bytes().zip(pattern.bytes().skip(1)).any(|(c, next)| c == b'\\' && b"xuU".contains(&next));
    if nested || by_number {
        return EVERYTHING;
    }
    u64::from(pattern.chars().max().map_or(0, u32::from)) / 4
}

/// Parses a pattern.
pub(super) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(pattern).map_err(|e| {
        let why = e.to_string();
        let last = why.trim_end().rsplit('\n').next().unwrap_or_default();
        PatternError::Syntax(last.trim_start_matches("error: ").to_owned())
    })
}

/// The fuel for building the automaton.
pub(super) fn building(hir: &Hir) -> u64 {
    estimate(hir) / 32
}

/// Estimates the size of the automaton, in bytes.
fn estimate(hir: &Hir) -> u64 {
    let all = |parts: &[Hir]| parts.iter().map(estimate).fold(0, u64::saturating_add);
    let more = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 0,
        HirKind::Literal(literal) => (literal.0.len() as u64).saturating_mul(STATE),
        HirKind::Class(Class::Unicode(class)) => (class.ranges().len() as u64).saturating_mul(4 * STATE),
        HirKind::Class(Class::Bytes(class)) => (class.ranges().len() as u64).saturating_mul(8),
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min).max(1));
            times.saturating_mul(estimate(&repetition.sub).saturating_add(STATE))
        }
        HirKind::Capture(capture) => estimate(&capture.sub),
        HirKind::Concat(parts) => all(parts),
        HirKind::Alternation(parts) => all(parts).saturating_add((parts.len() as u64).saturating_mul(STATE)),
    };
    more.saturating_add(STATE)
}

/// The size of an automaton in bytes, the same on every platform.
pub(super) fn of(nfa: &NFA) -> u64 {
    let extra = |state: &State| match state {
        State::Sparse(sparse) => (sparse.transitions.len() as u64).saturating_mul(8),
        State::Dense(_) => 1_024,
        State::Union { alternates } => (alternates.len() as u64).saturating_mul(4),
        _ => 0,
    };
    nfa.states().iter().map(|state| extra(state).saturating_add(STATE)).fold(0, u64::saturating_add)
}
