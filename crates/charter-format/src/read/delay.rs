//! Durations: `24h`, `1h30m`, `500ms`, plain milliseconds, `= CEL`, or a name.

use charter_expr::parse_delay;
use charter_kernel::definition::Delay;

use crate::diagnostic::{Diagnostic, codes};
use crate::source::{Node, Value};

pub(crate) const HELP: &str =
    "write a duration such as `500ms`, `1h30m` or `2d`, milliseconds, a name from `delays`, or `= CEL`";

/// Reads a delay from a value.
pub(crate) fn read(node: &Node) -> Result<Delay, Diagnostic> {
    let refuse = |message: String| Err(Diagnostic::error(codes::VALUE, node.span, message).help(HELP));
    match &node.value {
        Value::Int(ms) => match u64::try_from(*ms) {
            Ok(ms) => Ok(Delay::Ms(ms)),
            Err(_) => refuse(format!("invalid duration `{ms}`: it cannot be negative")),
        },
        Value::Text(text) => match from_text(&text.text) {
            Some(delay) => Ok(delay),
            None => refuse(format!("invalid duration `{}`", text.text)),
        },
        _ => refuse(format!("expected a duration, found {}", node.kind())),
    }
}

/// Reads a delay from a string (keys of `after` are strings, even if they are numbers). `None` if
/// it is invalid.
pub(crate) fn from_text(text: &str) -> Option<Delay> {
    if let Some(cel) = text.strip_prefix("= ") {
        return Some(Delay::Cel(cel.to_owned()));
    }
    // A name cannot start with a digit, so `5sec` is an invalid duration rather than an undeclared
    // name.
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return parse_delay(text).and_then(|ms| u64::try_from(ms).ok()).map(Delay::Ms);
    }
    let is_name = !text.is_empty() && !text.starts_with(['-', '+', '=']) && !text.contains(char::is_whitespace);
    is_name.then(|| Delay::Name(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::from_text;

    static SCHEMA: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| jsonschema::validator_for(&crate::schema::delay()).unwrap());

    proptest! {
        /// Reader and JSON Schema accept the same texts as delays; only the reader sees that a
        /// fraction is not a whole number of milliseconds, or that a length is too long.
        #[test]
        fn the_schema_agrees_with_the_reader(text in r"(= )?(([0-9]{0,3}\.?[0-9]{0,2})(w|d|h|m|s|ms|us|min|)|[-+=. a-z]{1,2}|retry){0,3}") {
            let (by_reader, by_schema) = (from_text(&text).is_some(), SCHEMA.is_valid(&text.as_str().into()));
            prop_assert!(by_schema || !by_reader, "refused by the schema alone: {text:?}");
            prop_assert!(by_reader || !by_schema || text.contains('.') || text.len() > 7, "refused by the reader alone: {text:?}");
        }
    }
}
