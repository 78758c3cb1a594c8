//! Texts of a description: bounded, and digests of what is not.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::data::{MAX_INPUT_BYTES, MAX_TEXT_BYTES};

/// The input itself if it is small, else its digest and size; and its digest.
pub(crate) fn bounded(input: &Value) -> (Value, String) {
    let text = charter_kernel::digest::canonical(input);
    let digest = hex(&Sha256::digest(text.as_bytes()));
    if text.len() <= MAX_INPUT_BYTES {
        (input.clone(), digest)
    } else {
        (json!({"sha256": digest, "bytes": text.len()}), digest)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The beginning of a text, with a mark if the rest was cut off.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let mut end = MAX_TEXT_BYTES.saturating_sub(3);
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    format!("{}...", text.get(..end).unwrap_or_default())
}
