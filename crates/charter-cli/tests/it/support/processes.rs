//! Processes of the binary that use one journal file.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::Scratch;

/// Processes in one folder, which has a journal file.
pub(crate) struct Site(pub(crate) Scratch);

impl Site {
    pub(crate) fn new(name: &str, charters: &[(&str, String)]) -> Site {
        let site = Site(Scratch::new(name));
        for (name, text) in charters {
            site.0.file(name, text);
        }
        site
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.0.join(name)
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_charter"));
        command.args(args.split_whitespace()).current_dir(&self.0.0);
        for name in ["CHARTER_MODEL", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn start(&self, args: &str) -> Process {
        Process(Some(self.command(args).spawn().unwrap()))
    }

    /// Runs a command to its end. It must succeed.
    pub(crate) fn run(&self, args: &str) -> String {
        let (code, out, err) = self.any(args);
        assert_eq!(code, 0, "charter {args}\n{out}{err}");
        out
    }

    /// Runs a command to its end.
    pub(crate) fn any(&self, args: &str) -> (i32, String, String) {
        said(self.command(args).output().unwrap())
    }

    pub(crate) fn records(&self, run: &str) -> Vec<Json> {
        self.run(&format!("log {run} --json")).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    pub(crate) fn lines(&self, file: &str) -> usize {
        fs::read_to_string(self.path(file)).unwrap_or_default().lines().count()
    }

    /// Waits until a process holds the journal and accepts requests; returns its id.
    pub(crate) fn holder(&self) -> u32 {
        let mut pid = None;
        until("a holder", || {
            let text = fs::read_to_string(self.path("charter.db-lock")).unwrap_or_default();
            let holder: Json = serde_json::from_str(&text).unwrap_or_default();
            pid = holder.get("address").and(holder["pid"].as_u64());
            pid.is_some()
        });
        u32::try_from(pid.unwrap()).unwrap()
    }

    pub(crate) fn wait_for_lines(&self, file: &str, lines: usize) {
        until(file, || self.lines(file) >= lines);
    }

    /// Waits until nobody holds the journal.
    pub(crate) fn wait_for_no_holder(&self) {
        until("no holder", || charter_journal::holder(&self.path("charter.db")).unwrap().is_none());
    }
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no {what} for 60 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub(crate) fn said(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// A process that is killed at the end of the test.
pub(crate) struct Process(pub(crate) Option<Child>);

impl Process {
    pub(crate) fn end(mut self) -> (i32, String, String) {
        said(self.0.take().unwrap().wait_with_output().unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.0.as_mut().unwrap().kill().unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.as_mut().unwrap().try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs `charter` on a terminal; what it reads is written to the returned process.
pub(crate) fn on_terminal(site: &Site, args: &str) -> Process {
    let charter = format!("{} {args}", env!("CARGO_BIN_EXE_charter"));
    let mut script = Command::new("script");
    script.env("NO_COLOR", "1").args(["-qefc", &charter, "/dev/null"]).current_dir(&site.0.0);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Process(Some(script.spawn().unwrap()))
}
