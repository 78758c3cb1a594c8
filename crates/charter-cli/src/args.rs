//! The command line: parses the commands and maps their results to exit codes.

use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::closed::Closable;
use crate::io::{Exit, Failure, Io};
use crate::journal::{backup, delete, fork, is_journal, log, replay, runs, show, sql, transfer, verify};
use crate::run::{self, answer, background, legal, mcp, send, trust};
use crate::visible::{self, Visible};
use crate::{check, codes, conform, diff, eval, graph, new, step, test};

/// Charter: a deterministic kernel for AI agents
#[derive(Debug, Parser)]
#[command(name = "charter", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Validate, lint and explore a charter
    Check(check::Args),
    /// Compare two versions of a charter: what may happen now that could not before
    Diff(diff::Args),
    /// Step a charter through events in memory, one line of output per event
    Step(step::Args),
    /// Check a recorded stream against a charter, item by item
    Conform(conform::Args),
    /// Evaluate an expression, or a file of expressions
    Eval(eval::Args),
    /// Draw a charter, or convert it to another format
    Graph(graph::Args),
    /// Run the scenarios of a charter
    Test(test::Args),
    /// Create a charter with a scenario in a new folder
    New(new::Args),
    /// Start or resume a run, and follow it
    Run(run::Args),
    /// Send an event to a run
    Send(send::Args),
    /// Show what the actors of an imported run do, and allow it
    Trust(trust::Args),
    /// Answer or decline a task for a person
    Answer(answer::Args),
    /// Serve a run to an agent as an MCP server, on standard input and output
    Mcp(mcp::Args),
    /// Host the runs of a journal file in the background (started by `--detach`)
    #[command(hide = true)]
    Host(background::Args),
    /// Serve the runs of a journal file over HTTP
    #[cfg(feature = "serve")]
    Serve(crate::serve::Args),
    /// Add, list or revoke the keys of a server
    #[cfg(feature = "serve")]
    Key(crate::serve::key::Args),
    /// Add, list or remove the webhooks of a server
    #[cfg(feature = "serve")]
    HookOut(crate::serve::hook::Args),
    /// Decide whether the agent of a client may use a tool, and set that up
    Hook(crate::hook::Args),
    /// Put an agent under control: charter, run, hook, and whether it holds
    Guard(crate::guard::Args),
    /// List the events that a run accepts now
    Legal(legal::Args),
    /// List the runs of a journal file
    Runs(runs::Args),
    /// Show the state and data of a run, and what it waits for
    Show(show::Args),
    /// List the records of a run
    Log(log::Args),
    /// Explain a code, or why an event was accepted or refused
    Explain(codes::Args),
    /// Verify a journal file: recompute every hash and replay every event
    Verify(verify::Args),
    /// Show a run as it was after one of its records
    Replay(replay::Args),
    /// Create a run that shares the records of another run up to a point
    Fork(fork::Args),
    /// Query the tables of a journal file
    Sql(sql::Args),
    /// Rebuild the projections of a journal file from its records
    Rebuild(sql::RebuildArgs),
    /// Copy a journal file, also while it is written to
    Backup(backup::Args),
    /// Export a run to a file
    Export(transfer::ExportArgs),
    /// Verify a run in a file and import it into a journal file
    Import(transfer::ImportArgs),
    /// Delete a run that has ended from a journal file
    Delete(delete::Args),
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs a command line, including the name of the program. Never exits the process.
pub fn run<A>(args: A, io: &mut Io<'_>) -> Exit
where
    A: IntoIterator,
    A::Item: Into<OsString> + Clone,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let cli = match parse(&args) {
        Ok(cli) => cli,
        Err(mut error) => {
            // clap suggests passing an unknown option as a value, which is never meant here.
            let unknown = error.get(ContextKind::InvalidArg);
            if error.kind() == ErrorKind::UnknownArgument
                && matches!(unknown, Some(ContextValue::String(arg)) if arg.starts_with('-'))
                && error.get(ContextKind::SuggestedArg).is_none()
            {
                error.remove(ContextKind::Suggested);
            }
            if let Some(tip) = journal_tip(&error, &args) {
                let tip = ContextValue::StyledStrs(vec![tip.into()]);
                error.insert(ContextKind::Suggested, tip);
            }
            let json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
            return usage(&error, json, io);
        }
    };
    let input = std::mem::replace(&mut io.input, Box::new(std::io::empty()));
    let (closed, unread) = (Cell::new(false), Cell::new(false));
    // These do nothing but print, perhaps without end, and end well once they print.
    let prints_only = matches!(
        &cli.command,
        Command::Sql(_) | Command::Log(_) | Command::Export(_) | Command::Mcp(_) | Command::Step(_)
    );
    let mut out = Closable::new(io.out, &closed, prints_only);
    let mut err = Closable::new(io.err, &unread, false);
    let mut err = Visible::new(&mut err, io.color_err);
    let done = match &cli.command {
        // What these print is read by programs, and may not be changed.
        Command::Graph(_) | Command::Export(_) | Command::Hook(_) | Command::Mcp(_) | Command::Completions { .. } => {
            perform(&cli, &mut Io { out: &mut out, err: &mut err, input, ..*io })
        }
        _ => {
            let mut out = Visible::new(&mut out, io.color_out);
            perform(&cli, &mut Io { out: &mut out, err: &mut err, input, ..*io })
        }
    };
    match done {
        Ok(exit) => exit,
        Err(failure) if failure.is_broken_pipe() && closed.get() => Exit::Yes,
        Err(failure) => tell(&failure, cli.json, &mut err, io.color_err),
    }
}

