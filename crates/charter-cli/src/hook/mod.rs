//! `charter hook RUN --client NAME`: decides for a client whether its agent may use a tool.
//!
//! In each client some kind of broken hook lets the tool run. So the only ends of this command are
//! exit code 0 with a decision in the client's own shape, and exit code 2 with a line on standard
//! error: [`process::main`] sees to that.

mod decide;
pub mod install;
mod process;

use std::io::Read;
use std::time::{Duration, Instant};

use charter_guard::client::{self, Answer, Client, MAX_REQUEST_BYTES, Manner, failure};

use crate::io::{Exit, Failure, Io};
use crate::journal::Db;

pub use process::main;

/// How long a decision may take, whatever blocks.
const DEADLINE: Duration = Duration::from_secs(5);
/// What is left of it for saying why there is no decision.
const RESERVE: Duration = Duration::from_millis(400);

/// Decides whether an agent may use a tool.
#[derive(Debug, Clone, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    override_usage = "charter hook RUN --client NAME\n       charter hook install CLIENT\n       charter hook uninstall CLIENT",
    after_help = "Reads what the client asks from standard input, and answers in its shape. Exit code 2 means: not\nallowed. `charter hook install CLIENT` writes the configuration that calls this command."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The run that decides
    #[arg(required = true)]
    run: Option<String>,
    /// The client: claude, codex, gemini, copilot, opencode, cursor or goose; without it, the
    /// request tells
    #[arg(long, value_name = "NAME")]
    client: Option<Client>,
    /// Role of the agent in the run (repeatable) [default: agent]
    #[arg(long = "role", value_name = "ROLE", value_parser = crate::run::not_the_host)]
    roles: Vec<String>,
    /// Allow legal calls, so that the client does not ask its own questions
    #[arg(long)]
    grant: bool,
    /// Let the client ask its user when a call waits for a person; the answer is no approval
    #[arg(long)]
    ask: bool,
    #[command(flatten)]
    db: Db,
}

#[derive(Debug, Clone, clap::Subcommand)]
enum Command {
    /// Add the hook to the configuration of a client
    Install(install::InstallArgs),
    /// Remove the hook from the configuration of a client
    Uninstall(install::UninstallArgs),
}

impl Args {
    /// Whether the arguments are those of a client's call.
    pub(crate) fn is_call(&self) -> bool {
        self.command.is_none()
    }
}

/// Runs the command. A call is decided here only if the program is embedded; the binary calls
/// [`main`].
///
/// # Errors
/// The configuration cannot be read or written.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match &args.command {
        Some(Command::Install(install)) => install::install(install, machine_output, io),
        Some(Command::Uninstall(uninstall)) => install::uninstall(uninstall, machine_output, io),
        None => {
            let answer = answer(args, &mut io.input, Instant::now());
            io.out.write_all(answer.stdout.as_bytes())?;
            io.err.write_all(answer.stderr.as_bytes())?;
            Ok(if answer.exit == 0 { Exit::Yes } else { Exit::CouldNot })
        }
    }
}

/// Reads what the client asks, and answers.
fn answer(args: &Args, input: &mut dyn Read, begin: Instant) -> Answer {
    let mut bytes = Vec::new();
    let limit = MAX_REQUEST_BYTES as u64 + 1;
    if let Err(e) = input.take(limit).read_to_end(&mut bytes) {
        return failure(&format!("the request cannot be read: {e}"));
    }
    let request = match client::read(args.client, &bytes) {
        Ok(request) => request,
        Err(e) => return failure(&e.to_string()),
    };
    // Programs that drive Claude Code, and `claude -p`, say so: nobody is there to answer, and the
    // session can be resumed.
    let headless = std::env::var("CLAUDE_CODE_ENTRYPOINT").is_ok_and(|entry| entry.starts_with("sdk"));
    let manner = Manner { grant: args.grant, ask: args.ask, headless };
    match decide::decide(args, &request, begin + DEADLINE.saturating_sub(RESERVE)) {
        Ok(decision) => client::answer(&request, &decision, manner),
        Err(e) => failure(&text_of(&e)),
    }
}

/// A failure in one line, with its help.
fn text_of(failure: &Failure) -> String {
    let mut text = failure.to_string();
    if let Failure::Message { help: Some(help), .. } = failure {
        text.push_str("; ");
        text.push_str(help);
    }
    text
}
