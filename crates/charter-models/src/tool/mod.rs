//! Kind `tool`: calls a tool of an MCP server (Model Context Protocol). The server is either a
//! program that is started for the call and uses its standard streams, or reached over HTTP.
//!
//! Only this module and its submodules use the crate `rmcp`.

mod config;
mod post;
mod session;

use std::collections::BTreeMap;
use std::sync::Arc;

use charter_actors::{
    Beside, BoxFuture, Call, ConfigError, Executor, Fault, FindSecret, Folder, NamedFile, Outcome, Secrets, Variables,
    check_command, command_files,
};
use charter_expr::strict_json;
use charter_kernel::Millis;
use charter_kernel::definition::ActorDecl;
use charter_process::Tree;
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::Value as Json;
use tracing::Instrument as _;

use crate::codes;
use crate::{offline, trace};
use config::{Server, ToolConfig};
use post::Post;
use session::{Connection, Follower};

/// Maximum size of a tool's answer, in bytes of JSON: the limit of an event.
const MAX_BYTES: usize = 1 << 20;
/// Maximum length of a tool's error message in a fault, in characters.
const MAX_MESSAGE: usize = 500;
/// Default time limit of an attempt: ten minutes.
const ATTEMPT: Millis = Millis(600_000);
/// Fault code: the tool was called and failed.
const FAILED: &str = "tool-failed";

/// Executor for actors of kind `tool`. Configuration: `server`, either `{command, env}` (a list of
/// strings, the program first, and variables) or `{url, headers}`; `tool` (its name); `arguments`
/// (a value in which strings may be expressions over `input`; default: the input).
///
/// A program runs in the charter's folder. Its environment consists of [`Tools::env`] and the
/// variables of the charter. The answer is the tool's structured content, or else its text, parsed
/// as JSON if it is valid JSON. The id of the effect is sent as `_meta.charter/effect`.
#[derive(Clone)]
pub struct Tools {
    /// The environment of every program. Default: [`charter_actors::default_env`].
    pub env: BTreeMap<String, String>,
    /// Looks up the secrets that headers and variables name. Default: there are none.
    pub secret: FindSecret,
}

impl Default for Tools {
    fn default() -> Tools {
        Tools { env: charter_actors::default_env(), secret: Arc::new(|_| None) }
    }
}

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tools({:?})", self.env.keys())
    }
}

impl Executor for Tools {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        match ToolConfig::read(actor, &self.secret)?.server {
            Server::Url { .. } => Ok(()),
            // A program runs in the charter's folder.
            Server::Program { .. } => Ok(folder.path(".").map(drop)?),
        }
    }

    fn files(&self, _: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        match ToolConfig::read(actor, &self.secret)?.server {
            Server::Url { .. } => Ok(Vec::new()),
            Server::Program { command, env } => command_files(&command, env.words(), ".", beside.folder),
        }
    }

    fn secrets_of(&self, actor: &ActorDecl) -> Secrets {
        ToolConfig::read(actor, &self.secret).map_or_else(|_| Secrets::default(), |config| config.server.secrets())
    }

    fn attempt_timeout(&self) -> Option<Millis> {
        Some(ATTEMPT)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let tools = self.clone();
        Box::pin(async move {
            let name = call.config("tool").and_then(Json::as_str);
            let span = trace::tool(name.unwrap_or_default(), &call.effect, &call.run);
            let result = tools.run(&call).instrument(span.clone()).await;
            if let Err(fault) = &result {
                span.record("error.type", fault.code.as_str());
                span.record("otel.status_code", "ERROR");
            }
            result.map(Outcome::Done)
        })
    }
}

impl Tools {
    async fn run(&self, call: &Call) -> Result<Json, Fault> {
        let config = ToolConfig::read(call.actor(), &self.secret)?;
        let arguments = match &config.arguments {
            None => call.input.as_ref().clone(),
            Some(rules) => {
                let computed = offline::answer(rules, &call.input, &Json::Null);
                computed.map_err(|e| Fault::new(codes::CONFIG, format!("`arguments`: {e}")))?
            }
        };
        let Json::Object(arguments) = arguments else {
            return Err(Fault::new(codes::CONFIG, "the arguments of a tool must be an object"));
        };
        let mut params = CallToolRequestParams::new(config.tool.clone()).with_arguments(arguments);
        let key = Json::from(call.effect.as_ref());
        params.meta.get_or_insert_default().insert("charter/effect".to_owned(), key);
        let connection = self.connect(call, &config.server).await?;
        let post = connection.post.clone();
        let result = connection.call(params).await;
        let idempotent = call.config("idempotent") == Some(&Json::Bool(true));
        let result = result.map_err(|e| failed(&config.tool, &e, post.as_ref(), idempotent))?;
        let result = result.ok_or_else(|| {
            let why = "it asks for input while it works, which actors do not give";
            Fault::new(codes::PROTOCOL, format!("cannot call the tool `{}`: {why}", config.tool))
        })?;
        answer(&config.tool, result, call.secrets())
    }

