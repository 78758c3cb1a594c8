//! A test host for Internet Computer canisters.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::unreachable,
    clippy::todo
)]

mod candid_of;

pub use candid_of::candid_of;

/// A module that cannot be a canister.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadModule(String);

impl BadModule {
    pub(crate) fn new(why: impl std::fmt::Display) -> BadModule {
        BadModule(why.to_string())
    }
}
