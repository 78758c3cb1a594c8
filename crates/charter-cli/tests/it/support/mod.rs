//! Runs a command line in this process, and captures its output.

#[cfg(unix)]
pub(crate) mod processes;

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use charter_cli::{Io, run};

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `charter ARGS` with `input` on standard input.
pub(crate) fn charter_with(args: &[&str], input: &str) -> Ran {
    on(args, input, false, None)
}

/// Runs `charter ARGS` as on a terminal with `input` typed; `screen` is the terminal's columns and
/// rows.
pub(crate) fn charter_typed(args: &[&str], input: &str, screen: Option<(u16, u16)>) -> Ran {
    on(args, input, true, screen)
}

/// Ends the tests if a command does not end, a server that should have refused to start: nothing
/// else stops it, because it works in this process.
fn watched<T>(args: &[&str], command: impl FnOnce() -> T) -> T {
    let (done, ended) = mpsc::channel::<()>();
    let name = args.join(" ");
    let watch = std::thread::spawn(move || {
        if ended.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
            // Past the harness, which keeps what a test prints until it ends.
            let _ = writeln!(std::io::stderr(), "`charter {name}` has not ended after {LONGEST:?}; the tests end here");
            std::process::abort();
        }
    });
    let result = command();
    drop(done);
    watch.join().unwrap();
    result
}

/// More than the slowest command takes on a busy machine.
const LONGEST: Duration = Duration::from_secs(600);

fn on(args: &[&str], input: &str, terminal: bool, screen: Option<(u16, u16)>) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = watched(args, || {
        let mut io = Io {
            out: &mut out,
            err: &mut err,
            input: Box::new(input.as_bytes()),
            color_out: false,
            color_err: false,
            terminal,
            ready: |_| true,
            screen,
        };
        run(std::iter::once("charter").chain(args.iter().copied()), &mut io)
    });
    Ran { code: exit.code(), out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

/// Runs `charter ARGS` without input.
pub(crate) fn charter(args: &[&str]) -> Ran {
    charter_with(args, "")
}

/// Starts a run in a journal without the command line, at a time if one is given.
pub(crate) fn start_at(journal: &std::path::Path, source: &str, run: &str, millis: Option<i64>) {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    threads.block_on(async {
        let store = std::sync::Arc::new(charter_journal::SqliteStore::open(journal).unwrap());
        let mut options = charter_runtime::Options::default();
        if let Some(millis) = millis {
            options = options.clock(charter_actors::VirtualClock::new(millis));
        }
        let (runtime, _) = charter_runtime::Runtime::open(store, options).await.unwrap();
        let document = charter_test_support::document(source);
        let charter = charter_runtime::Charter::new(&document, charter_actors::Folder::None).unwrap();
        let charter = runtime.add(charter).await.unwrap().digest();
        let by = charter_kernel::Principal::new("ana", &["clerk"]);
        let start = charter_runtime::Start { charter, run: Some(run.into()), input: serde_json::json!(null), by };
        runtime.start(start).await.unwrap();
        runtime.shutdown(std::time::Duration::ZERO).await;
    });
}

/// A temporary folder, removed at the end of the test.
pub(crate) struct Scratch(pub(crate) std::path::PathBuf);

impl Scratch {
    /// Creates a folder with a unique name.
    pub(crate) fn new(name: &str) -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("charter-test-{process}-{count}-{name}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }
    /// Writes a file in the folder; returns its path.
    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
