#![doc = include_str!("../README.md")]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

mod act;
pub mod actor;
pub mod answer;
pub mod ask;
mod attachments;
mod budget;
pub mod cassette;
mod chain;
pub mod codes;
mod estimate;
mod exchange;
mod executor;
#[cfg(feature = "http")]
mod http;
mod kept_round;
mod ledger;
pub mod limits;
mod model;
pub mod offline;
mod offline_tools;
mod open;
mod pause;
pub mod price;
mod progress;
mod prompt;
mod providers;
mod redact;
mod schema;
mod settings;
mod sse;
#[cfg(feature = "tools")]
mod tool;
mod tools;
mod trace;
mod transport;
mod watcher;
mod watching;
pub mod wire;

pub use attachments::Attachment;
pub use exchange::{Exchange, Message, Usage};
pub use executor::Models;
#[cfg(feature = "http")]
pub use http::HttpTransport;
pub use kept_round::{Earlier, KeptRound, Place};
pub use ledger::{Allowance, Budgets, MAX_COST};
pub use model::{Model, ModelError, Provider};
pub use open::OpenRequest;
pub use price::Price;
pub use prompt::{Prompt, PromptError, PromptTemplate};
pub use providers::Providers;
pub use schema::items;
pub use settings::{Effort, OutputMode, Settings};
#[cfg(feature = "tools")]
pub use tool::Tools;
pub use tools::{Tool, ToolCall, ToolResult};
pub use transport::{Request, Response, Transport, TransportError};
pub use watcher::{Granted, Watcher};
