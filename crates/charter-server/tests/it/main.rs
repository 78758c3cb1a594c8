//! Integration tests of the server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

mod attack;
mod contents;
mod description;
mod doors;
mod files;
mod folders;
mod hooks;
mod inbox;
mod life;
mod many_readers;
mod mcp;
#[cfg(feature = "oidc")]
mod oidc;
mod page;
mod receiver;
mod refusals;
mod sessions;
mod site;
mod streams;
