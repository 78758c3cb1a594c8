//! `charter export RUN` and `charter import FILE`: transfers a single run as a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use charter_journal::{StoreError, TransferError, Verified};
use serde_json::json;

use super::text::count;
use super::{Db, find, refuse_overwrite};
use crate::input::open;
use crate::io::{Exit, Failure, Io, Paint};
use crate::load::plain;

/// Exports a run.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The run, or the beginning of its id
    run: String,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    db: Db,
}

/// Imports a run.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A file written by `charter export`; `-` reads standard input
    file: String,
    #[command(flatten)]
    db: Db,
}

/// Runs `export`.
///
/// # Errors
/// The run does not exist, or the file cannot be written.
pub fn export(args: &ExportArgs, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let store = args.db.read()?;
    let run = find(&store, &args.run)?;
    let Some(path) = &args.output else {
        charter_journal::export(&store, &run.run, io.out).map_err(failed)?;
        return Ok(Exit::Yes);
    };
    refuse_overwrite(path)?;
    let cannot = |e: std::io::Error| Failure::new(format!("cannot write `{}`: {}", path.display(), plain(&e)));
    let mut file = BufWriter::new(File::create(path).map_err(cannot)?);
    charter_journal::export(&store, &run.run, &mut file).map_err(failed)?;
    file.flush().map_err(cannot)?;
    let done = format!("{} of run {} written to `{}`", count(run.seq + 1, "record"), run.run, path.display());
    writeln!(io.err, "{}", Paint(io.color_err).faint(&done))?;
    Ok(Exit::Yes)
}

/// Keeps errors of the output stream separate: a closed pipe is not a failure.
fn failed(error: TransferError) -> Failure {
    match error {
        TransferError::File(e) => Failure::Io(e),
        other => other.into(),
    }
}

/// Runs `import`. A run that does not verify is not imported, and the command exits with 1.
///
/// # Errors
/// The file cannot be read, or the id of the run is taken.
pub fn import(args: &ImportArgs, machine_output: bool, io: &mut Io<'_>) -> Result<Exit, Failure> {
    let mut file = open(&args.file, "records", io)?;
    // The journal file is created only after the run has been verified.
    let imported = match Verified::read(&mut file) {
        Ok(run) => run.write(&args.db.create()?),
        Err(error) => Err(error),
    };
    match imported {
        Ok(run) if machine_output => {
            let line = json!({"run": run.run, "records": run.seq + 1, "hash": run.hash});
            writeln!(io.out, "{line}")?;
            Ok(Exit::Yes)
        }
        Ok(run) => {
            writeln!(io.out, "{}", run.run)?;
            let done = format!("{} verified and imported", count(run.seq + 1, "record"));
            writeln!(io.err, "{}", Paint(io.color_err).faint(&done))?;
            Ok(Exit::Yes)
        }
        Err(TransferError::NotVerified(finding)) => {
            let paint = Paint(io.color_err);
            writeln!(io.err, "{} {finding}; nothing was imported", paint.error("not verified:"))?;
            Ok(Exit::No)
        }
        Err(TransferError::Store(StoreError::Conflict { run, .. })) => Err(Failure::with_help(
            format!("run `{run}` already exists in this journal file"),
            "`--db FILE` imports into another journal file",
        )),
        Err(other) => Err(other.into()),
    }
}
