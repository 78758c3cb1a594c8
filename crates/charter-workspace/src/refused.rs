//! Why a changeset is refused: where, what is wrong, and what would be right.

use std::fmt;

/// A changeset that is refused, as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Line of the text it was read from, from 1.
    pub line: Option<usize>,
    /// The change it is about: its number, from 1, and its path where known.
    pub change: Option<(usize, String)>,
    /// What is wrong.
    pub why: String,
    /// What would be right.
    pub help: String,
}

impl Refused {
    pub(crate) fn new(why: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused { line: None, change: None, why: why.into(), help: help.into() }
    }

    pub(crate) fn at_line(mut self, line: usize) -> Refused {
        self.line.get_or_insert(line);
        self
    }

    pub(crate) fn at_change(mut self, index: usize, path: &str) -> Refused {
        self.change.get_or_insert_with(|| (index.saturating_add(1), path.to_owned()));
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.change {
            Some((number, path)) if path.is_empty() => write!(f, "change {number}: ")?,
            Some((number, path)) => write!(f, "change {number} (`{path}`): ")?,
            None => {}
        }
        write!(f, "{}; {}", self.why, self.help)
    }
}

impl std::error::Error for Refused {}
