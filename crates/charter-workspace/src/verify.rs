//! The `verify` command. It runs with limits on time and output, and ends with everything it
//! started.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use charter_process::{Confinement, Tree};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::{Deserialize, Serialize};

use crate::error::{Context as _, Error};
use crate::store;
use crate::watch::Watch;

/// Commands that accept changed files by exiting with 0, one after the other. They run what the
/// changeset may have written, so they are confined ([`Confinement`]): they change only the copy,
/// see neither the store and the journal beside it nor homes, and open no socket. They receive only
/// the environment listed here, with a `TMPDIR` of their own, and no input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyCommand {
    /// Programs and arguments; they do not pass through a shell.
    pub commands: Vec<Vec<String>>,
    /// Maximum duration, of all together.
    pub time_limit: Duration,
    /// Maximum bytes of standard output and standard error together. The command is killed if it
    /// prints more.
    pub output_limit: usize,
    /// The whole environment of the command, for example `PATH`; [`charter_process::MARK`] is
    /// added.
    pub environment: BTreeMap<String, String>,
    /// A home that they may read, but for the usual places of secrets in it.
    pub home: Option<PathBuf>,
    /// Whether the copy has the `.git` of the workspace.
    pub git: bool,
    /// Runs them with all the rights of the host. They can then do whatever the host can, answering
    /// its questions included.
    pub unconfined: bool,
}

/// Where tools keep secrets in a home.
const SECRETS: [&str; 27] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/charter",
    ".config/google-chrome",
    ".mozilla",
    ".password-store",
    ".local/share/keyrings",
    ".bash_history",
    ".zsh_history",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
];

impl VerifyCommand {
    /// Creates a command with the default limits: 30 seconds, 1 MiB of output.
    #[must_use]
    pub fn new(command: Vec<String>) -> VerifyCommand {
        VerifyCommand {
            commands: vec![command],
            time_limit: Duration::from_secs(30),
            output_limit: 1 << 20,
            environment: BTreeMap::new(),
            home: None,
            git: false,
            unconfined: false,
        }
    }

    /// Checks what can be known before there are changes: that there are commands, that their
    /// programs exist, unless they are in the workspace, and that the system can confine them.
    ///
    /// # Errors
    /// A command cannot run; the error says which one and why.
    pub fn check(&self) -> Result<(), Error> {
        if self.commands.is_empty() {
            return Err(Error::Usage("there is no `verify` command: name a program and its arguments".into()));
        }
        for command in &self.commands {
            let Some(program) = command.first().filter(|program| !program.is_empty()) else {
                return Err(Error::Usage("the `verify` command is empty: name a program and its arguments".into()));
            };
            let path = self.environment.get("PATH").map(String::as_str).unwrap_or_default();
            let found = match program.contains('/') {
                true => !Path::new(program).is_absolute() || is_program(Path::new(program)),
                false => std::env::split_paths(path).any(|folder| is_program(&folder.join(program))),
            };
            if !found {
                let place = if program.contains('/') { String::new() } else { format!(" in `PATH={path}`") };
                return Err(Error::Usage(format!(
                    "the program `{program}` of the `verify` command does not exist{place}; install it, or name its \
                     path, or give the command your `PATH` (`verifyEnv`)"
                )));
            }
        }
        if self.unconfined {
            return Ok(());
        }
        Confinement::check().map_err(|e| {
            Error::Usage(format!(
                "{e}; `unconfined` runs the `verify` command all the same, if the approval is by a key"
            ))
        })
    }
}

/// Whether this is a file that can be executed.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// How a `verify` command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Whether the command accepted the changes.
    pub accepted: bool,
    /// How the command ended, as a clause.
    pub ended: String,
    /// What the command printed: the last 64 KiB, with invalid UTF-8 replaced.
    pub output: String,
}

/// Maximum number of bytes of output that are kept (the last ones).
const KEPT: usize = 64 << 10;
/// Interval at which the command is polled.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

impl VerifyCommand {
    /// Runs the commands in the folder `tree` of `place`, until one does not accept.
    pub(crate) fn run(&self, place: &Path, hidden: Vec<PathBuf>, watch: &dyn Watch) -> Result<Verification, Error> {
        self.check()?;
        let begin = Instant::now();
        let mut all = Verification { accepted: true, ended: String::new(), output: String::new() };
        for command in self.commands.iter() {
            let one = self.run_one(command, place, &hidden, begin, watch)?;
            let shown = if self.commands.len() > 1 { format!("$ {}\n", command.join(" ")) } else { String::new() };
            all.output = tail(&format!("{}{shown}{}", all.output, one.output));
            (all.accepted, all.ended) = (one.accepted, one.ended);
            if !all.accepted {
                if self.commands.len() > 1 {
                    all.ended = format!("`{}`: {}", command.join(" "), all.ended);
                }
                break;
            }
        }
        Ok(all)
    }

