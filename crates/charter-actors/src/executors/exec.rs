//! Kind `exec`: runs a command without a shell. Input and output are JSON, within limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use charter_expr::strict_json;
use charter_kernel::Millis;
use charter_kernel::definition::ActorDecl;
use charter_process::Tree;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;

use crate::call::Call;
use crate::clock::BoxFuture;
use crate::commands::{check_command, command_files};
use crate::error::{ConfigError, FolderError};
use crate::executor::{Beside, Executor, Fault, FindSecret, Outcome};
use crate::folder::Folder;
use crate::kept::NamedFile;
use crate::secret::Secrets;
use crate::shown::Shown;
use crate::variables::Variables;

/// Default limit of a command's standard output: 1 MiB.
const MAX_OUTPUT: u64 = 1 << 20;
/// Maximum number of bytes of standard error, from its end, that are reported when a command fails.
const MAX_STDERR: usize = 2_048;

/// Kind `exec`. Configuration: `command` (a list: program and arguments), `env` (variables: a
/// value, or `{secret: NAME}`), `dir` (inside the charter's folder), `maxOutput` (bytes).
///
/// The command runs in the charter's folder; if the files of the charter are built into a program,
/// only a command that needs none of them runs, in the root of the file system. Its environment
/// consists of [`Exec::env`], the variables of the charter, and `CHARTER_RUN`, `CHARTER_EFFECT`
/// (the idempotency key), `CHARTER_ATTEMPT`, `CHARTER_ACTOR`. The input is written to its standard
/// input. On a timeout, or when the run no longer waits for it, it is killed with all processes
/// that it started; those that are left when it ends are killed as well
/// ([`charter_process::Tree`]).
#[derive(Clone)]
pub struct Exec {
    /// The environment of every command. Default: [`default_env`](crate::default_env).
    pub env: BTreeMap<String, String>,
    /// Looks up the secrets that variables name. Default: there are none.
    pub secret: FindSecret,
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Exec({:?})", self.env.keys())
    }
}

impl Default for Exec {
    fn default() -> Exec {
        Exec { env: super::default_env(), secret: Arc::new(|_| None) }
    }
}

impl Exec {
    /// Sets the function that looks up the secrets that variables name.
    #[must_use]
    pub fn secrets(self, secret: FindSecret) -> Exec {
        Exec { secret, ..self }
    }
}

impl Executor for Exec {
    fn check(&self, _: &str, actor: &ActorDecl, folder: &Folder) -> Result<(), ConfigError> {
        super::check_keys(actor, &["command", "env", "dir", "maxOutput"])?;
        command(actor)?;
        variables(actor, &self.secret)?;
        max_output(actor)?;
        match actor.config.get("dir") {
            None | Some(Json::String(_)) => Ok(place(actor, folder).map(drop)?),
            Some(other) => Err(ConfigError::invalid("dir", "a folder inside the charter's folder", other)),
        }
    }

    fn files(&self, _: &str, actor: &ActorDecl, beside: &Beside<'_>) -> Result<Vec<NamedFile>, ConfigError> {
        let variables = variables(actor, &self.secret)?;
        command_files(&command(actor)?, variables.words(), dir_of(actor), beside.folder)
    }

    fn secrets_of(&self, actor: &ActorDecl) -> Secrets {
        variables(actor, &self.secret).map_or_else(|_| Secrets::default(), |all| all.secrets().collect())
    }

    fn attempt_timeout(&self) -> Option<Millis> {
        Some(super::ATTEMPT)
    }

    fn call(&self, call: Call) -> BoxFuture<'static, Result<Outcome, Fault>> {
        let exec = self.clone();
        Box::pin(async move {
            let variables = variables(call.actor(), &exec.secret)?;
            run(call, exec.env, variables).await
        })
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

/// Where the command runs. If the files of the charter are built into a program, a command that
/// needs none of them runs all the same.
fn place(actor: &ActorDecl, folder: &Folder) -> Result<PathBuf, FolderError> {
    let dir = folder.path(dir_of(actor));
    let needs = |word: &String| word.contains('/') || folder.is_file(word).unwrap_or(true);
    match (folder.at(), command(actor)) {
        (Folder::Texts(_), Ok(words)) if !actor.config.contains_key("dir") && !words.iter().any(needs) => {
            Ok(PathBuf::from("/"))
        }
        _ => dir,
    }
}

fn variables(actor: &ActorDecl, find: &FindSecret) -> Result<Variables, ConfigError> {
    Variables::read("env", actor.config.get("env"), find)
}

pub(super) fn max_output(actor: &ActorDecl) -> Result<u64, ConfigError> {
    match actor.config.get("maxOutput") {
        None => Ok(MAX_OUTPUT),
        Some(n) => n.as_u64().ok_or_else(|| ConfigError::invalid("maxOutput", "a number of bytes", n)),
    }
}

/// A running command. Dropping it kills it with everything it started.
struct Running {
    child: Child,
    tree: Arc<Tree>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.tree.kill();
        // No zombie is left; nobody waits for the command from now on.
        let _ = self.child.try_wait();
    }
}