    async fn connect(&self, call: &Call, server: &Server) -> Result<Connection, Fault> {
        let name = server.name();
        match server {
            Server::Program { command, env } => {
                let (checked, words, values) = (call.clone(), command.clone(), env.clone());
                let check = move || check_command(&words, values.words(), ".", checked.folder());
                let interrupted = |_| Fault::new(FAILED, "the call was interrupted").retryable();
                tokio::task::spawn_blocking(check).await.map_err(interrupted)??;
                let (process, tree) = self.start(call, command, env)?;
                let server = Follower::new(call).serve(process).await.map_err(|e| no_session(name, &e, 0))?;
                Ok(Connection { server, post: None, tree: Some(tree) })
            }
            Server::Url { url, headers, .. } => {
                let post = Post::new(headers.clone(), call.left());
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
                let transport = StreamableHttpClientTransport::with_client(post.clone(), config);
                let server =
                    Follower::new(call).serve(transport).await.map_err(|e| no_session(name, &e, post.status()))?;
                Ok(Connection { server, post: Some(post), tree: None })
            }
        }
    }

    fn start(&self, call: &Call, command: &[String], env: &Variables) -> Result<(TokioChildProcess, Tree), Fault> {
        let folder = call.folder().path(".").map_err(ConfigError::from)?;
        let Some((program, words)) = command.split_first() else {
            return Err(Fault::new(codes::CONFIG, "`server.command` is empty"));
        };
        // A path is relative to the folder, on every platform.
        let path = if program.contains('/') { folder.join(program) } else { program.into() };
        let mut process = tokio::process::Command::new(path);
        process.args(words).current_dir(folder).env_clear().envs(&self.env).envs(env.all()).kill_on_drop(true);
        let tree = Tree::new();
        tree.prepare(process.as_std_mut());
        // The standard error of the server is not part of the protocol.
        let process = TokioChildProcess::builder(process).stderr(std::process::Stdio::null());
        let started = tree.start(|| process.spawn(), |(process, _)| process.id());
        started.map(|(process, _)| (process, tree)).map_err(|e| {
            let fault = Fault::new(codes::UNAVAILABLE, format!("cannot start the server `{program}`: {e}"));
            // A missing program is not a temporary error.
            match e.kind() == std::io::ErrorKind::NotFound {
                true => fault,
                false => fault.retryable(),
            }
        })
    }
}

/// Returns the fault if there is no MCP session with the server: it was not reached, or it does not
/// follow the protocol.
fn no_session(name: &str, error: &ClientInitializeError, status: u16) -> Fault {
    match status {
        401 | 403 => refused_key(name, status),
        200..=299 | 400..=407 | 409..=424 => {
            Fault::new(codes::PROTOCOL, format!("the server `{name}` does not speak MCP: {error}"))
        }
        // Status 0 means a program, or a server that was not reached.
        _ => Fault::new(codes::UNAVAILABLE, format!("the server `{name}` does not respond: {error}")).retryable(),
    }
}

fn refused_key(name: &str, status: u16) -> Fault {
    Fault::new(codes::AUTHENTICATION, format!("the server `{name}` denies access (HTTP {status})"))
}

/// Returns the fault of a failed call. If the connection broke, it is unknown whether the tool took
/// effect.
fn failed(tool: &str, error: &ServiceError, post: Option<&Post>, idempotent: bool) -> Fault {
    let fault = Fault::new(FAILED, format!("cannot call the tool `{tool}`: {error}"));
    let is_broken = post.is_some_and(Post::is_broken);
    if matches!(error, ServiceError::McpError(_)) && !is_broken {
        return fault;
    }
    // The call was rejected before it took effect, or it is safe to repeat.
    match post.map(Post::status) {
        Some(status @ (401 | 403)) => refused_key(tool, status),
        Some(429 | 503) => fault.retryable(),
        _ if idempotent => fault.retryable(),
        _ => fault,
    }
}

/// Returns the answer in a result.
fn answer(tool: &str, result: CallToolResult, secrets: &Secrets) -> Result<Json, Fault> {
    let text: Vec<&str> = result.content.iter().filter_map(|c| c.as_text()).map(|t| t.text.as_str()).collect();
    let text = text.join("\n");
    if result.is_error == Some(true) {
        let said: String = secrets.redact(&text).chars().take(MAX_MESSAGE).collect();
        return Err(Fault::new(FAILED, format!("the tool `{tool}` failed: {said}")));
    }
    let answer = match result.structured_content {
        Some(value) => value,
        None => match strict_json::from_str(&text) {
            Ok(value) => value,
            Err(e) if strict_json::is_duplicate_key(&e) => {
                return Err(Fault::new(codes::PROTOCOL, format!("cannot read the answer of the tool `{tool}`: {e}")));
            }
            // The answer is plain text.
            Err(_) => Json::String(text),
        },
    };
    let size = answer.to_string().len();
    if size > MAX_BYTES {
        return Err(Fault::new(
            codes::TOO_LARGE,
            format!("the answer of the tool `{tool}` has {size} bytes; the limit is {MAX_BYTES}"),
        ));
    }
    Ok(answer)
}
