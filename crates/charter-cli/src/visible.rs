//! Makes invisible characters visible. They can make one text look like another, also to somebody
//! who is asked to approve it.

use std::io::{self, Write};

use charter_kernel::visible::{is_invisible, is_joiner, is_variation_selector};

/// What clears a line, for progress.
const CLEAR: &[u8] = b"\r\x1b[2K";

/// Maximum length of a sequence that is kept until it is complete.
const MAX_SEQUENCE: usize = 16;

/// The text with its invisible characters as `\uXXXX`.
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = Visible::new(&mut out, false).write_all(text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes invisible and control characters as `\uXXXX`, which is also how JSON writes them. What
/// remains is tabs, line ends, the codes of colors if there are colors, and the one that clears a
/// line for progress; and joiners and variation selectors where emoji and scripts need them.
pub(crate) struct Visible<'w> {
    to: &'w mut dyn Write,
    colors: bool,
    /// The beginning of a character, or of a sequence, that is not complete yet.
    rest: Vec<u8>,
    /// The last character.
    last: char,
}

/// What begins at a control character.
enum Control {
    /// This many bytes are written as they are.
    Keep(usize),
    Escape,
    /// The end of the bytes decides.
    Unknown,
}

impl<'w> Visible<'w> {
    pub(crate) fn new(to: &'w mut dyn Write, colors: bool) -> Visible<'w> {
        Visible { to, colors, rest: Vec::new(), last: ' ' }
    }

    /// Writes a text; returns the end that may be the beginning of a sequence.
    fn text<'t>(&mut self, text: &'t str) -> io::Result<&'t str> {
        let mut from = text;
        while let Some((at, c)) = from.char_indices().find(|(_, c)| is_escaped(*c) || is_selector(*c)) {
            let (before, after) = from.split_at(at);
            self.keep(before)?;
            let control = match is_selector(c) {
                true => selector(self.last, c, after.chars().nth(1)),
                false => self.control(c, after.as_bytes()),
            };
            let keep = match control {
                Control::Keep(length) => length,
                Control::Unknown => return Ok(after),
                Control::Escape => {
                    self.escape(c)?;
                    self.last = c;
                    from = after.get(c.len_utf8()..).unwrap_or_default();
                    continue;
                }
            };
            let (keep, after) = after.split_at_checked(keep).unwrap_or((after, ""));
            self.keep(keep)?;
            from = after;
        }
        self.keep(from)?;
        Ok("")
    }

    /// Writes a text as it is.
    fn keep(&mut self, text: &str) -> io::Result<()> {
        self.last = text.chars().next_back().unwrap_or(self.last);
        self.to.write_all(text.as_bytes())
    }

    /// What the bytes are that begin with this character.
    fn control(&self, c: char, bytes: &[u8]) -> Control {
        match c {
            '\r' if bytes.starts_with(b"\r\n") => Control::Keep(2),
            '\r' if bytes.starts_with(CLEAR) => Control::Keep(CLEAR.len()),
            '\r' if CLEAR.starts_with(bytes) => Control::Unknown,
            '\u{1b}' if self.colors => color(bytes),
            _ => Control::Escape,
        }
    }

    fn escape(&mut self, c: char) -> io::Result<()> {
        c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(self.to, "\\u{unit:04x}"))
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            let open = self.text(chunk.valid())?;
            let invalid = chunk.invalid();
            // Only the last chunk can be the beginning of a character.
            let is_begun = std::str::from_utf8(invalid).map_or_else(|e| e.error_len().is_none(), |_| true);
            if is_begun && chunks.peek().is_none() {
                self.rest = [open.as_bytes(), invalid].concat();
                return Ok(());
            }
            self.end(open)?;
            self.to.write_all(invalid)?;
        }
        Ok(())
    }

    /// Writes the beginning of a sequence that does not go on.
    fn end(&mut self, open: &str) -> io::Result<()> {
        open.chars().try_for_each(|c| match is_escaped(c) || is_selector(c) {
            true => self.escape(c),
            false => write!(self.to, "{c}"),
        })
    }
}

