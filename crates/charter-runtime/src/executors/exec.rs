//! Kind `exec`: a command as a list of words, JSON in, JSON out, within limits, without a shell.

use std::collections::BTreeMap;
use std::process::Stdio;

use charter_kernel::definition::ActorDecl;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use crate::call::{Call, Executor, Fault, Outcome};
use crate::charter::Folder;
use crate::clock::BoxFuture;

/// The most that a command may write to its standard output, unless the actor says less: 1 MiB.
const OUTPUT: u64 = 1 << 20;
/// How much of the end of standard error is told when a command fails, in bytes.
const COMPLAINT: usize = 2_048;

/// Kind `exec`. Configuration: `command` (a list: program and arguments), `env` (variables), `dir` (inside the charter's folder),
/// `maxOutput` (bytes).
///
/// The command works in the charter's folder. Its environment has nothing but [`Exec::env`], what the charter says, and
/// `CHARTER_RUN`, `CHARTER_EFFECT` (the idempotency key), `CHARTER_ATTEMPT`, `CHARTER_ACTOR`. The input comes on standard input. When
/// the time is over, or nobody waits any more, it is killed with all processes it has started.
#[derive(Debug, Clone)]
pub struct Exec {
    /// Variables that every command gets. Default: `PATH=/usr/local/bin:/usr/bin:/bin` and `LANG=C.UTF-8`.
    pub env: BTreeMap<String, String>,
}

impl Default for Exec {
    fn default() -> Exec {
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8")];
        Exec { env: env.map(|(k, v)| (k.to_owned(), v.to_owned())).into() }
    }
}

impl Executor for Exec {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), String> {
        super::known(&actor.config, &["command", "env", "dir", "maxOutput"])?;
        command(actor)?;
        variables(actor)?;
        most(actor)?;
        match actor.config.get("dir") {
            None => {
                folder.path(".").map(drop).map_err(|why| format!("a command works in the charter's folder, but {why}"))
            }
            Some(Json::String(dir)) => folder.path(dir).map(drop),
            Some(other) => Err(format!("`dir` is a folder inside the charter's, not `{other}`")),
        }
    }

    fn attempt_timeout(&self) -> Option<i64> {
        Some(super::ATTEMPT)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let env = self.env.clone();
        Box::pin(run(call, env))
    }
}

fn command(actor: &ActorDecl) -> Result<Vec<String>, String> {
    let wrong = || "`command` is a list of texts, the program first: no shell looks at it".to_owned();
    let words = match actor.config.get("command") {
        Some(list @ Json::Array(_)) => crate::config::texts("command", list).map_err(|_| wrong())?,
        Some(_) => return Err(wrong()),
        None => return Err("`command` is missing: a list of texts, the program first".into()),
    };
    if words.first().is_none_or(String::is_empty) || words.iter().any(|w| w.contains('\0')) {
        return Err(wrong());
    }
    Ok(words)
}

fn variables(actor: &ActorDecl) -> Result<Vec<(String, String)>, String> {
    let Some(env) = actor.config.get("env") else {
        return Ok(Vec::new());
    };
    let wrong = || format!("`env` gives a text for each variable, not `{env}`");
    let pair = |(k, v): (&String, &Json)| {
        let bad = k.is_empty() || k.contains(['=', '\0']) || v.as_str().is_some_and(|v| v.contains('\0'));
        let value = match v {
            Json::String(v) => v.clone(),
            Json::Number(n) => n.to_string(),
            Json::Bool(b) => b.to_string(),
            _ => return Err(wrong()),
        };
        if bad { Err(wrong()) } else { Ok((k.clone(), value)) }
    };
    env.as_object().ok_or_else(wrong)?.iter().map(pair).collect()
}

fn most(actor: &ActorDecl) -> Result<u64, String> {
    match actor.config.get("maxOutput") {
        None => Ok(OUTPUT),
        Some(n) => n.as_u64().ok_or_else(|| format!("`maxOutput` is a number of bytes, not `{n}`")),
    }
}

/// A command that is at work. Dropped: it is killed, with everything it has started.
struct Group {
    child: Child,
    /// The number of its group of processes.
    id: Option<i32>,
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group that is over may have given its number to others.
        if matches!(self.child.try_wait(), Ok(None)) {
            end(self.id);
        }
    }
}

