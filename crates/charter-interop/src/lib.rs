#![doc = include_str!("../README.md")]
// An error ends the reading; its size does not matter.
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod export;
pub mod import;
