//! A secret such as an API key: it is written into the header of a request and nowhere else.

use std::fmt;

/// A secret string. `Debug` does not show it, and it has no `Display` or `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a string.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for the header.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Removes this secret from a string: servers quote keys in their errors.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        // Shorter strings are not keys, and replacing them would only garble the text.
        if self.0.len() < 8 {
            return text.to_owned();
        }
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_and_redact_hide_it() {
        let key = Secret::new("sk-0123456789");
        assert_eq!(format!("{key:?}"), "Secret(…)");
        assert_eq!(key.redact("Incorrect API key: sk-0123456789."), "Incorrect API key: [key].");
        assert_eq!(Secret::new("a").redact("banana"), "banana");
    }
}
