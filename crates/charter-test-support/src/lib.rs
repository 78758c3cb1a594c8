#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects, clippy::indexing_slicing)]
// a failing helper fails the test

mod cases;
mod charter;
mod folder;
mod random;

pub use cases::{cases, full};
pub use charter::{definition, document, machine, try_definition};
pub use folder::Folder;
pub use random::{EVENTS, random_definition};
