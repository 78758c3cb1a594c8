//! What the guard knows about the folder that an agent works in.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use serde_json::Value;
use thiserror::Error;

use charter_workspace::SECRETS;

use crate::path::linked_control;

/// Why a run's input does not describe a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// `workspace` is missing, not text, or not absolute.
    #[error(
        "the run's input has no absolute path `workspace`; start the run with `--input '{{\"workspace\": \"/path\"}}'`"
    )]
    NoRoot,
    /// The folder cannot be resolved.
    #[error("cannot resolve the workspace `{0}`: {1}")]
    Unresolved(String, String),
    /// A list of the input is not a list of texts.
    #[error("`{0}` in the run's input is not a list of strings")]
    NotAList(&'static str),
    /// A pattern cannot be read.
    #[error("invalid pattern in `{0}` of the run's input: {1}")]
    Pattern(&'static str, String),
}

/// The folder that an agent works in, and what in and around it has a meaning of its own.
///
/// The part that decides comes from the run's input, so it is in the record; `home` and `guarded`
/// come from the host.
#[derive(Debug, Clone)]
pub struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) home: Option<PathBuf>,
    pub(crate) guarded: Vec<PathBuf>,
    pub(crate) protected: Gitignore,
    pub(crate) secrets: Gitignore,
    pub(crate) test: Option<String>,
    /// Whether the host runs the tests, so that those of the agent are a command like others.
    pub(crate) host_tests: bool,
    pub(crate) commands: Vec<Vec<String>>,
}

impl Workspace {
    /// Returns the workspace of a folder, with the default patterns.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`] if the folder is not absolute or does not exist.
    pub fn new(root: &Path) -> Result<Self, WorkspaceError> {
        Self::build(root, &[], &[])
    }

    /// Reads a workspace from the input of a run of the charter `coder`: `workspace`, `protected`,
    /// `secrets`, `test`, `testsBy`, `commands`. Other fields are not read.
    ///
    /// # Errors
    ///
    /// [`WorkspaceError`], which says what would be right.
    pub fn from_input(input: &Value) -> Result<Self, WorkspaceError> {
        let root = input.get("workspace").and_then(Value::as_str).ok_or(WorkspaceError::NoRoot)?;
        let protected = texts(input, "protected")?;
        let secrets = texts(input, "secrets")?;
        let mut workspace = Self::build(Path::new(root), &protected, &secrets)?;
        workspace.test = input.get("test").and_then(Value::as_str).map(str::to_owned);
        workspace.host_tests = input.get("testsBy").and_then(Value::as_str) == Some("host");
        workspace.commands = texts(input, "commands")?
            .iter()
            .map(|command| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .filter(|words| !words.is_empty())
            .collect();
        Ok(workspace)
    }

    fn build(root: &Path, protected: &[String], secrets: &[String]) -> Result<Self, WorkspaceError> {
        if !root.is_absolute() {
            return Err(WorkspaceError::NoRoot);
        }
        let resolved = root
            .canonicalize()
            .map_err(|error| WorkspaceError::Unresolved(root.display().to_string(), error.to_string()))?;
        let secret_patterns: Vec<String> =
            SECRETS.iter().map(|pattern| (*pattern).to_owned()).chain(secrets.iter().cloned()).collect();
        Ok(Self {
            protected: patterns(&resolved, "protected", protected)?,
            secrets: patterns(Path::new("/"), "secrets", &secret_patterns)?,
            guarded: linked_control(&resolved),
            root: resolved,
            home: None,
            test: None,
            host_tests: false,
            commands: Vec::new(),
        })
    }

    /// Sets the home folder of the agent's user, which `~` and `$HOME` stand for.
    #[must_use]
    pub fn with_home(mut self, home: &Path) -> Self {
        self.home = home.is_absolute().then(|| home.to_path_buf());
        self.guarded.extend(linked_control(home));
        self
    }

    /// Adds files and folders that no call may write or delete: the journal, keys, the guard's own
    /// configuration. Files beside one of them whose names continue its name count as well
    /// (`charter.db-wal`).
    #[must_use]
    pub fn with_guarded(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        for path in paths {
            self.guarded.push(path.canonicalize().unwrap_or(path));
        }
        self
    }

    /// Sets the command that tests the project.
    #[must_use]
    pub fn with_test(mut self, command: &str) -> Self {
        self.test = Some(command.to_owned());
        self
    }

    /// Adds the beginning of commands that the agent may run although the guard cannot see what
    /// they do, such as `cargo build`.
    #[must_use]
    pub fn with_command(mut self, command: &str) -> Self {
        self.commands.push(command.split_whitespace().map(str::to_owned).collect());
        self.commands.retain(|words| !words.is_empty());
        self
    }

    /// The folder, absolute and without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn texts(input: &Value, key: &'static str) -> Result<Vec<String>, WorkspaceError> {
    match input.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or(WorkspaceError::NotAList(key))).collect()
        }
        Some(_) => Err(WorkspaceError::NotAList(key)),
    }
}

fn patterns(root: &Path, key: &'static str, lines: &[String]) -> Result<Gitignore, WorkspaceError> {
    let invalid = |error: ignore::Error| WorkspaceError::Pattern(key, error.to_string());
    let mut builder = GitignoreBuilder::new(root);
    builder.case_insensitive(true).map_err(invalid)?;
    for line in lines {
        builder.add_line(None, line).map_err(invalid)?;
    }
    builder.build().map_err(invalid)
}
