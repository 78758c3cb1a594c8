//! Integration tests of model actors, tools and charters that use them.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

mod attached;
#[cfg(feature = "http")]
mod broken;
#[cfg(feature = "http")]
mod broken_counts;
mod calls;
mod cassettes;
#[cfg(feature = "http")]
mod ended_early;
#[cfg(feature = "tools")]
mod everything;
mod fred;
#[cfg(feature = "http")]
mod matrix;
#[cfg(feature = "http")]
mod providers;
#[cfg(feature = "http")]
mod reported;
#[cfg(feature = "http")]
mod secrets;
#[cfg(unix)]
mod sentinel;
#[cfg(unix)]
mod sentinel_gates;
#[cfg(unix)]
mod sentinel_git;
#[cfg(unix)]
mod sentinel_host;
#[cfg(unix)]
mod sentinel_hostile;
#[cfg(unix)]
mod sentinel_limits;

#[cfg(feature = "http")]
mod servers;
#[cfg(feature = "http")]
mod settings;
#[cfg(feature = "http")]
mod tls;
#[cfg(feature = "tools")]
mod tool;
#[cfg(feature = "http")]
mod tool_loop;
#[cfg(feature = "http")]
mod wire;
