//! Integration tests, in one binary: every further one would be linked on its own.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod apply;
mod changesets;
mod context;
mod folder;
