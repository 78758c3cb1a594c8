//! `charter conform`: checks a recorded stream against a charter, item by item.

use std::time::Instant;

use charter_kernel::Timestamp;
use charter_scenario::conform::{Judge, Judgment, StreamClock, StreamError};
use charter_scenario::lines::Lines;
use charter_scenario::timestamp;
use serde_json::{Value as Json, json};

use crate::input::open;
use crate::io::{Exit, Failure, Io, Paint};
use crate::journal::text::count;
use crate::load::load;

/// Checks a recorded stream item by item: one line out for each line in.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A charter, or the name of a bundled charter; its key `stream` maps items to events
    charter: String,
    /// The stream, one JSON object per line; `-` reads standard input
    stream: String,
    /// Time of each item: a clock of the charter, or a path such as `header.created_at` [default:
    /// `stream.at`]
    #[arg(long, value_name = "FIELD", conflicts_with = "now")]
    clock: Option<String>,
    /// Use one time for every item: RFC 3339, or milliseconds since 1970
    #[arg(long, value_name = "TIME", value_parser = timestamp::parse, allow_hyphen_values = true)]
    now: Option<Timestamp>,
    /// Print only refused items and items for which the charter logs something
    #[arg(long, short)]
    quiet: bool,
    /// With --json: also print a line `{"summary": {...}}` per run at the end
    #[arg(long)]
    summary: bool,
}

/// Streams of at least this many items are reported with their rate.
const MEASURED: u64 = 10_000;
/// Number of items between two updates of the progress.
const STRIDE: u64 = 4096;

/// Runs the command.
///
/// # Errors
/// The charter or the stream cannot be read, or the charter does not map items to events.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let loaded = load(&args.charter)?;
    let clock = match (&args.clock, args.now) {
        (Some(name), _) => StreamClock::Named(name.clone()),
        (None, Some(at)) => StreamClock::Fixed(at),
        (None, None) => StreamClock::Stream,
    };
    let mut judge = Judge::new(&loaded.machine, &clock)?;
    let input = open(&args.stream, "items", io)?;
    let mut lines = Lines::new(input);
    let (paint, mut progress) = (Paint(io.color_out), ItemCounter::new(io.color_err));
    let mut exit = Exit::Yes;
    let mut buffer = Vec::new();
    while let Some((number, raw)) = lines.advance()? {
        let line = judge.line(number, &raw);
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
        true if args.summary => print_summaries(&judge, io)?,
        true => {}
        false => show_summaries(&judge, io)?,
    }
    Ok(exit)
}

/// Prints the result of an item as text.
fn show(line: &Judgment, paint: Paint, out: &mut Vec<u8>) -> std::io::Result<()> {
    use std::io::Write as _;
    let verdict = match line.valid {
        true => paint.good("ok     "),
        false => paint.error("refused"),
    };
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let (kind, run) = (or(&line.r#type), or(&line.episode));
    write!(out, "{:>6}  {verdict}  {run}  {kind}", line.index)?;
    match (&line.from, &line.to) {
        (Some(from), Some(to)) if from != to => write!(out, "  {from} → {to}")?,
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

/// Shows the progress of a long stream on a terminal.
struct ItemCounter {
    enabled: bool,
    items: u64,
    begin: Instant,
    shown: Option<Instant>,
}

impl ItemCounter {
    fn new(enabled: bool) -> ItemCounter {
        ItemCounter { enabled, items: 0, begin: Instant::now(), shown: None }
    }

    fn count(&mut self, io: &mut Io<'_>) -> std::io::Result<()> {
        self.items += 1;
        if !self.enabled || !self.items.is_multiple_of(STRIDE) {
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
        if self.shown.is_none() && self.items < MEASURED {
            return Ok(());
        }
        let seconds = self.begin.elapsed().as_secs_f64().max(0.001);
        let again = if self.shown.is_some() { "\r" } else { "" };
        #[allow(clippy::cast_precision_loss)] // a rate, rounded to whole items
        let rate = self.items as f64 / seconds;
        writeln!(io.err, "{again}{} items in {seconds:.1} s, {rate:.0} items per second", self.items)
    }
}

/// Prints one line of JSON per run.
fn print_summaries(judge: &Judge<'_>, io: &mut Io<'_>) -> Result<(), Failure> {
    for (name, run) in judge.runs() {
        writeln!(io.out, "{}", json!({"summary": judge.summary(name, run)}))?;
    }
    Ok(())
}

/// Prints the final state of every run and the verdict.
fn show_summaries(judge: &Judge<'_>, io: &mut Io<'_>) -> Result<(), Failure> {
    let paint = Paint(io.color_out);
    let (mut runs, mut accepted, mut refused) = (0u64, 0u64, judge.unassigned());
    for (name, run) in judge.runs() {
        runs = runs.saturating_add(1);
        accepted = accepted.saturating_add(run.accepted);
        refused = refused.saturating_add(run.refused);
        let summary = judge.summary(name, run);
        let at = summary.get("state").and_then(Json::as_str);
        writeln!(
            io.out,
            "\n{}  {}  ({} accepted, {} refused)",
            paint.strong(name),
            at.unwrap_or("not started"),
            run.accepted,
            run.refused
        )?;
        let rest = summary.iter().filter(|(key, value)| {
            !matches!(key.as_str(), "run" | "state" | "status" | "accepted" | "refused") && !is_empty(value)
        });
        for (key, value) in rest {
            writeln!(io.out, "  {key}: {value}")?;
        }
    }
    let verdict = match refused {
        0 => paint.good("conforms"),
        _ => paint.error("does not conform"),
    };
    let (runs, items) = (count(runs, "run"), count(accepted, "item"));
    writeln!(io.out, "\n{verdict}: {runs}, {items} accepted, {refused} refused")?;
    Ok(())
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(list) => list.is_empty(),
        Json::Object(map) => map.is_empty(),
        _ => false,
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Failure {
        match error.help() {
            Some(help) => Failure::with_help(error.to_string(), help),
            None => Failure::new(error.to_string()),
        }
    }
}
