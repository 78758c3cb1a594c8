//! The crate's integration tests, in one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod bindings;
#[cfg(feature = "host")]
mod host;
mod pairs;
#[cfg(feature = "host")]
mod projection;
