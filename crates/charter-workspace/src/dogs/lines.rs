//! The lines of the text form, and what is assumed about them.

use super::backticks;
use crate::error::ChangesetError;

/// The lines of a file without their line feeds, counted from 1.
pub(super) struct Lines<'t> {
    pub(super) rest: &'t str,
    pub(super) number: usize,
    /// What was assumed; `None`: nothing may be.
    pub(super) assumed: Option<Vec<String>>,
}

impl<'t> Lines<'t> {
    pub(super) fn next(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        self.number = self.number.saturating_add(1);
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line)
    }

    /// Returns the next line that is not blank.
    pub(super) fn filled(&mut self) -> Option<&'t str> {
        while let Some(line) = self.next() {
            if !line.trim_matches([' ', '\t']).is_empty() {
                return Some(line);
            }
        }
        None
    }

    /// Returns the next line that is not blank; if something may be assumed, the next one that
    /// begins with a fence.
    pub(super) fn fence(&mut self) -> Result<Option<&'t str>, ChangesetError> {
        let mut skipped = 0usize;
        let line = loop {
            match self.filled() {
                Some(line) if self.assumed.is_some() && backticks(line.trim_start()) < 3 => {
                    self.no_cr(line)?;
                    skipped = skipped.saturating_add(1);
                }
                line => break line,
            }
        };
        if skipped > 0 {
            let lines = if skipped == 1 { "1 line".to_owned() } else { format!("{skipped} lines") };
            self.assume(format!("{lines} of text before line {} are not part of the changes", self.number));
        }
        Ok(line)
    }

    /// Notes what is assumed.
    pub(super) fn assume(&mut self, what: String) {
        if let Some(assumed) = &mut self.assumed {
            assumed.push(what);
        }
    }

    /// Creates an error at the last line read.
    pub(super) fn refuse(&self, why: impl Into<String>, help: impl Into<String>) -> ChangesetError {
        ChangesetError::new(why, help).at_line(self.number.max(1))
    }

    /// Refuses a line of the form that ends with CR.
    pub(super) fn no_cr(&self, line: &str) -> Result<(), ChangesetError> {
        if line.ends_with('\r') {
            return Err(self.refuse(
                "the line ends with CRLF",
                "end lines with LF: the original line endings of the content cannot be restored",
            ));
        }
        Ok(())
    }
}
