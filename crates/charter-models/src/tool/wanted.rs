//! What a charter says about a tool: server, tool, arguments; read and judged before a run starts.

use charter_kernel::definition::ActorDecl;
use charter_runtime::FindSecret;
use serde_json::{Map, Value as Json};
use ureq::http::{HeaderName, HeaderValue, Uri};

use crate::offline;
use crate::secret::Secret;

const KEYS: [&str; 3] = ["server", "tool", "arguments"];
/// Keys that every kind of actor understands.
const COMMON: [&str; 5] = ["idempotent", "retry", "attemptTimeout", "as", "id"];

/// The entry of an actor of kind `tool`.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) server: Server,
    pub(super) tool: String,
    pub(super) arguments: Option<Json>,
}

/// Where the tool is.
#[derive(Debug)]
pub(super) enum Server {
    /// A program that is started for the call.
    Program { command: Vec<String>, env: Vec<(String, String)> },
    /// A server that is there.
    Url {
        url: String,
        headers: Vec<(HeaderName, HeaderValue)>,
        /// What must stand in no message.
        secrets: Vec<Secret>,
    },
}

impl Server {
    /// What people call it.
    pub(super) fn name(&self) -> &str {
        match self {
            Server::Program { command, .. } => command.first().map_or("", String::as_str),
            Server::Url { url, .. } => url,
        }
    }

    /// A text without its secrets.
    pub(super) fn redact(&self, text: String) -> String {
        match self {
            Server::Program { .. } => text,
            Server::Url { secrets, .. } => secrets.iter().fold(text, |t, s| s.redact(&t)),
        }
    }
}

impl Wanted {
    pub(super) fn read(actor: &ActorDecl, secret: &FindSecret) -> Result<Wanted, String> {
        let known = KEYS.iter().chain(&COMMON).copied();
        unknown(actor.config.keys(), known, "it")?;
        let config = |key: &str| actor.config.get(key).filter(|v| !v.is_null());
        let server = config("server")
            .and_then(Json::as_object)
            .ok_or("`server` is an object: `{command: [program, argument]}`, or `{url: https://...}`")?;
        let tool = config("tool")
            .and_then(Json::as_str)
            .filter(|t| !t.is_empty())
            .ok_or("`tool` is the name of a tool of the server")?;
        let arguments = config("arguments").cloned();
        if let Some(arguments) = &arguments {
            offline::check(arguments).map_err(|e| format!("`arguments`: {e}"))?;
        }
        Ok(Wanted {
            server: match server.contains_key("url") {
                true => reached(server, secret)?,
                false => started(server)?,
            },
            tool: tool.to_owned(),
            arguments,
        })
    }
}

fn unknown<'a>(
    mut keys: impl Iterator<Item = &'a String>,
    known: impl Iterator<Item = &'static str> + Clone,
    what: &str,
) -> Result<(), String> {
    let Some(key) = keys.find(|k| !known.clone().any(|n| n == k.as_str())) else {
        return Ok(());
    };
    let near = charter_expr::nearest(key, known).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
    Err(format!("{what} has no key `{key}`{near}"))
}

fn started(server: &Map<String, Json>) -> Result<Server, String> {
    unknown(server.keys(), ["command", "env"].into_iter(), "`server`")?;
    let command = charter_runtime::texts("server.command", server.get("command").unwrap_or(&Json::Null))
        .ok()
        .filter(|c| c.first().is_some_and(|program| !program.is_empty()))
        .ok_or("`server.command` is a list of texts, the program first")?;
    let env = match server.get("env") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Object(env)) => env
            .iter()
            .map(|(name, value)| match value.as_str() {
                Some(value) => Ok((name.clone(), value.to_owned())),
                None => Err(format!("`server.env.{name}` is a text, not `{value}`")),
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some(other) => return Err(format!("`server.env` is `{{NAME: text}}`, not `{other}`")),
    };
    let bad = |text: &String| text.contains('\0');
    if command.iter().any(bad) || env.iter().any(|(k, v)| bad(k) || bad(v) || k.is_empty() || k.contains('=')) {
        return Err("`server` names a program or a variable that cannot be".into());
    }
    Ok(Server::Program { command, env })
}

fn reached(server: &Map<String, Json>, secret: &FindSecret) -> Result<Server, String> {
    unknown(server.keys(), ["url", "headers"].into_iter(), "`server`")?;
    let url = server.get("url").and_then(Json::as_str).ok_or("`server.url` is a text")?;
    let uri: Uri = url.parse().map_err(|e| format!("`server.url` is no URL: `{url}` ({e})"))?;
    let host = uri.host().unwrap_or_default();
    let here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if here => {}
        _ => {
            return Err(format!(
                "`server.url` begins with `https://` (`http://` goes to this machine only), unlike `{url}`"
            ));
        }
    }
    let mut headers = Vec::new();
    let mut secrets = Vec::new();
    let given = match server.get("headers") {
        None | Some(Json::Null) => None,
        Some(Json::Object(given)) => Some(given),
        Some(other) => return Err(wrong_header(other)),
    };
    for (name, value) in given.into_iter().flatten() {
        let text = match value {
            Json::String(text) => text.clone(),
            Json::Object(map) => {
                let named = map
                    .get("secret")
                    .and_then(Json::as_str)
                    .filter(|_| map.len() == 1)
                    .ok_or_else(|| wrong_header(value))?;
                let text =
                    secret(named).ok_or_else(|| format!("this host has no secret `{named}` (header `{name}`)"))?;
                secrets.push(Secret::new(text.clone()));
                text
            }
            other => return Err(wrong_header(other)),
        };
        // What is wrong with a secret must not show it.
        let cannot = || format!("the header `{name}` has a name or value that HTTP does not allow");
        let key = HeaderName::try_from(name.as_str()).map_err(|_| cannot())?;
        let mut text = HeaderValue::try_from(text).map_err(|_| cannot())?;
        text.set_sensitive(true);
        headers.push((key, text));
    }
    Ok(Server::Url { url: url.to_owned(), headers, secrets })
}

fn wrong_header(value: &Json) -> String {
    format!("`server.headers` gives a text or `{{secret: NAME}}` for each header, not `{value}`")
}
