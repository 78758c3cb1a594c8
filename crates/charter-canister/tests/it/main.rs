//! The integration tests in one binary: the core in this process, and the real module.
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
