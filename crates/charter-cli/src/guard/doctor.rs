//! `charter guard doctor`: sends a call that must be refused through the configured command lines,
//! and says what is enforced and what is only advisory.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use charter_guard::client::Client;
use charter_guard::config::{self, Level};
use charter_runtime::new_run_id;
use serde_json::{Value as Json, json};

use super::fit;
use crate::hook::install::{read, root};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::journal::text::quoted;

/// How long a hook may take.
const TIME: Duration = Duration::from_secs(30);
/// What is known about the versions of Claude Code.
const ON_FAILURE: &str = "Claude Code 2.1.197, which npm gives for Node 20, ignores `onFailure`, and uses the tool \
                          without an answer; 2.1.332 was seen to block";
/// Pause between two looks at a process.
const LOOK: Duration = Duration::from_millis(10);

/// Tests the configured hooks.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Args {
    /// Only this client
    client: Option<Client>,
    /// The folder of the project [default: the current folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    db: Db,
}

/// What a hook does with a call that must be refused.
enum Finding {
    /// It refuses it.
    Refuses(String),
    /// It keeps every call from being made, without a decision.
    Blocks(String),
    /// It lets it through.
    Lets(String),
    /// The client calls no hook.
    Off(PathBuf),
    /// The client asks a server itself.
    Http(String),
}

struct Report {
    client: Client,
    file: PathBuf,
    level: Level,
    finding: Finding,
    /// Why the control is advisory; empty: it is enforced.
    advisory: Vec<String>,
    /// Why what the hook says about the outcome of calls is advisory, although calls are enforced.
    outcomes: Option<String>,
    /// Why nothing can be committed, although calls are decided.
    broken: Option<String>,
}

pub(super) fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let dir = dir.canonicalize().map_err(|e| Failure::new(format!("`{}`: {e}", dir.display())))?;
    let mut reports = Vec::new();
    for client in Client::ALL.into_iter().filter(|client| args.client.is_none_or(|only| only == *client)) {
        for level in [Level::Managed, Level::Project, Level::User] {
            let Ok(file) = config::file(client, level) else { continue };
            let Ok(root) = root(level, Some(&dir)) else { continue };
            let file = root.join(file);
            let Some(text) = read(&file)? else { continue };
            if let Some(why) = config::unread(client, &text) {
                let why = format!("{} calls no hook of this file, as it cannot read it: {why}", client.title());
                let (finding, advisory) = (Finding::Lets(why), Vec::new());
                reports.push(Report { client, file, level, finding, advisory, outcomes: None, broken: None });
                continue;
            }
            for command in config::commands(client, &text) {
                let finding = match switched_off(client, level, &file, &dir)? {
                    Some(settings) => Finding::Off(settings),
                    None => probe(client, &command, &file, &dir)?,
                };
                let advisory = advisory(client, level, &file, &command, &args.db)?;
                let outcomes = advisory.is_empty().then(|| outcomes(&command, &args.db)).transpose()?.flatten();
                let broken = fit::untested_by(client, &command, &args.db, &args.options())?;
                reports.push(Report { client, file: file.clone(), level, finding, advisory, outcomes, broken });
            }
            for hook in config::http_hooks(client, &text) {
                let finding = match (switched_off(client, level, &file, &dir)?, hook.blocks) {
                    (Some(settings), _) => Finding::Off(settings),
                    (None, true) => Finding::Http(hook.url.clone()),
                    (None, false) => Finding::Lets(format!(
                        "without an answer of {}, as it has no `\"onFailure\": \"block\"`",
                        hook.url
                    )),
                };
                let mut advisory = advisory(client, level, &file, "", &args.db)?;
                advisory.push(ON_FAILURE.into());
                let broken = (!hook.missing.is_empty()).then(|| {
                    let missing = hook.missing.join("` and `");
                    format!(
                        "the hook is not called for `{missing}`: no test counts as passed, and nothing can be committed"
                    )
                });
                let file = file.clone();
                reports.push(Report { client, file, level, finding, advisory, outcomes: None, broken });
            }
        }
    }
    if reports.is_empty() {
        return Err(Failure::with_help(
            "no hook of Charter is configured here",
            "`charter guard init CLIENT` configures one",
        ));
    }
    let mut exit = Exit::Yes;
    for report in &reports {
        if !matches!(report.finding, Finding::Refuses(_) | Finding::Http(_)) || report.broken.is_some() {
            exit = Exit::No;
        }
        report.write(machine_output, io)?;
    }
    Ok(exit)
}

impl Args {
    /// The options that a suggested command for the same project needs.
    fn options(&self) -> String {
        let dir = self.dir.as_ref().map(|dir| format!(" --dir {}", quoted(&dir.display().to_string())));
        format!("{}{}", dir.unwrap_or_default(), self.db.option())
    }
}

