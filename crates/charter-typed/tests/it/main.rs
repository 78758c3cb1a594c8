//! The crate's integration tests, in one binary.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod feijoa;
