//! `charter conform`: judges a recorded stream against a charter, item by item.

mod item;
mod judge;
mod summary;
mod tape;
mod text;

pub use judge::{Clock, Judge, Line, Run};

use std::time::Instant;

use crate::input::open;
use crate::io::{Exit, Failure, Io, Paint};
use crate::lines::{self, Lines, Read};
use crate::load::load;
use crate::moment;

/// Judges a recorded stream item by item: one line out for each line in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, or the name of a bundled one; its `stream` says how items become events
    charter: String,
    /// The stream, one JSON object per line; `-` reads standard input
    stream: String,
    /// The time of an item: a clock of the charter, or a path such as `header.created_at` (default: `stream.at`)
    #[arg(long, value_name = "FIELD", conflicts_with = "now")]
    clock: Option<String>,
    /// The time of every item: RFC 3339 or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    now: Option<i64>,
    /// Print only what was refused and what the charter has to say
    #[arg(long, short)]
    quiet: bool,
    /// With --json: also print a line per run at the end, `{"summary": {...}}`
    #[arg(long)]
    summary: bool,
}

/// Items between two looks at the clock, for progress.
const STRIDE: u64 = 4096;

/// Runs the command.
///
/// # Errors
/// The charter or the stream cannot be read, or the charter says nothing about streams.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let loaded = load(&args.charter)?;
    let clock = match (&args.clock, args.now) {
        (Some(name), _) => Clock::Named(name.clone()),
        (None, Some(at)) => Clock::Fixed(at),
        (None, None) => Clock::Stream,
    };
    let mut judge = Judge::new(&loaded.machine, &clock)?;
    let input = open(&args.stream, "items", io)?;
    let mut lines = Lines::new(input);
    let (paint, mut progress) = (Paint(io.colour_out), Progress::new(io.colour_err));
    let mut exit = Exit::Yes;
    let mut buffer = Vec::new();
    while let Some((number, read)) = lines.advance()? {
        let line = match read {
            Read::Line(bytes) => judge.line(number, bytes),
            Read::TooLong => {
                judge.unreadable("too-large", format!("line {number} is longer than {} MiB", lines::MAX_BYTES >> 20))
            }
        };
        if !line.valid {
            exit = Exit::No;
        }
        if !args.quiet || !line.valid || line.message.is_some() {
            buffer.clear();
            match machine_output {
                true => {
                    serde_json::to_writer(&mut buffer, &line).map_err(|e| Failure::new(e.to_string()))?;
                    buffer.push(b'\n');
                }
                false => show(&line, paint, &mut buffer)?,
            }
            io.out.write_all(&buffer)?;
        }
        progress.count(io)?;
    }
    progress.end(io)?;
    match machine_output {
        true if args.summary => summary::json(&judge, io)?,
        true => {}
        false => summary::text(&judge, io)?,
    }
    Ok(exit)
}

/// A line for people.
fn show(line: &Line, paint: Paint, out: &mut Vec<u8>) -> std::io::Result<()> {
    use std::io::Write as _;
    let verdict = match line.valid {
        true => paint.good("ok     "),
        false => paint.error("refused"),
    };
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let (kind, episode) = (or(&line.r#type), or(&line.episode));
    write!(out, "{:>6}  {verdict}  {episode}  {kind}", line.index)?;
    match (&line.from, &line.to) {
        (Some(from), Some(to)) if from != to => write!(out, "  {from} -> {to}")?,
        (Some(from), _) => write!(out, "  {from}")?,
        _ => {}
    }
    let indent = " ".repeat(17);
    match (&line.code, &line.message) {
        (Some(code), message) => {
            let message = message.as_deref().unwrap_or_default();
            writeln!(out, "\n{indent}{}: {message}", paint.strong(code))
        }
        (None, Some(message)) => writeln!(out, "\n{indent}{}: {message}", paint.warning("note")),
        (None, None) => writeln!(out),
    }
}

/// How far it has come, on a terminal, when it takes long.
struct Progress {
    wanted: bool,
    items: u64,
    begin: Instant,
    shown: Option<Instant>,
}

impl Progress {
    fn new(wanted: bool) -> Progress {
        Progress { wanted, items: 0, begin: Instant::now(), shown: None }
    }

    fn count(&mut self, io: &mut Io<'_>) -> std::io::Result<()> {
        self.items += 1;
        if !self.wanted || !self.items.is_multiple_of(STRIDE) {
            return Ok(());
        }
        let since = self.shown.unwrap_or(self.begin).elapsed();
        if since.as_millis() >= 500 {
            self.shown = Some(Instant::now());
            write!(io.err, "\r{} items", self.items)?;
            io.err.flush()?;
        }
        Ok(())
    }

    fn end(&mut self, io: &mut Io<'_>) -> std::io::Result<()> {
        match self.shown {
            Some(_) => writeln!(io.err, "\r{} items in {:.1} s", self.items, self.begin.elapsed().as_secs_f64()),
            None => Ok(()),
        }
    }
}
