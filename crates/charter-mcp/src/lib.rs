#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod connection;
mod endpoint;
mod look;
mod message;
mod news;
mod prompts;
mod resources;
mod stdio;
mod tools;
mod version;

pub use connection::Connection;
pub use endpoint::{Endpoint, ToolSet};
pub use message::{
    MAX_MESSAGE_BYTES, META_CAPABILITIES, META_SERVER, META_SUBSCRIPTION, META_VERSION, Message, Request, RpcError,
    read, result,
};
pub use news::{Listen, Notifier};
pub use stdio::{Line, serve};
pub use version::Version;
