//! The configuration of the clients: which files have hooks, and what stands in them. Pure: reads
//! and returns texts.

mod comments;
mod edit;
mod server;

use charter_expr::strict_json;
use serde_json::{Value as Json, json};

use crate::client::Client;
use comments::Dialect;
use edit::{Kind, Node};
pub use server::{is_our_server, with_server, without_server};

/// What the shell says if the hook ends without a decision: it was killed, or is not there. Also
/// the mark by which our entries are found again.
pub const MARK: &str = "charter hook: ended without a decision, so not allowed";

/// How long a client waits for the hook, in seconds; the hook's own deadline is shorter.
const TIMEOUT_S: u64 = 30;
/// The plugin for opencode.
const OPENCODE: &str = include_str!("opencode.js");
/// The line of the plugin that names the command.
const OPENCODE_COMMAND: &str = "const COMMAND = ";

/// Where hooks are configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// In the folder of the project.
    Project,
    /// For all projects of the user.
    User,
    /// For all users of the machine, by its administrator.
    Managed,
}

/// Which hooks a client calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    /// The client.
    pub client: Client,
    /// The command line, for a shell.
    pub command: String,
    /// Whether the hook is also called before the agent stops.
    pub stop: bool,
}

/// Why a configuration is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It is not plain JSON.
    #[error("it is not plain JSON ({0}); comments would be lost, so it is not changed. {1}")]
    NotJson(String, String),
    /// It is nothing that the client reads.
    #[error(
        "it is not JSON as {1} reads it ({0}), so nothing in it has any effect; make it plain JSON, and do this again. It is not changed"
    )]
    NotRead(String, &'static str),
    /// It has another structure.
    #[error("`{0}` is not what {1} reads there, so it is not changed")]
    Shape(String, &'static str),
    /// The client has no such level, or it is not known.
    #[error("{0} has no managed configuration that Charter knows; only Claude Code has")]
    NotManaged(&'static str),
}

/// The file of a client with the hooks of Charter: relative to the project's folder or to the home
/// folder, or absolute.
///
/// # Errors
/// The client has no such level.
pub fn file(client: Client, level: Level) -> Result<&'static str, ConfigError> {
    Ok(match (client, level) {
        (Client::Claude, Level::Managed) => "/etc/claude-code/managed-settings.json",
        (client, Level::Managed) => return Err(ConfigError::NotManaged(client.title())),
        (Client::Claude, _) => ".claude/settings.json",
        (Client::Codex, _) => ".codex/hooks.json",
        (Client::Gemini, _) => ".gemini/settings.json",
        (Client::Copilot, Level::Project) => ".github/hooks/charter.json",
        (Client::Copilot, Level::User) => ".copilot/hooks/charter.json",
        (Client::Opencode, Level::Project) => ".opencode/plugin/charter.js",
        (Client::Opencode, Level::User) => ".config/opencode/plugin/charter.js",
        (Client::Cursor, _) => ".cursor/hooks.json",
        (Client::Goose, _) => ".agents/plugins/charter/hooks/hooks.json",
    })
}

/// A file that has to be there besides: its path below that of the hooks, and its text.
#[must_use]
pub fn beside(client: Client) -> Option<(&'static str, &'static str)> {
    let manifest = "{\n  \"name\": \"charter\",\n  \"version\": \"1.0.0\",\n  \"description\": \"Decides what agents may do\"\n}\n";
    (client == Client::Goose).then_some((".agents/plugins/charter/plugin.json", manifest))
}

/// The command line of a hook: whatever happens to it, it ends with exit code 0 or 2.
#[must_use]
pub fn guarded_command(command: &str) -> String {
    format!("{command} || {{ echo '{MARK}' >&2; exit 2; }}")
}

impl Setup {
    fn command(&self) -> String {
        guarded_command(&self.command)
    }

    /// The entry of an event.
    fn entry(&self, event: &str) -> Json {
        let command = self.command();
        match self.client {
            Client::Claude => {
                let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_S, "onFailure": "block"});
                match event {
                    "Stop" => json!({"hooks": [hook]}),
                    _ => json!({"matcher": "*", "hooks": [hook]}),
                }
            }
            Client::Codex => json!({"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}),
            Client::Gemini => {
                let timeout_ms = TIMEOUT_S.saturating_mul(1_000);
                let hook = json!({"name": "charter", "type": "command", "command": command, "timeout": timeout_ms});
                json!({"matcher": "*", "hooks": [hook]})
            }
            Client::Copilot => json!({"type": "command", "bash": command, "timeoutSec": TIMEOUT_S}),
            Client::Cursor => json!({"command": command, "timeout": TIMEOUT_S, "failClosed": true}),
            Client::Goose => {
                let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_S, "on_failure": "block"});
                json!({"matcher": "*", "hooks": [hook]})
            }
            Client::Opencode => Json::Null,
        }
    }

    /// The events, and the entry of each.
    fn entries(&self) -> Vec<(&'static str, Json)> {
        let (mut events, stop): (Vec<&str>, Option<&str>) = match self.client {
            Client::Claude => (vec!["PreToolUse", "PostToolUse", "PostToolUseFailure"], Some("Stop")),
            Client::Codex => (vec!["PreToolUse", "PostToolUse"], Some("Stop")),
            Client::Gemini => (vec!["BeforeTool", "AfterTool"], Some("AfterAgent")),
            Client::Copilot => (vec!["preToolUse", "postToolUse", "postToolUseFailure"], None),
            Client::Cursor => (vec!["preToolUse", "postToolUse", "postToolUseFailure"], Some("stop")),
            Client::Goose => (vec!["PreToolUse", "PostToolUse", "PostToolUseFailure"], Some("Stop")),
            Client::Opencode => (Vec::new(), None),
        };
        events.extend(stop.filter(|_| self.stop));
        events.into_iter().map(|event| (event, self.entry(event))).collect()
    }

    /// A configuration that has these hooks and nothing else.
    #[must_use]
    pub fn alone(&self) -> String {
        if self.client == Client::Opencode {
            let command = Json::String(self.command());
            return OPENCODE.replace("const COMMAND = null;", &format!("{OPENCODE_COMMAND}{command};"));
        }
        let mut hooks = serde_json::Map::new();
        for (event, entry) in self.entries() {
            hooks.insert(event.to_owned(), json!([entry]));
        }
        let whole = match self.client {
            Client::Copilot | Client::Cursor => json!({"version": 1, "hooks": hooks}),
            _ => json!({"hooks": hooks}),
        };
        format!("{whole:#}\n")
    }

    /// The configuration with these hooks, and with everything else that is in `existing`.
    ///
    /// # Errors
    /// Something would be lost.
    pub fn install(&self, existing: Option<&str>) -> Result<String, ConfigError> {
        let Some(existing) = existing.filter(|text| !text.trim().is_empty()) else { return Ok(self.alone()) };
        if self.client == Client::Opencode {
            return match existing.contains(OPENCODE_COMMAND) {
                true => Ok(self.alone()),
                false => Err(ConfigError::Shape("charter.js".into(), "the plugin of Charter")),
            };
        }
        // What somebody has added to a file with comments is enough.
        let read = Dialect::of(self.client).read(existing);
        if self.is_in(&read.map_err(|why| ConfigError::NotRead(why, self.client.title()))?) {
            return Ok(existing.to_owned());
        }
        let whole = self.checked(existing)?;
        let shape = || ConfigError::Shape("hooks".into(), self.client.title());
        let mut text = remove(existing).ok_or_else(shape)?;
        if matches!(self.client, Client::Copilot | Client::Cursor) && whole.get("version").is_none() {
            let root = edit::parse(&text).ok_or_else(shape)?;
            text = edit::push(&text, &root, 0, Some("version"), &json!(1)).ok_or_else(shape)?;
        }
        for (event, entry) in self.entries() {
            text = add(&text, event, &entry).ok_or_else(shape)?;
        }
        Ok(text)
    }

    /// Whether a configuration has these hooks, and no others of Charter.
    fn is_in(&self, whole: &Json) -> bool {
        let present = self.entries().into_iter().all(|(event, entry)| {
            let own = entries_of(whole, event).filter(|found| is_ours(found));
            own.eq(std::iter::once(&entry))
        });
        let stops = self.stop && self.client != Client::Copilot;
        present && stops == entries_of(whole, self.stop_event()).any(is_ours)
    }

    fn stop_event(&self) -> &'static str {
        match self.client {
            Client::Gemini => "AfterAgent",
            Client::Cursor => "stop",
            _ => "Stop",
        }
    }

    /// Reads a configuration, and checks that hooks can be added to it.
    fn checked(&self, existing: &str) -> Result<Json, ConfigError> {
        let whole = strict_json::from_str(existing).map_err(|e| {
            let what = self.alone();
            ConfigError::NotJson(e.to_string(), format!("Add this yourself:\n{}", what.trim_end()))
        })?;
        let shape = |path: &str| ConfigError::Shape(path.to_owned(), self.client.title());
        whole.as_object().ok_or_else(|| shape("the whole file"))?;
        let Some(hooks) = whole.get("hooks") else { return Ok(whole) };
        let hooks = hooks.as_object().ok_or_else(|| shape("hooks"))?;
        match hooks.iter().find(|(_, entries)| !entries.is_array()) {
            Some((event, _)) if self.entries().iter().any(|(own, _)| own == event) => {
                Err(shape(&format!("hooks.{event}")))
            }
            _ => Ok(whole),
        }
    }
}

