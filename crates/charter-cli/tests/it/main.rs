//! Integration tests: the commands through the public API, and the binary.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

#[cfg(unix)]
mod agents;
#[cfg(unix)]
mod agents_coder;
#[cfg(unix)]
mod agents_fit;
#[cfg(unix)]
mod agents_served;
#[cfg(unix)]
mod agents_setup;
#[cfg(all(unix, feature = "models"))]
mod another;
#[cfg(all(unix, feature = "models"))]
mod attached;
mod backup;
mod charters;
mod closed;
mod codes;
mod commands;
mod cover;
mod documents;
mod doors;
#[cfg(unix)]
mod dry;
mod eval;
mod exported;
#[cfg(target_os = "linux")]
mod files;
mod first_hour;
mod first_steps;
#[cfg(unix)]
mod folders;
mod fred;
mod fred_model;
mod heads;
mod hidden;
mod hints;
mod hooks;
mod hostile;
#[cfg(unix)]
mod identity;
mod imports;
#[cfg(target_os = "linux")]
mod interrupted;
#[cfg(target_os = "linux")]
mod left;
#[cfg(unix)]
mod local_access;
#[cfg(unix)]
mod mcp;
mod newcomer;
mod observed;
#[cfg(feature = "otel")]
mod otel;
#[cfg(target_os = "linux")]
mod other_users;
#[cfg(unix)]
mod pasted;
#[cfg(unix)]
mod pasted_names;
#[cfg(feature = "models")]
mod providers;
mod queries;
mod queries_served;
#[cfg(unix)]
mod recipes;
mod remote;
mod reports;
#[cfg(unix)]
mod sentinel;
#[cfg(unix)]
mod sentinel_killed;
mod serve;
mod serve_killed;
mod shown;
mod step;
mod support;
#[cfg(target_os = "linux")]
mod told;
mod tool_calls;
#[cfg(all(unix, feature = "models"))]
mod tool_rounds;
#[cfg(unix)]
mod trust;
mod two;
mod unwritable;
mod usage;
mod waits;
mod wrong;
