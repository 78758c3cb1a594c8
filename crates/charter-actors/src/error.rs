//! Errors in the configuration of an actor, or in a file that it names.

use charter_run::KeyError;

/// Why an executor does not accept the configuration of an actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The host has no executor for the actor's kind.
    #[error("this host has no executor for the kind `{kind}`; it has `{}`", known.join("`, `"))]
    UnknownKind {
        /// The kind.
        kind: String,
        /// The kinds that the host has executors for.
        known: Vec<String>,
    },
    /// A key is unknown, is missing, or has a wrong value.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file that the configuration names cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Anything else; the message names the key.
    #[error("{0}")]
    Other(String),
}

impl ConfigError {
    /// See [`KeyError::missing`].
    #[must_use]
    pub fn missing(key: &str, expected: &str) -> ConfigError {
        KeyError::missing(key, expected).into()
    }

    /// See [`KeyError::invalid`].
    #[must_use]
    pub fn invalid(key: &str, expected: &str, found: &serde_json::Value) -> ConfigError {
        KeyError::invalid(key, expected, found).into()
    }

    /// See [`KeyError::unknown`].
    #[must_use]
    pub fn unknown_key<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> ConfigError {
        KeyError::unknown(key, known).into()
    }
}

/// Why a file next to a charter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The name is absolute or leaves the folder.
    #[error("`{0}` is not a path inside the charter's folder: it must be relative and must not contain `..`")]
    Outside(String),
    /// The charter has no folder on this host.
    #[error("cannot read `{0}`: this host has no files beside the charter")]
    NoFolder(String),
    /// A folder in the file system is needed, but the charter's files are built into the program,
    /// or it has none.
    #[error("the charter has no folder in the file system of this host")]
    NotInFileSystem,
    /// There is no such file.
    #[error("no file `{0}` beside the charter")]
    NotFound(String),
    /// The file is not in the manifest of the run.
    #[error("`{0}` is not among the files that the run started with; its executor has to name it (`Executor::files`)")]
    NotKept(String),
    /// The file is not UTF-8.
    #[error("`{0}` beside the charter is not text: it is not valid UTF-8")]
    NotText(String),
    /// A command names the charter's folder itself.
    #[error(
        "the command names `{0}`, the charter's folder itself, with everything that changes in it; name the files or the subfolder that it uses"
    )]
    Itself(String),
    /// A folder that a command names has too much inside.
    #[error(
        "the command names the folder `{name}`, which has more than {limit} files and folders inside; name those that it uses, or put programs on `PATH`"
    )]
    TooManyInside {
        /// The folder.
        name: String,
        /// The limit.
        limit: usize,
    },
    /// It is a folder, a device or something else.
    #[error("`{0}` beside the charter is not a regular file")]
    NotAFile(String),
    /// The files of a charter are too large.
    #[error("the files that the actors name have more than {limit} bytes together; put large programs on `PATH`")]
    TooLargeTogether {
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is too large.
    #[error("`{name}` has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// The name of the file.
        name: String,
        /// The size of the file in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The folder has too many files.
    #[error("the folder `{name}` beside the charter has {count} files; the limit is {limit}")]
    TooMany {
        /// The name of the folder.
        name: String,
        /// The number of files in the folder.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The operating system reported an error.
    #[error("cannot read `{name}` beside the charter: {error}")]
    Io {
        /// The file or folder.
        name: String,
        /// The message of the operating system.
        error: String,
    },
}
