//! How what is ours is written into stable memory: JSON, read from text only (a second reader, over bytes, would be as large again).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Broken;

/// Reads what [`write`] wrote.
pub(crate) fn read<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, Broken> {
    let bad = |why: String| Broken::Stable(format!("{what}: {why}"));
    let text = std::str::from_utf8(bytes).map_err(|e| bad(e.to_string()))?;
    serde_json::from_str(text).map_err(|e| bad(e.to_string()))
}

/// Writes plain data.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<Vec<u8>, Broken> {
    serde_json::to_vec(value).map_err(|e| Broken::Stable(e.to_string()))
}
