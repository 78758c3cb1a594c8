#![doc = include_str!("../README.md")]

mod actor;
mod actor_host;
mod charters;
mod client;
mod endpoint;
mod gateway;
mod mirror;
mod object;
mod queries;
mod shelf;
mod wire;

pub use charters::Charters;
pub use client::Engine;
pub use endpoint::{Endpoint, serve};
pub use gateway::Gateway;
pub use mirror::{Mirrored, mirror};
pub use queries::{Lagging, Troubled};
pub use wire::Doc;
