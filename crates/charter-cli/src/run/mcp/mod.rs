//! `charter mcp`: a run as an MCP server on standard input and output.

mod moving;

use std::io::{BufRead, Read as _};
use std::sync::Arc;

use charter_actors::SystemClock;
use charter_kernel::{Auth, Machine, Principal, PrincipalKind};
use charter_mcp::{Endpoint, Line, MAX_MESSAGE_BYTES, ToolSet, serve};
use charter_runtime::{Charter, HOST_RUN};
use tokio::sync::mpsc;

use super::host::{Host, Opener};
use super::{Who, not_the_host, role_hint, trust};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::Db;
use crate::models;
use moving::Moving;

/// Lines of the client that wait, and messages to it that were not written yet.
const WAITING: usize = 16;

/// Serves a run to an agent.
#[derive(Debug, Clone, clap::Args)]
#[command(
    override_usage = "charter mcp --run RUN\n       charter mcp --charter CHARTER [--input JSON] [--run ID]",
    after_help = "For the configuration of an agent: it starts this command and speaks MCP with it.\nWith `--charter`, a run is started, or the one that has this id and input is joined."
)]
pub struct Args {
    /// The run, or the beginning of its id; with `--charter`, the id of the run to start or join
    #[arg(long, value_name = "RUN", required_unless_present = "charter")]
    run: Option<String>,
    /// A charter, or the name of a bundled one: start a run of it
    #[arg(long, value_name = "CHARTER")]
    charter: Option<String>,
    /// Input of the run: JSON, or `@file`
    #[arg(long, value_name = "JSON", requires = "charter")]
    input: Option<String>,
    /// Name of the agent; its id is `agent:NAME` [default: mcp; with a server, the key's]
    #[arg(long = "as", value_name = "NAME", value_parser = not_the_host, allow_hyphen_values = true)]
    name: Option<String>,
    /// One of the roles of the agent (repeatable)
    #[arg(long, value_name = "ROLE", value_parser = not_the_host, allow_hyphen_values = true)]
    role: Vec<String>,
    /// Tools: `static` (send, legal, status, why_not), `events` (one for each legal event), `both`
    #[arg(long, value_name = "SET", default_value = "both")]
    tools: ToolSet,
    #[command(flatten)]
    models: models::Args,
    #[command(flatten)]
    db: Db,
}

/// Runs the command, until its input ends. Standard output has messages of the protocol only.
///
/// # Errors
/// The charter or the input cannot be read, the journal is in use, or the run does not exist.
pub fn run(args: &Args, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let who = agent(args)?;
    let (host, run) = match &args.charter {
        Some(charter) => match begin(args, charter, &who, io)? {
            Some(begun) => begun,
            None => return Ok(Exit::No),
        },
        None => {
            args.db.check()?;
            let host = Host::open(&args.db, &args.models, Opener::Here)?;
            host.tell(io)?;
            let run = host.find(args.run.as_deref().unwrap_or_default())?.run;
            (host, run)
        }
    };
    if run == HOST_RUN {
        let help = "name another run: `charter runs` lists them";
        return Err(Failure::with_help(
            format!("the run `{run}` holds the keys of a journal; it is not for agents"),
            help,
        ));
    }
    let view = host.view(&run)?;
    let by = principal(&who, view.charter.machine(), &run);
    welcome(view.charter.machine(), &run, &by, io)?;
    // The timers and actors of the run are those of this process, if it hosts it.
    host.stay()?;
    if view.snapshot.paused_at().is_none()
        && let Err(e) = host.resume(&run)?
        && !trust::says_untrusted(&e.to_string(), &run)
    {
        let why = trust::not_resumed(&e.to_string(), &run, &args.db.option());
        writeln!(io.err, "{} {why}", Paint(io.color_err).warning("warning:"))?;
    }
    io.err.flush()?;
    let served = connect(&host, (&run, view.charter.clone()), by, args.tools, io);
    host.close(io);
    served
}

/// The agent: who it is, and its roles. With a server, the key says so.
fn agent(args: &Args) -> Result<Who, Failure> {
    let sender = args.name.as_ref().map(|name| match name.starts_with("agent:") {
        true => name.clone(),
        false => format!("agent:{name}"),
    });
    let who = Who { sender, role: args.role.clone(), kind: PrincipalKind::Agent, key: None };
    if args.db.remote()?.is_none() {
        let sender = who.sender.clone().unwrap_or_else(|| "agent:mcp".to_owned());
        return Ok(Who { sender: Some(sender), ..who });
    }
    let named = who.sender.clone();
    // The id of a key is not made up here, so it has no prefix.
    let known = Who { sender: None, ..who }.known_to(&args.db)?;
    if let Some(named) = named.filter(|named| *named != known.id() && args.name.as_deref() != Some(known.id())) {
        let message = format!("the key belongs to `{}`, not to `{named}`", known.id());
        return Err(Failure::with_help(message, "leave out `--as`: on a server, who the agent is comes from the key"));
    }
    if known.kind == PrincipalKind::Person {
        return Err(Failure::with_help(
            format!("the key belongs to the person `{}`, and would let an agent decide as that person", known.id()),
            "give the agent a key of its own: `charter key add NAME --agent --role ROLE`",
        ));
    }
    Ok(known)
}

