//! Encodes values in stable memory as JSON. JSON is always parsed from text, because a second
//! parser for bytes would double the size of the code.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CanisterError;

/// Decodes what [`write`] encoded.
pub(crate) fn read<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, CanisterError> {
    let bad = |why: String| CanisterError::Stable(format!("{what}: {why}"));
    let text = std::str::from_utf8(bytes).map_err(|e| bad(e.to_string()))?;
    serde_json::from_str(text).map_err(|e| bad(e.to_string()))
}

/// Encodes plain data.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<Vec<u8>, CanisterError> {
    serde_json::to_vec(value).map_err(|e| CanisterError::Stable(e.to_string()))
}
