//! Integration tests of the kernel, in one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod actors;
mod algorithm;
mod common;
mod feijoa;
mod fred;
mod language;
mod laws;
mod sentinel;
