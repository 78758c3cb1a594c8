//! `charter export RUN` and `charter import FILE`: a run as a file of its own.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use charter_journal::{StoreError, TransferError, Verified};
use serde_json::json;

use super::lines::count;
use super::{Db, find, spare};
use crate::input::open;
use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;

/// Writes a run as a file.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The run, or the beginning of its id
    run: String,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    db: Db,
}

/// Takes in a run from a file.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A file that `charter export` wrote; `-` reads standard input
    file: String,
    #[command(flatten)]
    db: Db,
}

/// Runs `export`.
///
/// # Errors
/// There is no such run, or the file cannot be written.
pub fn export(args: &ExportArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.read()?;
    let run = find(&store, &args.run)?;
    let Some(path) = &args.output else {
        charter_journal::export(&store, &run.run, io.out).map_err(failed)?;
        return Ok(Exit::Yes);
    };
    spare(path)?;
    let cannot = |e: std::io::Error| Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e)));
    let mut file = BufWriter::new(File::create(path).map_err(cannot)?);
    charter_journal::export(&store, &run.run, &mut file).map_err(failed)?;
    file.flush().map_err(cannot)?;
    let done = format!("{} of run {} written to `{}`", count(run.seq + 1, "record"), run.run, path.display());
    writeln!(io.err, "{}", Paint(io.colour_err).faint(&done))?;
    Ok(Exit::Yes)
}

/// A stream that nobody reads any more is no failure of ours.
fn failed(error: TransferError) -> Failure {
    match error {
        TransferError::File(e) => Failure::Io(e),
        other => other.into(),
    }
}

/// Runs `import`. What does not verify is not taken in; the answer is no then.
///
/// # Errors
/// The file cannot be read, or there is a run of that id already.
pub fn import(args: &ImportArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut file = open(&args.file, "records", io)?;
    // What does not verify makes no journal.
    let taken = match Verified::read(&mut file) {
        Ok(run) => run.write(&args.db.make()?),
        Err(wrong) => Err(wrong),
    };
    match taken {
        Ok(run) if machine_output => {
            let line = json!({"run": run.run, "records": run.seq + 1, "hash": run.hash});
            writeln!(io.out, "{line}")?;
            Ok(Exit::Yes)
        }
        Ok(run) => {
            writeln!(io.out, "{}", run.run)?;
            let done = format!("{} verified and taken in", count(run.seq + 1, "record"));
            writeln!(io.err, "{}", Paint(io.colour_err).faint(&done))?;
            Ok(Exit::Yes)
        }
        Err(TransferError::NotVerified(finding)) => {
            let paint = Paint(io.colour_err);
            writeln!(io.err, "{} {finding}; nothing was taken in", paint.error("not verified:"))?;
            Ok(Exit::No)
        }
        Err(TransferError::Store(StoreError::Conflict { run, .. })) => Err(Failure::with_help(
            format!("there is a run `{run}` in this journal already"),
            "`--db FILE` takes it into another journal",
        )),
        Err(other) => Err(other.into()),
    }
}
