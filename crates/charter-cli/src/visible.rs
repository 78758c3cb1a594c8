//! Makes invisible characters visible. They can make one text look like another, also to somebody
//! who is asked to approve it.

use std::io::{self, Write};

use charter_kernel::visible::is_invisible;

/// The text with its invisible characters as `\uXXXX`.
pub(crate) fn text(text: &str) -> String {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = Visible::new(&mut out).text(text);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes invisible characters as `\uXXXX`, which is also how JSON writes them.
pub(crate) struct Visible<'w> {
    to: &'w mut dyn Write,
    /// The beginning of a character that is not complete yet.
    rest: Vec<u8>,
}

impl<'w> Visible<'w> {
    pub(crate) fn new(to: &'w mut dyn Write) -> Visible<'w> {
        Visible { to, rest: Vec::new() }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut from = text;
        while let Some((at, c)) = from.char_indices().find(|(_, c)| is_invisible(*c)) {
            let (before, after) = from.split_at(at);
            self.to.write_all(before.as_bytes())?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(self.to, "\\u{unit:04x}")?;
            }
            from = after.get(c.len_utf8()..).unwrap_or_default();
        }
        self.to.write_all(from.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text(chunk.valid())?;
            let invalid = chunk.invalid();
            // Only the last chunk can be the beginning of a character.
            let is_begun = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            match is_begun && chunks.peek().is_none() {
                true => self.rest = invalid.to_vec(),
                false => self.to.write_all(invalid)?,
            }
        }
        Ok(())
    }
}

impl Write for Visible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.rest.is_empty() && bytes.is_ascii() {
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
        // What never became a character is written as it is.
        let _ = self.to.write_all(&self.rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&[u8]]) -> Vec<u8> {
        let mut to = Vec::new();
        let mut visible = Visible::new(&mut to);
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
}
