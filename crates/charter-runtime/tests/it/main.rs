//! Integration tests of the embedded host.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod actors;
mod altered;
mod attempts;
mod begun;
mod clocks;
mod common;
mod crash;
mod documents;
mod dry;
mod equivalence;
mod events;
mod feijoa;
mod files;
mod folders;
mod forks;
mod full;
mod places;
mod programs;
mod reading;
mod secrets;
mod stuck;
mod unique;
