//! JSON with comments, as some clients read it. It is only read: what changes it would lose them.

use charter_expr::strict_json;
use serde_json::Value as Json;

use crate::client::Client;

/// What a client reads in its configuration. A file that it cannot read has no effect, so neither
/// have the hooks in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    /// Plain JSON.
    Plain,
    /// Comments as well.
    Comments,
    /// Commas behind the last entry as well.
    Commas,
}

impl Dialect {
    /// What a client is known to read: seen with the real ones (`.ci/clients_real.py`); opencode
    /// says so in its documentation.
    pub(super) fn of(client: Client) -> Dialect {
        match client {
            Client::Gemini => Dialect::Comments,
            Client::Opencode => Dialect::Commas,
            Client::Claude | Client::Codex | Client::Copilot | Client::Cursor | Client::Goose => Dialect::Plain,
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// Why it is not of this dialect.
    pub(super) fn read(self, text: &str) -> Result<Json, String> {
        let plain = |text: &str| strict_json::from_str(text).map_err(|e| e.to_string());
        if self == Dialect::Plain {
            return plain(text);
        }
        let text = without_comments(text).ok_or("a string or a comment has no end")?;
        plain(&if self == Dialect::Commas { without_commas(&text) } else { text })
    }
}

/// The text with a space in the place of each comment; `None` if a string or a comment has no end.
fn without_comments(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        rest = if from.starts_with("//") {
            out.push(' ');
            from.find('\n').map_or("", |end| from.get(end..).unwrap_or_default())
        } else if let Some(comment) = from.strip_prefix("/*") {
            out.push(' ');
            comment.split_once("*/")?.1
        } else {
            let (kept, behind) = from.split_at(if from.starts_with('"') { string(from)? } else { 1 });
            out.push_str(kept);
            behind
        };
    }
    out.push_str(rest);
    Some(out)
}

/// The text without commas before a closing bracket.
fn without_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', ',']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let length = string(from).unwrap_or(1);
        let (found, behind) = from.split_at(length);
        if found != "," || !behind.trim_start().starts_with([']', '}']) {
            out.push_str(found);
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The length of the string that a text begins with.
fn string(text: &str) -> Option<usize> {
    let mut escaped = false;
    let mut characters = text.char_indices();
    characters.next().filter(|(_, first)| *first == '"')?;
    for (at, c) in characters {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at.checked_add(1),
            _ => {}
        }
    }
    None
}
