//! Texts of a description: bounded, and digests of what is not.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::data::{MAX_INPUT_BYTES, MAX_TEXT_BYTES};

/// The input itself if it is small, else its digest and size.
pub(crate) fn bounded(input: &Value) -> Value {
    let bytes = charter_kernel::digest::canonical(input).len();
    match bytes <= MAX_INPUT_BYTES {
        true => input.clone(),
        false => json!({"sha256": digest_of(input), "bytes": bytes}),
    }
}

/// The digest of a value.
pub(crate) fn digest_of(value: &Value) -> String {
    hex(&Sha256::digest(charter_kernel::digest::canonical(value).as_bytes()))
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