/// Kills everything that a command started, without keeping other tasks waiting.
async fn kill(tree: &Arc<Tree>) {
    let tree = tree.clone();
    // If the host is shutting down, dropping the command kills it.
    let _ = tokio::task::spawn_blocking(move || tree.kill()).await;
}

async fn run(call: Call, env: BTreeMap<String, String>, variables: Variables) -> Result<Outcome, Fault> {
    let words = command(call.actor())?;
    let limit = max_output(call.actor())?;
    let dir = place(call.actor(), call.folder()).map_err(ConfigError::from)?;
    let named = call.clone();
    let (checked, values) = (words.clone(), variables.clone());
    super::blocking(move || check_command(&checked, values.words(), dir_of(named.actor()), named.folder())).await?;
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
        .envs(variables.all())
        .env("CHARTER_RUN", call.run.as_ref())
        .env("CHARTER_EFFECT", call.effect.as_ref())
        .env("CHARTER_ATTEMPT", call.attempt.to_string())
        .env("CHARTER_ACTOR", call.name())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let tree = Arc::new(Tree::new());
    tree.prepare(command.as_std_mut());
    let child = tree.start(|| command.spawn(), Child::id).map_err(|e| {
        let shown = words.first().map_or("", String::as_str);
        // The system reports a missing folder as if it were the program. Its path is not for the
        // record, which others may read.
        let fault = match dir.is_dir() {
            true => Fault::new("start", format!("cannot start `{shown}`: {e}")),
            false => Fault::new("start", format!("cannot start `{shown}`: the folder of the run does not exist")),
        };
        // A lack of processes or memory may be temporary; a missing program is not.
        if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied) {
            fault
        } else {
            fault.retryable()
        }
    })?;
    let mut running = Running { child, tree: tree.clone() };
    let child = &mut running.child;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
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
            kill(&tree).await;
        }
        out.ok_or_else(|| {
            Fault::new("too-large", format!("the command wrote more than {limit} bytes (`maxOutput`)")).retryable()
        })
    };
    let secrets = call.secrets();
    let read_stderr = async {
        match errors {
            Some(errors) => tail(errors, &call).await,
            None => String::new(),
        }
    };
    let finish = async {
        let status = child.wait().await;
        // Any processes that the command left behind would keep the pipes open.
        kill(&tree).await;
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
    let value = strict_json::from_str(&output).map_err(|e| {
        let shown: String = secrets.redact_cut(output.trim_end()).chars().take(120).collect();
        Fault::new("malformed", format!("the output of the command is not valid JSON: {e}"))
            .with("output", shown)
            .retryable()
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

/// Reads everything, shows it as it arrives, and returns the last [`MAX_STDERR`] bytes as text,
/// without secrets.
async fn tail(mut from: impl AsyncRead + Unpin, call: &Call) -> String {
    let (secrets, shown, threads) = (call.secrets(), Shown::default(), Handle::current());
    // A secret at the beginning of what is returned must be found as a whole.
    let limit = MAX_STDERR.saturating_add(secrets.reach());
    let mut kept: Vec<u8> = Vec::new();
    let mut page = [0u8; 4_096];
    while let Ok(count) = from.read(&mut page).await {
        if count == 0 {
            break;
        }
        let read = page.get(..count).unwrap_or_default();
        shown.arrived(call, 0, count, &String::from_utf8_lossy(read), &threads);
        kept.extend(read);
        let extra = kept.len().saturating_sub(limit);
        kept.drain(..extra);
    }
    let text = String::from_utf8_lossy(&kept);
    let text = secrets.redact_cut(text.trim_end());
    let mut start = text.len().saturating_sub(MAX_STDERR);
    while !text.is_char_boundary(start) {
        start = start.saturating_add(1);
    }
    text.get(start..).unwrap_or_default().to_owned()
}
