#![doc = include_str!("../README.md")]
// Large errors are acceptable: an error ends the operation.
#![allow(clippy::result_large_err)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[cfg(unix)]
mod blocking;
mod client;
mod connection;
mod lines;
mod place;
mod server;
mod service;
mod transport;
mod wire;

#[cfg(unix)]
pub use blocking::Asker;
pub use client::Client;
pub use connection::ConnectError;
pub use server::Server;
pub use service::Service;
pub use wire::AskedModels;
