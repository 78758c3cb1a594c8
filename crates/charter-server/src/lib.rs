#![doc = include_str!("../README.md")]
// Problems are large, and end a request.
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod feed;
pub mod hooks;
mod http;
pub mod identity;
mod marks;
mod metrics;
#[cfg(feature = "oidc")]
mod oidc;
mod openapi;
mod options;
mod patient;
mod peer;
mod query;
mod server;
mod sites;
mod used;

pub use http::reaches_machine;
pub use options::{Clock, Limits, OidcOptions, Options};
pub use query::{JournalFile, QueryError, Rows};
pub use server::{Server, StartError};
pub use sites::{BadSite, Sites};
