//! MCP servers in the configuration of the clients.

use charter_expr::strict_json;
use serde_json::{Value as Json, json};

use super::comments::Dialect;
use super::{ConfigError, edit, texts};
use crate::client::Client;

/// A configuration with a server of this name in the object `section`, and with everything else
/// that is in `existing`. Another server with this name is replaced.
///
/// # Errors
/// Something would be lost.
pub fn with_server(
    client: Client,
    existing: Option<&str>,
    section: &str,
    name: &str,
    server: &Json,
) -> Result<String, ConfigError> {
    let alone = || format!("{:#}\n", json!({section: {name: server}}));
    let Some(existing) = existing.filter(|text| !text.trim().is_empty()) else { return Ok(alone()) };
    let has = |whole: Json| whole.get(section).and_then(|servers| servers.get(name)) == Some(server);
    let read = Dialect::of(client).read(existing);
    if has(read.map_err(|why| ConfigError::NotRead(why, client.title()))?) {
        return Ok(existing.to_owned());
    }
    let whole = strict_json::from_str(existing).map_err(|e| {
        let what = alone();
        ConfigError::NotJson(e.to_string(), format!("Add this yourself:\n{}", what.trim_end()))
    })?;
    let shape = |path: &str| ConfigError::Shape(path.to_owned(), client.title());
    whole.as_object().ok_or_else(|| shape("the whole file"))?;
    let found = whole.get(section);
    if found.is_some_and(|found| !found.is_object()) {
        return Err(shape(section));
    }
    let root = edit::parse(existing).ok_or_else(|| shape("the whole file"))?;
    if found.is_some_and(|found| found.get(name).is_some()) {
        let other = root.get(section).and_then(|servers| Some((servers, edit::position(servers, name)?)));
        let removed = other.and_then(|(servers, at)| edit::remove(existing, servers, at));
        return with_server(client, Some(&removed.ok_or_else(|| shape(section))?), section, name, server);
    }
    let added = match root.get(section) {
        Some(servers) => edit::push(existing, servers, 1, Some(name), server),
        None => edit::push(existing, &root, 0, Some(section), &json!({name: server})),
    };
    added.ok_or_else(|| shape(section))
}

/// Whether a server of a configuration runs `charter mcp` for one run, as we configure it.
#[must_use]
pub fn is_our_server(server: &Json) -> bool {
    let words = ["command", "args"].into_iter().filter_map(|member| server.get(member)).flat_map(texts);
    let words: Vec<&str> = words.collect();
    words.windows(2).any(|pair| pair == ["mcp", "--run"])
}

/// The configuration without our server of this name in the object `section`; `None` if nothing
/// else was in it. A server of somebody else with this name stays.
///
/// # Errors
/// It cannot be read.
pub fn without_server(existing: &str, section: &str, name: &str) -> Result<Option<String>, ConfigError> {
    let has = |whole: Json| whole.get(section).and_then(|servers| servers.get(name)).is_some_and(is_our_server);
    if Dialect::Commas.read(existing).is_ok_and(|whole| !has(whole)) {
        return Ok(Some(existing.to_owned()));
    }
    strict_json::from_str(existing)
        .map_err(|e| ConfigError::NotJson(e.to_string(), format!("Remove `{name}` from `{section}` yourself")))?;
    let shape = || ConfigError::Shape(section.to_owned(), "the client");
    let root = edit::parse(existing).ok_or_else(shape)?;
    let servers = root.get(section).ok_or_else(shape)?;
    let text = match servers.len() {
        1 => edit::position(&root, section).and_then(|at| edit::remove(existing, &root, at)),
        _ => edit::position(servers, name).and_then(|at| edit::remove(existing, servers, at)),
    };
    let text = text.ok_or_else(shape)?;
    let rest = strict_json::from_str(&text).map_err(|_| shape())?;
    Ok(rest.as_object().is_none_or(|rest| !rest.is_empty()).then_some(text))
}
