//! SHA-256 digests over canonical JSON (RFC 8785).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written as `sha256:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Computes the digest of bytes.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Computes the digest of the concatenation of parts.
    #[must_use]
    pub fn of_parts<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Digest {
        let mut hasher = Sha256::new();
        parts.into_iter().for_each(|part| hasher.update(part));
        Digest(hasher.finalize().into())
    }

    /// Computes the digest of the canonical JSON (RFC 8785) of a value.
    #[must_use]
    pub fn of_json(value: &Json) -> Digest {
        Digest::of_bytes(canonical(value).as_bytes())
    }

    /// Formats the digest as 64 hex digits, like the function `digest(x)` of the expression
    /// language.
    #[must_use]
    pub fn hex(&self) -> String {
        let mut out = String::with_capacity(64);
        self.push_hex(&mut out);
        out
    }

    /// Appends 64 hex digits.
    pub fn push_hex(&self, out: &mut String) {
        // Use one buffer and no branches, because every record has five digests.
        let mut text = [0u8; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            if let [high, low] = pair {
                (*high, *low) = (hex_digit(byte >> 4), hex_digit(byte & 15));
            }
        }
        // Hex digits are ASCII, so this cannot fail.
        out.push_str(std::str::from_utf8(&text).unwrap_or_default());
    }

    /// Appends `sha256:` and 64 hex digits.
    pub fn push_text(&self, out: &mut String) {
        out.push_str("sha256:");
        self.push_hex(out);
    }

    /// Parses `sha256:HEX` or plain `HEX`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Digest> {
        let hex = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        if hex.len() != 64 {
            return None;
        }
        let digit = |b: u8| match b {
            b'0'..=b'9' => Some(b.wrapping_sub(b'0')),
            b'a'..=b'f' => Some(b.wrapping_sub(b'a' - 10)),
            b'A'..=b'F' => Some(b.wrapping_sub(b'A' - 10)),
            _ => None,
        };
        let mut out = [0u8; 32];
        for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = (digit(*high)? << 4) | digit(*low)?;
        }
        Some(Digest(out))
    }
}

/// Returns the hex digit of a number below 16, without a branch: `a` is 39 code points after `:`,
/// the character that follows `9`.
fn hex_digit(d: u8) -> u8 {
    let letter = u8::from(d > 9);
    d.wrapping_add(b'0').wrapping_add(letter.wrapping_mul(39))
}

/// Returns the canonical JSON text of a value (RFC 8785): sorted keys, shortest numbers, no spaces.
#[must_use]
pub fn canonical(value: &Json) -> String {
    let mut out = String::with_capacity(128);
    crate::canonical::write(&mut out, value);
    out
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(71);
        self.push_text(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text)
    }
}

struct Text;

impl serde::de::Visitor<'_> for Text {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest: `sha256:` and 64 hex digits")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Digest, E> {
        Digest::parse(text).ok_or_else(|| E::custom("a digest is `sha256:` and 64 hex digits"))
    }
}
