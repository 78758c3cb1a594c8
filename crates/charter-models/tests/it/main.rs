//! Integration tests of model actors, tools and charters that use them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod fred;
#[cfg(unix)]
mod sentinel;
#[cfg(unix)]
mod sentinel_host;
#[cfg(unix)]
mod sentinel_hostile;
#[cfg(feature = "http")]
mod servers;
#[cfg(feature = "tools")]
mod tool;
#[cfg(feature = "http")]
mod wire;
