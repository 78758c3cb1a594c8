//! The command line: which commands there are, and what becomes of their answers.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use crate::io::{Exit, Failure, Io};
use crate::{eval, step, test};

/// Charter: a deterministic kernel for AI agents
#[derive(Debug, Parser)]
#[command(
    name = "charter",
    version,
    propagate_version = true,
    max_term_width = 100
)]
struct Cli {
    /// Output for machines (JSON)
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Step a charter through events on the pure kernel: one line out for each line in
    Step(step::Args),
    /// Evaluate an expression, or a batch of them
    Eval(eval::Args),
    /// Run the scenarios of charters
    Test(test::Args),
}

/// Runs a command line, the name of the program included. Never ends the process.
pub fn run<A>(args: A, io: &mut Io<'_>) -> Exit
where
    A: IntoIterator,
    A::Item: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, io),
    };
    let done = match &cli.command {
        Command::Step(args) => step::run(args, cli.json, io),
        Command::Eval(args) => eval::run(args, io),
        Command::Test(args) => test::run(args, cli.json, io),
    };
    let flushed = io.out.flush();
    match done.and_then(|exit| flushed.map(|()| exit).map_err(Failure::from)) {
        Ok(exit) => exit,
        // The reader has what it wanted (`| head`).
        Err(failure) if failure.is_broken_pipe() => Exit::Yes,
        Err(failure) => {
            let colour = io.colour_err;
            // Nobody is left to tell if this fails, too.
            let _ = failure.show(io.err, colour);
            Exit::CouldNot
        }
    }
}

/// What clap has to say: help and version are results, the rest is wrong usage.
fn usage(error: &clap::Error, io: &mut Io<'_>) -> Exit {
    let text = error.render();
    if error.use_stderr() {
        let _ = match io.colour_err {
            true => write!(io.err, "{}", text.ansi()),
            false => write!(io.err, "{text}"),
        };
        Exit::CouldNot
    } else {
        let _ = match io.colour_out {
            true => write!(io.out, "{}", text.ansi()),
            false => write!(io.out, "{text}"),
        };
        Exit::Yes
    }
}
