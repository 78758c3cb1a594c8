//! The MCP server of Charter in the configuration of a client.

use std::path::Path;

use charter_guard::client::Client;
use charter_guard::config;
use charter_guard::gate::ROLE;
use serde_json::json;

use crate::hook::install::{Change, program, read};
use crate::io::Failure;
use crate::journal::Db;

/// How a client learns of the MCP server.
pub(super) enum Mcp {
    /// By a file that is changed.
    File(Change),
    /// By a command or lines that the user has to add, because the file belongs to the user or is
    /// no JSON.
    Paste(String),
}

/// The configuration of the MCP server for a run.
///
/// `before` are changes that are made first, maybe of the same file.
pub(super) fn configure(client: Client, run: &str, dir: &Path, db: &Db, before: &[Change]) -> Result<Mcp, Failure> {
    let journal = std::path::absolute(&db.db)?.display().to_string();
    let name = client.to_string();
    let arguments = ["mcp", "--run", run, "--as", &name, "--role", ROLE, "--db", &journal];
    let program = program();
    let plain = program.trim_matches('\'').to_owned();
    let server = json!({"command": plain, "args": arguments});
    let (file, path, value) = match client {
        Client::Claude => (".mcp.json", "mcpServers", server),
        Client::Gemini => (".gemini/settings.json", "mcpServers", server),
        Client::Cursor => (".cursor/mcp.json", "mcpServers", server),
        Client::Opencode => {
            let command: Vec<&str> = std::iter::once(plain.as_str()).chain(arguments).collect();
            ("opencode.json", "mcp", json!({"type": "local", "command": command, "enabled": true}))
        }
        Client::Codex => {
            let list: Vec<String> = arguments.iter().map(|argument| json!(argument).to_string()).collect();
            return Ok(Mcp::Paste(format!(
                "in ~/.codex/config.toml:\n[mcp_servers.charter]\ncommand = {}\nargs = [{}]",
                json!(plain),
                list.join(", ")
            )));
        }
        Client::Copilot => {
            let entry = json!({"mcpServers": {"charter": {"type": "local", "command": plain, "args": arguments, "tools": ["*"]}}});
            return Ok(Mcp::Paste(format!("in ~/.copilot/mcp-config.json:\n{entry:#}")));
        }
        Client::Goose => {
            let words: Vec<String> = arguments.iter().map(|word| crate::journal::text::quoted(word)).collect();
            return Ok(Mcp::Paste(format!(
                "as an extension of goose:\ngoose session --with-extension \"{program} {}\"",
                words.join(" ")
            )));
        }
    };
    let path_of = dir.join(file);
    let first = before.iter().find(|change| change.path == path_of);
    let old = first.map_or_else(|| read(&path_of), |change| Ok(change.new.clone()))?;
    let new = config::with_server(old.as_deref(), path, "charter", &value)
        .map_err(|e| Failure::new(format!("`{}`: {e}", path_of.display())))?;
    Ok(Mcp::File(Change { path: path_of, old, new: Some(new) }))
}