/// The configuration without the hooks of Charter; `None` if nothing else was in it.
///
/// # Errors
/// It cannot be read.
pub fn uninstall(client: Client, existing: &str) -> Result<Option<String>, ConfigError> {
    if client == Client::Opencode {
        let ours = existing.contains(OPENCODE_COMMAND);
        return Ok((!ours).then(|| existing.to_owned()));
    }
    if Dialect::Commas.read(existing).is_ok_and(|whole| !has_ours(&whole)) {
        return Ok(Some(existing.to_owned()));
    }
    let setup = Setup { client, command: String::new(), stop: false };
    let whole = setup.checked(existing).map_err(|e| match e {
        ConfigError::NotJson(why, _) => ConfigError::NotJson(why, format!("Remove each entry with `{MARK}` yourself")),
        other => other,
    })?;
    if !has_ours(&whole) {
        return Ok(Some(existing.to_owned()));
    }
    let text = remove(existing).ok_or_else(|| ConfigError::Shape("hooks".into(), client.title()))?;
    let rest = strict_json::from_str(&text).map_err(|_| ConfigError::Shape("hooks".into(), client.title()))?;
    let empty = rest.as_object().is_some_and(|rest| rest.keys().all(|key| key == "version"));
    Ok((!empty).then_some(text))
}

