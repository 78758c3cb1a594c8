//! The crate's integration tests, in one binary.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod declared_fields;
mod diff;
mod effort;
mod explore;
mod failing_actions;
mod functions;
mod hostile;
mod hostile_runs;
mod lints;
mod lints_authority;
mod promises;
mod properties;
mod second_opinion;
mod second_opinion_charters;
mod second_opinion_data;
mod second_opinion_parts;
mod senders;
mod support;
mod table;
mod ticks;
mod types;
mod unique;
mod verdicts;
mod wrong_charters;
