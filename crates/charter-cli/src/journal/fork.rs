//! `charter fork RUN --at SEQ`: a new run that shares the past of another one.

use charter_journal::Store;
use serde_json::json;

use super::{Db, find};
use crate::input::whole;
use crate::io::{Exit, Failure, Io, Paint};

/// Makes a new run that shares the past.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The run, or the beginning of its id
    run: String,
    /// The last record that is shared
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true, value_parser = whole::<u64>)]
    at: u64,
    /// Id of the new run [default: that of the old one with `.fork1`, `.fork2`, ... after it]
    #[arg(long = "as", value_name = "ID")]
    new: Option<String>,
    #[command(flatten)]
    db: Db,
}

/// Runs the command. The new id is the result.
///
/// # Errors
/// There is no such run or record, there is a run of the new id, or another process writes the journal.
pub fn run(args: &Args, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.write()?;
    let run = find(&store, &args.run)?;
    let new = match &args.new {
        Some(new) if store.run(new)?.is_some() => {
            return Err(Failure::new(format!("there is a run `{new}` already")));
        }
        Some(new) => {
            charter_runtime::check_run_id(new)?;
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
        let paint = Paint(io.colour_err);
        let to = format!("`charter run --resume {new}` goes on from record {}", args.at);
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
    Err(Failure::with_help(format!("run `{run}` has 10000 forks"), "name the new one with `--as ID`"))
}
