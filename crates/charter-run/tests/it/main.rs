//! Tests of charter-run.
#![allow(clippy::arithmetic_side_effects, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
#![allow(unreachable_pub, missing_docs)]

mod budget;
mod clock;
mod host;
mod inputs;
mod kept;
