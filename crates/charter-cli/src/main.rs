//! The binary `charter`: real streams and the exit code around [`charter_cli::run`].

use std::io::{BufReader, BufWriter, IsTerminal as _};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use charter_cli::Io;

fn main() -> ExitCode {
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    // Results are written as they are (escape codes are only put in where they are wanted), so that large outputs are not filtered.
    let colour_out = AutoStream::choice(&stdout) != ColorChoice::Never;
    let colour_err = AutoStream::choice(&stderr) != ColorChoice::Never;
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut err = stderr.lock();
    let mut io = Io {
        out: &mut out,
        err: &mut err,
        input: Box::new(BufReader::with_capacity(1 << 16, std::io::stdin())),
        colour_out,
        colour_err,
        terminal: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        screen: screen(),
    };
    #[cfg(feature = "otel")]
    let watched = match charter_cli::telemetry::start() {
        Ok(watched) => watched,
        Err(failure) => {
            // Watching is no reason not to work.
            drop(failure.show(io.err, colour_err));
            None
        }
    };
    let exit = charter_cli::run(std::env::args_os(), &mut io);
    // Spans that were not sent yet.
    #[cfg(feature = "otel")]
    drop(watched);
    exit.into()
}

/// How large the terminal is.
fn screen() -> Option<(u16, u16)> {
    #[cfg(unix)]
    if std::io::stderr().is_terminal() {
        let size = rustix::termios::tcgetwinsize(std::io::stderr()).ok()?;
        return (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_col, size.ws_row));
    }
    None
}