    fn run_one(
        &self,
        command: &[String],
        place: &Path,
        hidden: &[PathBuf],
        begin: Instant,
        watch: &dyn Watch,
    ) -> Result<Verification, Error> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Error::Usage("the `verify` command is empty: name a program and its arguments".into()));
        };
        let temporary = place.join("tmp");
        store::create_folder(&temporary)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(place.join("tree")).env_clear();
        command.env("TMPDIR", temporary).envs(&self.environment);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut confinement = Confinement { hidden: hidden.to_vec(), read: Vec::new(), write: vec![place.to_owned()] };
        if let Some(home) = &self.home {
            confinement.hidden.extend(SECRETS.iter().map(|secret| home.join(secret)));
            confinement.read.push(home.clone());
        }
        let tree = Tree::new();
        tree.prepare(&mut command);
        let spawn = || if self.unconfined { command.spawn() } else { confinement.spawn(&mut command) };
        let start = tree.start(spawn, |child| Some(child.id()));
        let mut child = start.context(|| format!("start the `verify` command `{program}`"))?;
        let ended = self.follow(&mut child, begin, watch);
        // Kill any processes that the command left behind, even after a success.
        tree.kill();
        let _ = child.wait();
        ended
    }

    fn follow(&self, child: &mut Child, started: Instant, watch: &dyn Watch) -> Result<Verification, Error> {
        let doing = || "follow the `verify` command".to_owned();
        let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
        for fd in [out.as_ref().map(std::os::fd::AsFd::as_fd), err.as_ref().map(std::os::fd::AsFd::as_fd)]
            .into_iter()
            .flatten()
        {
            rustix::io::ioctl_fionbio(fd, true).context(doing)?;
        }
        let mut printed = Printed::default();
        loop {
            let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(2);
            fds.extend(out.as_ref().map(|o| PollFd::new(o, PollFlags::IN)));
            fds.extend(err.as_ref().map(|e| PollFd::new(e, PollFlags::IN)));
            match rustix::event::poll(&mut fds, Some(&TICK)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e).context(doing),
            }
            let exited = child.try_wait().context(doing)?;
            printed.take(&mut out, self.output_limit).context(doing)?;
            printed.take(&mut err, self.output_limit).context(doing)?;
            let ended = if printed.total > self.output_limit {
                Some((false, format!("it printed more than {} bytes and was killed", self.output_limit)))
            } else if let Some(status) = exited {
                Some((status.success(), describe(status)))
            } else if started.elapsed() >= self.time_limit {
                Some((false, format!("it ran longer than {} s and was killed", self.time_limit.as_secs_f64())))
            } else if watch.stopped() {
                return Err(Error::Stopped("cancelled while the `verify` command was running".into()));
            } else {
                None
            };
            if let Some((accepted, ended)) = ended {
                return Ok(Verification { accepted, ended, output: printed.text() });
            }
        }
    }
}

