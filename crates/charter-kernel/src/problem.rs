//! Problems of a definition, each with its location.

use std::fmt;

/// A reason why a definition does not compile. `charter-format` shows it with file, line and caret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// Stable code, e.g. `missing-target`; each has a page in `docs/codes/`.
    pub code: &'static str,
    /// JSON pointer into the core form, e.g.
    /// `/root/state/states/review/on/0/transitions/1/target/0`. A trailing `/#` refers to the key
    /// instead of the value: the location that an `assign` sets.
    pub at: String,
    /// For an expression, the byte range within its text.
    pub span: Option<(usize, usize)>,
    /// The message.
    pub message: String,
    /// How to fix it.
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
