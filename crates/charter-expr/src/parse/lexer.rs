//! The lexer: splits the text into tokens (CEL specification, "Syntax").

use super::literal;
use crate::Span;
use crate::ast::Literal;
use crate::error::ParseError;

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name. Reserved words are names here; the parser decides where they are allowed.
    Ident(String),
    /// A name between backticks.
    Quoted(String),
    /// A number, string, bytes, `true`, `false` or `null`. Numbers have no sign.
    Literal(Literal),
    /// 9223372036854775808, which is an int only after a minus.
    MinInt,
    /// `in`
    In,
    /// An operator or a bracket.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// Whether a word is reserved.
pub(crate) fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "as" | "break"
            | "const"
            | "continue"
            | "else"
            | "for"
            | "function"
            | "if"
            | "import"
            | "let"
            | "loop"
            | "package"
            | "namespace"
            | "return"
            | "var"
            | "void"
            | "while"
    )
}

/// Whether a string can be written as a field without backticks.
pub(crate) fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
        && bytes.all(is_word)
        && !matches!(text, "in" | "true" | "false" | "null")
}

fn is_word(b: u8) -> bool {
    b == b'_' || b.is_ascii_alphanumeric()
}

/// Longest first, so that `<=` is not split into `<` and `=`.
const SIGNS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];

/// Returns all tokens with their positions; the last one is [`Token::End`].
pub(super) fn tokens(source: &str) -> Result<Vec<(Token, Span)>, ParseError> {
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        at = skip_space(source, at);
        let rest = source.get(at..).unwrap_or("");
        let Some(first) = rest.bytes().next() else {
            out.push((Token::End, Span::new(at, at)));
            return Ok(out);
        };
        let (token, len) = if let Some((literal, len)) = literal::quoted(rest, at)? {
            (Token::Literal(literal), len)
        } else if first == b'_' || first.is_ascii_alphabetic() {
            word(rest)
        } else if first.is_ascii_digit() || (first == b'.' && rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit)) {
            number(rest, at)?
        } else if first == b'`' {
            backticks(rest, at)?
        } else if let Some(sign) = SIGNS.iter().find(|s| rest.starts_with(**s)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(stray(source, at));
        };
        let end = at.saturating_add(len);
        out.push((token, Span::new(at, end)));
        at = end;
    }
}

fn stray(source: &str, at: usize) -> ParseError {
    let (before, rest) = source.split_at_checked(at).unwrap_or((source, ""));
    let c = rest.chars().next().unwrap_or(' ');
    let span = Span::new(at, at.saturating_add(c.len_utf8()));
    let error = ParseError::new(span, format!("unexpected character `{}`", c.escape_debug()));
    match c {
        '=' if before.trim().is_empty() => error.help("omit the leading `=`, which only marks expressions in charters"),
        '=' => error.help("equality is written `==`"),
        '&' => error.help("`and` is written `&&`"),
        '|' => error.help("`or` is written `||`"),
        '"' | '\'' => error.help("the string is not closed"),
        _ => error,
    }
}

/// Skips white space and `// comments`.
fn skip_space(source: &str, mut at: usize) -> usize {
    loop {
        let rest = source.get(at..).unwrap_or("");
        let skip = match rest.bytes().next() {
            Some(b' ' | b'\t' | b'\n' | b'\r' | 0x0c) => 1,
            Some(b'/') if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ => return at,
        };
        at = at.saturating_add(skip);
    }
}

fn word(rest: &str) -> (Token, usize) {
    let len = rest.bytes().position(|b| !is_word(b)).unwrap_or(rest.len());
    let text = rest.get(..len).unwrap_or("");
    let token = match text {
        "true" => Token::Literal(Literal::Bool(true)),
        "false" => Token::Literal(Literal::Bool(false)),
        "null" => Token::Literal(Literal::Null),
        "in" => Token::In,
        _ => Token::Ident(text.to_owned()),
    };
    (token, len)
}

/// Reads a field name between backticks: letters, digits and `_ . - / space`.
fn backticks(rest: &str, at: usize) -> Result<(Token, usize), ParseError> {
    let inner = rest.get(1..).unwrap_or("");
    let len = inner.find('`').unwrap_or(inner.len());
    let whole = Span::new(at, at.saturating_add(len).saturating_add(1));
    let text = inner.get(..len).unwrap_or("");
    if len == inner.len() {
        return Err(ParseError::new(whole, "the field name is not closed").help("add a backtick"));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | ' ');
    if text.is_empty() || !text.chars().all(allowed) {
        return Err(ParseError::new(
            whole,
            "only letters, digits and `_`, `.`, `-`, `/` and space may appear between backticks",
        )
        .help("use an index instead: `x[\"...\"]`"));
    }
    Ok((Token::Quoted(text.to_owned()), len.saturating_add(2)))
}

fn number(rest: &str, at: usize) -> Result<(Token, usize), ParseError> {
    let bytes = rest.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    let run = |mut i: usize| {
        while digit(i) {
            i = i.saturating_add(1);
        }
        i
    };
    let hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut end = if hex {
        let hex_digits = rest.bytes().skip(2).take_while(u8::is_ascii_hexdigit).count();
        hex_digits.saturating_add(2)
    } else {
        run(0)
    };
    let mut double = false;
    if !hex {
        if bytes.get(end) == Some(&b'.') && digit(end.saturating_add(1)) {
            double = true;
            end = run(end.saturating_add(1));
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end.saturating_add(1)), Some(b'+' | b'-')));
            let from = end.saturating_add(1).saturating_add(sign);
            if digit(from) {
                double = true;
                end = run(from);
            }
        }
    }
    let text = rest.get(..end).unwrap_or("");
    let unsigned = !double && matches!(bytes.get(end), Some(b'u' | b'U'));
    let len = end.saturating_add(usize::from(unsigned));
    let span = Span::new(at, at.saturating_add(len));
    if bytes.get(len).copied().is_some_and(is_word) {
        return Err(
            ParseError::new(span, "a name directly after a number").help("put a space or an operator between them")
        );
    }
    if double {
        let value: f64 = text.parse().map_err(|_| ParseError::new(span, "this is not a number"))?;
        if !value.is_finite() {
            return Err(ParseError::new(span, format!("`{text}` is too large for a double")));
        }
        return Ok((Token::Literal(Literal::Double(value)), len));
    }
    let value = if hex { u64::from_str_radix(text.get(2..).unwrap_or(""), 16) } else { text.parse() };
    let Ok(value) = value else {
        let message = if text.len() <= 2 && hex {
            "a hexadecimal number needs digits".to_owned()
        } else {
            format!("`{text}` does not fit in 64 bits")
        };
        return Err(ParseError::new(span, message));
    };
    let token = if unsigned {
        Token::Literal(Literal::Uint(value))
    } else if let Ok(value) = i64::try_from(value) {
        Token::Literal(Literal::Int(value))
    } else if value == i64::MIN.unsigned_abs() {
        Token::MinInt
    } else {
        return Err(ParseError::new(span, format!("`{text}` does not fit in a signed 64-bit integer"))
            .help("write a `u` after it to make it a uint"));
    };
    Ok((token, len))
}