/// The command lines of Charter in a configuration, for the moment before a tool is used.
#[must_use]
pub fn commands(client: Client, existing: &str) -> Vec<String> {
    if client == Client::Opencode {
        let line = existing.lines().find_map(|line| line.strip_prefix(OPENCODE_COMMAND));
        let text = line.and_then(|line| serde_json::from_str(line.trim_end_matches(';')).ok());
        return text.into_iter().collect();
    }
    let Ok(whole) = Dialect::of(client).read(existing) else { return Vec::new() };
    let before = match client {
        Client::Gemini => "BeforeTool",
        Client::Copilot | Client::Cursor => "preToolUse",
        _ => "PreToolUse",
    };
    let ours = entries_of(&whole, before).filter(|entry| is_ours(entry));
    ours.flat_map(texts).filter(|text| text.contains(MARK)).map(str::to_owned).collect()
}

/// A hook for which the client asks a server itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpHook {
    /// The address.
    pub url: String,
    /// Whether the tool is not used if there is no answer.
    pub blocks: bool,
    /// Events for which the address is not asked, so that no results arrive.
    pub missing: Vec<&'static str>,
}

/// The hooks of a configuration that ask a server of Charter; only Claude Code has them.
#[must_use]
pub fn http_hooks(client: Client, existing: &str) -> Vec<HttpHook> {
    if client != Client::Claude {
        return Vec::new();
    }
    let Ok(whole) = Dialect::of(client).read(existing) else { return Vec::new() };
    let text = |hook: &Json, member: &str| hook.get(member).and_then(Json::as_str).map(str::to_owned);
    let of = |event: &str| -> Vec<Json> {
        let hooks = entries_of(&whole, event).filter_map(|entry| entry.get("hooks")?.as_array()).flatten();
        hooks.filter(|hook| text(hook, "type").as_deref() == Some("http")).cloned().collect()
    };
    let asks = |event: &str, url: &str| of(event).iter().any(|hook| text(hook, "url").as_deref() == Some(url));
    let found = of("PreToolUse").into_iter().filter_map(|hook| {
        let url = text(&hook, "url").filter(|url| url.ends_with("/hook/claude"))?;
        let missing = ["PostToolUse", "PostToolUseFailure"].into_iter().filter(|event| !asks(event, &url)).collect();
        Some(HttpHook { blocks: text(&hook, "onFailure").as_deref() == Some("block"), missing, url })
    });
    found.collect()
}

