//! `charter step`: steps a charter through a stream of events, one line out for each line in.

use std::io::{BufRead, ErrorKind, Write};

use charter_kernel::{Explanation, Timestamp};
use charter_scenario::lines::Lines;
use charter_scenario::step::{LineResult, StartLine, StepSession};
use charter_scenario::timestamp;
use serde_json::json;

use crate::input::{json_or_file, open};
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::{clean, code, further};
use crate::load::load;

/// Steps a charter through events, without a host.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, an XState config (.json) or SCXML (.scxml); or the name of a bundled charter
    #[arg(value_name = "CHARTER")]
    file: String,
    /// File of events, one JSON object per line; `-` reads standard input
    #[arg(long, value_name = "F.jsonl")]
    events: Option<String>,
    /// Input of the run: JSON, or `@file`
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// Id of the run, which is a part of effect ids
    #[arg(long, value_name = "ID", default_value = "run")]
    run: String,
    /// Start time: RFC 3339, or milliseconds since 1970
    #[arg(long, value_name = "TIME", default_value = "1970-01-01T00:00:00Z", value_parser = timestamp::parse, allow_hyphen_values = true)]
    at: Timestamp,
    /// Also print a line for the start
    #[arg(long)]
    start: bool,
    /// Run to the end on a virtual clock, and print only the final active states
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
    let mut lines = match &args.events {
        Some(events) => Some(Lines::new(open(events, "events", io)?)),
        None => None,
    };
    let mut start = Vec::new();
    let mut started = StepSession::start(&loaded.machine, &args.run, input, args.at, &mut start);
    // The first line may say how the run starts.
    if let (Err(_), Some(lines)) = (&started, &mut lines)
        && let Some((number, line)) = lines.advance()?
    {
        let line = StepSession::start_line(&line);
        if let Some(line) = line.map_err(|why| Failure::new(format!("line {number} of the events: {why}")))? {
            start.clear();
            let line = StartLine { at: line.at.or(Some(args.at)), ..line };
            started = StepSession::start_as(&loaded.machine, &args.run, line, &mut start);
            if started.is_ok() {
                io.out.write_all(&std::mem::take(&mut start))?;
            }
        }
    }
    let mut session = match started {
        Ok(session) => session,
        Err(explanation) => {
            // The line on standard output says it, too.
            if !machine_output {
                show_refusal(&explanation, io)?;
            }
            io.out.write_all(&start)?;
            return Ok(Exit::No);
        }
    };
    let printed = args.start || args.events.is_none();
    if printed && !args.scxml_clock {
        io.out.write_all(&start)?;
    }
    let mut exit = Exit::Yes;
    if let Some(lines) = lines {
        let mut sink = std::io::sink();
        let out: &mut dyn Write = match args.scxml_clock {
            true => &mut sink,
            false => io.out,
        };
        exit = apply_lines(&mut session, lines, out, args.events.as_deref() == Some("-"))?;
    }
    if args.scxml_clock {
        return run_out(&mut session, machine_output, io);
    }
    Ok(exit)
}

/// Applies every line of the input. `flush` writes each result before the next line is read, for a
/// program that waits for it.
fn apply_lines(
    session: &mut StepSession<'_>,
    mut lines: Lines<Box<dyn BufRead + '_>>,
    out: &mut dyn Write,
    flush: bool,
) -> Result<Exit, Failure> {
    let mut exit = Exit::Yes;
    let mut buffer = Vec::new();
    while let Some((number, line)) = lines.advance()? {
        buffer.clear();
        exit = match session.line(number, &line, &mut buffer) {
            LineResult::Accepted => exit,
            LineResult::Refused => exit.and(Exit::No),
            LineResult::Invalid => Exit::CouldNot,
        };
        let written = out.write_all(&buffer).and_then(|()| if flush { out.flush() } else { Ok(()) });
        match written {
            // Nobody reads any more, and the input may have no end.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(exit),
            written => written?,
        }
    }
    Ok(exit)
}

/// Fires timers on a virtual clock until the run is finished or has none left.
fn run_out(session: &mut StepSession<'_>, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    session.run_out().map_err(|e| Failure::new(e.to_string()))?;
    let snapshot = session.session().snapshot();
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

/// Prints a refusal on standard error.
fn show_refusal(explanation: &Explanation, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.color_err);
    writeln!(io.err, "{} {}", paint.error(&format!("refused ({}):", code(explanation))), clean(&explanation.message))?;
    for line in further(&explanation.misfits) {
        writeln!(io.err, "{line}")?;
    }
    Ok(())
}
