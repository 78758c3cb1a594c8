//! What is wrong with the configuration of an actor, or with a file that it names.

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
    /// The kind does not have this key.
    #[error("unknown key `{key}`{}", nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key.
        key: String,
        /// A known key that is spelled similarly.
        nearest: Option<String>,
    },
    /// A required key is missing.
    #[error("missing key `{key}`: {expected}")]
    Missing {
        /// The key.
        key: String,
        /// What it holds.
        expected: String,
    },
    /// The value of a key has the wrong type or is out of range.
    #[error("invalid `{key}`: expected {expected}, found `{found}`")]
    Invalid {
        /// The key, with the keys of nested objects: `retry.attempts`.
        key: String,
        /// What it should hold.
        expected: String,
        /// The value, as JSON.
        found: String,
    },
    /// A file that the configuration names cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// Anything else; the message names the key.
    #[error("{0}")]
    Other(String),
}

impl ConfigError {
    /// A required key is missing; `expected` says what it holds.
    #[must_use]
    pub fn missing(key: &str, expected: &str) -> ConfigError {
        ConfigError::Missing { key: key.into(), expected: expected.into() }
    }

    /// The value of a key has the wrong type or is out of range; `expected` says what it should
    /// hold.
    #[must_use]
    pub fn invalid(key: &str, expected: &str, found: &serde_json::Value) -> ConfigError {
        ConfigError::Invalid { key: key.into(), expected: expected.into(), found: found.to_string() }
    }

    /// A key that is not among the known ones.
    #[must_use]
    pub fn unknown_key<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> ConfigError {
        let nearest = charter_expr::nearest(key, known).map(str::to_owned);
        ConfigError::UnknownKey { key: key.into(), nearest }
    }
}

/// Why a file beside a charter cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// The name is absolute or leaves the folder.
    #[error("`{0}` is not a path inside the charter's folder: it must be relative and must not contain `..`")]
    Outside(String),
    /// The charter has no folder on this host.
    #[error("cannot read `{0}`: this host has no files beside the charter")]
    NoFolder(String),
    /// The files of the charter are built into the program, or there are none, and a folder of the
    /// file system is needed.
    #[error("the charter has no folder in the file system of this host")]
    NotInFileSystem,
    /// There is no such file.
    #[error("no file `{0}` beside the charter")]
    NotFound(String),
    /// The file is too large.
    #[error("`{name}` has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Its name.
        name: String,
        /// Its size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The folder holds too many files.
    #[error("the folder `{name}` beside the charter has {count} files; the limit is {limit}")]
    TooMany {
        /// Its name.
        name: String,
        /// How many files it holds.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The system reports an error.
    #[error("cannot read `{name}` beside the charter: {error}")]
    Io {
        /// The file or folder.
        name: String,
        /// The system's message.
        error: String,
    },
}
