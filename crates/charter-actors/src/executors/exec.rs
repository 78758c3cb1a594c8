//! Kind `exec`: runs a command without a shell. Input and output are JSON, within limits.

use std::collections::BTreeMap;
use std::process::Stdio;

use charter_kernel::Millis;
use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::call::Call;
use crate::clock::BoxFuture;
use crate::commands::{check_command, command_files};
use crate::error::ConfigError;
use crate::executor::{Beside, Executor, Fault, Outcome};
use crate::folder::Folder;
use crate::kept::NamedFile;

/// Default limit of a command's standard output: 1 MiB.
const MAX_OUTPUT: u64 = 1 << 20;
/// Maximum number of bytes of standard error, from its end, that are reported when a command fails.
const MAX_STDERR: usize = 2_048;

/// Kind `exec`. Configuration: `command` (a list: program and arguments), `env` (variables), `dir`
/// (inside the charter's folder), `maxOutput` (bytes).
///
/// The command runs in the charter's folder. Its environment consists of [`Exec::env`], the
/// variables of the charter, and `CHARTER_RUN`, `CHARTER_EFFECT` (the idempotency key),
/// `CHARTER_ATTEMPT`, `CHARTER_ACTOR`. The input is written to its standard input. On a timeout, or
/// when the run no longer waits for it, it is killed with all processes that it started.
#[derive(Debug, Clone)]
pub struct Exec {
    /// The environment of every command. Default: [`default_env`](crate::default_env).
    pub env: BTreeMap<String, String>,
}

impl Default for Exec {
    fn default() -> Exec {
        Exec { env: super::default_env() }
    }
}

impl Executor for Exec {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        super::check_keys(actor, &["command", "env", "dir", "maxOutput"])?;
        command(actor)?;
        variables(actor)?;
        max_output(actor)?;
        match actor.config.get("dir") {
            None => Ok(folder.path(".").map(drop)?),
            Some(Json::String(dir)) => Ok(folder.path(dir).map(drop)?),
            Some(other) => Err(ConfigError::invalid("dir", "a folder inside the charter's folder", other)),
        }
    }

    fn files(&self, _: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        let variables = variables(actor)?;
        command_files(&command(actor)?, variables.iter().map(|(_, v)| v.as_str()), dir_of(actor), beside.folder)
    }

    fn attempt_timeout(&self) -> Option<Millis> {
        Some(super::ATTEMPT)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let env = self.env.clone();
        Box::pin(run(call, env))
    }
}

fn command(actor: &ActorDecl) -> Result<Vec<String>, ConfigError> {
    let expected = "a list of strings, the program first (no shell interprets it)";
    let value = actor.config.get("command").ok_or_else(|| ConfigError::missing("command", expected))?;
    let invalid = || ConfigError::invalid("command", expected, value);
    let words = match value {
        Json::Array(_) => charter_run::texts("command", value).map_err(|_| invalid())?,
        _ => return Err(invalid()),
    };
    if words.first().is_none_or(String::is_empty) || words.iter().any(|w| w.contains('\0')) {
        return Err(invalid());
    }
    Ok(words)
}

/// The folder in which the command runs.
fn dir_of(actor: &ActorDecl) -> &str {
    actor.config.get("dir").and_then(Json::as_str).unwrap_or(".")
}

fn variables(actor: &ActorDecl) -> Result<Vec<(String, String)>, ConfigError> {
    let Some(env) = actor.config.get("env") else {
        return Ok(Vec::new());
    };
    let invalid = || ConfigError::invalid("env", "an object with a string for each variable", env);
    let pair = |(k, v): (&String, &Json)| {
        let bad = k.is_empty() || k.contains(['=', '\0']) || v.as_str().is_some_and(|v| v.contains('\0'));
        let value = match v {
            Json::String(v) => v.clone(),
            Json::Number(n) => n.to_string(),
            Json::Bool(b) => b.to_string(),
            _ => return Err(invalid()),
        };
        if bad { Err(invalid()) } else { Ok((k.clone(), value)) }
    };
    env.as_object().ok_or_else(invalid)?.iter().map(pair).collect()
}

pub(super) fn max_output(actor: &ActorDecl) -> Result<u64, ConfigError> {
    match actor.config.get("maxOutput") {
        None => Ok(MAX_OUTPUT),
        Some(n) => n.as_u64().ok_or_else(|| ConfigError::invalid("maxOutput", "a number of bytes", n)),
    }
}

/// A running command. Dropping it kills its process group.
struct Group {
    child: Child,
    /// Id of the process group.
    id: Option<i32>,
}

impl Drop for Group {
    fn drop(&mut self) {
        // Once the command has ended, another process group may reuse its id.
        if matches!(self.child.try_wait(), Ok(None)) {
            kill_group(self.id);
        }
    }
}

/// Kills a process group, if it exists.
fn kill_group(id: Option<i32>) {
    #[cfg(unix)]
    if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = id;
}

