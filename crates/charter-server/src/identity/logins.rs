//! Codes with which the owner of a journal logs in once, from the terminal where the server runs.

use std::sync::{Mutex, PoisonError};

use charter_kernel::{Digest, Millis, Timestamp};

use super::secret::random;

/// A code is not accepted after this time.
pub const VALID: Millis = Millis(10 * 60_000);

/// Codes at the same time; the oldest one goes if there are more.
const MAX_CODES: usize = 8;

/// The codes that were not used yet: the SHA-256 of each, and when it was made.
#[derive(Debug, Default)]
pub struct Logins(Mutex<Vec<(Digest, Timestamp)>>);

impl Logins {
    /// Makes a code of 256 random bits.
    ///
    /// # Errors
    /// The operating system has no random numbers.
    pub fn issue(&self, now: Timestamp) -> Result<String, getrandom::Error> {
        let code = random()?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if codes.len() >= MAX_CODES {
            codes.remove(0);
        }
        codes.push((Digest::of_bytes(code.as_bytes()), now));
        Ok(code)
    }

    /// Whether this is a code that was not used yet; from now on it is used.
    #[must_use]
    pub fn take(&self, code: &str, now: Timestamp) -> bool {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|(_, made)| now.since(*made) < VALID);
        let digest = Digest::of_bytes(code.as_bytes());
        let before = codes.len();
        codes.retain(|(known, _)| *known != digest);
        codes.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_accepted_once_and_not_for_long() {
        let logins = Logins::default();
        let (first, second) = (logins.issue(Timestamp(0)).unwrap(), logins.issue(Timestamp(0)).unwrap());
        assert!(!logins.take("", Timestamp(0)) && !logins.take(&first.to_lowercase(), Timestamp(0)));
        assert!(logins.take(&first, Timestamp(VALID.0 - 1)));
        assert!(!logins.take(&first, Timestamp(VALID.0 - 1)), "it was used");
        assert!(!logins.take(&second, Timestamp(VALID.0)), "it is too old");
        assert!(!logins.take(&second, Timestamp(0)), "an old one does not come back");
        let codes: Vec<String> = (0..=MAX_CODES).map(|_| logins.issue(Timestamp(0)).unwrap()).collect();
        assert!(!logins.take(&codes[0], Timestamp(0)) && logins.take(&codes[1], Timestamp(0)));
    }
}
