//! Characters that are not seen, or that change how others are seen. They can make one text look
//! like another, also to somebody who is asked to approve it, or who counts votes by name.

/// Whether a character is not seen, or changes how others are seen: the direction marks of Unicode,
/// characters without width, fillers, tags, and line separators. The joiners and variation
/// selectors that scripts and emoji need are not among them.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}'
    )
}

/// Whether a character only joins or separates its neighbors, as some scripts and emoji need.
#[must_use]
pub const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Whether a character only selects how the one before it looks, as some scripts and emoji need.
#[must_use]
pub const fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a character could make a name look like another one: all of these, control characters,
/// and every blank but the space.
pub(crate) fn disguises(c: char) -> bool {
    let is_hidden = is_invisible(c) || is_joiner(c) || is_variation_selector(c);
    is_hidden || c.is_control() || c != ' ' && c.is_whitespace() || c == '\u{2800}'
}
