#![doc = include_str!("../README.md")]
// The arithmetic only counts lines, steps and items; overflow checks are enabled in release builds.
#![allow(clippy::arithmetic_side_effects)]

pub mod conform;
pub mod example;
pub mod lines;
pub mod overview;
pub mod runner;
pub mod session;
pub mod step;
pub mod timestamp;
