//! Makes invisible characters visible. They can make one text look like another, also to somebody
//! who is asked to approve it.

use std::io::{self, Write};

use charter_kernel::visible::is_invisible;

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
/// line for progress.
pub(crate) struct Visible<'w> {
    to: &'w mut dyn Write,
    colors: bool,
    /// The beginning of a character, or of a sequence, that is not complete yet.
    rest: Vec<u8>,
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
        Visible { to, colors, rest: Vec::new() }
    }

    /// Writes a text; returns the end that may be the beginning of a sequence.
    fn text<'t>(&mut self, text: &'t str) -> io::Result<&'t str> {
        let mut from = text;
        while let Some((at, c)) = from.char_indices().find(|(_, c)| is_escaped(*c)) {
            let (before, after) = from.split_at(at);
            self.to.write_all(before.as_bytes())?;
            let keep = match self.control(c, after.as_bytes()) {
                Control::Keep(length) => length,
                Control::Unknown => return Ok(after),
                Control::Escape => {
                    self.escape(c)?;
                    from = after.get(c.len_utf8()..).unwrap_or_default();
                    continue;
                }
            };
            let (keep, after) = after.split_at_checked(keep).unwrap_or((after, ""));
            self.to.write_all(keep.as_bytes())?;
            from = after;
        }
        self.to.write_all(from.as_bytes())?;
        Ok("")
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
            let is_last = chunks.peek().is_none();
            if is_last && invalid.is_empty() {
                self.rest = open.as_bytes().to_vec();
                return Ok(());
            }
            self.end(open)?;
            // Only the last chunk can be the beginning of a character.
            let is_begun = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            match is_begun && is_last {
                true => self.rest = invalid.to_vec(),
                false => self.to.write_all(invalid)?,
            }
        }
        Ok(())
    }

    /// Writes the beginning of a sequence that does not go on.
    fn end(&mut self, open: &str) -> io::Result<()> {
        open.chars().try_for_each(|c| match is_escaped(c) {
            true => self.escape(c),
            false => write!(self.to, "{c}"),
        })
    }
}

/// Whether a character is not written as it is; some are the beginning of a sequence that is.
fn is_escaped(c: char) -> bool {
    is_invisible(c) || c.is_control() && c != '\n' && c != '\t'
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
