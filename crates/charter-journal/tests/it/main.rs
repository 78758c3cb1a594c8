//! Integration tests in one binary, because each binary is linked separately.
#![allow(clippy::arithmetic_side_effects, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![allow(clippy::unreachable, clippy::unwrap_used, missing_docs)]

#[cfg(feature = "sqlite")]
mod backups;
mod common;
#[cfg(feature = "sqlite")]
mod damaged_pages;
#[cfg(feature = "sqlite")]
mod event_ids;
#[cfg(feature = "sqlite")]
mod failing;
mod golden;
#[cfg(feature = "sqlite")]
mod heads;
#[cfg(feature = "sqlite")]
mod host_state;
mod imported;
#[cfg(feature = "sqlite")]
mod operator;
mod records;
#[cfg(feature = "sqlite")]
mod sqlite_file;
#[cfg(feature = "sqlite")]
mod stores;
#[cfg(feature = "sqlite")]
mod tampering;
#[cfg(feature = "sqlite")]
mod transfer;
#[cfg(feature = "sqlite")]
mod unique;
mod unique_forks;
mod usage;
#[cfg(feature = "sqlite")]
mod verifying;
