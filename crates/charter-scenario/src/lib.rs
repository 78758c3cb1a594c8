#![doc = include_str!("../README.md")]

pub mod conform;
pub mod lines;
pub mod runner;
pub mod session;
pub mod step;
mod strict_json;
pub mod timestamp;
