//! Integration tests of the MCP server, without a transport.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

mod common;
mod generations;
mod hostile;
mod lines;
mod news;
mod reading;
mod sending;
mod tools;
