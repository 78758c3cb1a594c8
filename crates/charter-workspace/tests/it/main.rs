//! Integration tests, in one binary: every further one would be linked on its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod apply;
mod changesets;
mod context;
mod folder;
