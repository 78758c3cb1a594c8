//! The configuration of an actor, read, and values that several kinds have in theirs.

use std::sync::Arc;

use charter_kernel::definition::ActorDecl;
use charter_kernel::{Schema, parse_delay};
use serde_json::Value as Json;

use crate::error::ConfigError;
use crate::policy::ActorPolicy;

/// An entry of `actors`, read.
#[derive(Debug)]
pub struct ActorConfig {
    /// Its name in the charter.
    pub name: Arc<str>,
    /// Its kind, which selects the executor.
    pub kind: Arc<str>,
    /// What the charter says about it.
    pub decl: ActorDecl,
    /// The keys that are the same for every kind.
    pub policy: ActorPolicy,
    /// The schema of its answers.
    pub output: Option<Schema>,
}

impl ActorConfig {
    /// Reads an entry of `actors`.
    ///
    /// # Errors
    /// A common key is wrong, or `output` is not a schema. Keys of the kind itself are checked by its executor.
    pub fn read(name: &str, decl: &ActorDecl) -> Result<ActorConfig, ConfigError> {
        Ok(ActorConfig {
            name: name.into(),
            kind: decl.kind.as_str().into(),
            policy: ActorPolicy::read(decl)?,
            output: decl
                .output
                .as_ref()
                .map(Schema::compile)
                .transpose()
                .map_err(|e| ConfigError::Other(e.to_string()))?,
            decl: decl.clone(),
        })
    }
}

/// Reads a duration: `2s`, `1h30m`, or a number of milliseconds.
///
/// # Errors
/// The value is neither, or is negative.
pub fn delay(key: &str, value: &Json) -> Result<i64, ConfigError> {
    let ms = match value {
        Json::String(text) => parse_delay(text).map(|ms| ms.0),
        Json::Number(n) => n.as_i64(),
        _ => None,
    };
    ms.filter(|ms| *ms >= 0).ok_or_else(|| ConfigError::invalid(key, "a duration such as `2s` or `1h30m`", value))
}

/// Reads a string or a list of strings.
///
/// # Errors
/// The value is neither.
pub fn texts(key: &str, value: &Json) -> Result<Vec<String>, ConfigError> {
    let wrong = || ConfigError::invalid(key, "a string or a list of strings", value);
    match value {
        Json::String(text) => Ok(vec![text.clone()]),
        Json::Array(items) => items.iter().map(|i| i.as_str().map(str::to_owned).ok_or_else(wrong)).collect(),
        _ => Err(wrong()),
    }
}
