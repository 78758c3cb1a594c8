//! String and bytes literals: prefixes, quotes and escapes (CEL specification, "String and Bytes
//! Values").

use crate::Span;
use crate::ast::Literal;
use crate::error::ParseError;

/// Reads the quoted literal at the start of `rest`. Returns it with its length in bytes, or `None`
/// if there is no such literal.
pub(super) fn quoted(rest: &str, at: usize) -> Result<Option<(Literal, usize)>, ParseError> {
    let (mut raw, mut bytes) = (false, false);
    let mut start: usize = 0;
    for b in rest.bytes().take(2) {
        match b {
            b'r' | b'R' if !raw => raw = true,
            b'b' | b'B' if !bytes && !raw => bytes = true,
            _ => break,
        }
        start = start.saturating_add(1);
    }
    let body = rest.get(start..).unwrap_or("");
    let Some(quote) = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|q| body.starts_with(q)) else {
        return Ok(None);
    };
    let from = start.saturating_add(quote.len());
    let mut reader = Reader { text: rest, at: from, offset: at, out: Vec::new(), bytes };
    loop {
        let ahead = reader.ahead();
        if ahead.starts_with(quote) {
            break;
        }
        let Some(c) = ahead.chars().next() else {
            return Err(reader.error(0, "the string is not closed").help(format!("add `{quote}`")));
        };
        if quote.len() == 1 && matches!(c, '\n' | '\r') {
            return Err(reader.error(0, "the string is not closed on its line").help("use three quotes, or `\\n`"));
        }
        match c {
            '\\' if !raw => reader.escape()?,
            '\\' => {
                // In a raw string a backslash is literal, and an escaped quote does not end it.
                reader.push(c);
            }
            c => reader.push(c),
        }
    }
    let len = reader.at.saturating_add(quote.len());
    let literal = if bytes {
        Literal::Bytes(reader.out.into())
    } else {
        let text = String::from_utf8(reader.out)
            .map_err(|_| ParseError::new(Span::new(at, at.saturating_add(len)), "the string is not valid Unicode"))?;
        Literal::String(text.into())
    };
    Ok(Some((literal, len)))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    offset: usize,
    out: Vec<u8>,
    bytes: bool,
}

impl<'t> Reader<'t> {
    fn ahead(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn push(&mut self, c: char) {
        self.at = self.at.saturating_add(c.len_utf8());
        self.put(c);
    }

    fn put(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
    }

    fn error(&self, len: usize, message: &str) -> ParseError {
        let start = self.offset.saturating_add(self.at);
        ParseError::new(Span::new(start, start.saturating_add(len)), message)
    }

    fn escape(&mut self) -> Result<(), ParseError> {
        let ahead = self.ahead();
        let Some(kind) = ahead.chars().nth(1) else {
            return Err(self.error(1, "the string is not closed"));
        };
        let simple = match kind {
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\u{b}'),
            '\\' | '?' | '"' | '\'' | '`' => Some(kind),
            _ => None,
        };
        if let Some(c) = simple {
            self.at = self.at.saturating_add(2);
            self.put(c);
            return Ok(());
        }
        let (skip, len, radix) = match kind {
            'x' | 'X' => (2_usize, 2_usize, 16),
            'u' if !self.bytes => (2, 4, 16),
            'U' if !self.bytes => (2, 8, 16),
            '0'..='3' => (1, 3, 8),
            _ => {
                return Err(self
                    .error(
                        1_usize.saturating_add(kind.len_utf8()),
                        &format!("`\\{}` is not an escape", kind.escape_debug()),
                    )
                    .help("write `\\\\` for a backslash, or put an `r` before the string"));
            }
        };
        let end = skip.saturating_add(len);
        let code = ahead.get(skip..end).filter(|s| s.bytes().all(|b| char::from(b).is_digit(radix)));
        let Some(code) = code.and_then(|s| u32::from_str_radix(s, radix).ok()) else {
            return Err(self.error(2, &format!("the escape `\\{kind}` needs {len} digits")));
        };
        if self.bytes {
            let byte = u8::try_from(code).map_err(|_| self.error(end, "the escape does not fit in a byte"))?;
            self.out.push(byte);
        } else {
            let c = char::from_u32(code).ok_or_else(|| self.error(end, "the escape is not a Unicode character"))?;
            self.put(c);
        }
        self.at = self.at.saturating_add(end);
        Ok(())
    }
}
