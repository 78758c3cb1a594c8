//! A tool call as a client of agents reports it before it runs the tool.

use std::path::PathBuf;

use serde_json::Value;

/// A call of a tool that an agent wants to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The name that the client gives the tool, such as `Bash` or `apply_patch`.
    pub tool: String,
    /// The tool's arguments, in the client's own shape.
    pub input: Value,
    /// The folder that relative paths start from.
    pub cwd: PathBuf,
    /// The client, such as `claude`.
    pub client: String,
    /// The client's session.
    pub session: String,
    /// The id of this call in the session.
    pub call: String,
}
