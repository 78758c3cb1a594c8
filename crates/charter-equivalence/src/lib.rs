#![doc = include_str!("../README.md")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failing helper fails the test
#![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod act;
mod charters;
mod compare;
mod core;
mod director;
mod inputs;
mod subject;

pub use compare::{Difference, Open, Sources, compare, difference};
pub use core::{Core, Flaw};
pub use inputs::{AttemptInput, TaskAnswer, TraceInput};
pub use subject::{Answer, OTHER, RUN, Setup, Subject, answer_code, idempotent};
