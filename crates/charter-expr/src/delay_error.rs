//! The reasons why a string or a value is not a delay, with their messages.

use serde::{Deserialize, Serialize};

use crate::types::shorten;

/// Why a string or a value is not a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DelayError {
    /// It is not a duration.
    Malformed,
    /// It is negative.
    Negative,
    /// It is not a whole number of milliseconds.
    Fraction,
    /// It is longer than 1,000 years.
    TooLong,
}

impl DelayError {
    /// How to write a delay.
    pub const HELP: &str = "write a duration such as `500ms`, `1h30m` or `2d`, or milliseconds; at most 1,000 years";

    /// What is wrong with a delay.
    #[must_use]
    pub fn message(self, value: &str) -> String {
        let value = shorten(value);
        match self {
            DelayError::Malformed => format!("invalid duration `{value}`"),
            DelayError::Negative => format!("invalid duration `{value}`: it cannot be negative"),
            DelayError::Fraction => format!("invalid duration `{value}`: it is not a whole number of milliseconds"),
            DelayError::TooLong => format!("invalid duration `{value}`: it is longer than 1,000 years"),
        }
    }
}
