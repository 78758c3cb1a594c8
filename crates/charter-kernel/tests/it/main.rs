//! Integration tests of the kernel, in one binary.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod actors;
mod algorithm;
mod budget;
mod calibrate;
mod causes;
mod common;
mod compiling;
mod content;
mod demands;
mod feijoa;
mod fred;
mod language;
mod laws;
mod ledger;
mod misfits;
mod numbers;
mod outside;
mod permits;
mod principals;
mod refusals;
mod schema;
mod sentinel;
mod taken;
mod unique;
mod votes;
mod work;
