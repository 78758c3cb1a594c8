//! The binary `charter`: connects the real streams and the exit code to [`charter_cli::run`].

use std::io::{BufRead, BufReader, BufWriter, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use charter_cli::Io;

/// The name by which this program starts itself as the guard of its commands.
const GUARD: &str = "charter-guard";

fn main() -> ExitCode {
    if std::env::args_os().next().is_some_and(|name| name == GUARD) {
        charter_process::run_guard();
        return ExitCode::SUCCESS;
    }
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    // A hook has ends of its own, and starts no actors that would have to end with it.
    if let Some(exit) = charter_cli::hook::main(&args) {
        return exit;
    }
    // Commands of actors end with everything they started, also if this process is killed.
    charter_process::adopt_orphans();
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;
        let mut guard = std::process::Command::new("/proc/self/exe");
        guard.arg0(GUARD);
        charter_process::use_guard(guard);
    }
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    // Output is not filtered: commands write escape codes only if colors are enabled, and large
    // outputs stay fast.
    let color_out = AutoStream::choice(&stdout) != ColorChoice::Never;
    let color_err = AutoStream::choice(&stderr) != ColorChoice::Never;
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut err = stderr.lock();
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let mut io = Io {
        out: &mut out,
        err: &mut err,
        input: input(terminal),
        color_out,
        color_err,
        terminal,
        ready,
        screen: screen(),
    };
    #[cfg(feature = "otel")]
    let telemetry = match charter_cli::telemetry::start() {
        Ok(guard) => guard,
        Err(failure) => {
            // The command also works without telemetry.
            drop(failure.show(io.err, color_err));
            None
        }
    };
    let exit = charter_cli::run(args, &mut io);
    // What threads that did not end in time have started.
    charter_process::kill_all();
    // Send the remaining spans.
    #[cfg(feature = "otel")]
    drop(telemetry);
    exit.into()
}

/// Returns standard input. On a terminal it is read without a buffer, so that [`ready`] sees all
/// that was typed.
fn input(terminal: bool) -> Box<dyn BufRead> {
    #[cfg(unix)]
    if terminal && let Ok(fd) = std::os::fd::AsFd::as_fd(&std::io::stdin()).try_clone_to_owned() {
        return Box::new(BufReader::with_capacity(1, std::fs::File::from(fd)));
    }
    let _ = terminal;
    Box::new(BufReader::with_capacity(1 << 16, std::io::stdin()))
}

/// Waits until standard input can be read.
#[cfg(unix)]
fn ready(time: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec { tv_sec: time.as_secs().try_into().unwrap_or(1), tv_nsec: time.subsec_nanos().into() };
    // If it cannot be waited for, reading says why.
    poll(&mut fds, Some(&time)).map_or(true, |ready| ready > 0)
}

#[cfg(not(unix))]
fn ready(_: Duration) -> bool {
    true
}

/// Returns the size of the terminal.
fn screen() -> Option<(u16, u16)> {
    #[cfg(unix)]
    if std::io::stderr().is_terminal() {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
        return (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_col, size.ws_row));
    }
    None
}
