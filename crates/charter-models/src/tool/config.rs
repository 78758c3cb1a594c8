//! The configuration of an actor of kind `tool`: server, tool, arguments. It is checked before a
//! run starts.

use charter_actors::{ConfigError, FindSecret, KeyError, Secret, Secrets, Variables};
use charter_kernel::definition::ActorDecl;
use serde_json::{Map, Value as Json};
use ureq::http::{HeaderName, HeaderValue, Uri};

use crate::offline;

/// The configuration of an actor of kind `tool`.
#[derive(Debug)]
pub(super) struct ToolConfig {
    pub(super) server: Server,
    pub(super) tool: String,
    pub(super) arguments: Option<Json>,
}

/// The server of a tool.
#[derive(Debug)]
pub(super) enum Server {
    /// A program that is started for the call.
    Program { command: Vec<String>, env: Variables },
    /// A server that is reached over HTTP.
    Url {
        url: String,
        headers: Vec<(HeaderName, HeaderValue)>,
        /// The secrets among the headers.
        secrets: Vec<Secret>,
    },
}

impl Server {
    /// The name of the server in messages.
    pub(super) fn name(&self) -> &str {
        match self {
            Server::Program { command, .. } => command.first().map_or("", String::as_str),
            Server::Url { url, .. } => url,
        }
    }

    /// The secrets that the server is given.
    pub(super) fn secrets(&self) -> Secrets {
        match self {
            Server::Program { env, .. } => env.secrets().collect(),
            Server::Url { secrets, .. } => secrets.iter().collect(),
        }
    }
}

impl ToolConfig {
    pub(super) fn read(actor: &ActorDecl, secret: &FindSecret) -> Result<ToolConfig, ConfigError> {
        charter_actors::check_keys(actor, &["server", "tool", "arguments"])?;
        let required = |key: &str, expected: &str| {
            let value = actor.config.get(key).filter(|v| !v.is_null());
            value.ok_or_else(|| ConfigError::missing(key, expected)).map(|value| (value, expected.to_owned()))
        };
        let (value, expected) = required("server", "`{command: [PROGRAM, ARGUMENT]}` or `{url: https://...}`")?;
        let server = value.as_object().ok_or_else(|| ConfigError::invalid("server", &expected, value))?;
        let (value, expected) = required("tool", "the name of a tool of the server")?;
        let tool = value.as_str().filter(|t| !t.is_empty());
        let tool = tool.ok_or_else(|| ConfigError::invalid("tool", &expected, value))?.to_owned();
        let arguments = actor.config.get("arguments").filter(|v| !v.is_null()).cloned();
        if let Some(arguments) = &arguments {
            offline::check(arguments).map_err(|e| ConfigError::Other(format!("`arguments`: {e}")))?;
        }
        let server = match server.contains_key("url") {
            true => remote(server, secret)?,
            false => program(server, secret)?,
        };
        Ok(ToolConfig { server, tool, arguments })
    }
}

/// Checks the keys of `server`.
fn check_members(server: &Map<String, Json>, known: [&str; 2]) -> Result<(), ConfigError> {
    match server.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(KeyError::unknown_in("server", key, known).into()),
    }
}

fn program(server: &Map<String, Json>, secret: &FindSecret) -> Result<Server, ConfigError> {
    check_members(server, ["command", "env"])?;
    let value = server.get("command").unwrap_or(&Json::Null);
    let invalid = || ConfigError::invalid("server.command", "a list of strings, the program first", value);
    let command = charter_actors::texts("server.command", value).map_err(|_| invalid())?;
    if command.first().is_none_or(String::is_empty) || command.iter().any(|word| word.contains('\0')) {
        return Err(invalid());
    }
    let env = Variables::read("server.env", server.get("env"), secret)?;
    Ok(Server::Program { command, env })
}

fn remote(server: &Map<String, Json>, secret: &FindSecret) -> Result<Server, ConfigError> {
    check_members(server, ["url", "headers"])?;
    let value = server.get("url").unwrap_or(&Json::Null);
    let invalid = || {
        ConfigError::invalid("server.url", "a URL that begins with `https://` (`http://` to this machine only)", value)
    };
    let url = value.as_str().ok_or_else(invalid)?;
    let uri: Uri = url.parse().map_err(|_| invalid())?;
    let local = matches!(uri.host().unwrap_or_default(), "localhost" | "127.0.0.1" | "[::1]");
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if local => {}
        _ => return Err(invalid()),
    }
    let mut headers = Vec::new();
    let mut secrets = Vec::new();
    let given = match server.get("headers") {
        None | Some(Json::Null) => None,
        Some(Json::Object(given)) => Some(given),
        Some(other) => return Err(invalid_header(other)),
    };
    for (name, value) in given.into_iter().flatten() {
        let named = Secret::named(value, secret, "server.headers", &format!("header `{name}`"))?;
        let text = match (value, &named) {
            (_, Some(secret)) => secret.expose(),
            (Json::String(text), None) => text,
            (other, None) => return Err(invalid_header(other)),
        };
        // The error message must not contain a secret.
        let not_http = || {
            let message = format!("`server`: the header `{name}` has a name or value that HTTP does not allow");
            ConfigError::Other(message)
        };
        let key = HeaderName::try_from(name.as_str()).map_err(|_| not_http())?;
        let mut text = HeaderValue::try_from(text).map_err(|_| not_http())?;
        text.set_sensitive(true);
        headers.push((key, text));
        secrets.extend(named);
    }
    Ok(Server::Url { url: url.to_owned(), headers, secrets })
}

fn invalid_header(value: &Json) -> ConfigError {
    ConfigError::invalid("server.headers", "a string or `{secret: NAME}` for each header", value)
}
