//! The crate's integration tests, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod explore;
mod lints;
mod lints_authority;
mod properties;
mod support;
mod table;
mod types;