/// Prints why a command could not run; returns how it ends.
fn tell(failure: &Failure, json: bool, err: &mut dyn io::Write, color: bool) -> Exit {
    // If standard error fails too, there is nowhere to report it.
    let _ = match json {
        true => writeln!(err, "{}", failure.json()),
        false => failure.show(err, color),
    };
    failure.exit()
}

/// Parses arguments as clap does, but with what nobody sees in them as it is shown: clap quotes
/// them among its own colors, and drops their control characters where it has none.
fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(args).map_err(|error| {
        let shown = args.iter().map(|arg| arg.to_str().map_or_else(|| arg.clone(), |arg| visible::text(arg).into()));
        Cli::try_parse_from(shown).err().unwrap_or(error)
    })
}

/// Parses the arguments of a hook that a client calls; `None` if a person calls `charter hook`, for
/// help or to set it up.
///
/// # Errors
/// Why the arguments are not those of a hook: a hook has no other way to say so than to deny.
pub(crate) fn parse_hook(args: &[OsString]) -> Result<Option<crate::hook::Args>, String> {
    match parse(args) {
        Ok(Cli { command: Command::Hook(hook), .. }) if hook.is_call() => Ok(Some(hook)),
        Ok(_) => Ok(None),
        Err(error) => {
            let rest: Vec<&OsString> = args.iter().skip_while(|arg| *arg != "hook").skip(1).collect();
            let asks = ["install", "uninstall", "help"];
            match rest.as_slice() {
                [first, ..] if asks.iter().any(|word| *first == word) => Ok(None),
                [] => Ok(None),
                [only] if *only == "--help" || *only == "-h" => Ok(None),
                _ => Err(visible::text(&error.render().to_string())),
            }
        }
    }
}