fn principal(who: &Who, machine: &Machine, run: &str) -> Principal {
    match who.has_key() {
        true => who.principal_in(machine, run),
        // An agent that names no role has none.
        false => who.principal().authenticated(Auth::Local),
    }
}

/// Starts a run, or joins the one that was started with the same id; `None` if the start was
/// refused.
fn begin(args: &Args, charter: &str, who: &Who, io: &mut Io<'_>) -> Result<Option<(Host, String)>, Failure> {
    let start = super::Args {
        charter: Some(charter.to_owned()),
        input: args.input.clone(),
        run: args.run.clone(),
        resume: None,
        copy: None,
        yes: false,
        no: false,
        detach: false,
        who: who.clone(),
        wait: false,
        models: args.models.clone(),
        db: args.db.clone(),
    };
    // What a start prints is not for the client.
    let mut printed = Vec::new();
    let started = {
        let mut aside = Io {
            out: &mut printed,
            err: &mut *io.err,
            input: Box::new(std::io::empty()),
            color_out: io.color_err,
            color_err: io.color_err,
            terminal: false,
            ready: io.ready,
            screen: None,
        };
        super::start(&start, charter, &mut aside)
    };
    io.err.write_all(&printed)?;
    Ok(started?.ok().map(|(host, run, _, _)| (host, run)))
}

fn welcome(machine: &Machine, run: &str, by: &Principal, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.color_err);
    let definition = machine.definition();
    let line = format!("run {run} of the charter {}, for {}; ends with its input", definition.id, by.id);
    writeln!(io.err, "{}", paint.faint(&line))?;
    if let Some(hint) = role_hint(machine, &by.roles) {
        writeln!(io.err, "{} {hint}", paint.warning("warning:"))?;
    }
    if by.roles.is_empty() && !definition.roles.is_empty() {
        let roles: Vec<&str> = super::sender_roles(machine).collect();
        let line = format!("the agent has no role; give it one with `--role`: {}", roles.join(", "));
        writeln!(io.err, "{} {line}", paint.warning("warning:"))?;
    }
    Ok(())
}

/// Connects the run to the streams, until the input ends.
fn connect(
    host: &Host,
    (run, charter): (&str, Arc<Charter>),
    by: Principal,
    tools: ToolSet,
    io: &mut Io<'_>,
) -> Result<Exit, Failure> {
    let (moving, mut lost, place) = Moving::new(host.backend()?);
    let endpoint = Endpoint::new(Arc::new(moving), Arc::new(SystemClock), charter, run, by, tools);
    let (lines, reader) = mpsc::channel(WAITING);
    let (writer, mut answers) = mpsc::channel(WAITING);
    host.threads.spawn(async move { serve(&endpoint, reader, writer).await });
    // It ends with the input, or with the program.
    std::thread::Builder::new().name("mcp-input".to_owned()).spawn(move || read(std::io::stdin().lock(), &lines))?;
    loop {
        let next = host.threads.block_on(async {
            tokio::select! {
                biased;
                Some(()) = lost.recv() => Next::Lost,
                answer = answers.recv() => answer.map_or(Next::End, Next::Answer),
            }
        });
        match next {
            Next::End => return Ok(Exit::Yes),
            Next::Answer(answer) => {
                writeln!(io.out, "{answer}")?;
                io.out.flush()?;
            }
            Next::Lost => {
                host.move_on()?;
                let _ = place.send(host.backend()?);
            }
        }
    }
}

/// What the main thread does next.
enum Next {
    Answer(String),
    /// The process that hosted the run has ended.
    Lost,
    End,
}

/// Reads lines until the input ends, or nobody takes them. A line that is too long is skipped.
fn read(mut input: impl BufRead, lines: &mpsc::Sender<Line>) {
    let limit = (MAX_MESSAGE_BYTES as u64).saturating_add(1);
    loop {
        let mut text = Vec::new();
        match (&mut input).take(limit).read_until(b'\n', &mut text) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let is_whole = text.last() == Some(&b'\n');
        let line = match is_whole || text.len() <= MAX_MESSAGE_BYTES {
            true => Line::Text(text),
            false => {
                if input.skip_until(b'\n').is_err() {
                    return;
                }
                Line::TooLong
            }
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}
