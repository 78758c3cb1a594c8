//! The signing port, with a deterministic mock and a stub.

use charter_kernel::Digest;
use serde::Serialize;

use crate::PortError;

/// A signature over a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// The algorithm; `mock` does not sign anything.
    pub algorithm: &'static str,
    /// The signature, as text.
    pub signature: String,
}

/// The signing port.
pub trait Signer {
    /// Signs a message.
    ///
    /// # Errors
    /// The adapter failed.
    fn sign(&self, message: &str) -> Result<Signature, PortError>;
}

/// Returns the digest of the message, marked as a mock. It proves nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct MockSigner;

impl Signer for MockSigner {
    fn sign(&self, message: &str) -> Result<Signature, PortError> {
        Ok(Signature { algorithm: "mock", signature: Digest::of_bytes(message.as_bytes()).to_string() })
    }
}

/// Always fails with `not-configured`.
#[derive(Debug, Clone, Copy, Default)]
pub struct StubSigner;

impl Signer for StubSigner {
    fn sign(&self, _: &str) -> Result<Signature, PortError> {
        Err(PortError::not_configured("signer"))
    }
}
