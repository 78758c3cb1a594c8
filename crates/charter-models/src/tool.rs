//! Kind `tool`: a tool of an MCP server (Model Context Protocol) that is started for the call and speaks over its standard streams.
//!
//! The one place that knows the crate `rmcp`.

use std::collections::BTreeMap;

use charter_kernel::definition::ActorDecl;
use charter_runtime::{Boxed, Call, Executor, Fault, Folder, Outcome};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::Value as Json;

use crate::offline;

/// The largest answer of a tool, in bytes of its JSON: the limit of an event.
const MOST_BYTES: usize = 1 << 20;
/// How much of a tool's complaint is told, in characters.
const MOST_COMPLAINT: usize = 500;
const KEYS: [&str; 3] = ["server", "tool", "arguments"];
/// Keys that every kind of actor understands.
const COMMON: [&str; 5] = ["idempotent", "retry", "attemptTimeout", "as", "id"];

/// Executor of actors of kind `tool`. Configuration: `server` (`{command, env}`: a list of words, the program first, and variables), `tool` (its
/// name), `arguments` (a value whose texts may be expressions over `input`; default: the input).
///
/// The server works in the charter's folder. Its environment has nothing but [`Tools::env`] and what the charter says. The answer is the tool's
/// structured content; without one its text, read as JSON if it is JSON. The effect's id goes along as `_meta.charter/effect`.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Variables that every server gets. Default: `PATH=/usr/local/bin:/usr/bin:/bin` and `LANG=C.UTF-8`.
    pub env: BTreeMap<String, String>,
}

impl Default for Tools {
    fn default() -> Tools {
        let env = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LANG", "C.UTF-8"),
        ];
        Tools {
            env: env.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
        }
    }
}

/// What a charter says about a tool.
struct Wanted {
    command: Vec<String>,
    env: Vec<(String, String)>,
    tool: String,
    arguments: Option<Json>,
}

impl Wanted {
    fn read(actor: &ActorDecl) -> Result<Wanted, String> {
        let known = KEYS.iter().chain(&COMMON).copied();
        if let Some(key) = actor
            .config
            .keys()
            .find(|k| !known.clone().any(|n| n == k.as_str()))
        {
            let near = charter_expr::nearest(key, known)
                .map(|n| format!("; did you mean `{n}`?"))
                .unwrap_or_default();
            return Err(format!("it has no key `{key}`{near}"));
        }
        let config = |key: &str| actor.config.get(key).filter(|v| !v.is_null());
        let server = config("server")
            .and_then(Json::as_object)
            .ok_or("`server` is an object: `{command: [program, argument], env: {NAME: text}}`")?;
        if let Some(key) = server
            .keys()
            .find(|k| !["command", "env"].contains(&k.as_str()))
        {
            return Err(format!(
                "`server` has no key `{key}`; it has `command` and `env`"
            ));
        }
        let command = charter_runtime::texts(
            "server.command",
            server.get("command").unwrap_or(&Json::Null),
        )
        .ok()
        .filter(|c| c.first().is_some_and(|program| !program.is_empty()))
        .ok_or("`server.command` is a list of texts, the program first")?;
        let mut env = Vec::new();
        for (name, value) in server
            .get("env")
            .and_then(Json::as_object)
            .into_iter()
            .flatten()
        {
            let value = value
                .as_str()
                .ok_or_else(|| format!("`server.env.{name}` is a text, not `{value}`"))?;
            env.push((name.clone(), value.to_owned()));
        }
        let bad = |text: &String| text.contains('\0');
        if command.iter().any(bad)
            || env
                .iter()
                .any(|(k, v)| bad(k) || bad(v) || k.is_empty() || k.contains('='))
        {
            return Err("`server` names a program or a variable that cannot be".into());
        }
        let tool = config("tool")
            .and_then(Json::as_str)
            .filter(|t| !t.is_empty())
            .ok_or("`tool` is the name of a tool of the server")?;
        let arguments = config("arguments").cloned();
        if let Some(arguments) = &arguments {
            offline::check(arguments).map_err(|e| format!("`arguments`: {e}"))?;
        }
        Ok(Wanted {
            command,
            env,
            tool: tool.to_owned(),
            arguments,
        })
    }
}

impl Executor for Tools {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), String> {
        Wanted::read(actor)?;
        folder
            .path(".")
            .map(drop)
            .map_err(|why| format!("a server works in the charter's folder, but {why}"))
    }

    fn call(&self, call: Call) -> Boxed<'static, Result<Outcome, Fault>> {
        let env = self.env.clone();
        Box::pin(async move { run(&call, env).await.map(Outcome::Done) })
    }
}

async fn run(call: &Call, env: BTreeMap<String, String>) -> Result<Json, Fault> {
    let configuration = |why: String| Fault::new("configuration", &why);
    let wanted = Wanted::read(call.actor()).map_err(configuration)?;
    let arguments = match &wanted.arguments {
        None => call.input.as_ref().clone(),
        Some(rules) => offline::answer(rules, &call.input, &Json::Null)
            .map_err(|e| configuration(format!("`arguments`: {e}")))?,
    };
    let Json::Object(arguments) = arguments else {
        return Err(configuration(
            "the arguments of a tool are an object".into(),
        ));
    };
    let folder = call.folder().path(".").map_err(configuration)?;
    let Some((program, words)) = wanted.command.split_first() else {
        return Err(configuration("`server.command` is empty".into()));
    };
    let mut command = tokio::process::Command::new(program);
    command
        .args(words)
        .current_dir(folder)
        .env_clear()
        .envs(env)
        .envs(wanted.env)
        .kill_on_drop(true);
    let unavailable = |why: String| Fault::new("unavailable", &why).retryable();
    // The server's own complaints are its own business.
    let (process, _) = TokioChildProcess::builder(command)
        .stderr(std::process::Stdio::null())
        .spawn()
        .map_err(|e| unavailable(format!("the server `{program}` cannot be started: {e}")))?;
    let server: RunningService<RoleClient, ()> = ()
        .serve(process)
        .await
        .map_err(|e| unavailable(format!("the server `{program}` does not speak MCP: {e}")))?;
    let mut params = CallToolRequestParams::new(wanted.tool.clone()).with_arguments(arguments);
    let key = Json::from(call.effect.as_ref());
    params
        .meta
        .get_or_insert_default()
        .insert("charter/effect".to_owned(), key);
    let result = server.call_tool(params).await;
    // Asks the server to end; what it does not do by itself is done when it is dropped.
    drop(server.cancel().await);
    let result = result.map_err(|e| {
        Fault::new(
            "tool-failed",
            &format!("the tool `{}` cannot be called: {e}", wanted.tool),
        )
    })?;
    answer(&wanted.tool, result)
}

/// What a result says.
fn answer(tool: &str, result: CallToolResult) -> Result<Json, Fault> {
    let text: Vec<&str> = result
        .content
        .iter()
        .filter_map(|c| c.as_text())
        .map(|t| t.text.as_str())
        .collect();
    let text = text.join("\n");
    if result.is_error == Some(true) {
        let said: String = text.chars().take(MOST_COMPLAINT).collect();
        return Err(Fault::new(
            "tool-failed",
            &format!("the tool `{tool}` says: {said}"),
        ));
    }
    let answer = match result.structured_content {
        Some(value) => value,
        None => serde_json::from_str(&text).unwrap_or(Json::String(text)),
    };
    let size = answer.to_string().len();
    if size > MOST_BYTES {
        return Err(Fault::new(
            "too-large",
            &format!("the tool `{tool}` answers with {size} bytes; the most is {MOST_BYTES}"),
        ));
    }
    Ok(answer)
}
