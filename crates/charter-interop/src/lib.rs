#![doc = include_str!("../README.md")]
// Reading stops at an error, so the size of the error does not matter.
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod export;
pub mod import;
