#![doc = include_str!("../README.md")]
// Only counters and columns are computed; overflow checks are on in release builds.
#![allow(clippy::arithmetic_side_effects)]

mod args;
pub mod bundled;
pub mod check;
mod closed;
pub mod codes;
pub mod conform;
pub mod diff;
pub mod eval;
pub mod graph;
pub mod guard;
pub mod hook;
mod input;
mod io;
pub mod journal;
pub mod load;
pub mod models;
mod network;
pub mod new;
#[cfg(any(feature = "models", feature = "serve"))]
mod options_file;
mod page;
mod pipe;
mod program;
pub mod run;
#[cfg(feature = "serve")]
pub mod serve;
pub mod step;
#[cfg(feature = "otel")]
pub mod telemetry;
pub mod test;
mod visible;

pub use args::run;
pub use io::{Exit, Failure, Io, Paint};