fn perform(cli: &Cli, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let done = match &cli.command {
        Command::Step(args) => step::run(args, cli.json, io),
        Command::Conform(args) => conform::run(args, cli.json, io),
        Command::Eval(args) => eval::run(args, cli.json, io),
        Command::Test(args) => test::run(args, cli.json, io),
        Command::Check(args) => check::run(args, cli.json, io),
        Command::Diff(args) => diff::run(args, cli.json, io),
        Command::Graph(args) => graph::run(args, cli.json, io),
        Command::New(args) => new::run(args, cli.json, io),
        Command::Explain(args) => codes::run(args, cli.json, io),
        Command::Run(args) => run::run(args, cli.json, io),
        Command::Send(args) => send::run(args, cli.json, io),
        Command::Trust(args) => trust::run(args, cli.json, io),
        Command::Answer(args) => answer::run(args, cli.json, io),
        Command::Mcp(args) => mcp::run(args, io),
        Command::Host(args) => background::run(args),
        #[cfg(feature = "serve")]
        Command::Serve(args) => crate::serve::run(args, cli.json, io),
        #[cfg(feature = "serve")]
        Command::Key(args) => crate::serve::key::run(args, cli.json, io),
        #[cfg(feature = "serve")]
        Command::HookOut(args) => crate::serve::hook::run(args, cli.json, io),
        Command::Hook(args) => crate::hook::run(args, cli.json, io),
        Command::Guard(args) => crate::guard::run(args, cli.json, io),
        Command::Legal(args) => legal::run(args, cli.json, io),
        Command::Runs(args) => runs::run(args, cli.json, io),
        Command::Show(args) => show::run(args, cli.json, io),
        Command::Log(args) => log::run(args, cli.json, io),
        Command::Verify(args) => verify::run(args, cli.json, io),
        Command::Replay(args) => replay::run(args, cli.json, io),
        Command::Fork(args) => fork::run(args, cli.json, io),
        Command::Sql(args) => sql::run(args, cli.json, io),
        Command::Rebuild(args) => sql::rebuild(args, cli.json, io),
        Command::Backup(args) => backup::run(args, cli.json, io),
        Command::Export(args) => transfer::export(args, cli.json, io),
        Command::Import(args) => transfer::import(args, cli.json, io),
        Command::Delete(args) => delete::run(args, cli.json, io),
        Command::Completions { shell } => completions(*shell, io),
    };
    // A reader who has left does not change how the command ends.
    let flushed = io.out.flush().or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(e) });
    done.and_then(|exit| flushed.map(|()| exit).map_err(Failure::from))
}

fn completions(shell: clap_complete::Shell, io: &mut Io<'_>) -> Result<Exit, Failure> {
    // clap's generator panics if it cannot write, so let it write to memory.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "charter", &mut script);
    io.out.write_all(&script)?;
    Ok(Exit::Yes)
}

/// Returns a tip if a journal file was passed as a positional argument to a command that takes it
/// as `--db`.
fn journal_tip(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(journal)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let texts: Option<Vec<&str>> = args.iter().skip(1).map(|arg| arg.to_str()).collect();
    let texts = texts?;
    let cli = Cli::command();
    let mut words = texts.iter();
    let command = words.find_map(|word| cli.find_subcommand(word))?;
    let takes_db = command.get_arguments().any(|arg| arg.get_id() == "db");
    let has_db = texts.iter().any(|t| *t == "--db" || t.starts_with("--db="));
    let at = texts.iter().rposition(|text| text == journal)?;
    if error.kind() != ErrorKind::UnknownArgument || !takes_db || has_db || !is_journal(journal) {
        return None;
    }
    let plain = |text: &str| !text.is_empty() && !text.contains([' ', '`', '\'', '"', '\n', '$']);
    if !texts.iter().all(|text| plain(text)) {
        return Some(format!("pass a journal file with `--db {journal}`"));
    }
    let (before, after) = texts.split_at_checked(at)?;
    let right = [before, &["--db"], after].concat().join(" ");
    Some(format!("pass a journal file with `--db`: `charter {right}`"))
}

/// Prints what clap reports: help and version are results; anything else is a usage error.
fn usage(error: &clap::Error, json: bool, io: &mut Io<'_>) -> Exit {
    let text = error.render();
    if error.use_stderr() {
        // The arguments are quoted, and they may come from a file or a page.
        let mut err = Visible::new(io.err, io.color_err);
        let _ = match io.color_err {
            _ if json => {
                let text = text.to_string();
                let message = text.trim().trim_start_matches("error: ");
                writeln!(err, "{}", Failure::new(message).json())
            }
            true => write!(err, "{}", text.ansi()),
            false => write!(err, "{text}"),
        };
        Exit::CouldNot
    } else {
        let written = match io.color_out {
            true => write!(io.out, "{}", text.ansi()),
            false => write!(io.out, "{text}"),
        };
        match written.and_then(|()| io.out.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => tell(&e.into(), json, io.err, io.color_err),
            _ => Exit::Yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_the_commands_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_is_in_the_docs() {
        let page = include_str!("../../../docs/cli.md");
        for command in Cli::command().get_subcommands().map(clap::Command::get_name) {
            let named = page.contains(&format!("`{command}")) || page.contains(&format!("charter {command}"));
            assert!(named, "docs/cli.md does not mention `charter {command}`");
        }
    }
}
