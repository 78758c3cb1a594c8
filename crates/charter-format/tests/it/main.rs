//! The tests of the public API, one binary.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod hostile;
mod kernel;
mod language;
mod messages;
mod reading;
mod round_trip;
mod scenarios;
mod schema;
mod spans;