/// Why a client does not call the hooks of Charter that a configuration has: it cannot read it.
#[must_use]
pub fn unread(client: Client, existing: &str) -> Option<String> {
    if client == Client::Opencode || !existing.contains(MARK) {
        return None;
    }
    Dialect::of(client).read(existing).err()
}

/// Reads a configuration as generously as any client does.
#[must_use]
pub fn read(existing: &str) -> Option<Json> {
    Dialect::Commas.read(existing).ok()
}

fn entries_of<'a>(whole: &'a Json, event: &str) -> impl Iterator<Item = &'a Json> {
    whole.get("hooks").and_then(|hooks| hooks.get(event)).and_then(Json::as_array).into_iter().flatten()
}

fn has_ours(whole: &Json) -> bool {
    let events = whole.get("hooks").and_then(Json::as_object).into_iter().flatten();
    events.filter_map(|(_, entries)| entries.as_array()).flatten().any(is_ours)
}

/// All texts of a value.
fn texts(value: &Json) -> Vec<&str> {
    match value {
        Json::String(text) => vec![text],
        Json::Array(items) => items.iter().flat_map(texts).collect(),
        Json::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

fn is_ours(entry: &Json) -> bool {
    texts(entry).iter().any(|text| text.contains(MARK))
}

/// Adds an entry to the list of an event.
fn add(text: &str, event: &str, entry: &Json) -> Option<String> {
    let root = edit::parse(text)?;
    match root.get("hooks") {
        None => edit::push(text, &root, 0, Some("hooks"), &json!({event: [entry]})),
        Some(hooks) => match hooks.get(event) {
            None => edit::push(text, hooks, 1, Some(event), &json!([entry])),
            Some(entries) => edit::push(text, entries, 2, None, entry),
        },
    }
}

/// Removes our entries, and the lists that are empty without them.
fn remove(existing: &str) -> Option<String> {
    let mut text = existing.to_owned();
    while let Some(shorter) = remove_one(&text)? {
        text = shorter;
    }
    Some(text)
}

/// Removes one of our entries; the inner `None` if there is none.
fn remove_one(text: &str) -> Option<Option<String>> {
    let root = edit::parse(text)?;
    let Some(hooks) = root.get("hooks") else { return Some(None) };
    let Kind::Object(events) = &hooks.kind else { return Some(None) };
    let ours = |node: &Node| {
        let entry = text.get(node.span.clone()).and_then(|text| serde_json::from_str(text).ok());
        entry.is_some_and(|entry: Json| is_ours(&entry))
    };
    for (at, event) in events.iter().enumerate() {
        let items = event.value.items();
        let Some(index) = items.iter().position(ours) else { continue };
        return Some(match (items.len(), events.len()) {
            (1, 1) => Some(edit::remove(text, &root, edit::position(&root, "hooks")?)?),
            (1, _) => Some(edit::remove(text, hooks, at)?),
            _ => Some(edit::remove(text, &event.value, index)?),
        });
    }
    Some(None)
}
