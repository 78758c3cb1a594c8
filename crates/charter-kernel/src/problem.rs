//! What is wrong with a definition, with its address in it.

use std::fmt;

/// A reason why a definition does not compile. `charter-format` shows it with file, line and caret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Stable code, e.g. `missing-target`; each has a page in `docs/codes/`.
    pub code: &'static str,
    /// JSON pointer into the core form, e.g. `/root/state/states/review/on/0/transitions/1/target/0`. With `/#` at its end the key
    /// there is meant, not the value: the place that an `assign` sets.
    pub at: String,
    /// Bytes within the text found there, for an expression.
    pub span: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}
