//! Failures of the canister itself; errors of callers are [`crate::api::Error`].

/// Why the canister cannot continue. The message in which the error occurs is rolled back, unless
/// the error is [`CanisterError::Denied`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanisterError {
    /// The charter is invalid.
    #[error("the charter: {0}")]
    Charter(String),
    /// The charter refuses to start with this input.
    #[error("the charter refuses to start: {0}")]
    Start(String),
    /// Stable memory is damaged or full.
    #[error("stable memory: {0}")]
    Stable(String),
    /// The input was denied and has no record; the canister itself is fine.
    #[error(transparent)]
    Denied(charter_run::Denied),
    /// The SQL projection failed. It can be rebuilt from the log.
    #[error("the projection: {0}")]
    Projection(String),
}
