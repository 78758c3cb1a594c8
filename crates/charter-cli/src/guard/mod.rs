//! `charter guard`: puts the agent of a client under control, and says how far that reaches.

mod doctor;
mod fit;
mod init;
mod mcp;
mod test;
mod uninstall;

use crate::io::{Exit, Failure, Io};

pub(crate) use mcp::has_server;

/// Control of agents.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write the charter, start its run, and configure hook and MCP of a client
    Init(init::Args),
    /// Remove hook and MCP server of a client from the project; journal, keys and charter stay
    Uninstall(uninstall::Args),
    /// Send a call that must be refused through the configured hooks, and say what is enforced
    Doctor(doctor::Args),
    /// Run the tests of a project, as the actor `tests` of the charter `coder` does: reads
    /// `{"workspace": "/path", "test": "COMMAND"}` from standard input
    #[command(hide = true)]
    Test,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read or written, or the journal cannot be opened.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match &args.command {
        Command::Init(args) => init::run(args, machine_output, io),
        Command::Uninstall(args) => uninstall::run(args, machine_output, io),
        Command::Doctor(args) => doctor::run(args, machine_output, io),
        Command::Test => test::run(io),
    }
}
