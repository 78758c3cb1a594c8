//! Errors in the keys of an actor's configuration.

/// Why a key of a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no such key.
    #[error("unknown key `{key}`{}", nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
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
        /// What the key should hold.
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
}

impl KeyError {
    /// Creates the error for a missing required key; `expected` describes its value.
    #[must_use]
    pub fn missing(key: &str, expected: &str) -> KeyError {
        KeyError::Missing { key: key.into(), expected: expected.into() }
    }

    /// Creates the error for a value of the wrong type or out of range; `expected` describes a
    /// valid one.
    #[must_use]
    pub fn invalid(key: &str, expected: &str, found: &serde_json::Value) -> KeyError {
        KeyError::Invalid { key: key.into(), expected: expected.into(), found: found.to_string() }
    }

    /// Creates the error for a key that is not among the known ones.
    #[must_use]
    pub fn unknown<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> KeyError {
        let nearest = charter_expr::nearest(key, known).map(str::to_owned);
        KeyError::Unknown { key: key.into(), nearest }
    }

    /// Like [`KeyError::unknown`], for a key of the nested object `parent`.
    #[must_use]
    pub fn unknown_in<'a>(parent: &str, key: &str, known: impl IntoIterator<Item = &'a str>) -> KeyError {
        let nearest = charter_expr::nearest(key, known).map(|n| format!("{parent}.{n}"));
        KeyError::Unknown { key: format!("{parent}.{key}"), nearest }
    }
}
