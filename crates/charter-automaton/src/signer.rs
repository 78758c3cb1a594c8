//! The port for signing, with a deterministic mock and a stub.

use charter_kernel::Digest;
use serde::Serialize;

use crate::PortError;

/// A signature over a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// How it was made; `mock` is no signature at all.
    pub algorithm: &'static str,
    /// The signature, as text.
    pub signature: String,
}

/// The port for signing.
pub trait Signer {
    /// Signs a message.
    ///
    /// # Errors
    /// The adapter could not.
    fn sign(&self, message: &str) -> Result<Signature, PortError>;
}

/// The digest of the message: the same for the same message, and worth nothing as a signature, which it says.
#[derive(Debug, Clone, Copy, Default)]
pub struct MockSigner;

impl Signer for MockSigner {
    fn sign(&self, message: &str) -> Result<Signature, PortError> {
        Ok(Signature { algorithm: "mock", signature: Digest::of_bytes(message.as_bytes()).to_string() })
    }
}

/// Answers that nothing is configured.
#[derive(Debug, Clone, Copy, Default)]
pub struct StubSigner;

impl Signer for StubSigner {
    fn sign(&self, _: &str) -> Result<Signature, PortError> {
        Err(PortError::not_configured("signer"))
    }
}
