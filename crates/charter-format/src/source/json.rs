//! Parses JSON (RFC 8259) into the node tree. JSON has its own parser because not every JSON text
//! is valid YAML, and because error messages should use the terms of JSON.

use super::build::{Bounds, Builder};
use super::tree::{Node, Span, Style, Text, Value};
use super::{Parsed, scalar};
use crate::diagnostic::{Diagnostic, codes};

struct Cursor<'s> {
    source: &'s str,
    at: usize,
}

/// The tokens that may come next.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Value,
    /// After `[`: a value or `]`.
    FirstItem,
    /// After `{`: a key or `}`.
    FirstKey,
    Key,
    /// After a value: `,`, the closing bracket, or the end of the text.
    Next,
}

pub(crate) fn parse(source: &str, bounds: &Bounds) -> Result<Parsed, Diagnostic> {
    let mut cursor = Cursor { source, at: if source.starts_with('\u{feff}') { 3 } else { 0 } };
    let mut builder = Builder::new(bounds);
    let mut brackets: Vec<u8> = Vec::new();
    let mut expect = Expect::Value;
    loop {
        cursor.skip_space();
        let start = cursor.at;
        let byte = cursor.peek();
        if expect == Expect::Next && brackets.is_empty() {
            break if byte.is_some() {
                Err(cursor.unexpected("unexpected text after the end of the document"))
            } else {
                Ok(())
            };
        }
        let Some(byte) = byte else {
            break Err(cursor.unexpected(if source.trim().is_empty() {
                "the document is empty"
            } else {
                "unexpected end of file"
            }));
        };
        expect = match (expect, byte) {
            (Expect::FirstItem | Expect::Next, b']') | (Expect::FirstKey | Expect::Next, b'}') => {
                if brackets.pop() != Some(byte) {
                    break Err(cursor.unexpected("mismatched closing bracket"));
                }
                cursor.step();
                builder.close(cursor.at)?;
                Expect::Next
            }
            (Expect::Next, b',') => {
                cursor.step();
                if brackets.last() == Some(&b'}') { Expect::Key } else { Expect::Value }
            }
            (Expect::Next, _) => {
                break Err(cursor.unexpected("expected `,` or the closing bracket"));
            }
            (Expect::FirstKey | Expect::Key, b'"') => {
                let text = cursor.string()?;
                builder.key(text, Span::new(start, cursor.at))?;
                cursor.skip_space();
                if cursor.peek() != Some(b':') {
                    break Err(cursor.unexpected("expected `:` after the key"));
                }
                cursor.step();
                Expect::Value
            }
            (Expect::FirstKey | Expect::Key, _) => {
                break Err(cursor.unexpected("expected a key in double quotes"));
            }
            (_, b'[') => {
                builder.open(false, Span::new(start, start.saturating_add(1)), 0)?;
                brackets.push(b']');
                cursor.step();
                Expect::FirstItem
            }
            (_, b'{') => {
                builder.open(true, Span::new(start, start.saturating_add(1)), 0)?;
                brackets.push(b'}');
                cursor.step();
                Expect::FirstKey
            }
            (_, b'"') => {
                let text = cursor.string()?;
                let value = Value::Text(Text { text, style: Style::Double });
                builder.scalar(Node { span: Span::new(start, cursor.at), value }, 0)?;
                Expect::Next
            }
            _ => {
                let value = cursor.word()?;
                builder.scalar(Node { span: Span::new(start, cursor.at), value }, 0)?;
                Expect::Next
            }
        };
    }?;
    match builder.finish() {
        Some(root) => Ok(Parsed { root, warnings: Vec::new() }),
        None => Err(cursor.unexpected("the document is empty")),
    }
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step();
        }
    }

    fn unexpected(&self, message: &str) -> Diagnostic {
        let width = self.source.get(self.at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        Diagnostic::error(
            codes::SYNTAX,
            Span::new(self.at, self.at.saturating_add(width)),
            format!("invalid JSON: {message}"),
        )
    }

    /// Parses `true`, `false`, `null`, or a number.
    fn word(&mut self) -> Result<Value, Diagnostic> {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphanumeric() || b"+-._".contains(&b)) {
            self.step();
        }
        let span = Span::new(start, self.at);
        let text = self.source.get(start..self.at).unwrap_or_default();
        match text {
            "null" => return Ok(Value::Null),
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            _ => {}
        }
        if is_number(text)
            && let Some(value) = scalar::number(text, span)?
        {
            return Ok(value);
        }
        self.at = start;
        Err(self.unexpected("expected a value"))
    }

    /// Parses a string, including its quotes.
    fn string(&mut self) -> Result<String, Diagnostic> {
        let open = self.at;
        self.step();
        let mut text = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|b| b != b'"' && b != b'\\' && b >= 0x20) {
                self.step();
            }
            text.push_str(self.source.get(start..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.step();
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => {
                    return Err(self.unexpected("control character in a string: write an escape such as `\\n`"));
                }
                None => {
                    self.at = open;
                    return Err(self.unexpected("unterminated string"));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Diagnostic> {
        let start = self.at;
        self.step();
        let simple = match self.peek() {
            Some(b'u') => None,
            Some(b'n') => Some('\n'),
            Some(b't') => Some('\t'),
            Some(b'r') => Some('\r'),
            Some(b'b') => Some('\u{8}'),
            Some(b'f') => Some('\u{c}'),
            Some(byte @ (b'"' | b'\\' | b'/')) => Some(char::from(byte)),
            _ => return Err(self.unexpected("invalid escape sequence")),
        };
        self.step();
        if let Some(simple) = simple {
            return Ok(simple);
        }
        let high = self.hex();
        let code = match high {
            // A character above U+FFFF is written as a surrogate pair.
            Some(high @ 0xd800..=0xdbff) if self.source.get(self.at..).is_some_and(|rest| rest.starts_with("\\u")) => {
                self.at = self.at.saturating_add(2);
                self.hex().filter(|low| (0xdc00..=0xdfff).contains(low)).map(|low| {
                    let top = (high & 0x3ff) << 10;
                    (top | (low & 0x3ff)).saturating_add(0x1_0000)
                })
            }
            other => other,
        };
        code.and_then(char::from_u32).ok_or_else(|| {
            self.at = start;
            self.unexpected("`\\u` needs four hex digits that encode a character, or a surrogate pair")
        })
    }

    fn hex(&mut self) -> Option<u32> {
        let end = self.at.saturating_add(4);
        let digits = self.source.get(self.at..end).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.at = end;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// Whether the text is a number in JSON's grammar, which is narrower than YAML's.
fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let whole: String = unsigned.chars().take_while(char::is_ascii_digit).collect();
    let rest = unsigned.get(whole.len()..).unwrap_or_default();
    let good_whole = !whole.is_empty() && (whole == "0" || !whole.starts_with('0'));
    let good_part = rest.strip_prefix('.').is_none_or(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    good_whole && good_part && (rest.is_empty() || rest.starts_with(['.', 'e', 'E']))
}
