#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::panic)] // a failing helper fails the test

mod cases;
mod charter;
mod folder;

pub use cases::{cases, full};
pub use charter::{definition, document, machine, try_definition};
pub use folder::Folder;