/// The last part of a text, of the size that is kept.
fn tail(text: &str) -> String {
    let from = (text.len().saturating_sub(KEPT)..=text.len()).find(|at| text.is_char_boundary(*at));
    text.get(from.unwrap_or_default()..).unwrap_or_default().to_owned()
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it exited with code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Captured output: its length, and its tail.
#[derive(Default)]
struct Printed {
    total: usize,
    tail: Vec<u8>,
}

impl Printed {
    /// Reads what is available without blocking; drops the pipe at its end.
    fn take<R: Read>(&mut self, pipe: &mut Option<R>, limit: usize) -> std::io::Result<()> {
        let Some(from) = pipe else { return Ok(()) };
        let mut buffer = [0u8; 16 << 10];
        while self.total <= limit {
            match from.read(&mut buffer) {
                Ok(0) => {
                    *pipe = None;
                    return Ok(());
                }
                Ok(n) => {
                    self.total = self.total.saturating_add(n);
                    self.tail.extend_from_slice(buffer.get(..n).unwrap_or_default());
                    if self.tail.len() > KEPT.saturating_mul(2) {
                        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        let start = self.tail.len().saturating_sub(KEPT);
        String::from_utf8_lossy(self.tail.get(start..).unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Unwatched;

    /// Runs a command in an empty folder.
    fn run_in(place: &Path, verify: &VerifyCommand) -> Result<Verification, Error> {
        std::fs::create_dir_all(place.join("tree")).unwrap();
        verify.run(place, Vec::new(), &Unwatched)
    }

    fn run(script: &str, change: impl FnOnce(&mut VerifyCommand)) -> Verification {
        let mut verify = VerifyCommand::new(["/bin/sh", "-c", script].map(String::from).to_vec());
        change(&mut verify);
        let folder = tempfile::tempdir().unwrap();
        let started = Instant::now();
        let verification = run_in(folder.path(), &verify).unwrap();
        assert!(started.elapsed() < Duration::from_secs(10));
        verification
    }

    #[test]
    fn a_command_exits_or_is_killed() {
        let good = run("echo fine; echo also >&2", |_| {});
        assert!(good.accepted);
        assert!(good.output.contains("fine") && good.output.contains("also"), "{}", good.output);
        let bad = run("echo no; exit 3", |_| {});
        assert_eq!((bad.accepted, bad.ended.as_str(), bad.output.as_str()), (false, "it exited with code 3", "no\n"));
        let slow = run("/bin/sleep 60 & wait", |v| v.time_limit = Duration::from_millis(200));
        assert_eq!((slow.accepted, slow.ended.as_str()), (false, "it ran longer than 0.2 s and was killed"));
        let loud = run("while :; do echo yes; done", |v| v.output_limit = 100_000);
        assert_eq!((loud.accepted, loud.ended.as_str()), (false, "it printed more than 100000 bytes and was killed"));
        assert!(loud.output.len() <= KEPT);
        let killed = run("kill -9 $$", |_| {});
        assert_eq!((killed.accepted, killed.ended.as_str()), (false, "it was killed by signal 9"));
    }

    #[test]
    fn a_child_left_behind_is_killed_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("late");
        let script = format!("setsid /bin/sh -c 'sleep 1; echo late > {}' & exit 0", file.display());
        assert!(run(&script, |v| v.unconfined = true).accepted);
        std::thread::sleep(Duration::from_millis(1_300));
        assert!(!file.exists());
    }

    #[test]
    fn commands_run_until_one_fails() {
        let sh = |script: &str| ["/bin/sh", "-c", script].map(String::from).to_vec();
        let folder = tempfile::tempdir().unwrap();
        let mut verify = VerifyCommand::new(sh("echo one > file; echo first"));
        verify.commands.extend([sh("cat file; exit 4"), sh("echo never")]);
        let failed = run_in(folder.path(), &verify).unwrap();
        assert!(!failed.accepted && failed.ended.ends_with("it exited with code 4"), "{}", failed.ended);
        assert!(failed.output.contains("first\n$ /bin/sh -c cat file; exit 4\none\n"), "{}", failed.output);
        assert!(!failed.output.contains("never"), "{}", failed.output);
    }

    #[test]
    fn a_command_changes_nothing_outside_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let script = format!("echo x > here && mktemp && ! echo x > {}/file", outside.path().display());
        let mut verify = VerifyCommand::new(["/bin/sh", "-c", &script].map(String::from).to_vec());
        verify.environment = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
        let ran = run_in(folder.path(), &verify).unwrap();
        assert!(ran.accepted, "{} {}", ran.ended, ran.output);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_environment_is_what_was_listed() {
        let env = run("/usr/bin/env", |v| v.environment = BTreeMap::from([("A".to_owned(), "b".to_owned())]));
        assert!(env.output.lines().any(|l| l == "A=b"));
        assert!(!env.output.contains("HOME="), "{}", env.output);
    }

    #[test]
    fn a_missing_command_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let run = |command: &[&str]| {
            run_in(folder.path(), &VerifyCommand::new(command.iter().map(|s| (*s).to_owned()).collect()))
        };
        assert_eq!(run(&["/no/such/program"]).unwrap_err().code(), "usage");
        assert_eq!(run(&["sh"]).unwrap_err().code(), "usage", "without a `PATH`");
        assert_eq!(run(&["./no-such-script"]).unwrap_err().code(), "io");
        assert_eq!(run(&[]).unwrap_err().code(), "usage");
    }
}
