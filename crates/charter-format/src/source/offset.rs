//! Maps byte offsets in a string to byte offsets in the source. They differ because of quotes,
//! escapes and folded lines.

use super::tree::{Key, Node, Span, Style, Value};

/// The place where a part of the definition was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The span to underline, or the whole scalar. 32 bits suffice for 16 MiB of source and save
    /// memory, because there are many places.
    start: u32,
    end: u32,
    /// For text: its style, and how many leading bytes to skip (`= `).
    text: Option<(Style, u8)>,
}

impl Place {
    pub(crate) fn at(span: Span) -> Place {
        let small = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Place { start: small(span.start), end: small(span.end), text: None }
    }

    /// The place of the text of a scalar, except for its first `skip` bytes.
    pub(crate) fn of_text(node: &Node, skip: usize) -> Place {
        let style = match &node.value {
            Value::Text(text) => text.style,
            _ => Style::Plain,
        };
        Place { text: Some((style, u8::try_from(skip).unwrap_or_default())), ..Place::at(node.span) }
    }

    /// The place of a key's text.
    pub(crate) fn of_key(key: &Key, source: &str) -> Place {
        let style = match source.as_bytes().get(key.span.start) {
            Some(b'"') => Style::Double,
            Some(b'\'') => Style::Single,
            _ => Style::Plain,
        };
        Place { text: Some((style, 0)), ..Place::at(key.span) }
    }

    /// The same place without its text, so that parts of the text cannot be located.
    pub(crate) fn without_text(self) -> Place {
        Place { text: None, ..self }
    }

    fn whole(&self) -> Span {
        let wide = |offset: u32| usize::try_from(offset).unwrap_or_default();
        Span::new(wide(self.start), wide(self.end))
    }

    /// The span to underline: an expression without its leading `= `.
    pub(crate) fn span(&self, source: &str) -> Span {
        let whole = self.whole();
        match self.text {
            Some((style, skip)) if skip > 0 => {
                let quote = usize::from(matches!(style, Style::Single | Style::Double));
                Span::new(self.locate(0, source).start, whole.end.saturating_sub(quote))
            }
            _ => whole,
        }
    }

    /// The source span of the bytes `from..to` of the text.
    pub(crate) fn part(&self, from: usize, to: usize, source: &str) -> Span {
        if self.text.is_none() {
            return self.whole();
        }
        let start = self.locate(from, source).start;
        let end = if to > from { self.locate(to.saturating_sub(1), source).end } else { start };
        Span::new(start, end)
    }

    /// The source span of the character that contains a byte of the text.
    fn locate(&self, offset: usize, source: &str) -> Span {
        let scalar = self.whole();
        let Some((style, skip)) = self.text else {
            return scalar;
        };
        let wanted = offset.saturating_add(usize::from(skip));
        let raw = source.get(scalar.start..scalar.end).unwrap_or_default();
        // The span of a block scalar starts after the indentation of its first line, which all
        // lines share.
        let before = source.get(..scalar.start).unwrap_or_default();
        let indent = before.len().saturating_sub(before.trim_end_matches(' ').len());
        // Walk the source and count how many bytes of text each piece yields.
        let mut given = 0_usize;
        let mut at = usize::from(matches!(style, Style::Single | Style::Double));
        while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
            let (length, gives) = piece(rest, style, indent);
            let piece =
                Span::new(scalar.start.saturating_add(at), scalar.start.saturating_add(at).saturating_add(length));
            if given.saturating_add(gives) > wanted {
                // Several spaces and tabs in a row are one piece.
                let is_blanks = gives == length && rest.starts_with([' ', '\t']);
                let inside = if is_blanks { wanted.saturating_sub(given) } else { 0 };
                return Span::new(
                    piece.start.saturating_add(inside),
                    if is_blanks { piece.start.saturating_add(inside).saturating_add(1) } else { piece.end },
                );
            }
            given = given.saturating_add(gives);
            at = at.saturating_add(length);
        }
        Span::new(scalar.end, scalar.end)
    }
}

/// The next piece of source: its length in bytes, and how many bytes of text it yields.
fn piece(rest: &str, style: Style, indent: usize) -> (usize, usize) {
    let width = rest.chars().next().map_or(1, char::len_utf8);
    match style {
        Style::Single if rest.starts_with("''") => (2, 1),
        Style::Double if rest.starts_with('\\') => escape(rest),
        _ if rest.starts_with(['\n', '\r']) => line_break(rest, style, indent),
        // Folding drops spaces and tabs before a line break.
        Style::Plain | Style::Single | Style::Double if rest.starts_with([' ', '\t']) => {
            let blanks = rest.len().saturating_sub(rest.trim_start_matches([' ', '\t']).len());
            let before_break = rest.get(blanks..).is_some_and(|rest| rest.starts_with(['\n', '\r']));
            (blanks, if before_break { 0 } else { blanks })
        }
        _ => (width, width),
    }
}

/// A line break and the indentation after it, as a piece: folded into a space, or kept as a line
/// break in block scalars.
fn line_break(rest: &str, style: Style, indent: usize) -> (usize, usize) {
    if style == Style::Block {
        let newline = if rest.starts_with("\r\n") { 2_usize } else { 1 };
        let following = rest.get(newline..).unwrap_or_default();
        let blanks = following.len().saturating_sub(following.trim_start_matches(' ').len());
        return (newline.saturating_add(blanks.min(indent)), 1);
    }
    let blank = rest.len().saturating_sub(rest.trim_start().len());
    let breaks = rest.get(..blank).unwrap_or_default().matches('\n').count();
    (blank, breaks.saturating_sub(1).max(1))
}

fn escape(rest: &str) -> (usize, usize) {
    let hex = |from: usize, to: usize| rest.get(from..to).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let wide = |code: Option<u32>| code.and_then(char::from_u32).map_or(3, char::len_utf8);
    match rest.as_bytes().get(1) {
        Some(b'x') => (4, wide(hex(2, 4))),
        Some(b'u') if matches!(hex(2, 6), Some(0xd800..=0xdbff)) => (12, 4),
        Some(b'u') => (6, wide(hex(2, 6))),
        Some(b'U') => (10, wide(hex(2, 10))),
        Some(b'\n' | b'\r') => {
            let after = rest.get(1..).unwrap_or_default();
            (1_usize.saturating_add(after.len().saturating_sub(after.trim_start().len())), 0)
        }
        Some(b'N' | b'_') => (2, 2),
        Some(b'L' | b'P') => (2, 3),
        Some(_) => (1_usize.saturating_add(rest.chars().nth(1).map_or(1, char::len_utf8)), 1),
        None => (1, 1),
    }
}
