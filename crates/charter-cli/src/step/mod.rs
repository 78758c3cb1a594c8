//! `charter step`: the pure kernel on a stream of events, one line out for each line in.

mod answer;
mod keys;
mod line;

use std::io::BufRead;

use charter_kernel::{Code, Explanation};
use serde_json::json;

use crate::input::{json_or_file, open};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::lines::{clean, further};
use crate::lines::{self, Lines, Read};
use crate::load::load;
use crate::moment;
use crate::session::{Outcome, Session};
use keys::{Keys, Known};
use line::Line;

/// Steps a charter through events, without a host.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    file: String,
    /// Events, one JSON object per line; `-` reads standard input
    #[arg(long, value_name = "F.jsonl")]
    events: Option<String>,
    /// What the run starts with: JSON, or `@file`
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Id of the run; effect ids begin with it
    #[arg(long, value_name = "ID", default_value = "run")]
    run: String,
    /// When the run starts: RFC 3339 or milliseconds since 1970
    #[arg(long, value_name = "TIME", default_value = "1970-01-01T00:00:00Z", value_parser = moment::parse, allow_hyphen_values = true)]
    at: i64,
    /// Print a line for the start, too
    #[arg(long)]
    start: bool,
    /// Run to the end on a virtual clock, and print the last active states only
    #[arg(long)]
    scxml_clock: bool,
}

/// Runs the command.
///
/// # Errors
/// The charter, the input or the events cannot be read.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let input = match &args.input {
        Some(text) => json_or_file("--input", text)?,
        None => json!({}),
    };
    let loaded = load(&args.file)?;
    let (mut session, outcome) = match Session::start(&loaded.machine, &args.run, input, args.at) {
        Ok(started) => started,
        Err(story) => {
            show_refusal(&story, io)?;
            answer::write_no_start(io.out, &story)?;
            return Ok(Exit::No);
        }
    };
    let printed = args.start || args.events.is_none();
    if printed && !args.scxml_clock {
        answer::write(io.out, &outcome, None, session.snapshot())?;
    }
    let mut exit = Exit::Yes;
    if let Some(events) = &args.events {
        let (input, mut nowhere) = (open(events, "events", io)?, std::io::sink());
        let out: &mut dyn std::io::Write = match args.scxml_clock {
            true => &mut nowhere,
            false => io.out,
        };
        exit = follow(&mut session, input, out)?;
    }
    if args.scxml_clock {
        return run_out(&mut session, machine_output, io);
    }
    Ok(exit)
}

/// Every line of the input, until it ends.
fn follow(
    session: &mut Session<'_>,
    input: Box<dyn BufRead + '_>,
    out: &mut dyn std::io::Write,
) -> Result<Exit, Failure> {
    let mut lines = Lines::new(input);
    let mut keys = Keys::default();
    let mut exit = Exit::Yes;
    let mut buffer = Vec::new();
    while let Some((number, read)) = lines.advance()? {
        buffer.clear();
        let done = match read {
            Read::Line(bytes) => one(session, bytes, &mut keys, &mut buffer),
            Read::TooLong => Err(format!("the line is longer than {} MiB", lines::MAX_BYTES >> 20)),
        };
        match done {
            Ok(one) => exit = exit.and(one),
            Err(message) => {
                buffer.clear();
                answer::write_error(&mut buffer, number, &message)?;
                exit = Exit::CouldNot;
            }
        }
        out.write_all(&buffer)?;
    }
    Ok(exit)
}

/// One line. An error changes nothing.
fn one(session: &mut Session<'_>, bytes: &[u8], keys: &mut Keys, buffer: &mut Vec<u8>) -> Result<Exit, String> {
    let line = Line::parse(bytes)?;
    let before = session.snapshot().clone();
    let mut keep = None;
    let outcome = match line {
        Line::Tick(until) => session.tick(until).map_err(|e| e.to_string())?,
        Line::Restore => session.restore()?,
        Line::Given { given, id: None } => session.apply(*given),
        Line::Given { given, id: Some(id) } => match keys.look_up(&id, &given) {
            Known::Same(line) => {
                buffer.extend_from_slice(line);
                return Ok(Exit::Yes);
            }
            Known::Other(seq) => {
                let message = format!("the id `{id}` was used for another event, in record {seq}");
                session.refuse(*given, Code::Stale, message)
            }
            Known::New(content) => {
                keep = Some((id, content));
                session.apply(*given)
            }
        },
    };
    answer::write(buffer, &outcome, Some(&before), session.snapshot()).map_err(|e| e.to_string())?;
    if let Some((id, content)) = keep {
        keys.keep(id, content, outcome.seq, buffer);
    }
    Ok(exit_of(&outcome))
}

fn exit_of(outcome: &Outcome<'_>) -> Exit {
    match outcome.refusal {
        Some(_) => Exit::No,
        None => Exit::Yes,
    }
}

/// To the end on a virtual clock.
fn run_out(session: &mut Session<'_>, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    session.run_out().map_err(|e| Failure::new(e.to_string()))?;
    let snapshot = session.snapshot();
    let root = snapshot.actor("root");
    let state: Vec<&str> = root.iter().flat_map(|actor| actor.state()).collect();
    if machine_output {
        let context = root.map(|actor| actor.context());
        let line = json!({"status": snapshot.status().word(), "state": state, "context": context});
        writeln!(io.out, "{line}")?;
    } else {
        writeln!(io.out, "{}", state.join(" "))?;
    }
    Ok(Exit::Yes)
}

/// A refusal in words, on standard error.
fn show_refusal(story: &Explanation, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.colour_err);
    writeln!(io.err, "{} {}", paint.error(&format!("refused ({}):", story.code)), clean(&story.message))?;
    for line in further(&story.misfits) {
        writeln!(io.err, "{line}")?;
    }
    Ok(())
}
