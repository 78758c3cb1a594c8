//! The integration tests of the crate, in one binary.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod calls;
mod candid;
mod common;
mod hostile;
mod instructions;
mod lifecycle;
mod modes;
#[cfg(feature = "pocket-ic")]
mod pocket;
mod queries;
mod rollback;
mod timers;
