#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod actor;
pub mod answer;
pub mod ask;
pub mod cassette;
pub mod codes;
mod exchange;
mod executor;
#[cfg(feature = "http")]
mod http;
mod model;
pub mod offline;
mod pause;
mod prompt;
mod redact;
mod schema;
mod settings;
mod sse;
#[cfg(feature = "tools")]
mod tool;
mod trace;
mod transport;
pub mod wire;

pub use exchange::{Exchange, Message, Usage};
pub use executor::{Listener, Models};
#[cfg(feature = "http")]
pub use http::HttpTransport;
pub use model::{Model, ModelError, Provider};
pub use prompt::{Prompt, PromptError, PromptTemplate};
pub use schema::items;
pub use settings::{Effort, OutputMode, Settings};
#[cfg(feature = "tools")]
pub use tool::Tools;
pub use transport::{Request, Response, Transport, TransportError};
