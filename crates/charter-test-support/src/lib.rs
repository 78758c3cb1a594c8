#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::panic)] // a failing helper fails the test

mod cases;
mod charter;
mod cpu_time;
mod folder;

pub use cases::{cases, full};
pub use charter::{definition, document, machine, try_definition};
pub use cpu_time::cpu_time;
pub use folder::Folder;
