//! Reads delays: `24h`, `1h30m`, `500ms`, plain milliseconds, `= CEL`, or a name.

use charter_expr::{DelayError, delay_ms, parse_delay};
use charter_kernel::definition::Delay;

use crate::diagnostic::{Diagnostic, codes};
use crate::source::Span;
use crate::source::{Node, Value};

pub(crate) const HELP: &str =
    "write a duration such as `500ms`, `1h30m` or `2d`, milliseconds, a name from `delays`, or `= CEL`";

/// Reads a delay from a value.
pub(crate) fn read(node: &Node) -> Result<Delay, Diagnostic> {
    let refuse = |message: String| Err(Diagnostic::error(codes::VALUE, node.span, message).help(HELP));
    if let Some(ms) = node.whole() {
        let read = delay_ms(i128::from(ms)).and_then(milliseconds);
        return read.map_err(|error| invalid(node.span, &ms.to_string(), error));
    }
    match &node.value {
        Value::Text(text) => from_text(&text.text).map_err(|error| invalid(node.span, &text.text, error)),
        _ => refuse(format!("expected a duration, found {}", node.kind())),
    }
}

/// Creates the diagnostic for a string or a number that is not a delay.
pub(crate) fn invalid(span: Span, text: &str, error: DelayError) -> Diagnostic {
    Diagnostic::error(codes::BAD_DELAY, span, error.message(text)).help(HELP)
}

fn milliseconds(ms: i64) -> Result<Delay, DelayError> {
    u64::try_from(ms).map(Delay::Ms).map_err(|_| DelayError::Negative)
}

/// Reads a delay from text (keys of `after` are text, even if they are numbers).
///
/// # Errors
/// Returns an error if the text is not a delay.
pub(crate) fn from_text(text: &str) -> Result<Delay, DelayError> {
    if let Some(cel) = text.strip_prefix("= ") {
        return Ok(Delay::Cel(cel.to_owned()));
    }
    // A name cannot start with a digit, so `5sec` is an invalid duration rather than an undeclared
    // name.
    if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-')) {
        return parse_delay(text).and_then(milliseconds);
    }
    let is_name = !text.is_empty() && !text.starts_with(['+', '=']) && !text.contains(char::is_whitespace);
    if is_name { Ok(Delay::Name(text.to_owned())) } else { Err(DelayError::Malformed) }
}

/// Whether a text is the name of a delay, rather than a delay or neither.
#[must_use]
pub fn is_delay_name(text: &str) -> bool {
    matches!(from_text(text), Ok(Delay::Name(_)))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use charter_kernel::Schema;
    use proptest::prelude::*;

    use super::from_text;

    static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::compile(&crate::schema::delay()).unwrap());

    proptest! {
        /// The reader and the JSON Schema accept the same strings as delays, with one exception:
        /// only the reader detects a fraction that is not a whole number of milliseconds, or a
        /// delay that is too long.
        #[test]
        fn the_schema_agrees_with_the_reader(text in r"(= )?(([0-9]{0,3}\.?[0-9]{0,2})(w|d|h|m|s|ms|us|min|)|[-+=. a-z]{1,2}|retry){0,3}") {
            let (by_reader, by_schema) = (from_text(&text).is_ok(), SCHEMA.accepts(&text.as_str().into()));
            prop_assert!(by_schema || !by_reader, "refused by the schema alone: {text:?}");
            prop_assert!(by_reader || !by_schema || text.contains('.') || text.len() > 5, "refused by the reader alone: {text:?}");
        }
    }
}
