//! The tests of the public API, one binary.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod export;
mod hostile;
mod scxml;
mod scxml_clock;
mod xstate;
mod xstate_cases;
