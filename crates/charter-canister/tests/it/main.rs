//! The integration tests of the canister, in one binary: its core in this process, and the real module.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    unreachable_pub,
    missing_docs
)]

mod canister;
mod core;
mod support;
