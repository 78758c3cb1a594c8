//! Integration tests, in one binary: each further binary would be linked separately.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod apply;
mod changesets;
mod context;
mod edits;
mod folder;
mod git;
mod modes;
