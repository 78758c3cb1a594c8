//! Integration tests: a host, its socket, and clients.
#![cfg(unix)]
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unwrap_used, missing_docs)]

mod backend;
mod common;
mod peers;
