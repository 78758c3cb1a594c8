//! `charter log RUN`: the records of a run, one line each.

use std::cell::LazyCell;
use std::time::Duration;

use charter_journal::Record;

use super::text::{RecordLines, word};
use super::{Db, delivered, show};
use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};

/// Maximum number of records read at a time.
const PAGE: usize = 1_000;
/// How often `--follow` looks for new records.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Lists the records of a run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Only records with this verdict (repeatable)
    #[arg(long, value_name = "VERDICT", value_parser = ["accepted", "refused", "ignored", "noted", "vote", "late"])]
    verdict: Vec<String>,
    /// Only events of this type (repeatable); `done.*` matches all types with this prefix
    #[arg(long, value_name = "TYPE")]
    event: Vec<String>,
    /// Only records of this actor (`root` is the root actor)
    #[arg(long, value_name = "ID")]
    actor: Option<String>,
    /// Only events sent by this principal
    #[arg(long, value_name = "ID")]
    by: Option<String>,
    /// Start at this record
    #[arg(long, value_name = "SEQ", default_value_t = 0, allow_negative_numbers = true, value_parser = whole::<u64>)]
    from: u64,
    /// Wait for new records until the run ends
    #[arg(short, long)]
    follow: bool,
    #[command(flatten)]
    db: Db,
}

/// Runs the command. With `--json`, prints the records, including the messages of refusals.
///
/// # Errors
/// The run does not exist, or the journal cannot be read.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.read_and_warn(io)?;
    let mut head = args.db.find(store.as_ref(), &args.run)?;
    let mut next = args.from;
    let mut lines: Option<RecordLines> = None;
    // The machine is for the messages of rules; without it, only the names of the rules are shown.
    let charter = head.charter;
    let machine = LazyCell::new(|| charter_journal::machine(store.as_ref(), charter).ok());
    let machine_for = |record: &Record| record.refusal.as_ref().and_then(|_| machine.as_ref());
    let mut found = false;
    if let Some(origin) = charter_journal::origin(store.as_ref(), &head.run)?.filter(|_| !machine_output) {
        writeln!(io.err, "{}", Paint(io.color_err).faint(&show::origin_line(&origin)))?;
    }
    loop {
        let page = store.records(&head.run, next, PAGE)?;
        let lines = lines.get_or_insert_with(|| RecordLines::new(Paint(io.color_out), &page));
        for record in page.iter().filter(|r| matches(args, r)) {
            found = true;
            match machine_output {
                true => writeln!(io.out, "{}", record.shown(machine_for(record)))?,
                false => {
                    io.out.write_all(lines.line(record, machine_for(record)).as_bytes())?;
                    if let Some(held) = delivered(store.as_ref(), record) {
                        writeln!(io.out, "{:31}{held}", "")?;
                    }
                }
            }
        }
        if let Some(last) = page.last() {
            next = last.seq.saturating_add(1);
            continue;
        }
        if !args.follow || head.status.is_none_or(charter_kernel::Status::is_finished) {
            if !found && !machine_output {
                writeln!(io.out, "no matching records")?;
            }
            return Ok(Exit::Yes);
        }
        io.out.flush()?;
        std::thread::sleep(POLL_INTERVAL);
        head = args.db.find(store.as_ref(), &head.run)?;
    }
}

fn matches(args: &Args, record: &Record) -> bool {
    let kind = |wanted: &String| match wanted.strip_suffix('*') {
        Some(start) => record.event.r#type.starts_with(start),
        None => record.event.r#type == wanted.as_str(),
    };
    // Both the stored verdict and the word that the lines show.
    let verdict = |wanted: &String| wanted == record.verdict.word() || wanted == word(record);
    (args.verdict.is_empty() || args.verdict.iter().any(verdict))
        && (args.event.is_empty() || args.event.iter().any(kind))
        && args.actor.as_ref().is_none_or(|a| record.to == a.as_str())
        && args.by.as_ref().is_none_or(|by| record.by.id == *by)
}
