//! What can go wrong inside the canister itself; what a caller did wrong is in [`crate::api::Error`].

/// The canister cannot go on as it should. In a canister the message that finds it is rolled back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The charter.
    #[error("the charter: {0}")]
    Charter(String),
    /// The charter refuses to start with this input.
    #[error("the charter refuses to start: {0}")]
    Start(String),
    /// Stable memory does not hold what it should.
    #[error("stable memory: {0}")]
    Stable(String),
    /// The SQL projection. It can be made again from the log.
    #[error("the projection: {0}")]
    Projection(String),
}
