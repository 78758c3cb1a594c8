//! The tests of the public API, one binary.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod export;
mod hostile;
mod scxml;
mod scxml_clock;
mod xstate;
mod xstate_cases;
