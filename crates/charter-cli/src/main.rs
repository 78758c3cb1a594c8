//! The binary `charter`: connects the real streams and the exit code to [`charter_cli::run`].

use std::io::{BufReader, BufWriter, IsTerminal as _};
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use charter_cli::Io;

fn main() -> ExitCode {
    let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
    // Output is not filtered: commands write escape codes only if colors are enabled, and large
    // outputs stay fast.
    let color_out = AutoStream::choice(&stdout) != ColorChoice::Never;
    let color_err = AutoStream::choice(&stderr) != ColorChoice::Never;
    let mut out = BufWriter::with_capacity(1 << 16, stdout.lock());
    let mut err = stderr.lock();
    let mut io = Io {
        out: &mut out,
        err: &mut err,
        input: Box::new(BufReader::with_capacity(1 << 16, std::io::stdin())),
        color_out,
        color_err,
        terminal: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
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
    let exit = charter_cli::run(std::env::args_os(), &mut io);
    // Send the remaining spans.
    #[cfg(feature = "otel")]
    drop(telemetry);
    exit.into()
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
