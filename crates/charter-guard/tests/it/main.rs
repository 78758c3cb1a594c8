//! Tests of what the guard says about tool calls.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod clients;
mod commands;
mod commits;
mod config;
mod folder;
mod git_options;
mod hostile;
mod paths;
mod prints;
mod repositories;
mod scopes;
mod searches;
mod spellings;
mod strangers;
mod tools;
mod wrapped;
