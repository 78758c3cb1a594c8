#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, clippy::indexing_slicing)]
// a failing helper fails the test

mod disk;
mod image;
mod plan;
mod random;
mod vfs;

pub use disk::{Disk, Ended};
pub use image::Image;
pub use plan::{Call, Fault, Kind, Op, Plan};
pub use random::Random;
pub use vfs::{pause_at, written_again};