impl Report {
    fn write(&self, machine_output: bool, io: &mut Io<'_>) -> Result<(), Failure> {
        let off;
        let (word, why) = match &self.finding {
            Finding::Refuses(why) => ("refuses", why),
            Finding::Blocks(why) => ("blocks everything", why),
            Finding::Lets(why) => ("lets calls through", why),
            Finding::Http(url) => ("was not tried, as the client asks a server", url),
            Finding::Off(settings) => {
                off =
                    format!("hooks are switched off now, by `disableAllHooks` in `{}`; remove it", settings.display());
                ("is not called", &off)
            }
        };
        let refuses = matches!(self.finding, Finding::Refuses(_) | Finding::Http(_)) && self.broken.is_none();
        let control = match (refuses, self.advisory.is_empty()) {
            (false, _) => "broken",
            (true, true) => "enforced",
            (true, false) => "advisory",
        };
        let level = match self.level {
            Level::Project => "project",
            Level::User => "user",
            Level::Managed => "managed",
        };
        if machine_output {
            let line = json!({
                "client": self.client.name(), "file": self.file.display().to_string(), "level": level, "hook": word,
                "said": why, "control": control, "because": self.advisory,
                "outcomes": self.outcomes, "broken": self.broken,
            });
            return Ok(writeln!(io.out, "{line}")?);
        }
        let paint = Paint(io.color_out);
        let shown = match control {
            "enforced" => paint.good(control),
            "advisory" => paint.warning(control),
            _ => paint.error(control),
        };
        writeln!(io.out, "{}: {shown} ({level}, {})", self.client.title(), self.file.display())?;
        let first = why.lines().next().unwrap_or_default();
        writeln!(io.out, "  a call that must be refused: the hook {word}: {first}")?;
        if let Some(reason) = &self.broken {
            writeln!(io.out, "  broken, because {reason}")?;
        }
        for reason in &self.advisory {
            writeln!(io.out, "  advisory, because {reason}")?;
        }
        if let Some(reason) = &self.outcomes {
            writeln!(io.out, "  outcomes of calls: advisory, because {reason}")?;
        }
        Ok(())
    }
}

/// A call that removes the configuration of the hook, in the shape of the client.
fn request(client: Client, file: &Path, dir: &Path) -> String {
    let command = json!({"command": format!("rm -f {}", quoted(&file.display().to_string()))});
    let (session, cwd) = (format!("doctor-{}", new_run_id()), dir.display().to_string());
    let request = match client {
        Client::Claude => json!({
            "session_id": session, "cwd": cwd, "hook_event_name": "PreToolUse", "permission_mode": "default",
            "tool_name": "Bash", "tool_input": command, "tool_use_id": "doctor",
        }),
        Client::Codex => json!({
            "session_id": session, "turn_id": "1", "cwd": cwd, "hook_event_name": "PreToolUse", "model": "doctor",
            "permission_mode": "default", "tool_name": "Bash", "tool_input": command, "tool_use_id": "doctor",
        }),
        Client::Gemini => json!({
            "session_id": session, "cwd": cwd, "hook_event_name": "BeforeTool",
            "tool_name": "run_shell_command", "tool_input": command,
        }),
        Client::Copilot => {
            json!({"sessionId": session, "cwd": cwd, "toolName": "bash", "toolArgs": command.to_string()})
        }
        Client::Opencode => json!({
            "event": "tool.execute.before", "tool": "bash", "sessionID": session, "callID": "doctor",
            "args": command, "cwd": cwd,
        }),
        Client::Cursor => json!({
            "conversation_id": session, "cursor_version": "doctor", "hook_event_name": "preToolUse", "cwd": cwd,
            "tool_name": "Shell", "tool_input": command, "tool_use_id": "doctor",
        }),
        Client::Goose => json!({
            "event": "PreToolUse", "session_id": session, "cwd": cwd, "tool_name": "developer__shell",
            "tool_input": command, "tool_call_id": "doctor",
        }),
    };
    request.to_string()
}

/// Runs the command line as the client does, and reads what it says.
fn probe(client: Client, command: &str, file: &Path, dir: &Path) -> Result<Finding, Failure> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).current_dir(dir);
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // A hook that does not read has decided already.
        let _ = input.write_all(request(client, file, dir).as_bytes());
    }
    let begin = Instant::now();
    while child.try_wait()?.is_none() {
        if begin.elapsed() > TIME {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(Finding::Lets(format!("no answer within {} s", TIME.as_secs())));
        }
        std::thread::sleep(LOOK);
    }
    let output = child.wait_with_output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(match (output.status.code(), denial(&out)) {
        (Some(0), Some(reason)) => Finding::Refuses(reason),
        (Some(2), _) if !err.trim().is_empty() => Finding::Blocks(err.trim().to_owned()),
        (Some(0), None) => Finding::Lets(format!("it says `{}`", out.trim())),
        (code, _) => Finding::Lets(format!("exit code {code:?}")),
    })
}

