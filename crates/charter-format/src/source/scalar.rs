//! Reads plain scalars according to the core schema of YAML 1.2: `yes`, `on` and `1_000` are
//! strings, `010` is ten.

use super::tree::{Node, Span, Style, Text, Value};
use crate::diagnostic::{Diagnostic, codes};

/// The largest integer that all JSON parsers read exactly: 2^53 - 1.
pub(crate) const MAX_INT: i64 = (1 << 53) - 1;

/// Reads a plain scalar of YAML.
pub(crate) fn plain(text: &str, span: Span) -> Result<Value, Diagnostic> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text, span)? {
            Some(value) => value,
            None => Value::Text(Text { text: text.to_owned(), style: Style::Plain }),
        },
    })
}

/// Reads a number according to the core schema of YAML, which includes the numbers of JSON; `None`
/// if the scalar is a string.
pub(crate) fn number(text: &str, span: Span) -> Result<Option<Value>, Diagnostic> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits(unsigned) {
        return int(text.parse().ok(), text, span).map(Some);
    }
    if let Some(hex) =
        text.strip_prefix("0x").filter(|hex| !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return int(i64::from_str_radix(hex, 16).ok(), text, span).map(Some);
    }
    if let Some(octal) =
        text.strip_prefix("0o").filter(|octal| !octal.is_empty() && octal.bytes().all(|b| (b'0'..=b'7').contains(&b)))
    {
        return int(i64::from_str_radix(octal, 8).ok(), text, span).map(Some);
    }
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        let message = format!("`{text}` is not a JSON number");
        return Err(Diagnostic::error(codes::NUMBER, span, message).help("quote it if it is text"));
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, part) = match mantissa.split_once('.') {
        Some((whole, part)) => (whole, Some(part)),
        None => (mantissa, None),
    };
    let is_float = (digits(whole) && part.is_none_or(|part| part.is_empty() || digits(part))
        || whole.is_empty() && part.is_some_and(digits))
        && exponent.is_none_or(digits);
    if !is_float {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(Value::Float(value))),
        _ => Err(too_large(text, span)),
    }
}

fn int(value: Option<i64>, text: &str, span: Span) -> Result<Value, Diagnostic> {
    match value {
        Some(value) if (-MAX_INT..=MAX_INT).contains(&value) => Ok(Value::Int(value)),
        _ => Err(too_large(text, span)),
    }
}

fn too_large(text: &str, span: Span) -> Diagnostic {
    let shown: String = text.chars().take(40).collect();
    Diagnostic::error(
        codes::NUMBER,
        span,
        format!("number `{shown}` is out of range: JSON readers disagree beyond 2^53-1"),
    )
    .help("quote it, as text")
}

/// Warns about numbers that YAML 1.1 and 1.2 read differently: `010` is eight in 1.1 and ten in
/// 1.2.
pub(crate) fn leading_zero(node: &Node, text: &str) -> Option<Diagnostic> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let odd = matches!(node.value, Value::Int(_))
        && unsigned.len() > 1
        && unsigned.starts_with('0')
        && unsigned.bytes().all(|b| b.is_ascii_digit());
    odd.then(|| {
        Diagnostic::warning(
            codes::NUMBER,
            node.span,
            format!("`{text}` is read as a decimal number; some YAML readers treat it as octal"),
        )
        .help("remove the leading zeros, or quote it if it is text")
    })
}