async fn run(call: Call, env: BTreeMap<String, String>) -> Result<Outcome, Fault> {
    let words = command(call.actor())?;
    let limit = max_output(call.actor())?;
    let variables = variables(call.actor())?;
    let name = dir_of(call.actor());
    let dir = call.folder().path(name).map_err(ConfigError::from)?;
    let named = call.clone();
    let (checked, values) = (words.clone(), variables.clone());
    super::blocking(move || {
        let values = values.iter().map(|(_, v)| v.as_str());
        check_command(&checked, values, dir_of(named.actor()), named.folder())
    })
    .await?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(Fault::new("config", "`command` is empty"));
    };
    // A path is relative to the folder; a bare name is looked up in PATH. This is done here
    // because, with a working directory set, the system's own lookup of relative paths differs
    // between platforms.
    let program = if program.contains('/') {
        dir.join(program).into_os_string()
    } else {
        find(program, &env).unwrap_or_else(|| program.into())
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&dir)
        .env_clear()
        .envs(&env)
        .envs(variables)
        .env("CHARTER_RUN", call.run.as_ref())
        .env("CHARTER_EFFECT", call.effect.as_ref())
        .env("CHARTER_ATTEMPT", call.attempt.to_string())
        .env("CHARTER_ACTOR", call.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let child = command.spawn().map_err(|e| {
        let shown = words.first().map_or("", String::as_str);
        let fault = Fault::new("start", format!("cannot start `{shown}`: {e}"));
        // A lack of processes or memory may be temporary; a missing program is not.
        if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied) {
            fault
        } else {
            fault.retryable()
        }
    })?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = Group { child, id };
    let (input, output, errors) = (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
    let text = call.input.to_string();
    let write = async move {
        if let Some(mut input) = input {
            // A command does not have to read its input.
            let _ = input.write_all(text.as_bytes()).await;
            let _ = input.write_all(b"\n").await;
        }
    };
    let read = async {
        let out = match output {
            Some(output) => head(output, limit).await,
            None => Some(Vec::new()),
        };
        if out.is_none() {
            // The output is no longer read, so the command would block on it.
            kill_group(id);
        }
        out.ok_or_else(|| {
            Fault::new("too-large", format!("the command wrote more than {limit} bytes (`maxOutput`)")).retryable()
        })
    };
    let read_stderr = async {
        match errors {
            Some(errors) => tail(errors).await,
            None => String::new(),
        }
    };
    let child = &mut group.child;
    let finish = async {
        let status = child.wait().await;
        // Any processes that the command left behind would keep the pipes open.
        kill_group(id);
        status
    };
    let ((), output, stderr, status) = tokio::join!(write, read, read_stderr, finish);
    let output = output?;
    let status = status.map_err(|e| Fault::new("failed", format!("cannot wait for the command: {e}")).retryable())?;
    if !status.success() {
        let stderr = stderr.trim_end();
        let last = stderr.lines().next_back().map(|line| format!(": {line}")).unwrap_or_default();
        let mut fault =
            Fault::new("failed", format!("the command failed ({status}){last}")).retryable().with("stderr", stderr);
        if let Some(code) = status.code() {
            fault = fault.with("exit", code);
        }
        return Err(fault);
    }
    let output = String::from_utf8(output)
        .map_err(|_| Fault::new("malformed", "the output of the command is not UTF-8").retryable())?;
    if output.trim().is_empty() {
        return Ok(Outcome::Done(Json::Null));
    }
    let value = serde_json::from_str(&output).map_err(|e| {
        let shown: String = output.chars().take(120).collect();
        Fault::new("malformed", format!("the output of the command is not JSON: {e}")).with("output", shown).retryable()
    })?;
    Ok(Outcome::Done(value))
}

/// Looks up a bare name in the PATH that the command will have.
fn find(name: &str, env: &BTreeMap<String, String>) -> Option<std::ffi::OsString> {
    let path = env.get("PATH")?;
    let found = path
        .split(':')
        .filter(|d| d.starts_with('/'))
        .map(|d| std::path::Path::new(d).join(name))
        .find(|p| p.is_file());
    found.map(Into::into)
}

/// Reads everything, or returns `None` if there are more than `limit` bytes. The pipe is closed on
/// return.
async fn head(mut from: impl AsyncRead + Unpin, limit: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let read = (&mut from).take(limit.saturating_add(1)).read_to_end(&mut out).await;
    let fits = u64::try_from(out.len()).is_ok_and(|len| len <= limit);
    (read.is_ok() && fits).then_some(out)
}

/// Reads everything and returns the last [`MAX_STDERR`] bytes as text.
async fn tail(mut from: impl AsyncRead + Unpin) -> String {
    let mut kept: Vec<u8> = Vec::new();
    let mut page = [0u8; 4_096];
    while let Ok(count) = from.read(&mut page).await {
        if count == 0 {
            break;
        }
        kept.extend(page.iter().take(count));
        let extra = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..extra);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
