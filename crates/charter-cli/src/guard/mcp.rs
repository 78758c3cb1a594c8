//! The MCP server of Charter in the configuration of a client.

use std::path::Path;

use charter_guard::client::Client;
use charter_guard::config;
use charter_guard::gate::ROLE;
use serde_json::json;

use crate::hook::install::{Change, not_changed, program, read};
use crate::io::Failure;
use crate::journal::Db;

/// The name of our server.
const NAME: &str = "charter";

/// How a client learns of the MCP server.
pub(super) enum Mcp {
    /// By a file that is changed.
    File(Change),
    /// By a command or lines that the user has to add, because the file belongs to the user or is
    /// no JSON.
    Paste(String),
    /// The file of the project cannot be changed without loss: why, and what the user has to add.
    NotChanged(String),
}

/// The file of a project with the MCP servers of a client, and the member that has them; `None` if
/// only the user's own configuration has them.
fn place(client: Client) -> Option<(&'static str, &'static str)> {
    match client {
        Client::Claude => Some((".mcp.json", "mcpServers")),
        Client::Gemini => Some((".gemini/settings.json", "mcpServers")),
        Client::Cursor => Some((".cursor/mcp.json", "mcpServers")),
        Client::Opencode => Some(("opencode.json", "mcp")),
        Client::Codex | Client::Copilot | Client::Goose => None,
    }
}

/// Where the user has the MCP servers of a client whose projects have none.
fn by_hand(client: Client) -> &'static str {
    match client {
        Client::Codex => "~/.codex/config.toml",
        Client::Copilot => "~/.copilot/mcp-config.json",
        _ => "as an extension of goose",
    }
}

/// What takes our server away: a change, unless the project has none.
///
/// `before` are changes that are made first, maybe of the same file; what nobody but the user can
/// change is added to `by_hand`.
pub(super) fn remove(
    client: Client,
    dir: &Path,
    before: &[Change],
    by_hand: &mut Vec<String>,
) -> Result<Option<Change>, Failure> {
    let Some((file, section)) = place(client) else { return Ok(None) };
    let path = dir.join(file);
    let first = before.iter().find(|change| change.path == path);
    let Some(old) = first.map_or_else(|| read(&path), |change| Ok(change.new.clone()))? else { return Ok(None) };
    match config::without_server(&old, section, NAME) {
        Ok(new) => Ok(Some(Change { path, old: Some(old), new })),
        Err(e) => {
            by_hand.push(not_changed(&path, &e).to_string());
            Ok(None)
        }
    }
}

/// Whether a file of the project has our server.
pub(crate) fn has_server(client: Client, dir: &Path) -> Result<bool, Failure> {
    let Some((file, section)) = place(client) else { return Ok(false) };
    let Some(text) = read(&dir.join(file))? else { return Ok(false) };
    Ok(config::without_server(&text, section, NAME).is_ok_and(|new| new.as_ref() != Some(&text)))
}

/// What the user has to remove, where `configure` has only said what to add.
pub(super) fn remains(client: Client) -> Option<&'static str> {
    place(client).is_none().then(|| by_hand(client))
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
    let words: Vec<String> = arguments.iter().map(|word| crate::journal::text::quoted(word)).collect();
    let Some((file, section)) = place(client) else {
        return Ok(Mcp::Paste(match client {
            Client::Codex => {
                let list: Vec<String> = arguments.iter().map(|argument| json!(argument).to_string()).collect();
                let (command, list) = (json!(plain), list.join(", "));
                format!("in {}:\n[mcp_servers.charter]\ncommand = {command}\nargs = [{list}]", by_hand(client))
            }
            Client::Goose => {
                format!("{}:\ngoose session --with-extension \"{program} {}\"", by_hand(client), words.join(" "))
            }
            _ => {
                let entry = json!({"type": "local", "command": plain, "args": arguments, "tools": ["*"]});
                let entry = json!({"mcpServers": {NAME: entry}});
                format!("in {}:\n{entry:#}", by_hand(client))
            }
        }));
    };
    let value = match client {
        Client::Opencode => {
            let command: Vec<&str> = std::iter::once(plain.as_str()).chain(arguments).collect();
            json!({"type": "local", "command": command, "enabled": true})
        }
        _ => json!({"command": plain, "args": arguments}),
    };
    let path_of = dir.join(file);
    let first = before.iter().find(|change| change.path == path_of);
    let old = first.map_or_else(|| read(&path_of), |change| Ok(change.new.clone()))?;
    Ok(match config::with_server(client, old.as_deref(), section, NAME, &value) {
        Ok(new) => Mcp::File(Change { path: path_of, old, new: Some(new) }),
        Err(e) => Mcp::NotChanged(not_changed(&path_of, &e).to_string()),
    })
}
