//! Reads a stream line by line. The length of a line is limited, so that a file without line breaks
//! cannot fill the memory.

use std::io::{self, BufRead};

/// Upper limit of the length of a line, in bytes. The data of one event may take 1 MiB.
pub const MAX_BYTES: usize = 16 << 20;

/// Reads the lines of a stream.
pub struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    number: u64,
}

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum RawLine<'b> {
    /// The bytes of the line, without the line break.
    Bytes(&'b [u8]),
    /// The line was longer than [`MAX_BYTES`] and was skipped.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    /// Creates a reader of the lines in `from`.
    pub fn new(from: R) -> Lines<R> {
        Lines { from, buffer: Vec::new(), number: 0 }
    }

    /// Reads the next line that is not blank. Returns its number, counted from 1, and its content.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be read.
    pub fn advance(&mut self) -> io::Result<Option<(u64, RawLine<'_>)>> {
        loop {
            self.buffer.clear();
            let whole = self.fill()?;
            let Some(whole) = whole else { return Ok(None) };
            self.number += 1;
            if !whole {
                return Ok(Some((self.number, RawLine::TooLong)));
            }
            if self.number == 1 && self.buffer.starts_with(b"\xef\xbb\xbf") {
                self.buffer.drain(..3);
            }
            if !self.buffer.iter().all(u8::is_ascii_whitespace) {
                break;
            }
        }
        Ok(Some((self.number, RawLine::Bytes(&self.buffer))))
    }

    /// Reads a line into the buffer. Returns `None` at the end of the stream, `false` if the line
    /// is too long.
    fn fill(&mut self) -> io::Result<Option<bool>> {
        let mut whole = true;
        let mut any = false;
        loop {
            let chunk = match self.from.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if chunk.is_empty() {
                return Ok(any.then_some(whole));
            }
            any = true;
            let end = chunk.iter().position(|b| *b == b'\n');
            let length = end.unwrap_or(chunk.len());
            let part = chunk.get(..length).unwrap_or_default();
            if self.buffer.len() + part.len() > MAX_BYTES {
                whole = false;
            } else if whole {
                self.buffer.extend_from_slice(part);
            }
            self.from.consume(length + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(whole));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_counted_and_skipped() {
        let mut lines = Lines::new("\u{feff}a\r\n\n  \nb".as_bytes());
        assert_eq!(lines.advance().unwrap(), Some((1, RawLine::Bytes(b"a\r"))));
        assert_eq!(lines.advance().unwrap(), Some((4, RawLine::Bytes(b"b"))));
        assert_eq!(lines.advance().unwrap(), None);
    }

    #[test]
    fn overlong_lines_are_skipped() {
        let text = format!("{}\nb\n", "x".repeat(MAX_BYTES + 1));
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.advance().unwrap(), Some((1, RawLine::TooLong)));
        assert_eq!(lines.advance().unwrap(), Some((2, RawLine::Bytes(b"b"))));
        assert_eq!(lines.advance().unwrap(), None);
    }
}
