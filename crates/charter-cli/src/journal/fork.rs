//! `charter fork RUN --at SEQ`: creates a run that starts with the records of another.

use charter_journal::Store;
use serde_json::json;

use super::{Db, find};
use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};

/// Forks a run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// Number of the last shared record
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = whole::<u64>)]
    at: u64,
    /// Id of the new run [default: the id of the old one plus `.fork1`, `.fork2`, ...]
    #[arg(long = "as", value_name = "ID")]
    new: Option<String>,
    #[command(flatten)]
    db: Db,
}

/// Runs the command; prints the new id.
///
/// # Errors
/// The run or record does not exist, the new id is taken, or the journal is in use.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.write()?;
    let run = find(&store, &args.run)?;
    let new = match &args.new {
        Some(new) if store.run(new)?.is_some() => {
            return Err(Failure::new(format!("run `{new}` already exists")));
        }
        Some(new) => {
            charter_runtime::check_run_id(new).map_err(charter_runtime::RuntimeError::from)?;
            new.clone()
        }
        None => free(&store, &run.run)?,
    };
    let machine = charter_journal::machine(&store, run.charter)?;
    charter_journal::fork(&store, &machine, &run.run, args.at, &new)?;
    if machine_output {
        let line = json!({"run": new, "forked_from": {"run": run.run, "seq": args.at}});
        writeln!(io.out, "{line}")?;
    } else {
        writeln!(io.out, "{new}")?;
        let paint = Paint(io.color_err);
        let to = format!("`charter run --resume {new}{}` continues after record {}", args.db.option(), args.at);
        writeln!(io.err, "{}", paint.faint(&to))?;
    }
    Ok(Exit::Yes)
}

fn free(store: &dyn Store, run: &str) -> Result<String, Failure> {
    for number in 1..=10_000_u32 {
        let new = format!("{run}.fork{number}");
        if store.run(&new)?.is_none() {
            return Ok(new);
        }
    }
    Err(Failure::with_help(format!("run `{run}` has 10000 forks"), "choose an id with `--as ID`"))
}
