//! Where a byte of a text stands in the source: quotes, escapes and folded lines make the two differ.

use super::tree::{Node, Span, Style, Value};

/// Where something of the core form was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// What to underline.
    pub(crate) span: Span,
    /// For a text: its whole scalar, how that was written, and how many bytes of it come before the text (such as `= `).
    text: Option<(Span, Style, usize)>,
}

impl Place {
    pub(crate) fn at(span: Span) -> Place {
        Place { span, text: None }
    }

    /// The place of a scalar's text, of which the first `skip` bytes do not count.
    pub(crate) fn of_text(node: &Node, skip: usize, source: &str) -> Place {
        let style = match &node.value {
            Value::Text(text) => text.style,
            _ => Style::Plain,
        };
        let mut place = Place {
            span: node.span,
            text: Some((node.span, style, skip)),
        };
        if skip > 0 {
            place.span.start = place.locate(0, source).min(node.span.end);
            if matches!(style, Style::Single | Style::Double) {
                place.span.end = node.span.end.saturating_sub(1).max(place.span.start);
            }
        }
        place
    }

    /// The source of the bytes `from..to` of the text.
    pub(crate) fn part(&self, from: usize, to: usize, source: &str) -> Span {
        if self.text.is_none() {
            return self.span;
        }
        let start = self.locate(from, source);
        let end = if to > from {
            self.locate(to.saturating_sub(1), source).saturating_add(1)
        } else {
            start
        };
        // The last byte may be the first of a wide character.
        let end = (end..=source.len())
            .find(|end| source.is_char_boundary(*end))
            .unwrap_or(start);
        Span::new(start, end)
    }

    /// The source offset of a byte of the text.
    fn locate(&self, offset: usize, source: &str) -> usize {
        let Some((scalar, style, skip)) = self.text else {
            return self.span.start;
        };
        let wanted = offset.saturating_add(skip);
        let raw = source.get(scalar.start..scalar.end).unwrap_or_default();
        let base = match style {
            Style::Single | Style::Double => 1,
            Style::Plain | Style::Block => 0,
        };
        // Walk the source and count the bytes of text that each piece of it gives.
        let mut given = 0_usize;
        let mut at = base;
        while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
            let (length, gives) = piece(rest, style, raw, at);
            if given.saturating_add(gives) > wanted {
                let inside = if gives == length {
                    wanted.saturating_sub(given)
                } else {
                    0
                };
                return scalar.start.saturating_add(at).saturating_add(inside);
            }
            given = given.saturating_add(gives);
            at = at.saturating_add(length);
        }
        scalar.end
    }
}

/// The next piece of source: its length, and how many bytes of text it gives.
fn piece(rest: &str, style: Style, raw: &str, at: usize) -> (usize, usize) {
    let width = rest.chars().next().map_or(1, char::len_utf8);
    match style {
        Style::Single if rest.starts_with("''") => (2, 1),
        Style::Double if rest.starts_with('\\') => escape(rest),
        _ if rest.starts_with(['\n', '\r']) => line_break(rest, style, raw, at),
        // Blanks before a line break are dropped by folding.
        Style::Plain | Style::Single | Style::Double if rest.starts_with([' ', '\t']) => {
            let blanks = rest
                .len()
                .saturating_sub(rest.trim_start_matches([' ', '\t']).len());
            let before_break = rest
                .get(blanks..)
                .is_some_and(|rest| rest.starts_with(['\n', '\r']));
            (blanks, if before_break { 0 } else { blanks })
        }
        _ => (width, width),
    }
}

/// One or more line breaks and the indentation that follows: folded into a blank, or kept (block scalars: the break only).
fn line_break(rest: &str, style: Style, raw: &str, at: usize) -> (usize, usize) {
    if style == Style::Block {
        // The span of a block scalar begins after the indentation of its first line; later lines are indented at least as much.
        // What is deeper belongs to the text, but how deep the first line was is not known here: take the least indented line.
        let indent = |line: &str| {
            line.len()
                .saturating_sub(line.trim_start_matches(' ').len())
        };
        let least = raw
            .lines()
            .skip(1)
            .filter(|line| !line.trim().is_empty())
            .map(indent)
            .min()
            .unwrap_or(0);
        let newline = if rest.starts_with("\r\n") { 2 } else { 1 };
        let following = rest.get(newline..).unwrap_or_default();
        let _ = at;
        return (
            newline.saturating_add(indent(following.lines().next().unwrap_or_default()).min(least)),
            1,
        );
    }
    let blank = rest.len().saturating_sub(rest.trim_start().len());
    let breaks = rest.get(..blank).unwrap_or_default().matches('\n').count();
    (blank, breaks.saturating_sub(1).max(1))
}

fn escape(rest: &str) -> (usize, usize) {
    let hex = |from: usize, to: usize| {
        rest.get(from..to)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let wide = |code: Option<u32>| code.and_then(char::from_u32).map_or(3, char::len_utf8);
    match rest.as_bytes().get(1) {
        Some(b'x') => (4, wide(hex(2, 4))),
        Some(b'u') if matches!(hex(2, 6), Some(0xd800..=0xdbff)) => (12, 4),
        Some(b'u') => (6, wide(hex(2, 6))),
        Some(b'U') => (10, wide(hex(2, 10))),
        Some(b'\n' | b'\r') => {
            let after = rest.get(1..).unwrap_or_default();
            (
                1_usize.saturating_add(after.len().saturating_sub(after.trim_start().len())),
                0,
            )
        }
        Some(b'N' | b'_') => (2, 2),
        Some(b'L' | b'P') => (2, 3),
        Some(_) => (
            1_usize.saturating_add(rest.chars().nth(1).map_or(1, char::len_utf8)),
            1,
        ),
        None => (1, 1),
    }
}
