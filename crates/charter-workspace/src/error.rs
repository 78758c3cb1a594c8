//! Errors of a workspace, each with a stable code.

use std::{fmt, io};

/// Why an operation failed. The workspace is unchanged, unless the error is [`Error::Dirty`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The changeset is malformed, or it changes files that were not read.
    #[error("{0}")]
    Changeset(#[from] ChangesetError),
    /// A path leads out of the workspace, or through something that could lead out of it.
    #[error("`{path}`: {why}")]
    Escape {
        /// The path.
        path: String,
        /// What the path leads through.
        why: String,
    },
    /// A file is not as the changeset expects it.
    #[error("`{path}` {why}; nothing was changed: propose a changeset against the current files")]
    Conflict {
        /// The path.
        path: String,
        /// How the file differs.
        why: String,
    },
    /// The folder is not the one that was approved.
    #[error(
        "`{path}` is not the folder that was approved: {why}; nothing was changed: start a new run on the folder that is meant"
    )]
    Replaced {
        /// The path of the folder.
        path: String,
        /// What is there now.
        why: String,
    },
    /// A file could not be restored.
    #[error("cannot restore `{path}`: {why}")]
    Undo {
        /// The path.
        path: String,
        /// What prevents it.
        why: String,
    },
    /// There is no approval of exactly this changeset by someone other than its proposer.
    #[error("not approved: {0}")]
    Unapproved(String),
    /// Another run or process uses the workspace.
    #[error("workspace `{path}` is in use{}; wait until it is released", by(.holder))]
    Locked {
        /// The workspace.
        path: String,
        /// Who holds the lock, if known.
        holder: Option<String>,
    },
    /// A restore failed: the workspace is neither in the old state nor in the approved one, and a
    /// person must inspect it.
    #[error("the workspace is dirty: {0}; inspect it, repair it, then clear the mark")]
    Dirty(String),
    /// An apply was interrupted, and can only be undone with the store with which it was started.
    #[error("an apply on `{path}` was interrupted; open the workspace with the store in `{store}`, which can undo it")]
    Interrupted {
        /// The workspace.
        path: String,
        /// The folder of that store.
        store: String,
    },
    /// The `verify` command rejected the changes.
    #[error("verification failed: {why}")]
    Verify {
        /// How the command ended: exit code, time limit, output limit.
        why: String,
        /// What the command printed.
        output: String,
    },
    /// A limit was exceeded.
    #[error("{0}")]
    TooLarge(String),
    /// A pattern or option is invalid.
    #[error("{0}")]
    Usage(String),
    /// The program `git` failed.
    #[error("{0}")]
    Git(String),
    /// The store does not contain what was written to it.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The host cancelled the operation.
    #[error("stopped: {0}")]
    Stopped(String),
    /// A file or folder could not be read or written.
    #[error("cannot {doing}: {}", reason(.source))]
    Io {
        /// The operation that failed.
        doing: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

fn by(holder: &Option<String>) -> String {
    holder.as_ref().map(|h| format!(" by `{h}`")).unwrap_or_default()
}

/// Returns the message of the operating system, without the error number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

impl Error {
    /// The stable error code, for charters and programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::Changeset(_) => "changeset",
            Error::Escape { .. } => "escape",
            Error::Conflict { .. } => "conflict",
            Error::Replaced { .. } => "replaced",
            Error::Undo { .. } => "undo",
            Error::Unapproved(_) => "unapproved",
            Error::Locked { .. } => "locked",
            Error::Dirty(_) => "dirty",
            Error::Interrupted { .. } => "interrupted",
            Error::Verify { .. } => "verify",
            Error::TooLarge(_) => "too-large",
            Error::Usage(_) => "usage",
            Error::Git(_) => "git",
            Error::Damaged(_) => "damaged",
            Error::Stopped(_) => "stopped",
            Error::Io { .. } => "io",
        }
    }
}

/// Adds the operation that failed to an error of the operating system.
pub(crate) trait Context<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|e| Error::Io { doing: what(), source: e.into() })
    }
}

/// Why a changeset is invalid. A changeset is accepted or refused as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesetError {
    /// Line of the source text, counted from 1.
    pub line: Option<usize>,
    /// The change: its number, counted from 1, and its path (empty if unknown).
    pub change: Option<(usize, String)>,
    /// What is wrong.
    pub why: String,
    /// How to correct it.
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
