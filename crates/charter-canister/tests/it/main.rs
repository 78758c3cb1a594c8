//! The integration tests in one binary: the core in this process, and the real module.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs, unreachable_pub)]

mod canister;
mod core;
mod equivalence;
mod inputs;
mod support;