/// The reason of a denial, in any of the shapes.
fn denial(out: &str) -> Option<String> {
    let said: Json = serde_json::from_str(out).ok()?;
    let own = said.get("hookSpecificOutput").unwrap_or(&said);
    let text = |member: &str| own.get(member).and_then(Json::as_str);
    let decision = text("permissionDecision").or(text("decision")).or(text("permission"))?;
    let reason = text("permissionDecisionReason").or(text("reason")).or(text("agent_message"));
    matches!(decision, "deny" | "block").then(|| reason.unwrap_or_default().to_owned())
}

/// Why what the hook refuses is only advisory.
fn advisory(client: Client, level: Level, file: &Path, command: &str, db: &Db) -> Result<Vec<String>, Failure> {
    let mut reasons = Vec::new();
    if is_root() {
        reasons.push("this runs as root, who may change everything".to_owned());
    }
    if level != Level::Managed {
        let whose = if can_change(file) { "it can rewrite" } else { "it may have other configuration besides" };
        reasons.push(match client {
            Client::Claude => format!(
                "an agent of this user can switch off hooks that are not managed: {whose} `{}`, or set `disableAllHooks`",
                file.display()
            ),
            client => format!("{} has no managed hooks that Charter knows: {whose} `{}`", client.title(), file.display()),
        });
    } else if can_change(file) {
        reasons.push(format!("an agent of this user can rewrite `{}`", file.display()));
    }
    if client == Client::Codex {
        reasons.push("Codex skips hooks that nobody has trusted, and says nothing: look at `/hooks` in Codex".into());
    }
    if client == Client::Copilot && level == Level::Project {
        reasons.push("Copilot CLI skips the hooks of a folder that nobody has trusted, and says nothing".into());
    }
    if client == Client::Gemini && level == Level::Project {
        reasons.push("Gemini CLI skips the hooks of a folder that is not trusted if `--skip-trust` is given".into());
    }
    if let Ok(program) = std::env::current_exe()
        && can_change(&program)
    {
        reasons.push(format!("an agent of this user can replace `{}`", program.display()));
    }
    match (db.remote()?, command.contains(" --server ")) {
        (Some(remote), true) => {
            let me = remote.me()?;
            if me.kind != charter_kernel::PrincipalKind::Agent {
                reasons.push(format!("the key in CHARTER_KEY is that of a {} (`{}`), not of an agent", me.kind, me.id));
            }
        }
        (None, true) => reasons.push("the server of the hook was not asked: set CHARTER_SERVER and CHARTER_KEY".into()),
        (_, false) => {
            if let Some(journal) = journal_of(command)
                && can_change(&journal)
            {
                reasons.push(format!(
                    "an agent of this user can write `{}`, read the keys in it, and be anybody on its socket",
                    journal.display()
                ));
            }
        }
    }
    Ok(reasons)
}

/// Why the run of a hook believes what an agent can say as well: who has the key of the hook speaks
/// for it. Not if the host runs the tests.
fn outcomes(command: &str, db: &Db) -> Result<Option<String>, Failure> {
    let (Some(run), Some(remote)) = (fit::run_of(command), db.remote()?) else { return Ok(None) };
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let input = threads.block_on(charter_guard::gate::input(&remote, run))?;
    Ok((!fit::is_by_host(&input)).then(|| {
        "an agent that can read the key of the hook can say how a call ended; start the run with `testsBy` `host`"
            .into()
    }))
}

/// The journal file of a command line.
pub(super) fn journal_of(command: &str) -> Option<PathBuf> {
    let rest = command.split_once(" --db ")?.1;
    let path = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.split('\'').next()?,
        None => rest.split_whitespace().next()?,
    };
    Some(PathBuf::from(path))
}

/// Whether this user can change a file, or replace it in its folder.
fn can_change(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use rustix::fs::{Access, access};
        let folder = path.parent().unwrap_or(Path::new("/"));
        access(path, Access::WRITE_OK).is_ok() || access(folder, Access::WRITE_OK).is_ok()
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        true
    }
}

fn is_root() -> bool {
    #[cfg(unix)]
    return rustix::process::geteuid().is_root();
    #[cfg(not(unix))]
    false
}

/// The settings of Claude Code that switch the hooks of a file off. Only managed ones switch off
/// managed hooks.
fn switched_off(client: Client, level: Level, file: &Path, dir: &Path) -> Result<Option<PathBuf>, Failure> {
    let files: Vec<PathBuf> = match (client, level) {
        (Client::Claude, Level::Managed) => vec![file.to_owned()],
        (Client::Claude, _) => {
            let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".claude/settings.json"));
            let own = [dir.join(".claude/settings.json"), dir.join(".claude/settings.local.json")];
            own.into_iter().chain(home).collect()
        }
        _ => Vec::new(),
    };
    for file in files {
        let settings = read(&file)?.and_then(|text| config::read(&text));
        if settings.and_then(|settings| settings.get("disableAllHooks")?.as_bool()) == Some(true) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}
