//! The messages of refusals because of a unique key.

use super::expression::expression_error;
use crate::refusal::{Cause, ExpressionError};
use crate::unique::MAX_KEY_BYTES;

/// Renders [`Cause::Taken`] and [`Cause::Key`].
pub(super) fn message(cause: &Cause, event: &str) -> String {
    match cause {
        Cause::Taken { key, run } => {
            format!("run `{run}` has accepted `{event}` with the key {key}, which is unique across runs")
        }
        Cause::Key { expression, error: Some(error), .. } => {
            let error = ExpressionError { expression: None, ..error.clone() };
            format!("the unique key of `{event}`, `{expression}`, could not be evaluated: {}", expression_error(&error))
        }
        Cause::Key { expression, found, .. } => format!(
            "the unique key of `{event}`, `{expression}`, is {}; it must be a string of 1 to {MAX_KEY_BYTES} bytes, an integer or a boolean",
            found.as_deref().unwrap_or_default()
        ),
        _ => String::new(),
    }
}