/// Kills a group of processes, if there is (still) one.
fn end(id: Option<i32>) {
    #[cfg(unix)]
    if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = id;
}

async fn run(call: Call, env: BTreeMap<String, String>) -> Result<Outcome, Fault> {
    let config = |why: String| Fault::new("config", &why);
    let words = command(call.actor()).map_err(config)?;
    let most = most(call.actor()).map_err(config)?;
    let name = call.config("dir").and_then(Json::as_str).unwrap_or(".");
    let dir = call.folder().path(name).map_err(config)?;
    let Some((program, arguments)) = words.split_first() else {
        return Err(config("`command` is empty".into()));
    };
    // A path is meant from the folder, a bare name from PATH. Where the system looks for a relative path is not defined.
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
        .envs(variables(call.actor()).map_err(config)?)
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
        let fault = Fault::new("start", &format!("`{shown}` cannot be started: {e}"));
        // Too many processes, no memory: that passes. A program that is not there does not appear.
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
            // A command that does not read its input is no failure.
            let _ = input.write_all(text.as_bytes()).await;
            let _ = input.write_all(b"\n").await;
        }
    };
    let read = async {
        let out = match output {
            Some(output) => head(output, most).await,
            None => Some(Vec::new()),
        };
        if out.is_none() {
            // Nobody reads on, so it must not wait until somebody does.
            end(id);
        }
        out.ok_or_else(|| {
            Fault::new("too-large", &format!("the command wrote more than {most} bytes (`maxOutput`)")).retryable()
        })
    };
    let complain = async {
        match errors {
            Some(errors) => tail(errors).await,
            None => String::new(),
        }
    };
    let child = &mut group.child;
    let finish = async {
        let status = child.wait().await;
        // What it has left behind would keep the pipes open.
        end(id);
        status
    };
    let ((), output, complaint, status) = tokio::join!(write, read, complain, finish);
    let output = output?;
    let status = status.map_err(|e| Fault::new("failed", &format!("the command got lost: {e}")).retryable())?;
    if !status.success() {
        let last = complaint.trim_end();
        let said =
            if last.is_empty() { String::new() } else { format!(": {}", last.lines().next_back().unwrap_or_default()) };
        let mut fault =
            Fault::new("failed", &format!("the command failed ({status}){said}")).retryable().with("stderr", last);
        if let Some(code) = status.code() {
            fault = fault.with("exit", code);
        }
        return Err(fault);
    }
    let output = String::from_utf8(output)
        .map_err(|_| Fault::new("malformed", "the command wrote no text (UTF-8)").retryable())?;
    if output.trim().is_empty() {
        return Ok(Outcome::Done(Json::Null));
    }
    let value = serde_json::from_str(&output).map_err(|e| {
        let shown: String = output.chars().take(120).collect();
        Fault::new("malformed", &format!("the command wrote no JSON: {e}")).with("output", shown).retryable()
    })?;
    Ok(Outcome::Done(value))
}

/// The program of a bare name, in the PATH that it will have itself.
fn find(name: &str, env: &BTreeMap<String, String>) -> Option<std::ffi::OsString> {
    let path = env.get("PATH")?;
    let found = path
        .split(':')
        .filter(|d| d.starts_with('/'))
        .map(|d| std::path::Path::new(d).join(name))
        .find(|p| p.is_file());
    found.map(Into::into)
}

/// Everything, if it is not more than `most` bytes. The pipe is closed on return.
async fn head(mut from: impl AsyncRead + Unpin, most: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let read = (&mut from).take(most.saturating_add(1)).read_to_end(&mut out).await;
    let fits = u64::try_from(out.len()).is_ok_and(|len| len <= most);
    (read.is_ok() && fits).then_some(out)
}

/// The end of what is written, as text.
async fn tail(mut from: impl AsyncRead + Unpin) -> String {
    let mut kept: Vec<u8> = Vec::new();
    let mut page = [0u8; 4_096];
    while let Ok(count) = from.read(&mut page).await {
        if count == 0 {
            break;
        }
        kept.extend(page.iter().take(count));
        let extra = kept.len().saturating_sub(COMPLAINT);
        kept.drain(..extra);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
