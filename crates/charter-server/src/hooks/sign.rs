//! Signatures of Standard Webhooks (<https://www.standardwebhooks.com>): HMAC-SHA256 of the id, the
//! time and the body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// The secret of a hook: 256 random bits. The receiver checks signatures with it.
#[derive(Clone, PartialEq, Eq)]
pub struct HookSecret(String);

impl HookSecret {
    /// Makes a secret.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn random() -> Result<HookSecret, getrandom::Error> {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes)?;
        Ok(HookSecret(format!("{PREFIX}{}", STANDARD.encode(bytes))))
    }

    /// Reads a secret; `None` if the text cannot be one.
    #[must_use]
    pub fn read(text: &str) -> Option<HookSecret> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64).contains(&bytes.len()).then(|| HookSecret(text.to_owned()))
    }

    /// The text to show, once.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The value of the header `webhook-signature` for a message that is sent at a time (seconds
    /// since 1970). `None`: the secret is not one.
    #[must_use]
    pub fn signature(&self, id: &str, seconds: i64, body: &str) -> Option<String> {
        let key = STANDARD.decode(self.0.strip_prefix(PREFIX)?).ok()?;
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
        mac.update(format!("{id}.{seconds}.{body}").as_bytes());
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

/// Does not show the secret.
impl std::fmt::Debug for HookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HookSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the libraries of Standard Webhooks.
    #[test]
    fn a_signature_is_that_of_other_libraries() {
        let secret = HookSecret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.signature("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature.as_deref(), Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="));
    }

    #[test]
    fn a_secret_is_read_as_it_was_shown() {
        let secret = HookSecret::random().unwrap();
        assert_eq!(HookSecret::read(secret.reveal()), Some(secret.clone()));
        assert_ne!(HookSecret::random().unwrap(), secret);
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        for text in ["", "whsec_", "whsec_AAAA", "chk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!"] {
            assert_eq!(HookSecret::read(text), None, "{text}");
        }
    }
}
