//! What can go wrong with a workspace, each with a stable code.

use std::{fmt, io};

/// Why something was not done. The workspace is then as it was, unless the error is [`Error::Dirty`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The changeset is not well formed, or not what was read.
    #[error("{0}")]
    Changeset(#[from] ChangesetError),
    /// A path leads out of the workspace, or through something that could.
    #[error("`{path}`: {why}")]
    Escape {
        /// The path.
        path: String,
        /// What is on the way.
        why: String,
    },
    /// A file is not as the changeset expects it.
    #[error("`{path}` {why}; nothing was changed, propose again from what is there now")]
    Conflict {
        /// The path.
        path: String,
        /// What is there.
        why: String,
    },
    /// Something could not be put back as it was.
    #[error("`{path}` cannot be put back: {why}")]
    Undo {
        /// The path.
        path: String,
        /// What is in the way.
        why: String,
    },
    /// There is no approval of exactly this changeset by somebody else than its proposer.
    #[error("not approved: {0}")]
    Unapproved(String),
    /// Another run or process works on the workspace.
    #[error("the workspace `{path}` is in use{}; wait until that one has ended", by(.holder))]
    Locked {
        /// The workspace.
        path: String,
        /// Who has it, where known.
        holder: Option<String>,
    },
    /// A restore failed: the workspace is neither as before nor as approved, and a person must look at it.
    #[error("the workspace is dirty: {0}; look at it, put it right, then reset")]
    Dirty(String),
    /// An apply was interrupted, and only the database that it belongs to can undo it.
    #[error("an apply on `{path}` was interrupted; start with the database in `{store}`, which can undo it")]
    Interrupted {
        /// The workspace.
        path: String,
        /// The folder of the database that began it.
        store: String,
    },
    /// The `verify` command did not accept the changes.
    #[error("verification failed: {why}")]
    Verify {
        /// Its end: exit code, time limit, output limit.
        why: String,
        /// What it printed.
        output: String,
    },
    /// More than a limit allows.
    #[error("{0}")]
    TooLarge(String),
    /// A pattern or option that cannot be read.
    #[error("{0}")]
    Usage(String),
    /// What is in the store is not what was put there.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The host stopped it.
    #[error("stopped before `{0}`")]
    Stopped(String),
    /// A file or folder could not be read or written.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

fn by(holder: &Option<String>) -> String {
    holder.as_ref().map(|h| format!(" by `{h}`")).unwrap_or_default()
}

impl Error {
    /// The code, for charters and programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::Changeset(_) => "changeset",
            Error::Escape { .. } => "escape",
            Error::Conflict { .. } => "conflict",
            Error::Undo { .. } => "undo",
            Error::Unapproved(_) => "unapproved",
            Error::Locked { .. } => "locked",
            Error::Dirty(_) => "dirty",
            Error::Interrupted { .. } => "interrupted",
            Error::Verify { .. } => "verify",
            Error::TooLarge(_) => "too-large",
            Error::Usage(_) => "usage",
            Error::Damaged(_) => "damaged",
            Error::Stopped(_) => "stopped",
            Error::Io { .. } => "io",
        }
    }
}

/// Says what was being done when the system refused.
pub(crate) trait Context<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|e| Error::Io { doing: what(), source: e.into() })
    }
}

/// A changeset that is refused, as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesetError {
    /// Line of the text it was read from, from 1.
    pub line: Option<usize>,
    /// The change it is about: its number, from 1, and its path where known.
    pub change: Option<(usize, String)>,
    /// What is wrong.
    pub why: String,
    /// What would be right.
    pub help: String,
}

impl ChangesetError {
    pub(crate) fn new(why: impl Into<String>, help: impl Into<String>) -> ChangesetError {
        ChangesetError { line: None, change: None, why: why.into(), help: help.into() }
    }

    pub(crate) fn at_line(mut self, line: usize) -> ChangesetError {
        self.line.get_or_insert(line);
        self
    }

    pub(crate) fn at_change(mut self, index: usize, path: &str) -> ChangesetError {
        self.change.get_or_insert_with(|| (index.saturating_add(1), path.to_owned()));
        self
    }
}

impl fmt::Display for ChangesetError {
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

impl std::error::Error for ChangesetError {}
