//! Which characters a label of a host name may have (RFC 5892).

use std::sync::LazyLock;

use charter_expr::{Fuel, Pattern};

/// Letters, marks and digits, without a mark at the start.
static LETTERS: LazyLock<Option<Pattern>> =
    LazyLock::new(|| Pattern::compile(r"^(?:[\p{L}\p{Nd}\x00-\x7f][\p{L}\p{Mn}\p{Mc}\p{Nd}\x00-\x7f]*)?$").ok());

/// What a zero-width joiner may follow: the viramas.
const VIRAMAS: &str = "\u{94d}\u{9cd}\u{a4d}\u{acd}\u{b4d}\u{bcd}\u{c4d}\u{ccd}\u{d4d}\u{dca}\u{e3a}\u{f84}\u{1039}\
    \u{1714}\u{1734}\u{17d2}\u{1a60}\u{1b44}\u{1baa}\u{1bf2}\u{1bf3}\u{2d7f}\u{a806}\u{a8c4}\u{a953}\u{abed}\
    \u{10a3f}\u{11046}\u{1107f}\u{110b9}\u{11133}\u{111c0}\u{11235}\u{112ea}\u{1134d}\u{11442}\u{114c2}\u{115bf}\
    \u{1163f}\u{116b6}\u{1172b}\u{11839}\u{119e0}\u{11a34}\u{11a47}\u{11a99}\u{11c3f}\u{11d44}\u{11d45}\u{11d97}";

pub(super) fn is_valid(label: &[char]) -> bool {
    let has = |fits: fn(char) -> bool| label.iter().any(|c| fits(*c));
    let is_kana_or_han = |c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}') && c != '\u{30fb}';
    let dots = !has(|c| c == '\u{30fb}') || has(is_kana_or_han);
    let digits = !(has(|c| matches!(c, '\u{660}'..='\u{669}')) && has(|c| matches!(c, '\u{6f0}'..='\u{6f9}')));
    let mut plain = String::new();
    let placed = label.iter().enumerate().all(|(at, c)| {
        let before = at.checked_sub(1).and_then(|at| label.get(at)).copied();
        let after = label.get(at.saturating_add(1)).copied();
        let (fits, is_exception) = match c {
            '\u{200d}' => (before.is_some_and(|c| VIRAMAS.contains(c)), true),
            '\u{b7}' => (before == Some('l') && after == Some('l'), true),
            '\u{375}' => (after.is_some_and(|c| matches!(c, '\u{370}'..='\u{3ff}')), true),
            '\u{5f3}' | '\u{5f4}' => (before.is_some_and(|c| matches!(c, '\u{590}'..='\u{5ff}')), true),
            '\u{640}' | '\u{7fa}' | '\u{302e}' | '\u{302f}' | '\u{3031}'..='\u{3035}' | '\u{303b}' => (false, false),
            '\u{200c}' | '\u{6fd}' | '\u{6fe}' | '\u{f0b}' | '\u{3007}' | '\u{3040}'..='\u{30ff}' => (true, true),
            '\u{4e00}'..='\u{9fff}' | '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}' => (true, true),
            _ => (true, false),
        };
        // In place of an exception, a letter: the position of a mark counts.
        plain.push(if is_exception && !matches!(c, '\u{3099}' | '\u{309a}') { 'a' } else { *c });
        fits
    });
    let letters = || {
        let pattern = LETTERS.as_ref();
        pattern.is_some_and(|pattern| pattern.is_match(&plain, &mut Fuel::new(u64::MAX)).unwrap_or(false))
    };
    dots && digits && placed && letters()
}
