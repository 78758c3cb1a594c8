//! What a call shows while it works: the end of the text that arrives, without secrets. It is never
//! recorded.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::secret::Secrets;

/// Maximum number of bytes of text that are shown.
const MAX_SHOWN: usize = 2_048;
/// Maximum number of bytes that a secret is expected to take in a text.
const MAX_REACH: usize = 64 << 10;

/// The progress of a call, published once and never recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallProgress {
    /// The run.
    pub run: Arc<str>,
    /// The effect, `RUN/SEQ/INDEX`.
    pub effect: Arc<str>,
    /// The name of the actor in `actors`.
    pub src: Arc<str>,
    /// The index among the calls that the actor makes side by side.
    pub call: u32,
    /// The number of bytes that have arrived for the present request.
    pub bytes: u64,
    /// The end of the text in them, at most 2 KiB. Secrets are removed, also the beginning of one
    /// at the end.
    pub text: String,
    /// Why it takes longer, such as a retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The end of a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct ArrivingText {
    text: String,
    cut: bool,
}

impl ArrivingText {
    /// Adds a piece. What is far from the end is forgotten.
    pub fn push(&mut self, piece: &str, secrets: &Secrets) {
        self.text.push_str(piece);
        let keep = MAX_SHOWN.saturating_add(secrets.reach().min(MAX_REACH).saturating_mul(2));
        if self.text.len() > keep.saturating_mul(2) {
            let start = self.text.ceil_char_boundary(self.text.len().saturating_sub(keep));
            self.text.drain(..start);
            self.cut = true;
        }
    }

    /// The end of the text, without secrets.
    #[must_use]
    pub fn end(&self, secrets: &Secrets) -> String {
        let whole = secrets.redact_arriving(&self.text);
        // At the beginning of what is kept, the end of a secret cannot be recognized.
        let hidden = if self.cut { secrets.reach().min(MAX_REACH) } else { 0 };
        let start = whole.len().saturating_sub(MAX_SHOWN).max(hidden.min(whole.len()));
        whole.get(whole.ceil_char_boundary(start)..).unwrap_or_default().to_owned()
    }
}
