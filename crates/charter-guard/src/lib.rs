#![doc = include_str!("../README.md")]

mod asks;
mod call;
pub mod client;
mod command;
pub mod config;
mod data;
mod does;
#[cfg(feature = "host")]
pub mod gate;
mod path;
mod repository;
mod text;
mod tool;
mod tree;
mod workspace;

pub use call::ToolCall;
pub use data::{Act, Description, Does, MAX_INPUT_BYTES, MAX_PATHS, MAX_TEXT_BYTES, PathFact, SimpleCommand, Usage};
pub use tool::describe;
pub use tree::{MAX_TREE_BYTES, MAX_TREE_FILES, tree_digest};
pub use workspace::{Workspace, WorkspaceError};
