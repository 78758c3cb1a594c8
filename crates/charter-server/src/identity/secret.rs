//! Secrets of keys: 256 random bits, of which only the SHA-256 is kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use charter_kernel::Digest;

/// What every secret begins with, so that scanners and people recognize one.
pub const PREFIX: &str = "chk_";

/// 256 random bits as text.
pub(crate) fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The secret of a key. It is shown once, when the key is made, and stored nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of 256 random bits.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn random() -> Result<Secret, getrandom::Error> {
        Ok(Secret(format!("{PREFIX}{}", random()?)))
    }

    /// Reads a secret; `None` if the text cannot be one.
    #[must_use]
    pub fn read(text: &str) -> Option<Secret> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (bytes.len() == 32).then(|| Secret(text.to_owned()))
    }

    /// The text to show, once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Its SHA-256, as 64 hex digits.
    #[must_use]
    pub fn sha256(&self) -> String {
        Digest::of_bytes(self.0.as_bytes()).hex()
    }

    /// The id of its key: the first 12 hex digits of [`Secret::sha256`]. It names the key and is no
    /// secret.
    #[must_use]
    pub fn key(&self) -> String {
        self.sha256().chars().take(12).collect()
    }
}

/// Does not show the secret.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_was_shown() {
        let secret = Secret::random().unwrap();
        assert_eq!(Secret::read(secret.reveal()), Some(secret.clone()));
        assert_eq!(secret.reveal().len(), PREFIX.len() + 43);
        assert_ne!(Secret::random().unwrap(), secret);
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert!(secret.sha256().starts_with(&secret.key()));
    }

    #[test]
    fn what_is_no_secret_is_not_read() {
        let secret = Secret::random().unwrap().reveal().to_owned();
        let short = secret.get(..secret.len() - 1).unwrap();
        for text in
            ["", "chk_", "chk_abc", short, &format!("{secret}A"), &secret.replace("chk_", "sk_"), &format!(" {secret}")]
        {
            assert_eq!(Secret::read(text), None, "{text}");
        }
    }
}