/// Whether a character is not written as it is; some are the beginning of a sequence that is.
fn is_escaped(c: char) -> bool {
    is_invisible(c) || c.is_control() && c != '\n' && c != '\t'
}

/// Whether a character only has a meaning between others; it is not seen itself.
fn is_selector(c: char) -> bool {
    is_joiner(c) || is_variation_selector(c)
}

/// What is done with a joiner or a variation selector: it is kept where emoji or scripts need it.
fn selector(before: char, c: char, after: Option<char>) -> Control {
    let keep = match c {
        // Scripts whose letters change their forms with their neighbors.
        '\u{200c}' | '\u{200d}' if is_joined(before) => true,
        '\u{200d}' if is_emoji(before) || before == '\u{fe0f}' => match after {
            None => return Control::Unknown,
            Some(after) => is_emoji(after),
        },
        '\u{fe0e}' | '\u{fe0f}' if before.is_ascii_digit() || matches!(before, '#' | '*') => match after {
            None => return Control::Unknown,
            Some(after) => after == '\u{20e3}',
        },
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(before),
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, '\u{1820}'..='\u{18aa}'),
        '\u{fe00}'..='\u{fe02}' | '\u{e0100}'..='\u{e01ef}' => {
            matches!(before, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
        }
        _ => false,
    };
    if keep { Control::Keep(c.len_utf8()) } else { Control::Escape }
}

/// Whether a letter is of a script that uses joiners: Arabic, Syriac, N'Ko, Indic ones, Mongolian.
fn is_joined(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{6d3}' | '\u{6fa}'..='\u{7ff}' | '\u{8a0}'..='\u{d7f}' | '\u{1820}'..='\u{18aa}')
}

/// Whether a character may be one of an emoji sequence.
fn is_emoji(c: char) -> bool {
    matches!(
        c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}' | '\u{2934}' | '\u{2935}'
            | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1faff}'
    )
}

/// What begins with an escape character: only the codes that the program and its libraries use for
/// colors are kept, so that no text moves the cursor, hides itself or has the terminal do more.
fn color(bytes: &[u8]) -> Control {
    let Some(codes) = bytes.strip_prefix(b"\x1b[") else {
        return if bytes.len() == 1 { Control::Unknown } else { Control::Escape };
    };
    let length = codes.iter().take_while(|b| b.is_ascii_digit() || **b == b';').count();
    let (codes, after) = codes.split_at(length);
    let is_known = |code: &[u8]| matches!(code, [b'0'..=b'4'] | [b'3' | b'9', b'0'..=b'7']);
    match after.first() {
        None if bytes.len() < MAX_SEQUENCE => Control::Unknown,
        Some(b'm') if codes.split(|b| *b == b';').all(is_known) => Control::Keep(length.saturating_add(3)),
        _ => Control::Escape,
    }
}

