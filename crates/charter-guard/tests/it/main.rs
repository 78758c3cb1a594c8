//! Tests of what the guard says about tool calls.
#![allow(clippy::arithmetic_side_effects, missing_docs)]

mod commands;
mod folder;
mod paths;
mod tools;
