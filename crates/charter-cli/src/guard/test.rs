//! `charter guard test`: the command of the actor `tests` of the charter `coder`. Runs the
//! project's tests, and says whether they have passed, and for which files.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use charter_guard::tree_digest;
use serde::Deserialize;
use serde_json::json;

use crate::io::{Exit, Failure, Io};

/// Bytes of the end of what the tests write that are kept.
const MAX_OUTPUT_BYTES: usize = 8 << 10;
/// Bytes of the input.
const MAX_INPUT_BYTES: u64 = 64 << 10;
/// How long the rest of the output may take after the end of the command.
const REST: Duration = Duration::from_secs(2);

/// What the run asks for.
#[derive(Debug, Deserialize)]
struct Input {
    workspace: PathBuf,
    test: String,
}

pub(super) fn run(io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut text = String::new();
    (&mut io.input).take(MAX_INPUT_BYTES).read_to_string(&mut text)?;
    let input: Input = serde_json::from_str(&text).map_err(|e| {
        Failure::with_help(
            format!("the input is not `{{\"workspace\": \"/path\", \"test\": \"COMMAND\"}}`: {e}"),
            "the charter `coder` runs this command; send its run the event `tests.run`",
        )
    })?;
    if !input.workspace.is_absolute() {
        return Err(Failure::new(format!("`workspace`: `{}` is not absolute", input.workspace.display())));
    }
    let before = tree_digest(&input.workspace);
    let (failed, output) = tested(&input)?;
    let after = tree_digest(&input.workspace);
    let reason = match failed {
        Some(failed) => failed,
        None if before != after => {
            "the files have changed while the tests ran; what tests write belongs into .gitignore".to_owned()
        }
        None => String::new(),
    };
    let mut answer = json!({"ok": reason.is_empty(), "reason": reason, "output": output});
    if let (Some(tree), Some(members)) = (after, answer.as_object_mut()) {
        members.insert("tree".to_owned(), tree.into());
    }
    writeln!(io.out, "{answer}")?;
    Ok(Exit::Yes)
}

/// Runs the command: why it has failed, and the end of its output.
fn tested(input: &Input) -> Result<(Option<String>, String), Failure> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &input.test]).current_dir(&input.workspace).stdin(Stdio::null());
    command.stdout(writer.try_clone()?).stderr(writer);
    // Commands of actors have no home folder, but compilers look for one.
    if std::env::var_os("HOME").is_none()
        && let Some(home) = home()
    {
        command.env("HOME", home);
    }
    let mut child = command.spawn()?;
    // Its ends of the pipe are open until then.
    drop(command);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut part = [0_u8; 4096];
        while let Ok(count @ 1..) = reader.read(&mut part) {
            if sender.send(part.get(..count).unwrap_or_default().to_vec()).is_err() {
                break;
            }
        }
    });
    let mut end: Vec<u8> = Vec::new();
    let mut status = None;
    loop {
        match receiver.recv_timeout(if status.is_some() { REST } else { Duration::from_millis(20) }) {
            Ok(part) => {
                end.extend(part);
                let more = end.len().saturating_sub(MAX_OUTPUT_BYTES);
                end.drain(..more);
            }
            Err(mpsc::RecvTimeoutError::Timeout) if status.is_none() => status = child.try_wait()?,
            // What it has left running may keep the pipe open.
            Err(_) => break,
        }
    }
    let status = match status {
        Some(status) => status,
        None => child.wait()?,
    };
    let failed = (!status.success()).then(|| format!("`{}`: {status}", input.test));
    Ok((failed, shown(&end)))
}

/// Text without characters that would hide or move other text.
fn shown(bytes: &[u8]) -> String {
    let keep = |c: char| c == '\n' || c == '\t' || !(c.is_control() || charter_kernel::visible::is_invisible(c));
    String::from_utf8_lossy(bytes).chars().map(|c| if keep(c) { c } else { '\u{fffd}' }).collect()
}

/// The home folder of the user of this process.
fn home() -> Option<PathBuf> {
    #[cfg(unix)]
    {
        let id = rustix::process::geteuid().as_raw().to_string();
        let users = std::fs::read_to_string("/etc/passwd").ok()?;
        let mut lines = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let own = lines.find(|fields| fields.get(2).is_some_and(|user| **user == id))?;
        own.get(5).map(Path::new).filter(|home| home.is_absolute()).map(Path::to_owned)
    }
    #[cfg(not(unix))]
    None
}