impl Write for Visible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.rest.is_empty() && bytes.iter().all(|b| matches!(b, b'\n' | b'\t' | b' '..=b'~')) {
            self.last = bytes.last().map_or(self.last, |b| char::from(*b));
            self.to.write_all(bytes)?;
        } else {
            let mut all = std::mem::take(&mut self.rest);
            all.extend_from_slice(bytes);
            self.bytes(&all)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for Visible<'_> {
    fn drop(&mut self) {
        // What never became a character is written as it is, a sequence is not.
        let rest = std::mem::take(&mut self.rest);
        let _ = match std::str::from_utf8(&rest) {
            Ok(open) => self.end(open),
            Err(_) => self.to.write_all(&rest),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&[u8]]) -> Vec<u8> {
        written_with(parts, false)
    }

    fn written_with(parts: &[&[u8]], colors: bool) -> Vec<u8> {
        let mut to = Vec::new();
        let mut visible = Visible::new(&mut to, colors);
        for part in parts {
            visible.write_all(part).unwrap();
        }
        drop(visible);
        to
    }

    #[test]
    fn invisible_characters_are_written_as_escapes() {
        let text = "pay \u{202e}bob\u{2069} \u{feff}Zoë 👩‍🚀 \u{e0041}.\n";
        let expected = "pay \\u202ebob\\u2069 \\ufeffZoë 👩‍🚀 \\udb40\\udc41.\n";
        assert_eq!(written(&[text.as_bytes()]), expected.as_bytes());
        for at in 0..text.len() {
            let (a, b) = text.as_bytes().split_at(at);
            assert_eq!(written(&[a, b]), expected.as_bytes(), "{at}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(written(&bytes), expected.as_bytes());
    }

    #[test]
    fn joiners_and_selectors_are_kept_where_they_are_needed() {
        for kept in [
            "👩\u{200d}🚀 👩🏽\u{200d}🚀",
            "❤\u{fe0f}\u{200d}🔥 ☺\u{fe0e} 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم क\u{94d}\u{200d}ष",
            "葛\u{e0100} ᠠ\u{180b}",
        ] {
            for size in 1..=kept.len() {
                let parts: Vec<&[u8]> = kept.as_bytes().chunks(size).collect();
                assert_eq!(written(&parts), kept.as_bytes(), "{size}");
            }
        }
        let hidden = "pay\u{200d}pal\u{200c} a\u{fe0f}1\u{fe0f}2 👩\u{200d} 👩\u{200d}a ☺\u{fe0f}\u{fe0f}葛\u{e0100}\u{e0100}\u{180b}🚀\u{200d}";
        let said = r"pay\u200dpal\u200c a\ufe0f1\ufe0f2 👩\u200d 👩\u200da ☺".to_owned()
            + "\u{fe0f}\\ufe0f葛\u{e0100}\\udb40\\udd00\\u180b🚀\\u200d";
        for size in 1..=hidden.len() {
            let parts: Vec<&[u8]> = hidden.as_bytes().chunks(size).collect();
            assert_eq!(String::from_utf8(written(&parts)).unwrap(), said, "{size}");
        }
    }

    #[test]
    fn what_is_not_text_is_kept() {
        for bytes in [&b"a\xffb\xe2\x80"[..], b"\xe2\x80", b"\xf3\xa0a", b"\xe2\xe2\x80\xaex"] {
            let expected: Vec<u8> = match bytes.ends_with(b"x") {
                true => b"\xe2\\u202ex".to_vec(),
                false => bytes.to_vec(),
            };
            assert_eq!(written(&[bytes]), expected);
            assert_eq!(written(&bytes.chunks(1).collect::<Vec<_>>()), expected);
        }
    }

    #[test]
    fn only_colors_and_progress_control_the_terminal() {
        let color = "\u{1b}[1;31merror:\u{1b}[0m \u{1b}[94m|\u{1b}[0m";
        let clear = "a\r\u{1b}[2Kb\r\n\tc\n";
        let evil = "\u{1b}[2Ja\u{1b}]0;t\u{7}b\u{1b}[8mc\rd\u{9b}31me\u{7f}\u{1b}[;1mf\u{1b}[38;5;1mg\u{1b}";
        let said = r"\u001b[2Ja\u001b]0;t\u0007b\u001b[8mc\u000dd\u009b31me\u007f\u001b[;1mf\u001b[38;5;1mg\u001b";
        for (text, colors, expected) in [
            (color, true, color),
            (color, false, r"\u001b[1;31merror:\u001b[0m \u001b[94m|\u001b[0m"),
            (clear, false, clear),
            (evil, true, said),
            (evil, false, said),
            ("\u{1b}[1111111111111111", true, r"\u001b[1111111111111111"),
            ("\r\u{1b}[2J", true, r"\u000d\u001b[2J"),
        ] {
            for size in 1..=text.len() {
                let parts: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                let written = String::from_utf8(written_with(&parts, colors)).unwrap();
                assert_eq!(written, expected, "{size}");
            }
        }
    }
}
